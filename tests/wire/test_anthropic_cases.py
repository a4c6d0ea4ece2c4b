"""Faults that users met in other libraries, on the way in: framing, proxies, tool input, thinking, usage, stop reasons, errors.

Inputs are read in place from the shared cases; each test names the case it stands for.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Accumulator,
    AuthError,
    ContextOverflowError,
    Event,
    IncompleteStreamError,
    InvalidRequestError,
    InvalidToolUse,
    Message,
    Notice,
    Opaque,
    OpaqueEvent,
    OverloadedError,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    RedactedThinking,
    Request,
    RequestTooLargeError,
    ServerError,
    ServerToolResult,
    ServerToolUse,
    Text,
    TextDelta,
    Thinking,
    ToolUse,
    UnsupportedStopError,
    from_json,
    is_retryable,
    to_json,
)
from dragoman.testing import anthropic_events
from dragoman.wire.anthropic import AnthropicWire
from tests.shared import case, cases

WIRE = AnthropicWire()
SSE = {"content-type": "text/event-stream; charset=utf-8"}


class Result:
    """What a stream gave: its events, and the fold as far as it went."""

    def __init__(self, chunks: list[bytes], headers: dict[str, str] = SSE, status: int = 200) -> None:
        decoder = WIRE.decoder(status=status, headers=headers)
        self.events: list[Event] = [event for chunk in chunks for event in decoder.feed(chunk)]
        self.events += decoder.close()
        self.accumulator = Accumulator()
        self.error: ProviderError | None = None
        for event in self.events:
            try:
                self.accumulator.push(event)
            except ProviderError as error:
                self.error = error

    @property
    def message(self) -> Message:
        return self.accumulator.message()

    @property
    def partial(self) -> Message:
        return self.accumulator.partial()

    @property
    def notices(self) -> list[str]:
        return [event.code for event in self.events if isinstance(event, Notice)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def stream_of(identity: str) -> bytes:
    return case(identity)["input"].encode()


def run(identity: str) -> Result:
    """A case's stream, after showing that its own chunking, one byte per chunk and one chunk give the same events."""
    data = stream_of(identity)
    whole = Result([data])
    assert Result([data[i : i + 1] for i in range(len(data))]).events == whole.events
    if chunks := case(identity).get("chunks_b64"):
        pieces = [base64.b64decode(chunk) for chunk in chunks]
        assert b"".join(pieces) == data
        assert Result(pieces).events == whole.events
    return whole


def replayed(message: Message) -> list[dict[str, Any]]:
    """The wire blocks of an answer as the next request's assistant turn, after a trip through storage."""
    stored = from_json(to_json(message), Message)
    body = json.loads(WIRE.encode(Request(["q", stored, "go on"], model="claude-test-1"), stream=False).body)
    content = body["messages"][1]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


# ---- framing


@pytest.mark.parametrize(
    ("identity", "text"),
    [
        ("Growth-Circle/cadis#2329", "z"),
        ("SamSaffron/term-llm#454", "multi"),
        ("deepnoodle-ai/dive#206", "x"),
        ("hey-api/hey-api#3054", "crlf"),
        ("musistudio/claude-code-router#1672", "北京今天多云 🌦"),
        ("openai/openai-agents-python#4214", "hi"),
        ("openai/openai-node#2309", "one"),
        ("openai/openai-node#2725", "done"),
        ("sudoprivacy/sudocode#576", "all of it"),
        ("tenstorrent/tt-studio#936", "abc"),
        ("vm0-ai/vm0#24687", "bom"),
        ("earendil-works/pi#4381", "no names"),
        ("esengine/DeepSeek-Reasonix#8756", "full answer"),
    ],
)
def test_a_stream_with_odd_framing_is_a_whole_answer(identity: str, text: str) -> None:
    result = run(identity)
    assert result.error is None
    assert result.message.text == text
    assert result.accumulator.stop == "end_turn"
    assert result.accumulator.usage.input == 10


