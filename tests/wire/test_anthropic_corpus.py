"""Every recorded exchange of the Messages API: the same answer whatever the chunking, equal to what the official SDK made of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from dragoman import (
    Accumulator,
    Event,
    Failed,
    Message,
    MessageStop,
    Opaque,
    ProviderError,
    RedactedThinking,
    Response,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
    from_json,
    to_json,
)
from dragoman.wire.anthropic import AnthropicWire
from tests.shared import Exchange, exchange_params

WIRE = AnthropicWire()
SDK_WRONG = {
    "vercel-ai/anthropic_spliced-message-start.0.98719629": "two answers spliced together: the SDK mixes them, we refuse",
    "sdk-python/streaming_incomplete_partial_json_response.0.df5f9db7": "the SDK's partial parser makes an input of cut JSON",
}
"""Where the SDK's result is not the right answer (see sdk_loss.json beside the recording); each has a test of its own below."""


def decode(exchange: Exchange, cuts: list[int]) -> list[Event]:
    decoder = WIRE.decoder(status=exchange.status, headers=exchange.headers)
    body = exchange.body
    edges = [0, *cuts, len(body)]
    events = [event for a, b in itertools.pairwise(edges) for event in decoder.feed(body[a:b])]
    return events + decoder.close()


def fold(events: list[Event]) -> tuple[Accumulator, ProviderError | None]:
    accumulator = Accumulator()
    try:
        for event in events:
            accumulator.push(event)
    except ProviderError as error:
        return accumulator, error
    return accumulator, None


def plain(block: Any) -> tuple[Any, ...]:
    """What the SDK and we must agree on, of one of our blocks."""
    match block:
        case Text(text):
            return "text", text, [c.data for c in block.citations]
        case Thinking(text):
            return "thinking", text, block.signature
        case RedactedThinking(data):
            return "redacted_thinking", data
        case ToolUse(id, name, input):
            return "tool_use", id, name, input, list(input)
        case ServerToolUse(id, name, input):
            return "server_tool_use", id, name, input
        case ServerToolResult(id, content):
            return block.kind, id, content
        case Opaque(data):
            return data["type"], {key: value for key, value in data.items() if value is not None}
        case _:
            raise AssertionError(block)


def plain_wire(block: dict[str, Any]) -> tuple[Any, ...]:
    """The same, of a block as the wire and the SDK have it."""
    match block:
        case {"type": "text"}:
            return "text", block["text"], block.get("citations") or []
        case {"type": "thinking"}:
            return "thinking", block["thinking"], block.get("signature") or ""
        case {"type": "redacted_thinking"}:
            return "redacted_thinking", block["data"]
        case {"type": "tool_use"}:
            return "tool_use", block["id"], block["name"], block["input"], list(block["input"])
        case {"type": "server_tool_use" | "mcp_tool_use"}:
            return "server_tool_use", block["id"], block["name"], block["input"]
        case {"type": kind, "tool_use_id": id}:
            return kind, id, block.get("content")
        case _:
            return block["type"], {key: value for key, value in block.items() if value is not None}


def counts(usage: dict[str, Any]) -> tuple[int, ...]:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return tuple(usage.get(name) or 0 for name in names)


@pytest.mark.parametrize("exchange", exchange_params("anthropic"))
def test_the_events_do_not_depend_on_the_chunking(exchange: Exchange) -> None:
    whole = decode(exchange, [])
    size = len(exchange.body)
    dice = random.Random(exchange.name)
    assert decode(exchange, list(range(1, size))) == whole
    assert decode(exchange, sorted(dice.choices(range(size + 1), k=30))) == whole
    assert isinstance(whole[-1], MessageStop | Failed)


@pytest.mark.parametrize("exchange", exchange_params("anthropic", streamed=True, where=lambda e: e.name not in SDK_WRONG))
def test_a_stream_gives_what_the_official_sdk_gives(exchange: Exchange) -> None:
    expected = exchange.json("expected.json")
    accumulator, error = fold(decode(exchange, []))
    assert error is None
    assert [plain(block) for block in accumulator.message().content] == [plain_wire(block) for block in expected["content"]]
    assert accumulator.raw_stop == expected["stop_reason"]
    usage = accumulator.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == counts(expected["usage"])


@pytest.mark.parametrize("exchange", exchange_params("anthropic", streamed=False))
def test_a_body_is_its_own_oracle(exchange: Exchange) -> None:
    body = exchange.json("response.json")
    try:
        response = WIRE.decode_response(exchange.status, exchange.headers, exchange.body)
    except ProviderError as error:
        assert exchange.status >= 400
        assert error.status == exchange.status  # noqa: PT017
        assert error.type == body["error"]["type"]  # noqa: PT017
        assert body["error"]["message"][:200].split()[0] in str(error)  # noqa: PT017
        return
    assert [plain(block) for block in response.message.content] == [plain_wire(block) for block in body["content"]]
    assert (response.id, response.model, response.raw_stop) == (body["id"], body["model"], body["stop_reason"])
    usage = response.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == counts(body["usage"])
    split = body["usage"].get("cache_creation") or {}
    assert usage.cache_write_5m == (split.get("ephemeral_5m_input_tokens") or 0)
    assert usage.cache_write_1h == (split.get("ephemeral_1h_input_tokens") or 0)


@pytest.mark.parametrize("exchange", exchange_params("anthropic"))
def test_every_answer_survives_storage(exchange: Exchange) -> None:
    events = decode(exchange, [])
    accumulator, error = fold(events)
    message = accumulator.partial()
    assert from_json(to_json(message), Message) == message
    kept = [event for event in events if not isinstance(event, Failed)]  # of an error only the outline is stored
    assert from_json(to_json(kept), list[Event]) == kept
    if error is None:
        response = accumulator.response()
        assert from_json(to_json(response), Response) == response


@pytest.mark.parametrize("exchange", exchange_params("anthropic", streamed=True))
def test_only_the_known_oddities_are_noticed(exchange: Exchange) -> None:
    notices = [event.code for event in decode(exchange, []) if event.type == "notice"]
    duplicate = exchange.name.startswith("vercel-ai/anthropic_duplicate-message-start")
    assert notices == (["duplicate_message_start"] if duplicate else [])


def exchange_named(name: str) -> Exchange:
    for param in exchange_params("anthropic"):
        if param.id == name:
            return param.values[0]
    pytest.skip("the recorded exchanges are absent")


def test_two_answers_spliced_together_are_refused_and_the_first_is_kept() -> None:
    accumulator, error = fold(decode(exchange_named("vercel-ai/anthropic_spliced-message-start.0.98719629"), []))
    assert error is not None
    assert error.kind == "protocol"
    assert "msg_second" in str(error)
    assert [block.type for block in accumulator.partial().content] == ["thinking", "invalid_tool_use"]


def test_cut_tool_json_is_never_made_whole() -> None:
    accumulator, error = fold(decode(exchange_named("sdk-python/streaming_incomplete_partial_json_response.0.df5f9db7"), []))
    assert error is None
    [call] = accumulator.message().invalid_tool_uses
    assert call.reason == "incomplete"
    assert accumulator.stop == "max_tokens"
