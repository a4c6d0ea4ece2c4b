"""Every bound holds, and the work grows with the bytes, not with their square.

Work is counted, not timed: function calls of Python and C while a decoder runs. Five times the input may cost five times the calls and
a little more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from fuzz.properties import JSON, STREAM, WIRES

from dragoman import Accumulator, Failed, InvalidToolUse, MessageStop, ProtocolError, ProviderError, ToolUse
from dragoman.errors import ERROR_BODY_LIMIT, IncompleteStreamError
from dragoman.event import Event
from dragoman.fragments import INPUT_DEPTH_LIMIT, parse_input
from dragoman.testing import Answer, WireServer, anthropic_events
from dragoman.testing.answer import Raw, Stall
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.wire.decoder import BLOCK_LIMIT, BODY_LIMIT
from dragoman.wire.sse import EVENT_LIMIT

from .calls import ASK, connect, grown, holdings

MEGABYTE = 1024 * 1024
HEAD, BLOCK, DELTA, STOP, *END = anthropic_events("x", ping=False)
Pieces = list[bytes]


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def drive(pieces: Pieces, wire: str = "anthropic", headers: dict[str, str] = STREAM, status: int = 200) -> list[Event]:
    decoder = WIRES[wire].decoder(headers=headers, status=status)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return [*events, *decoder.close()]


def failure(events: list[Event]) -> ProviderError:
    last = events[-1]
    assert isinstance(last, Failed), last
    return last.error


# ---- bounds


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_an_event_without_end_is_given_up_at_its_limit(wire: str, line_end: bytes) -> None:
    taken = 0
    decoder = WIRES[wire].decoder(headers=STREAM)
    found: list[Event] = decoder.feed(b": hello" + line_end * 2 + b"data: ")
    piece = b"x" * MEGABYTE
    while not found:
        found = decoder.feed(piece)
        taken += len(piece)
    assert EVENT_LIMIT <= taken <= EVENT_LIMIT + MEGABYTE
    assert isinstance(failure(found), ProtocolError)
    assert f"larger than {EVENT_LIMIT} bytes" in str(failure(found))
    assert decoder.feed(piece) == []


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [4096, MEGABYTE])
def test_an_event_just_under_the_limit_passes_however_it_is_cut(line_end: bytes, size: int) -> None:
    text = "x" * (EVENT_LIMIT - 1000)
    data = DELTA.replace(b'"text": "x"', b'"text": "' + text.encode() + b'"')
    stream = b"".join([HEAD, BLOCK, data, STOP, *END]).replace(b"\n", line_end)
    accumulator = Accumulator()
    for event in drive([stream[at : at + size] for at in range(0, len(stream), size)]):
        accumulator.push(event)
    assert len(accumulator.message().text) == len(text)


@pytest.mark.parametrize("wire", WIRES)
def test_a_json_answer_without_end_is_given_up_at_its_limit(wire: str) -> None:
    decoder = WIRES[wire].decoder(headers=JSON)
    piece = b'{"a":"' + b"x" * (8 * MEGABYTE - 6)
    found: list[Event] = []
    taken = 0
    while not found:
        found = decoder.feed(piece)
        taken += len(piece)
    assert BODY_LIMIT < taken <= BODY_LIMIT + len(piece)
    assert f"larger than {BODY_LIMIT} bytes" in str(failure(found))


@pytest.mark.usefixtures("each_transport")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_error_body_without_end_is_read_to_its_limit_and_left(way: str) -> None:
    from .test_secrets import complete

    endless = Answer(status=400, headers=[("content-type", "text/plain")], body=[b"x" * 4096] * 40 + [Stall()])
    with WireServer(endless) as server:
        with pytest.raises(ProviderError) as raised:
            complete(connect(server), way)
        server.wait_closed()
    assert 0 < len(raised.value.body) <= ERROR_BODY_LIMIT
    assert len(str(raised.value)) < 500


@pytest.mark.usefixtures("each_transport")
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_head_without_end_is_given_up(way: str) -> None:
    from .test_secrets import complete

    head = b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(2000))
    with WireServer(Answer(before=[Raw(head), Stall()])) as server:
        with pytest.raises(ProviderError):
            complete(connect(server), way)
        server.wait_closed(0)


def chat_call(number: int) -> bytes:
    call = {"index": number, "id": f"c{number}", "function": {"name": "f"}}
    return frame({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})


def responses_call(number: int) -> bytes:
    item = {"type": "function_call", "id": f"i{number}", "call_id": f"c{number}", "name": "f"}
    return frame({"type": "response.output_item.added", "output_index": number, "item": item})


def text_block(number: int) -> bytes:
    return frame({"type": "content_block_start", "index": number, "content_block": {"type": "text", "text": ""}})


BLOCKS: dict[str, Callable[[int], bytes]] = {"anthropic": text_block, "openai-chat": chat_call, "openai-responses": responses_call}
BEGIN = {"anthropic": HEAD, "openai-chat": b"", "openai-responses": b""}


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_may_not_have_more_blocks_than_the_limit(wire: str) -> None:
    events = drive([BEGIN[wire], *map(BLOCKS[wire], range(BLOCK_LIMIT + 5))], wire)
    error = failure(events)
    assert isinstance(error, ProtocolError)
    assert f"more than {BLOCK_LIMIT} blocks" in str(error)
    assert sum(event.type == "block_start" for event in events) == BLOCK_LIMIT


def test_an_answer_in_one_piece_may_not_either() -> None:
    body = {"id": "m", "type": "message", "content": [{"type": "text", "text": "x"}] * (BLOCK_LIMIT + 1), "stop_reason": "end_turn"}
    assert f"more than {BLOCK_LIMIT} blocks" in str(failure(drive([json.dumps(body).encode()], headers=JSON)))


def test_an_answer_with_many_blocks_passes() -> None:
    events = drive(
        [json.dumps({"id": "m", "content": [{"type": "text", "text": "x"}] * 2000, "stop_reason": "end_turn"}).encode()], headers=JSON
    )
    assert isinstance(events[-1], MessageStop)


@pytest.mark.parametrize("depth", [INPUT_DEPTH_LIMIT, INPUT_DEPTH_LIMIT + 1, 100_000])
def test_a_tool_input_may_nest_so_deep_and_no_deeper(depth: int) -> None:
    raw = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    start = frame({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}})
    delta = frame({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": raw}})
    accumulator = Accumulator()
    for event in drive([HEAD, start, delta, STOP, *END]):
        accumulator.push(event)
    [call] = accumulator.message().content
    if depth <= INPUT_DEPTH_LIMIT:
        assert isinstance(call, ToolUse)
    else:
        assert isinstance(call, InvalidToolUse)
        assert (call.reason, call.raw) == ("invalid_json", raw)


def test_brackets_in_strings_are_not_nesting() -> None:
    assert parse_input(json.dumps({"code": "[" * 5000})) == {"code": "[" * 5000}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("surrogate", [b"", b'"s":"\\ud800",'])
def test_a_frame_that_nests_without_end_is_an_error_of_ours(wire: str, surrogate: bytes) -> None:
    deep = b'{"type":"x",' + surrogate + b'"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert isinstance(failure(drive([b"data: " + deep + b"\n\n"], wire)), ProtocolError)
    assert isinstance(failure(drive([deep], wire, JSON)), IncompleteStreamError | ProtocolError)


# ---- linear


def calls_of(function: Callable[[], object]) -> int:
    """How many functions a function calls, all the way down."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def text_deltas(count: int) -> Pieces:
    return [HEAD, BLOCK, *[DELTA] * count, STOP, *END]