def test_unicode_separators_do_not_cut_a_payload() -> None:
    result = run("florimondmanca/httpx-sse#34")
    assert result.message.text == "a\u2028b\u0085c\u2029d"
    assert result.message.tool_uses[0].input == {"t": "p\u2028q"}


def test_a_stream_in_bare_cr_is_the_same() -> None:
    data = stream_of("hey-api/hey-api#3054").replace(b"\r\n", b"\r")
    assert Result([data]).events == run("hey-api/hey-api#3054").events


def test_a_mixed_blank_line_ends_an_event_at_once() -> None:
    head, gap, _ = stream_of("openai/openai-node#2309").partition(b"\n\r\n")
    decoder = WIRE.decoder(headers=SSE)
    assert decoder.feed(head + gap)[-1] == TextDelta(0, "one")


def test_the_last_event_needs_neither_blank_line_nor_line_end() -> None:
    data = stream_of("openai/openai-node#2725")
    assert Result([data.rstrip(b"\n")]).events == Result([data]).events


def test_a_cut_character_never_becomes_a_replacement_character() -> None:
    data = stream_of("musistudio/claude-code-router#1672")
    for cut in range(len(data)):
        assert "\ufffd" not in Result([data[:cut], data[cut:]]).message.text


def test_a_bom_inside_text_is_kept() -> None:
    data = stream_of("vm0-ai/vm0#24687").replace(b'"bom"', '"b\ufeffm"'.encode())
    assert Result([data]).message.text == "b\ufeffm"


# ---- proxies


def test_an_html_page_with_status_200_is_a_protocol_error() -> None:
    head, _, page = case("QwenLM/qwen-code#6465")["input"].partition("\r\n\r\n")
    result = Result([page.encode()], {"content-type": "text/html; charset=utf-8", "request-id": "req_9"})
    assert isinstance(result.error, ProtocolError)
    assert "200" in head
    assert "HTTP 200 with text/html" in str(result.error)
    assert result.error.body.startswith("<html>")
    assert (result.error.status, result.error.request_id) == (200, "req_9")


def test_a_page_without_a_content_type_is_seen_as_one() -> None:
    assert isinstance(Result([b"  <!doctype html><p>hello"], {}).error, ProtocolError)


def test_the_excerpt_of_a_page_is_bounded() -> None:
    error = Result([b"<html>" + b"x" * 100_000], {"content-type": "text/html"}).error
    assert error is not None
    assert len(error.body) <= 1024


def test_a_compaction_that_failed_is_kept_and_adds_no_text() -> None:
    result = run("UKGovernmentBEIS/inspect_ai#5061")
    assert result.message.text == "go on"
    assert result.message.content[0] == Opaque({"type": "compaction", "content": None}, wire="anthropic")
    assert [event.text for event in result.of(TextDelta)] == ["go on"]


def test_a_delta_for_a_block_never_started_names_its_index() -> None:
    result = run("Wei-Shaw/sub2api#4294")
    assert isinstance(result.error, ProtocolError)
    assert "block 1, which was never started" in str(result.error)
    assert result.partial.content == [ToolUse("toolu_1", "a", {})]


def test_unknown_blocks_deltas_and_events_are_kept() -> None:
    result = run("braintrustdata/braintrust-sdk-javascript#1695")
    assert result.error is None
    assert [block.type for block in result.message.content] == ["server_tool_use", "server_tool_result", "text"]
    assert result.message.tool_uses == []
    assert result.message.text == "ans"
    assert result.of(OpaqueEvent) == [OpaqueEvent({"type": "brand_new_event", "x": 1}, wire="anthropic", kind="brand_new_event")]
    assert result.notices == ["unknown_event"]


def test_a_text_delta_for_a_tool_is_refused_and_never_enters_the_input() -> None:
    result = run("sgl-project/sglang#24293")
    assert isinstance(result.error, ProtocolError)
    assert re.search("text_delta for block 0, which is a tool_use", str(result.error))
    assert result.partial.invalid_tool_uses[0].raw == '{"a":1}'


# ---- tool input


