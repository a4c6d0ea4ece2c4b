"""The answer to a call, in the form that its kind of call wants.

Strategy. Every kind has one function; they share the item's head (`type`, `call_id`) and what `extra` kept of an item that came from the
wire. A result is text and pictures on our side; a shell wants `stdout` and an exit code, a computer a screenshot, a patch a status. Where
the caller gives the wire's own JSON as text (a list of shell outputs, the tools that a search found), it is sent as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.message import Image, ToolResult
from dragoman.wire.decoder import load_json
from dragoman.wire.json_values import as_objects, as_string, is_list, is_object
from dragoman.wire.openai_responses.kinds import CALLS, WIRE
from dragoman.wire.openai_responses.parts_out import PartWriter, image_source

__all__ = ["shell_text", "write_result"]

_Item = dict[str, Any]


def write_result(block: ToolResult, kind: str, call_id: str, parts: PartWriter, path: str) -> _Item:
    """The item that answers a call of this kind."""
    item: _Item = {"type": CALLS[kind].answer, "call_id": call_id}
    own = {key: value for key, value in block.extra.get(WIRE, {}).items() if key not in ("kind", "type", "call_id")}
    return {**item, **_WRITERS.get(kind, _function)(block, own, parts, path), **own}


def _function(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    """Text, or a list of parts. The API has no error flag for functions; the status of the item is the nearest."""
    return {"output": _content(block, parts, path), **({"status": "incomplete"} if block.is_error and "status" not in own else {})}


def _content(block: ToolResult, parts: PartWriter, path: str) -> str | list[_Item]:
    written = [part for i, b in enumerate(block.content) for part in parts.input_parts(b, f"{path}.content[{i}]")]
    if not written:
        return ""
    if len(written) == 1 and set(written[0]) == {"type", "text"}:
        return str(written[0]["text"])
    return written


def _local_shell(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    del own, parts, path
    return {"output": block.text}


def _shell(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    del parts, path
    kept: Any = own.pop("output", None)
    if is_list(kept) and shell_text(kept) == block.text:
        return {"output": kept}
    given = _json(block.text)
    if is_list(given) and given and all(is_object(chunk) and "outcome" in chunk for chunk in given):
        return {"output": given}
    outcome = {"type": "exit", "exit_code": 1 if block.is_error else 0}
    return {"output": [{"stdout": block.text, "stderr": "", "outcome": outcome}]}


def shell_text(outputs: list[Any]) -> str:
    """What a shell printed, as one text."""
    return "".join([as_string(chunk.get(stream)) for chunk in as_objects(outputs) for stream in ("stdout", "stderr")])


def _apply_patch(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    del own, parts, path
    return {"status": "failed" if block.is_error else "completed", **({"output": block.text} if block.text else {})}


def _computer(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    """A screenshot; text alone is sent as it is and refused by the API, which says why."""
    detail: _Item = own.pop("output", None) or {}
    for image in block.content:
        source = image_source(image.source) if isinstance(image, Image) else None
        if source is not None:
            return {"output": {"type": "computer_screenshot", **source, **detail}}
    return {"output": _content(block, parts, path)}


def _tool_search(block: ToolResult, own: _Item, parts: PartWriter, path: str) -> _Item:
    """The definitions that were found: a JSON list as text."""
    del parts, path
    tools = _json(block.text)
    return {"tools": tools if is_list(tools) else [], **({} if "execution" in own else {"execution": "client"})}


def _json(text: str) -> Any:
    try:
        return load_json(text)
    except ValueError:
        return None


_WRITERS: dict[str, Callable[[ToolResult, _Item, PartWriter, str], _Item]] = {
    "local_shell_call": _local_shell,
    "shell_call": _shell,
    "apply_patch_call": _apply_patch,
    "computer_call": _computer,
    "tool_search_call": _tool_search,
}
