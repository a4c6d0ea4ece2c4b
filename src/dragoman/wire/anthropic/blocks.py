"""One content block of the wire as one of ours (spec: anthropic.md §5, §6). Used for answers and for recorded requests alike.

A table names, for each wire type, the keys that have a field; every other key goes to `extra["anthropic"]` and is written back by the
encoder. A block whose type we do not know, or whose known keys do not have the shape that the table says, is kept whole as `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.message import (
    Base64,
    Block,
    CacheControl,
    Citation,
    Document,
    Extra,
    FileId,
    Image,
    Opaque,
    Parts,
    PlainText,
    RedactedThinking,
    ServerToolResult,
    ServerToolUse,
    Source,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
)
from dragoman.wire.json_values import is_list, is_object

__all__ = ["SERVER_RESULTS", "SERVER_SIDE", "WIRE", "block_of", "cache_of"]

WIRE = "anthropic"

SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_result",
    }
)
"""Wire types that are a `ServerToolResult`."""

SERVER_SIDE: frozenset[type[Block]] = frozenset({ServerToolUse, ServerToolResult})
"""The blocks that show that the provider ran something itself."""


class _Misfit(Exception):  # never leaves this file
    """A known key has a shape of its own: keep the block whole."""


def block_of(data: dict[str, Any]) -> Block:
    """Our block for a wire block. Never fails: what does not fit is `Opaque`."""
    kind = data.get("type")
    make = _MAKERS.get(kind) if isinstance(kind, str) else None
    if make is not None:
        try:
            return make(data)
        except _Misfit:
            pass
    return Opaque(data, wire=WIRE)


# ---- reading keys


def _str(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Misfit
    return value


def _optional(data: dict[str, Any], key: str) -> str | None:
    return None if data.get(key) is None else _str(data, key)


def _object(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    if value is None:
        return {}
    if not is_object(value):
        raise _Misfit
    return value


def _items(value: Any) -> list[dict[str, Any]]:
    if not is_list(value) or not all(is_object(item) for item in value):
        raise _Misfit
    return value


def _extra(data: dict[str, Any], *known: str) -> Extra:
    """Every key without a field, and a cache mark that is not of the one shape we know."""
    rest = {key: value for key, value in data.items() if key != "type" and key not in known}
    if "cache_control" in rest and (rest["cache_control"] is None or cache_of(data) is not None):
        del rest["cache_control"]
    return {WIRE: rest} if rest else {}


def _extra_with_mark(data: dict[str, Any], *known: str) -> Extra:
    """The same for a block that has no field for a cache mark."""
    extra = _extra(data, *known)
    if cache_of(data) is None:
        return extra
    return {WIRE: {**extra.get(WIRE, {}), "cache_control": data["cache_control"]}}


def cache_of(data: dict[str, Any]) -> CacheControl | None:
    """The cache mark of a wire object, if it has one of the shape we know."""
    if "cache_control" not in data:
        return None
    match data.get("cache_control"):
        case {"type": "ephemeral", "ttl": "5m" | "1h" as ttl, **rest} if not rest:
            return CacheControl(ttl)
        case {"type": "ephemeral", **rest} if not rest:
            return CacheControl()
        case _:
            return None


def _citations(data: dict[str, Any]) -> list[Citation]:
    value = data.get("citations")
    return [] if value is None else [Citation(_str(item, "type"), item) for item in _items(value)]


def _content(value: Any) -> list[str | Block]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [block_of(item) for item in _items(value)]


def _source(data: dict[str, Any]) -> Source:
    """The source of an image or document, if it holds nothing beyond what the table of sources says."""
    source = _object(data, "source")
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(payload), **rest} if not rest:
            return Base64(media_type, payload)
        case {"type": "url", "url": str(url), **rest} if not rest:
            return Url(url)
        case {"type": "file", "file_id": str(file_id), **rest} if not rest:
            return FileId(file_id)
        case {"type": "text", "media_type": "text/plain", "data": str(text), **rest} if not rest:
            return PlainText(text)
        case {"type": "content", "content": content, **rest} if not rest:
            return Parts(_content(content))
        case _:
            raise _Misfit


# ---- one maker per wire type


def _text(data: dict[str, Any]) -> Block:
    if len(data) == 2 and "text" in data:  # and its type: as nearly always
        return Text(_str(data, "text"))
    return Text(_str(data, "text"), citations=_citations(data), cache=cache_of(data), extra=_extra(data, "text", "citations"))


def _thinking(data: dict[str, Any]) -> Block:
    return Thinking(_str(data, "thinking"), signature=_str(data, "signature"), extra=_extra_with_mark(data, "thinking", "signature"))


def _redacted(data: dict[str, Any]) -> Block:
    return RedactedThinking(_str(data, "data"), extra=_extra_with_mark(data, "data"))


def _image(data: dict[str, Any]) -> Block:
    return Image(_source(data), cache=cache_of(data), extra=_extra(data, "source"))


def _document(data: dict[str, Any]) -> Block:
    cite = _object(data, "citations")
    if cite.keys() - {"enabled"} or not isinstance(cite.get("enabled", False), bool):
        raise _Misfit
    return Document(
        _source(data),
        title=_optional(data, "title"),
        context=_optional(data, "context"),
        cite=cite.get("enabled", False),
        cache=cache_of(data),
        extra=_extra(data, "source", "title", "context", "citations"),
    )


def _tool_use(data: dict[str, Any]) -> Block:
    return ToolUse(
        _str(data, "id"), _str(data, "name"), _object(data, "input"), cache=cache_of(data), extra=_extra(data, "id", "name", "input")
    )


def _server_tool_use(data: dict[str, Any]) -> Block:
    extra = _extra_with_mark(data, "id", "name", "input")
    return ServerToolUse(_str(data, "id"), _str(data, "name"), _object(data, "input"), extra=extra)


def _server_result(data: dict[str, Any]) -> Block:
    extra = _extra_with_mark(data, "tool_use_id", "content")
    return ServerToolResult(_str(data, "tool_use_id"), data.get("content"), kind=_str(data, "type"), extra=extra)


def _tool_result(data: dict[str, Any]) -> Block:
    is_error = data.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        raise _Misfit
    return ToolResult(
        _str(data, "tool_use_id"),
        _content(data.get("content")),
        is_error=bool(is_error),
        cache=cache_of(data),
        extra=_extra(data, "tool_use_id", "content", "is_error"),
    )


_MAKERS: dict[str, Callable[[dict[str, Any]], Block]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": _image,
    "document": _document,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "server_tool_use": _server_tool_use,
    "mcp_tool_use": _server_tool_use,  # told apart by extra["anthropic"]["server_name"]
    **dict.fromkeys(SERVER_RESULTS, _server_result),
}