@pytest.mark.parametrize("together", [False, True])
def test_deltas_find_their_block_whichever_started_last_or_has_stopped(together: bool) -> None:
    def frame(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    def delta(index: int, text: str) -> bytes:
        return frame("content_block_delta", index=index, delta={"type": "text_delta", "text": text})

    def start(index: int) -> bytes:
        return frame("content_block_start", index=index, content_block={"type": "text", "text": ""})

    reads = [
        frame("message_start", message={"id": "m", "role": "assistant", "model": "x", "content": []}),
        *(start(0), delta(0, "a"), start(1), delta(1, "b"), delta(0, "c"), frame("content_block_stop", index=1), delta(0, "d")),
        *(
            start(2),
            delta(0, "e"),
            delta(2, "f"),
            frame("content_block_stop", index=0),
            delta(2, "g"),
            frame("content_block_stop", index=2),
        ),
        frame("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
        frame("message_stop"),
    ]
    accumulator = Result([b"".join(reads)] if together else reads).accumulator
    assert [block.text for block in accumulator.message().content if isinstance(block, Text)] == ["acde", "b", "fg"]


def test_a_delta_for_a_stopped_block_is_an_error_even_if_that_was_the_latest() -> None:
    stream = b"".join(anthropic_events("x")[:-2])  # without message_delta and message_stop
    late = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"y"}}\n\n'
    result = Result([stream, late])
    assert isinstance(result.error, ProtocolError)
    assert not any(event.text == "y" for event in result.of(TextDelta))


@pytest.mark.parametrize("together", [False, True])
def test_content_after_the_stop_reason_is_kept_and_noticed(together: bool) -> None:
    first = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})
    again = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "c"})
    late = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b"}}
    reads = [named(frame) for frame in (START, *first[:2], END, late, first[2], *again, STOP)]
    result = Result([b"".join(reads)] if together else reads)
    assert [part.text for part in result.message.content if isinstance(part, Text)] == ["ab", "c"]
    assert result.notices == ["after_stop", "after_stop"]


def test_nothing_comes_after_an_error() -> None:
    start = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    result = Result([named(frame) for frame in (START, *start[:2], error, start[1], STOP)])
    assert isinstance(result.error, OverloadedError)
    assert [event.text for event in result.of(TextDelta)] == ["a"]


def test_interleaved_calls_each_get_their_own_input() -> None:
    result = run("aaif-goose/goose#11637")
    assert result.message.tool_uses == [ToolUse("toolu_a", "w", {"c": "A"}), ToolUse("toolu_b", "w", {"c": "B"})]


@pytest.mark.parametrize(
    ("identity", "name", "raw", "reason"),
    [
        ("anthropics/anthropic-sdk-python#1265", "find", '{"who": Bob, "days": 1}', "invalid_json"),
        ("anthropics/anthropic-sdk-python#794", "write", '{"title":"Sea","body":"The oc', "incomplete"),
        ("leohenon/pi-anthropic-oauth#11", "read", '{"path":"a.txt"}}', "invalid_json"),
        ("openclaw/openclaw#141323", "edit", '{"path":"a.py","text":"line1\nline2\tend","re":"\\d+"}', "invalid_json"),
    ],
)
def test_a_call_with_bad_input_is_never_executable_and_keeps_its_text(identity: str, name: str, raw: str, reason: Any) -> None:
    result = run(identity)
    assert result.error is None
    assert result.message.content == [InvalidToolUse("toolu_1", name, raw, reason=reason)]
    assert result.message.tool_uses == []


def test_max_tokens_inside_an_input_is_told_by_the_stop_reason() -> None:
    assert run("anthropics/anthropic-sdk-python#794").accumulator.stop == "max_tokens"


def test_a_call_without_arguments_has_the_empty_object() -> None:
    result = run("anthropics/anthropic-sdk-python#461")
    assert result.message.tool_uses == [ToolUse("toolu_1", "today", {})]
    assert replayed(result.message) == [{"type": "tool_use", "id": "toolu_1", "name": "today", "input": {}}]


# ---- thinking


