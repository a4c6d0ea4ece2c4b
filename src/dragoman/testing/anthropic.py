"""Answers in Anthropic's dialect for scripts: streams, whole messages, errors.

`anthropic_events` gives a stream as one element per server-sent event, so a script can cut, drop, double or swap events by ordinary
list operations; `anthropic_stream` wraps it as an answer. The bytes are as the real service writes them, except for its random
padding: LF, `event:` equal to the type, a ping after the first block's start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from dragoman.testing.answer import Answer

__all__ = [
    "ContentBlock",
    "anthropic_error",
    "anthropic_events",
    "anthropic_message",
    "anthropic_stream",
    "content_text",
    "content_thinking",
    "content_tool_use",
    "sse",
]

ContentBlock: TypeAlias = Mapping[str, Any]
"""A content block of the wire: `{"type": "text", "text": …}`."""

SSE_HEADERS = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"), ("request-id", "req_test_1"))
JSON_HEADERS = (("content-type", "application/json"), ("request-id", "req_test_1"))


def sse(data: Mapping[str, Any] | str, event: str | None = None) -> bytes:
    """One server-sent event. Its name is `event`, or the `type` in `data`."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    name = event if event is not None or isinstance(data, str) else str(data.get("type", ""))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def content_text(text: str) -> ContentBlock:
    """A text block."""
    return {"type": "text", "text": text}


def content_thinking(thinking: str, signature: str = "c2lnbmF0dXJl") -> ContentBlock:
    """A thinking block."""
    return {"type": "thinking", "thinking": thinking, "signature": signature}


def content_tool_use(name: str, input: Mapping[str, Any], id: str = "toolu_test_1") -> ContentBlock:
    """A tool call."""
    return {"type": "tool_use", "id": id, "name": name, "input": dict(input)}


def anthropic_events(
    *content: str | ContentBlock,
    stop_reason: str | None = None,
    stop_sequence: str | None = None,
    model: str = "claude-test-1",
    id: str = "msg_test_1",
    usage: Mapping[str, Any] | None = None,
    pieces: int = 3,
    ping: bool = True,
) -> list[bytes]:
    """A stream, one element per event.

    `content`: text or wire blocks, each sent in at most `pieces` deltas. `stop_reason` is by default `tool_use` if there is a tool
    call, else `end_turn`. `usage` replaces the default of 10 input and 5 output tokens.
    """
    counts = {"input_tokens": 10, "output_tokens": 5} if usage is None else dict(usage)
    blocks = [content_text(block) if isinstance(block, str) else block for block in content]
    events: list[bytes] = [
        sse(
            {
                "type": "message_start",
                "message": {
                    "id": id,
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "content": [],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {**counts, "output_tokens": min(1, counts.get("output_tokens", 0))},
                },
            }
        )
    ]
    for index, block in enumerate(blocks):
        start, deltas = _opened(block, pieces)
        events.append(sse({"type": "content_block_start", "index": index, "content_block": start}))
        if ping and index == 0:
            events.append(sse({"type": "ping"}))
        events += [sse({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
        events.append(sse({"type": "content_block_stop", "index": index}))
    events.append(
        sse(
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop_reason or _stop_reason(blocks), "stop_sequence": stop_sequence},
                "usage": {"output_tokens": counts.get("output_tokens", 0)},
            }
        )
    )
    events.append(sse({"type": "message_stop"}))
    return events


def anthropic_stream(*content: str | ContentBlock, headers: Sequence[tuple[str, str]] = (), **stream: Any) -> Answer:
    """A complete stream as an answer. `stream` as for `anthropic_events`."""
    return Answer(headers=(*SSE_HEADERS, *headers), body=anthropic_events(*content, **stream))


def anthropic_message(
    *content: str | ContentBlock,
    stop_reason: str | None = None,
    model: str = "claude-test-1",
    id: str = "msg_test_1",
    usage: Mapping[str, Any] | None = None,
    headers: Sequence[tuple[str, str]] = (),
) -> Answer:
    """A whole message, as the service answers a request without `stream`."""
    blocks = [content_text(block) if isinstance(block, str) else block for block in content]
    return Answer(
        headers=(*JSON_HEADERS, *headers),
        body={
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [dict(block) for block in blocks],
            "stop_reason": stop_reason or _stop_reason(blocks),
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5} if usage is None else dict(usage),
        },
    )


def anthropic_error(
    status: int, type: str, message: str = "", *, headers: Sequence[tuple[str, str]] = (), details: Mapping[str, Any] | None = None
) -> Answer:
    """An error answer. `headers` are added, such as `("retry-after", "2")`."""
    error: dict[str, Any] = {"type": type, "message": message or type.replace("_", " ")}
    if details is not None:
        error["details"] = dict(details)
    return Answer(status=status, headers=(*JSON_HEADERS, *headers), body={"type": "error", "error": error, "request_id": "req_test_1"})


def _stop_reason(blocks: Sequence[ContentBlock]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"


def _opened(block: ContentBlock, pieces: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as its empty start and the deltas that fill it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _parts(block["text"], pieces)]
        case "thinking":
            deltas: list[dict[str, Any]] = [{"type": "thinking_delta", "thinking": part} for part in _parts(block["thinking"], pieces)]
            return {**block, "thinking": "", "signature": ""}, [*deltas, {"type": "signature_delta", "signature": block["signature"]}]
        case "tool_use" | "server_tool_use":
            written = json.dumps(block["input"], ensure_ascii=False)
            parts = ["", *_parts(written, pieces)] if block["input"] else [""]
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": part} for part in parts]
        case _:
            return dict(block), []


def _parts(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + size] for start in range(0, len(text), size)]
