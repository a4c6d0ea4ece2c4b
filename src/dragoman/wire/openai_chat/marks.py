"""Our own cache marks, where a host takes marks and the caller asked for them (`cache="auto"`).

Strategy. Two marks cover what is sent again: one at the end of the system text (and so of the tools before it), one at the end of the
conversation, which the next turn then reads. They are added only where the caller's own leave room: gateways hand the marks to
Anthropic, which takes four.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.wire.json_values import as_list, as_objects, is_object
from dragoman.wire.openai_chat.writer import WireObject

__all__ = ["MARK_LIMIT", "add_marks"]

MARK_LIMIT: Final = 4
"""Marks that a request may have (Anthropic's limit, behind the gateways that take marks)."""

_MARK: Final[dict[str, str]] = {"type": "ephemeral"}


def add_marks(body: WireObject) -> None:
    """Mark the end of the system text and of the conversation in a body that is being written."""
    messages: list[WireObject] = body["messages"]
    room = MARK_LIMIT - _count(body)
    system = [message for message in messages[:1] if message["role"] in ("system", "developer")]
    for message in [*system, *messages[-1:]]:
        if room > 0 and _mark(message):
            room -= 1


def _mark(message: WireObject) -> bool:
    """Mark the last text of a message; whether there is one that was not marked."""
    content = message.get("content")
    if isinstance(content, str):
        if not content:
            return False
        message["content"] = [{"type": "text", "text": content, "cache_control": _MARK}]
        return True
    parts = as_objects(content)
    if not parts or parts[-1].get("type") != "text" or "cache_control" in parts[-1]:
        return False
    parts[-1]["cache_control"] = _MARK
    return True


def _count(value: Any) -> int:
    """Marks that are there already, in tools, messages and parts."""
    if is_object(value):
        return int("cache_control" in value) + sum([_count(value.get(key)) for key in ("tools", "messages", "content")])
    return sum([_count(item) for item in as_list(value)])