def many_blocks(count: int) -> Pieces:
    starts = [BLOCKS["anthropic"](number) for number in range(count)]
    return [HEAD, *starts, *END]


def one_byte_at_a_time(count: int) -> Pieces:
    stream = b"".join([HEAD, BLOCK, DELTA.replace(b'"x"', b'"' + b"x" * count + b'"'), STOP, *END])
    return [stream[at : at + 1] for at in range(len(stream))]


def one_byte_at_a_time_in_carriage_returns(count: int) -> Pieces:
    stream = b"".join(one_byte_at_a_time(count)).replace(b"\n", b"\r\n")
    return [stream[at : at + 1] for at in range(len(stream))]


def unknown_events(count: int) -> Pieces:
    return [*[frame({"type": "new", "a": 1})] * count, HEAD, *END]


def pings_before_the_start(count: int) -> Pieces:
    return [*[frame({"type": "ping"})] * count, HEAD, *END]


def citations(count: int) -> Pieces:
    citation = frame({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"type": "c"}}})
    return [HEAD, BLOCK, *[citation] * count, STOP, *END]


def halves_of_surrogates(count: int) -> Pieces:
    half = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}\n\n'
    return [HEAD, BLOCK, *[half] * count, STOP, *END]


def empty_lines(count: int) -> Pieces:
    return [HEAD, b"\n" * count, b"\r\n" * count, *END]