def test_thinking_text_is_stored_and_replayed_exactly() -> None:
    result = run("anthropics/claude-code#63221")
    exact = json.loads(re.search(r"data: (.*step 1.*)", case("anthropics/claude-code#63221")["input"])[1])["delta"]["thinking"]  # type: ignore[index]
    [thinking, _] = result.message.content
    assert isinstance(thinking, Thinking)
    assert thinking.text.startswith(exact)
    assert thinking.text.endswith("\n\n  ")
    assert replayed(result.message)[0] == {"type": "thinking", "thinking": thinking.text, "signature": "S=="}


def test_a_thinking_block_may_have_only_a_signature() -> None:
    result = run("langchain-ai/langchain#38639")
    assert result.message.content[0] == Thinking("", signature="SIGONLY")
    assert replayed(result.message)[0] == {"type": "thinking", "thinking": "", "signature": "SIGONLY"}


def test_a_thinking_start_may_lack_its_keys() -> None:
    data = stream_of("langchain-ai/langchain#38639").replace(b'"thinking","thinking":"","signature":""', b'"thinking"')
    assert Result([data]).message.content[0] == Thinking("", signature="SIGONLY")


def test_redacted_thinking_survives_in_place() -> None:
    result = run("maximhq/bifrost#4942")
    assert result.message.content[0] == RedactedThinking("EncRYpted/+==")
    assert result.message.content[1] == Thinking("ok", signature="S1")
    assert replayed(result.message)[0] == {"type": "redacted_thinking", "data": "EncRYpted/+=="}
    assert "EncRYpted" not in result.message.text


def test_a_signature_delta_is_collected_and_replayed_before_the_call() -> None:
    blocks = replayed(run("nextlevelbuilder/goclaw#566").message)
    assert blocks[0] == {"type": "thinking", "thinking": "Need the file.", "signature": "EqQBsig+/=="}
    assert blocks[1]["type"] == "tool_use"


# ---- usage


def usage_of(identity: str, data: bytes | None = None) -> tuple[int, ...]:
    usage = Result([data or stream_of(identity)]).accumulator.usage
    return usage.input, usage.output, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.cache_write_other


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ("LibreChat-AI/agents#150", (5, 33, 0, 0, 0, 0)),
        ("earendil-works/pi#6567", (10, 3, 0, 0, 0, 0)),
        ("laravel/ai#996", (2300, 40, 900, 0, 0, 0)),
        ("modelbus/one-api-pro#13", (31, 52, 500, 0, 0, 40)),
        ("earendil-works/pi#5737", (100, 10, 0, 600, 400, 0)),
        ("pydantic/logfire#1812", (5, 7, 900, 0, 0, 95)),
    ],
)
def test_counts_replace_and_never_add(identity: str, expected: tuple[int, ...]) -> None:
    assert usage_of(identity) == expected


def test_usage_null_is_as_if_absent() -> None:
    data = stream_of("earendil-works/pi#6567").replace(b'"stop_sequence":null}}', b'"stop_sequence":null},"usage":null}')
    assert usage_of("", data) == (10, 3, 0, 0, 0, 0)


def test_a_null_stop_reason_neither_finishes_nor_erases() -> None:
    data = stream_of("LibreChat-AI/agents#150")
    first, second = re.findall(rb"event: message_delta\n.*\n\n", data)
    swapped = Result([data.replace(first + second, second + first)])
    assert swapped.accumulator.stop == "end_turn"
    assert run("LibreChat-AI/agents#150").accumulator.stop == "end_turn"


# ---- stop reasons


def test_tool_use_without_a_call_is_unknown_and_noticed() -> None:
    result = run("mastra-ai/mastra#14187")
    assert (result.accumulator.stop, result.accumulator.raw_stop) == ("unknown", "tool_use")
    assert result.notices == ["tool_use_without_call"]


