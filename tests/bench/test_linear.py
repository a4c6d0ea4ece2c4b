"""Everything is linear: five times the work runs five times the lines; text is parsed once, joined twice, and kept without its pieces."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dragoman import Accumulator, Anthropic, Message, OutputFormat, Request, Text, ToolUse, tool_result, user
from dragoman.fragments import JOIN_EVERY, Fragments
from dragoman.history import problems, repair
from dragoman.storage import from_json, to_json
from dragoman.transport import Clocks, HeaderList
from dragoman.wire.anthropic import AnthropicWire, decode
from dragoman.wire.base import HTTPRequest
from tests.bench.answers import DELTAS, answer, fold
from tests.bench.counting import growth, lines_run

LINEAR = pytest.approx(5, rel=0.05)
CHUNK = 4096


def reads(events: list[bytes], size: int) -> list[bytes]:
    data = b"".join(events)
    return [data[at : at + size] for at in range(0, len(data), size)]


# ---- answers


@pytest.mark.parametrize("kind", DELTAS)
def test_deltas_that_come_together_cost_the_same_each(kind: str) -> None:
    assert growth(lambda n: lambda: fold([b"".join(answer(kind, n))]), 200) == LINEAR


@pytest.mark.parametrize("kind", DELTAS)
def test_deltas_that_come_one_by_one_cost_the_same_each(kind: str) -> None:
    assert growth(lambda n: lambda: fold(answer(kind, n)), 200) == LINEAR


def test_an_answer_in_single_bytes_costs_the_same_for_each_byte() -> None:
    assert growth(lambda n: lambda: fold(reads(answer("text", n), 1)), 10) == LINEAR


def test_blocks_cost_the_same_each() -> None:
    assert growth(lambda n: lambda: fold(answer("tool input", 3, blocks=n)), 20) == LINEAR


def test_one_large_delta_in_many_reads_is_searched_once() -> None:
    def work(reads_of_it: int) -> Callable[[], object]:
        return lambda: fold(reads(answer("text", 1, piece="x" * CHUNK * max(reads_of_it, 1)), CHUNK))

    assert growth(work, 20) == LINEAR


def test_a_tool_input_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    parse = decode.parse_input
    monkeypatch.setattr(decode, "parse_input", lambda raw: (parsed.append(len(raw)), parse(raw))[1])

    fold(answer("tool input", 3_000))

    assert parsed == [len('{"text": ""}') + 3_000 * 8]


def test_text_is_joined_once_in_runs_and_once_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    joined: list[int] = []
    join = Fragments.join
    monkeypatch.setattr(Fragments, "join", lambda self: (joined.append(len(self.pieces)), join(self))[1])

    fold(answer("text", 10 * JOIN_EVERY))

    assert joined == [JOIN_EVERY] * 20  # in the decoder and in the accumulator


def test_a_long_stream_keeps_its_text_and_no_object_per_delta() -> None:
    """Twice the bytes of the text: the decoder's, for its BlockStop, and the accumulator's, for `partial()`."""

    def kept(deltas: int) -> int:
        chunks = reads(answer("text", deltas)[:-3], CHUNK)  # not yet ended
        wire_decoder = AnthropicWire().decoder(headers={"content-type": "text/event-stream"})
        accumulator = Accumulator()
        tracemalloc.start()
        for chunk in chunks:
            for event in wire_decoder.feed(chunk):
                accumulator.push(event)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert accumulator.partial().text
        return held

    more = kept(40 * JOIN_EVERY) - kept(20 * JOIN_EVERY)

    assert more <= 20 * JOIN_EVERY * 8 * 2 * 1.1


# ---- requests


def conversation(calls: int) -> list[Message]:
    turns = [user("go")]
    for n in range(calls):
        call = ToolUse(f"toolu_{n}", "read", {"path": f"/src/file{n}.py", "lines": [n, n + 20]})
        turns += [Message("assistant", [Text("Looking."), call]), user(tool_result(call, "x" * 100))]
    return turns


WIRE = AnthropicWire()


@pytest.mark.parametrize(
    "work",
    [
        lambda request: WIRE.encode(request, stream=True),
        lambda request: problems(request, WIRE),
        lambda request: repair(request.messages),
        lambda request: from_json(to_json(request), Request),
    ],
    ids=["encode", "problems", "repair", "storage"],
)
def test_a_history_costs_the_same_for_each_message(work: Callable[[Request], object]) -> None:
    def of(calls: int) -> Callable[[], object]:
        request = Request(conversation(calls), model="claude-test-1")
        return lambda: work(request)

    assert growth(of, 50) == pytest.approx(5, rel=0.1)


def test_calls_that_nobody_answered_cost_the_same_each() -> None:
    def of(calls: int) -> Callable[[], object]:
        request = Request([user("go"), Message("assistant", [ToolUse(f"t{n}", "read", {}) for n in range(calls + 1)]), user("and?")])
        return lambda: problems(request, WIRE)

    assert growth(of, 50) == LINEAR


# ---- streams at once


class Memory:
    """A transport whose answers are there already; between two reads every other stream gets its turn."""

    status = 200
    headers: HeaderList = [("content-type", "text/event-stream")]

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> Memory:
        timeouts.connected()
        return self

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        raise NotImplementedError

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            await asyncio.sleep(0)
            yield chunk

    async def read(self) -> bytes:
        raise NotImplementedError

    async def close(self) -> None: ...


def test_streams_at_once_cost_the_same_each() -> None:
    provider = Anthropic(api_key="k", model="claude-test-1", async_transport=Memory(answer("text", 20)), telemetry=None)

    async def read(streams: int) -> None:
        await asyncio.gather(*(provider.acomplete(Request("hi")) for _ in range(streams)))

    assert growth(lambda n: lambda: asyncio.run(read(n)), 10) == LINEAR


# ---- the measure itself


def test_the_measure_sees_what_is_quadratic() -> None:
    def of(deltas: int) -> Callable[[], object]:
        events = answer("text", deltas)
        return lambda: [fold([*events[:end], *events[-3:]]) for end in range(2, len(events) - 3)]

    assert growth(of, 30) > 10


def test_the_measure_leaves_the_tracer_as_it_was() -> None:
    before = sys.gettrace()

    lines_run(lambda: fold(answer("text", 1)))

    assert sys.gettrace() is before


# ---- strict schemas


def chain(length: int, *, reverse: bool) -> dict[str, Any]:
    """A schema of definitions that refer to the next one each."""
    names = sorted(range(length), reverse=reverse)
    definitions = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in names} | {f"d{length}": {"type": "string"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "required": ["a"], "$defs": definitions}


@pytest.mark.parametrize("reverse", [False, True])
def test_definitions_that_refer_to_each_other_cost_the_same_each(reverse: bool) -> None:
    def checked(length: int) -> Callable[[], object]:
        request = Request("hi", model="claude-sonnet-4-5", output=OutputFormat(chain(length, reverse=reverse)))
        return lambda: problems(request, AnthropicWire())

    assert growth(checked, 200) == LINEAR
    assert checked(3000)() == []  # no chain is too deep
