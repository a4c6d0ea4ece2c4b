"""Chat answers made up for tests: chunks, streams, and a body with the stream that says the same."""

from __future__ import annotations

import json
from typing import Any

from dragoman import Accumulator, Event, Request, Response
from dragoman.wire.openai_chat import OpenAIChatWire

STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
DONE = b"data: [DONE]\n\n"


def event(value: Any, name: str = "") -> bytes:
    """One event of a stream."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test", "choices": [choice], **more})


def call(index: int | None, id: str | None = None, name: str | None = None, arguments: str | None = None) -> dict[str, Any]:
    """A delta with a piece of a call; what is None is left out, but `arguments`, which is null."""
    entry: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        entry["index"] = index
    if id is not None:
        entry["id"] = id
    if name is not None:
        entry["function"]["name"] = name
    return {"tool_calls": [entry]}


def events(data: bytes, dialect: str = "openai", *, request: Request | None = None, status: int = 200) -> list[Event]:
    """The events of a stream."""
    decoder = OpenAIChatWire(dialect).decoder(request, status=status, headers=STREAM)
    return [*decoder.feed(data), *decoder.close()]


def response(data: bytes, dialect: str = "openai", *, request: Request | None = None) -> Response:
    """The response of a stream. Raises what it failed with."""
    accumulator = Accumulator()
    for found in events(data, dialect, request=request):
        accumulator.push(found)
    return accumulator.response()


def body_response(body: dict[str, Any], dialect: str = "openai", *, request: Request | None = None) -> Response:
    """The response of a whole body."""
    return OpenAIChatWire(dialect).decode_response(200, JSON, json.dumps(body).encode(), request)