def test_a_new_stop_reason_is_unknown_and_delivered() -> None:
    result = run("mozilla-ai/any-llm#1306")
    assert (result.accumulator.stop, result.accumulator.raw_stop) == ("unknown", "quantum_budget")
    assert result.message.text == "x"
    assert result.notices == ["unknown_stop_reason"]


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("refusal", "refusal"),
        ("compaction", "compaction"),
    ],
)
def test_each_documented_stop_reason_has_its_own_name(raw: str, stop: str) -> None:
    result = Result([stream_of("mozilla-ai/any-llm#1306").replace(b"quantum_budget", raw.encode())])
    assert (result.accumulator.stop, result.accumulator.raw_stop, result.error) == (stop, raw, None)


def test_pause_turn_without_server_tools_is_an_unsupported_stop() -> None:
    result = run("tetsuo-ai/agenc-core#2111")
    assert isinstance(result.error, UnsupportedStopError)
    assert result.error.raw == "pause_turn"
    assert result.error.partial is not None
    assert result.error.partial.text == "searching"


def test_running_out_of_context_is_an_overflow_with_the_whole_message() -> None:
    result = Result([stream_of("mozilla-ai/any-llm#1306").replace(b"quantum_budget", b"model_context_window_exceeded")])
    assert isinstance(result.error, ContextOverflowError)
    assert result.accumulator.stop == "context_exceeded"
    assert result.error.partial == Message("assistant", "x", origin=result.partial.origin)


# ---- errors


def http(identity: str) -> ProviderError:
    head, _, body = case(identity)["input"].partition("\r\n\r\n")
    status = int(head.split()[1])
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    return WIRE.decode_error(status, headers, body.encode())


def api_error(status: int, message: str, type: str = "invalid_request_error") -> ProviderError:
    return WIRE.decode_error(status, {}, json.dumps({"type": "error", "error": {"type": type, "message": message}}).encode())


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'"text"', b'{"error":"text"}', b'{"detail":"x"}', b'{"error":{"code":502}}', b"\xff\xfe", b"<html>"],
)
def test_any_body_of_a_502_is_a_server_error(body: bytes) -> None:
    error = WIRE.decode_error(502, {"content-type": "text/html"}, body)
    assert type(error) is ServerError
    assert (error.status, is_retryable(error)) == (502, True)
    assert str(error).startswith("Anthropic request failed with HTTP 502")


def test_an_empty_502_keeps_its_status() -> None:
    assert http("Significant-Gravitas/AutoGPT#944").status == 502


def test_each_wording_of_an_overflow_is_one() -> None:
    for line in case("anomalyco/opencode#25231")["input"].split("\n"):
        message = line.partition(": ")[2]
        assert type(api_error(400, message)) is ContextOverflowError, message