def lines_of_data(count: int) -> Pieces:
    return [HEAD, b"data:\n" * count + b"data: {}\n\n", *END]


def tool_input_in_pieces(count: int) -> Pieces:
    start = frame({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}})
    inputs = ['{"a":[', *["[],"] * count, "1]}"]
    deltas = [
        frame({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}) for text in inputs
    ]
    return [HEAD, start, *deltas, STOP, *END]


def nothing_but_usage(count: int) -> Pieces:
    return [HEAD, *[frame({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 1, "new": {}}})] * count, *END]


ANTHROPIC = [
    text_deltas, many_blocks, one_byte_at_a_time, one_byte_at_a_time_in_carriage_returns, unknown_events, pings_before_the_start, citations,
    halves_of_surrogates, empty_lines, lines_of_data, tool_input_in_pieces, nothing_but_usage,
]  # fmt: skip


def linear(make: Callable[[int], Pieces], wire: str) -> None:
    small, large = make(200), make(1000)
    drive(small, wire)  # what is compiled and cached once is there
    once, five = calls_of(lambda: fold(small, wire)), calls_of(lambda: fold(large, wire))
    assert five <= 5.5 * once + 500


def fold(pieces: Pieces, wire: str) -> None:
    """Decode and accumulate."""
    accumulator = Accumulator()
    for event in drive(pieces, wire):
        if not isinstance(event, Failed):
            accumulator.push(event)


@pytest.mark.parametrize("make", ANTHROPIC, ids=lambda make: make.__name__)
def test_anthropic_is_linear(make: Callable[[int], Pieces]) -> None:
    linear(make, "anthropic")


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
def test_many_calls_are_linear(wire: str) -> None:
    linear(lambda count: [BLOCKS[wire](number) for number in range(count)], wire)


def test_what_a_decoder_holds_of_a_long_text_is_a_few_strings() -> None:
    """Not one object per delta: a long stream must not fill the memory with small pieces."""
    decoder, accumulator = WIRES["anthropic"].decoder(headers=STREAM), Accumulator()
    for piece in [HEAD, BLOCK]:
        for event in decoder.feed(piece):
            accumulator.push(event)
    before = holdings()
    for _ in range(20_000):
        for event in decoder.feed(DELTA):
            accumulator.push(event)
    assert grown(before, holdings(), 500) == {}
    assert accumulator.partial().text == "x" * 20_000


def test_a_request_is_still_answered_after_a_hostile_one() -> None:
    with WireServer(
        [
            Answer(headers=SSE_HEADERS, body=[b"data: [" * 5000 + b"\n\n"]),
            Answer(headers=SSE_HEADERS, body=[HEAD, BLOCK, DELTA, STOP, *END]),
        ]
    ) as server:
        with connect(server) as provider:
            with pytest.raises(ProtocolError):
                provider.complete(ASK)
            assert provider.complete(ASK).text == "x"
