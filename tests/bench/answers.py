"""Answers of any size, as bytes of Anthropic's stream."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dragoman import Accumulator, Response
from dragoman.wire.anthropic import AnthropicWire

__all__ = ["DELTAS", "answer", "fold"]

HEAD = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}

DELTAS: dict[str, tuple[dict[str, Any], str, str]] = {
    "text": ({"type": "text", "text": ""}, "text_delta", "text"),
    "thinking": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"),
    "tool input": ({"type": "tool_use", "id": "t", "name": "write", "input": {}}, "input_json_delta", "partial_json"),
}
"""For each kind of block: its start, and the type and field of its deltas."""


def sse(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def answer(kind: str, deltas: int, blocks: int = 1, piece: str = "12345678") -> list[bytes]:
    """The events of an answer of so many blocks, each of so many deltas."""
    block, delta, field = DELTAS[kind]
    events = [sse({"type": "message_start", "message": HEAD})]
    for index in range(blocks):
        events.append(sse({"type": "content_block_start", "index": index, "content_block": block}))
        pieces = [piece] * deltas
        if kind == "tool input":
            pieces = ['{"text": "', *pieces, '"}']
        events += [sse({"type": "content_block_delta", "index": index, "delta": {"type": delta, field: text}}) for text in pieces]
        events.append(sse({"type": "content_block_stop", "index": index}))
    stop = "tool_use" if kind == "tool input" and blocks else "end_turn"
    events.append(sse({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}))
    events.append(sse({"type": "message_stop"}))
    return events


def fold(chunks: Sequence[bytes]) -> Response:
    """Bytes to the response, as a driver does it."""
    decoder = AnthropicWire().decoder(headers={"content-type": "text/event-stream"})
    accumulator = Accumulator()
    for chunk in chunks:
        for event in decoder.feed(chunk):
            accumulator.push(event)
    for event in decoder.close():
        accumulator.push(event)
    return accumulator.response()