@pytest.mark.parametrize(
    "message",
    [
        "Prompt is too long",
        "prompt too long",
        "messages: input length and max_tokens exceed context limit: 1 + 2 > 2",
        "The request exceeds the context window of this model",
        "request exceeds model context window",
        "input exceeded the model's maximum context length",
        "context length exceeded",
        "the context window was exceeded by 12 tokens",
        "This model's maximum prompt length is 131072 but the request contains 200001 tokens.",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_so_are_its_neighbours(message: str) -> None:
    assert type(api_error(400, message)) is ContextOverflowError


@pytest.mark.parametrize(
    "message",
    [
        "messages.0.content: string too long",
        "tools.0.description is too long",
        "stop_sequences: list is too long",
        "context_management: unknown field",
        "the context of the tool call is missing",
        "max_tokens: 9000 is too large for this model",
        "metadata.user_id: string should have at most 256 characters",
        "image exceeds 5 MB maximum",
    ],
)
def test_what_else_can_be_too_long_is_no_overflow(message: str) -> None:
    assert type(api_error(400, message)) is InvalidRequestError


@pytest.mark.parametrize("identity", ["continuedev/continue#6080", "entropy-research/Devon#88"])
def test_an_overflow_by_its_message_is_not_retried(identity: str) -> None:
    error = http(identity)
    assert type(error) is ContextOverflowError
    assert not is_retryable(error)
    assert error.request_id == "req_01"


def test_a_complaint_about_max_tokens_is_no_overflow() -> None:
    lines = case("vellum-ai/vellum-assistant#5290")["input"].split("\n")
    classes = [type(api_error(int(line[:3]), line.partition(": ")[2] or line[4:])) for line in lines]
    assert classes == [InvalidRequestError, InvalidRequestError, RateLimitedError, InvalidRequestError]


def test_an_error_event_first_is_an_overload_and_the_only_event() -> None:
    result = run("farzaa/clicky#132")
    assert isinstance(result.error, OverloadedError)
    assert len(result.events) == 1
    assert is_retryable(result.error)
    assert str(result.error) == "Anthropic request failed (overloaded_error): Overloaded [req_01]"


def test_529_is_an_overload() -> None:
    error = http("macanderson/stella#2742")
    assert type(error) is OverloadedError
    assert (error.status, is_retryable(error)) == (529, True)


def test_413_stays_terminal_whatever_its_body_says() -> None:
    error = http("Alishahryar1/free-claude-code#1611")
    assert type(error) is RequestTooLargeError
    assert not is_retryable(error)


def test_retry_after_ms_and_x_should_retry_are_read() -> None:
    error = http("productdevbook/misina#61")
    assert (error.retry_after, error.retryable) == (0.25, True)
    assert not is_retryable(WIRE.decode_error(503, {"X-Should-Retry": "false"}, b""))


@pytest.mark.parametrize(
    ("status", "type", "code", "expected"),
    [
        (401, "authentication_error", "", AuthError),
        (402, "billing_error", "", QuotaExceededError),
        (429, "rate_limit_error", "enforced_spend_limit_reached", QuotaExceededError),
        (429, "rate_limit_error", "ramp_limit_exceeded", RateLimitedError),
        (400, "billing_error", "", QuotaExceededError),
        (503, "api_error", "", OverloadedError),
        (500, "overloaded_error", "", OverloadedError),
        (418, "", "", InvalidRequestError),
        (302, "", "", ProtocolError),
    ],
)
def test_status_type_and_code_decide_the_class(status: int, type: str, code: str, expected: type[ProviderError]) -> None:
    body = {"type": "error", "error": {"type": type, "message": "m", "details": {"error_code": code}}}
    error = WIRE.decode_error(status, {}, json.dumps(body).encode())
    assert error.__class__ is expected
    assert error.code == code
    assert not (expected is QuotaExceededError and is_retryable(error))


def test_a_key_in_the_servers_message_is_removed() -> None:
    error = api_error(401, "invalid key sk-ant-TESTKEY-0123456789 given", "authentication_error")
    assert "TESTKEY" not in str(error) + repr(error) + error.body


def test_a_long_message_is_cut_in_the_text_and_whole_in_the_body() -> None:
    error = api_error(400, "x" * 5000)
    assert len(str(error)) < 400
    assert error.body.count("x") == 5000


def test_a_stream_without_stop_reason_is_incomplete() -> None:
    data = stream_of("openai/openai-node#2725").partition(b"event: message_delta")[0]
    result = Result([data])
    assert isinstance(result.error, IncompleteStreamError)
    assert result.error.partial is not None
    assert result.error.partial.text == "done"


def test_the_transports_error_is_the_end_only_without_a_stop_reason() -> None:
    data = stream_of("esengine/DeepSeek-Reasonix#8756")
    for cut, failed in ((len(data), False), (data.index(b"event: message_delta"), True)):
        decoder = WIRE.decoder(headers=SSE)
        decoder.feed(data[:cut])
        last = decoder.close(ServerError("cut"))[-1]
        assert (last.type == "failed") is failed


# ---- llama.cpp and other writers of the protocol (anthropic.md §19)


def frames(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def named(event: dict[str, Any]) -> bytes:
    """As the service itself writes it."""
    return b"event: " + event["type"].encode() + b"\n" + frames(event)


START = {"type": "message_start", "message": {"id": "m1", "model": "claude-test-1", "content": [], "usage": {"input_tokens": 1}}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
STOP = {"type": "message_stop"}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def test_overlapping_blocks_and_a_stray_stop_are_tolerated() -> None:
    thinking = block(0, {"type": "thinking"}, {"type": "thinking_delta", "thinking": "hm"})
    text = block(1, {"type": "text"}, {"type": "text_delta", "text": "hi"})
    stops = [thinking.pop(), text.pop(), {"type": "content_block_stop", "index": 2}]
    result = Result([frames(START, *thinking, *text, *stops, END, STOP)])
    assert [b.type for b in result.message.content] == ["thinking", "text"]
    assert result.notices == ["stray_block_stop"]


def test_a_stop_sequence_reported_as_end_turn_is_a_stop_sequence() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": "\n"}}
    result = Result([frames(START, end, STOP)])
    assert (result.accumulator.stop, result.accumulator.raw_stop) == ("stop_sequence", "end_turn")


def test_an_error_event_without_an_inner_error_is_an_error() -> None:
    data = b'event: error\ndata: {"code":503,"message":"Loading model","type":"unavailable_error"}\n\n'
    error = Result([frames(START) + data]).error
    assert isinstance(error, OverloadedError)
    assert "Loading model" in str(error)


def test_a_done_marker_after_the_end_means_nothing() -> None:
    assert Result([frames(START, END, STOP) + b"event: data\ndata: [DONE]\n\n"]).error is None


def test_a_done_marker_before_the_end_means_nothing() -> None:
    assert Result([frames(START, END) + b"data: [DONE]\n\n"]).notices == ["after_stop"]


def test_an_input_that_comes_whole_with_the_start_is_given_as_one_delta() -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": [2]}, "caller": {"type": "direct"}}
    result = Result([frames(START, *block(0, start), END, STOP)])
    [call] = result.message.tool_uses
    assert (call.input, list(call.input)) == ({"b": 1, "a": [2]}, ["b", "a"])
    assert call.extra == {"anthropic": {"caller": {"type": "direct"}}}
    assert [json.loads(e.json) for e in result.events if e.type == "tool_input_delta"] == [call.input]


def test_deltas_win_over_an_input_in_the_start() -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": {"old": 1}}
    deltas = [{"type": "input_json_delta", "partial_json": '{"new":2}'}]
    assert Result([frames(START, *block(0, start, *deltas), END, STOP)]).message.tool_uses[0].input == {"new": 2}


@pytest.mark.parametrize(("given", "reason"), [("[1]", "not_an_object"), ([1], "not_an_object"), ("{", "incomplete")])
def test_an_input_of_another_shape_in_the_start_is_invalid(given: Any, reason: str) -> None:
    start = {"type": "tool_use", "id": "t", "name": "f", "input": given}
    [call] = Result([frames(START, *block(0, start), END, STOP)]).message.invalid_tool_uses
    assert call.reason == reason


def test_a_call_left_open_at_the_end_is_incomplete() -> None:
    events = block(0, {"type": "tool_use", "id": "t", "name": "f"}, {"type": "input_json_delta", "partial_json": "{}"})[:-1]
    result = Result([frames(START, *events, END, STOP)])
    assert result.message.content == [InvalidToolUse("t", "f", "{}", reason="incomplete")]


def test_a_server_call_left_open_does_not_ask_for_an_answer() -> None:
    events = block(0, {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}})[:-1]
    [call] = Result([frames(START, *events, END, STOP)]).message.invalid_tool_uses
    assert call.extra == {"dragoman": {"server_tool": True}}


def test_a_surrogate_pair_split_over_two_deltas_is_rejoined() -> None:
    text = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}'
    data = (
        frames(START, *block(0, {"type": "text"})[:1])
        + "".join(f"data: {text % piece}\n\n" for piece in ("a\\ud83d", "\\ude00b", "\\ud83d", "c")).encode()
    )
    result = Result([data + frames({"type": "content_block_stop", "index": 0}, END, STOP)])
    assert result.message.text == "a😀b\ufffdc"
    assert [event.text for event in result.of(TextDelta)] == ["a", "😀b", "\ufffdc"]


def test_a_lone_surrogate_in_thinking_is_kept() -> None:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x\\ud83d"}}\n\n'
    start, stop = block(0, {"type": "thinking"})
    result = Result([frames(START, start) + delta + frames(stop, END, STOP)])
    assert result.message.content == [Thinking("x\ud83d")]
    assert from_json(to_json(result.message), Message) == result.message


def test_a_prefilled_message_start_gives_the_events_of_a_stream() -> None:
    content = [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]
    message = {**START["message"], "content": content, "stop_reason": "tool_use"}  # type: ignore[dict-item]
    result = Result([frames({"type": "message_start", "message": message}, STOP)])
    assert [event.type for event in result.events] == [
        "message_start", "block_start", "text_delta", "block_stop", "block_start", "tool_input_delta", "block_stop", "message_stop",
    ]  # fmt: skip
    assert (result.message.text, result.message.tool_uses[0].input, result.accumulator.stop) == ("hi", {"a": 1}, "tool_use")


def test_a_json_body_where_a_stream_was_asked_for_is_the_same_answer() -> None:
    body = {"type": "message", "id": "m", "model": "c", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    for headers in ({"content-type": "application/json"}, {}):
        assert Result([json.dumps(body).encode()], headers).message.text == "hi"


def test_a_body_without_a_stop_reason_is_incomplete() -> None:
    body = b'{"type":"message","id":"m","model":"c","content":[],"stop_reason":null}'
    assert isinstance(Result([body], {"content-type": "application/json"}).error, IncompleteStreamError)


def test_a_200_body_that_is_an_error_is_that_error() -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
    assert isinstance(Result([body], {"content-type": "application/json"}).error, OverloadedError)


def test_mcp_calls_and_results_are_server_side_and_keep_their_server() -> None:
    use = {"type": "mcp_tool_use", "id": "u", "name": "echo", "server_name": "s", "input": {}}
    outcome = {"type": "mcp_tool_result", "tool_use_id": "u", "is_error": False, "content": [{"type": "text", "text": "x"}]}
    result = Result([frames(START, *block(0, use), *block(1, outcome), END, STOP)])
    assert result.message.content == [
        ServerToolUse("u", "echo", {}, extra={"anthropic": {"server_name": "s"}}),
        ServerToolResult("u", outcome["content"], kind="mcp_tool_result", extra={"anthropic": {"is_error": False}}),
    ]


def test_an_unknown_delta_of_a_known_block_is_passed_on() -> None:
    delta = {"type": "sparkle_delta", "x": 1}
    result = Result([frames(START, *block(0, {"type": "text"}, delta), END, STOP)])
    assert result.of(OpaqueEvent) == [OpaqueEvent(delta, wire="anthropic", kind="sparkle_delta", index=0)]
    assert result.notices == ["unknown_delta"]


def test_an_opaque_block_folds_what_it_knows_and_passes_on_the_rest() -> None:
    deltas = [{"type": "input_json_delta", "partial_json": '{"a":1}'}, {"type": "text_delta", "text": "?"}]
    result = Result([frames(START, *block(0, {"type": "holo_use", "id": "h"}, *deltas), END, STOP)])
    assert result.message.content == [Opaque({"type": "holo_use", "id": "h", "input": {"a": 1}}, wire="anthropic")]
    assert [event.kind for event in result.of(OpaqueEvent)] == ["text_delta"]


def test_every_case_that_decodes_is_covered_here() -> None:
    themes = {"sse", "proxy", "tool_input", "thinking", "usage", "stop_reason", "unicode"}
    source = Path(__file__).read_text("utf-8")
    missing = [
        identity
        for identity, found in cases().items()
        if found["theme"] in themes and found["input_kind"] in ("sse", "http") and found.get("provider", "anthropic") == "anthropic"
        if identity not in source
    ]
    assert missing == []


def test_every_prefix_of_a_stream_ends_in_exactly_one_terminal_event() -> None:
    data = stream_of("aaif-goose/goose#11637")
    for cut in range(0, len(data), 7):
        events = Result([data[:cut]]).events
        terminal = [event for event in events if event.type in ("message_stop", "failed")]
        assert [*itertools.islice(reversed(events), 1)] == terminal
