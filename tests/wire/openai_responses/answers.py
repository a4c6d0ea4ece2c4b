"""Answers of the Responses API, made for tests: a response object, and the stream that a server would send of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from dragoman import Accumulator, Event, ProviderError, Response
from dragoman.wire.openai_responses import OpenAIResponsesWire

WIRE = OpenAIResponsesWire()
STREAM = {"content-type": "text/event-stream"}
Cut = Callable[[str], list[str]]
USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 8,
}


def sse(*events: dict[str, Any]) -> bytes:
    """Events as a stream; `event:` repeats the type, as OpenAI does."""
    return b"".join(b"event: " + e["type"].encode() + b"\ndata: " + json.dumps(e).encode() + b"\n\n" for e in events)


def response(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    """A response object."""
    return {"id": "resp_1", "object": "response", "model": "gpt-test", "status": status, "output": list(output), "usage": USAGE, **fields}


def created() -> dict[str, Any]:
    """The first event."""
    return {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-test", "status": "in_progress", "output": []}}


def completed(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The last event."""
    return {"type": "response.completed", "response": response(*output, **fields)}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    """An item begins."""
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    """An item is whole."""
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: str, **fields: Any) -> dict[str, Any]:
    """A delta: `delta("output_text", 0, "Hi")`."""
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **fields}


def message(*texts: str, id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    """A message item of texts."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": content, **fields}


def call(arguments: str, *, name: str = "get_weather", call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    """A function call item."""
    return {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **fields,
    }


def reasoning(*summary: str, id: str = "rs_1", **fields: Any) -> dict[str, Any]:
    """A reasoning item."""
    return {"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in summary], **fields}


def stream_of(answer: dict[str, Any], cut: Cut = lambda text: [text] if text else []) -> bytes:
    """The stream that OpenAI would send of a response; `cut` says how a text arrives."""
    last = {"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed"}[answer["status"]]
    events = [created()]
    for index, item in enumerate(answer["output"]):
        events += _item_events(index, item, cut)
    return sse(*events, {"type": last, "response": answer})


def _item_events(index: int, item: dict[str, Any], cut: Cut) -> Iterator[dict[str, Any]]:
    empty = {"content": [], "summary": [], "arguments": "", "input": "", "code": "", "result": None, "encrypted_content": None}
    yield added(index, {key: empty.get(key, value) for key, value in item.items() if value is not None})
    place = {"item_id": item.get("id")}
    match item["type"]:
        case "message":
            for number, part in enumerate(item["content"]):
                where = {**place, "output_index": index, "content_index": number}
                kind, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
                yield {"type": "response.content_part.added", **where, "part": {**part, key: "", "annotations": []}}
                for piece in cut(part[key]):
                    yield {"type": f"response.{kind}.delta", **where, "delta": piece}
                for annotation in part.get("annotations", []):
                    yield {"type": "response.output_text.annotation.added", **where, "annotation": annotation}
                yield {"type": "response.content_part.done", **where, "part": part}
        case "reasoning":
            for number, part in enumerate(item["summary"]):
                where = {**place, "output_index": index, "summary_index": number}
                yield {"type": "response.reasoning_summary_part.added", **where, "part": {"type": "summary_text", "text": ""}}
                for piece in cut(part["text"]):
                    yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
        case "function_call" | "mcp_call":
            kind = {"function_call": "function_call_arguments", "mcp_call": "mcp_call_arguments"}[item["type"]]
            for piece in cut(item["arguments"]):
                yield delta(kind, index, piece, **place)
        case "custom_tool_call":
            for piece in cut(item["input"]):
                yield delta("custom_tool_call_input", index, piece, **place)
        case "code_interpreter_call":
            for piece in cut(item["code"] or ""):
                yield delta("code_interpreter_call_code", index, piece, **place)
        case _:
            pass
    yield done(index, item)


def events_of(body: bytes, **headers: str) -> list[Event]:
    """All events of a stream."""
    decoder = WIRE.decoder(headers={**STREAM, **headers})
    return decoder.feed(body) + decoder.close()


def folded(events: list[Event]) -> Accumulator:
    """The events, pushed; a failure is in `error`."""
    accumulator = Accumulator()
    try:
        for event in events:
            accumulator.push(event)
    except ProviderError:
        pass
    return accumulator


def answer(body: bytes) -> Response:
    """The response of a stream."""
    return folded(events_of(body)).response()


def body_answer(value: dict[str, Any], wire: OpenAIResponsesWire = WIRE) -> Response:
    """The response of a JSON body."""
    return wire.decode_response(200, {"content-type": "application/json"}, json.dumps(value).encode())
