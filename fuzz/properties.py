"""What must hold for any bytes that a peer or a file may hand us. Each function takes bytes and raises AssertionError if it does not.

The tests drive these with hypothesis, `fuzz/run.py` drives them with atheris, so what one finds the other can keep. No function
here knows a right answer: only that errors are ours, that a stream ends exactly once, that its events follow the grammar, that nothing
depends on how the bytes were cut, and that what was read can be stored and read again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dragoman import (
    Accumulator,
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    Failed,
    Message,
    MessageStart,
    MessageStop,
    OpaqueEvent,
    Request,
    Response,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    from_json,
    to_json,
)
from dragoman.errors import DragomanError, ProviderError, StorageError
from dragoman.event import Notice, UsageUpdate
from dragoman.fragments import parse_input
from dragoman.message import Audio, Block, Refusal, ServerToolUse, Text, Thinking, ToolUse
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import Decoder
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire
from dragoman.wire.sse import EventTooLargeError, SSEParser

__all__ = ["PROPERTIES", "STREAM", "WIRES", "anthropic", "chat", "follows_the_grammar", "responses", "sse", "stored", "tool_input"]

STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}

WIRES: dict[str, Any] = {"anthropic": AnthropicWire(), "openai-chat": OpenAIChatWire(), "openai-responses": OpenAIResponsesWire()}

_FITS: dict[type[Event], tuple[type[Block], ...]] = {
    TextDelta: (Text, Refusal, Audio),
    ThinkingDelta: (Thinking,),
    SignatureDelta: (Thinking,),
    ToolInputDelta: (ToolUse, ServerToolUse),
    CitationDelta: (Text,),
}


def follows_the_grammar(events: list[Event]) -> None:
    """The order contract of `dragoman.event`, without retries."""
    assert events, "no terminal event"
    *inner, last = events
    assert isinstance(last, MessageStop | Failed), last
    if not isinstance(events[0], MessageStart):
        assert len(events) == 1, events
        assert isinstance(last, Failed), last
        return
    open_blocks: dict[int, Block] = {}
    count = 0
    for event in inner[1:]:
        if isinstance(event, BlockStart):
            assert event.index == count, event
            count += 1
            open_blocks[event.index] = event.block
            _starts_empty(event.block)
        elif isinstance(event, BlockStop):
            assert event.index in open_blocks, event
            assert event.block is not None, event
            del open_blocks[event.index]
        elif isinstance(event, tuple(_FITS)):
            block = open_blocks[event.index]  # type: ignore[union-attr]
            assert isinstance(block, _FITS[type(event)]), (event, block)
        else:
            assert isinstance(event, UsageUpdate | OpaqueEvent | Notice), event
    assert not open_blocks or isinstance(last, Failed), open_blocks


def _starts_empty(block: Block) -> None:
    match block:
        case Text(text) | Refusal(text) | Thinking(text):
            assert not text
        case ToolUse(_, _, input) | ServerToolUse(_, _, input):
            assert not input
        case _:
            pass


def _events(make: Callable[[], Decoder], pieces: list[bytes]) -> list[Event]:
    decoder = make()
    found = [event for piece in pieces for event in decoder.feed(piece)]
    found += decoder.close()
    assert decoder.feed(b"data: {}\n\n") == []
    assert decoder.close() == []
    return found


def _answer(wire: Any, data: bytes, headers: dict[str, str]) -> None:
    def make() -> Decoder:
        return wire.decoder(headers=headers)  # type: ignore[no-any-return]

    events = _events(make, [data])
    follows_the_grammar(events)
    size = 1 + len(data) % 61
    again = _events(make, [data[at : at + size] for at in range(0, len(data), size)])
    assert _comparable(again) == _comparable(events)
    accumulator = Accumulator()
    for event in events:
        try:
            accumulator.push(event)
        except ProviderError as error:
            if not isinstance(event, Failed) or error is not event.error:
                raise AssertionError(event) from error
    partial = accumulator.partial()
    assert from_json(to_json(partial)) == partial
    assert [from_json(to_json(event), Event) for event in events[:-1]] == events[:-1]
    repr(events)


def _comparable(events: list[Event]) -> list[Any]:
    """Events without the text of errors, which may quote as much as had come."""
    return [(type(event.error), event.usage) if isinstance(event, Failed) else event for event in events]


def sse(data: bytes) -> None:
    """The parser of server-sent events: the same frames however the bytes are cut."""
    limit = 64 + len(data) // 2

    def frames(pieces: list[bytes], limit: int) -> list[tuple[bytes, bytes]] | None:
        parser = SSEParser(limit=limit)
        try:
            return [frame for piece in pieces for frame in parser.feed(piece)] + parser.close()
        except EventTooLargeError:
            return None

    whole = frames([data], len(data) + 1)
    assert whole is not None
    for size in (1, 2, 3, 7):
        assert frames([data[at : at + size] for at in range(0, len(data), size)], len(data) + 1) == whole
    assert sum(len(name) + len(value) for name, value in whole) <= len(data)
    small = frames([data], limit)
    assert small is None or small == whole


def anthropic(data: bytes) -> None:
    """Anthropic's decoder, on a stream, a body and an error."""
    _wire(WIRES["anthropic"], data)


def chat(data: bytes) -> None:
    """The decoder of chat completions."""
    _wire(WIRES["openai-chat"], data)


def responses(data: bytes) -> None:
    """The decoder of the Responses API."""
    _wire(WIRES["openai-responses"], data)


def _wire(wire: Any, data: bytes) -> None:
    for headers in (STREAM, JSON, {}):
        _answer(wire, data, headers)
    error = wire.decode_error(400 + len(data) % 200, {}, data)
    assert isinstance(error, ProviderError)
    assert len(error.body) <= 64 * 1024
    with suppress(DragomanError):
        wire.decode_request(data)


def stored(data: bytes) -> None:
    """`from_json`: a value that can be written and read again, or a StorageError."""
    for type_ in (Message, Request, Response, Event, Block, list[Message]):
        try:
            value = from_json(data, type_)
        except StorageError:
            continue
        written = to_json(value)
        assert from_json(written, type_) == value
        assert to_json(from_json(written, type_)) == written


def tool_input(data: bytes) -> None:
    """A tool's input: an object, or why it is none."""
    value = parse_input(data.decode("utf-8", "surrogateescape"))
    assert isinstance(value, dict) or value in ("incomplete", "invalid_json", "not_an_object")
    if isinstance(value, dict):
        to_json({"input": value})


PROPERTIES: dict[str, Callable[[bytes], None]] = {
    "sse": sse,
    "anthropic": anthropic,
    "chat": chat,
    "responses": responses,
    "stored": stored,
    "tool-input": tool_input,
}
