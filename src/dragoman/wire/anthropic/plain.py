"""The wire's JSON without dicts: turns, and the blocks of most histories (spec: anthropic.md §4, §5).

Strategy. A text that is nothing else and a call without options are the wire's own JSON already, and msgspec writes them as they are, so
turns hold them as themselves. A result of one such text, and the turn itself, are small structs of ours, made and written in half the
time of a dict. Only what looks into a turn (a moved mark, broken text) makes dicts of the few that it touches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from msgspec import Struct

from dragoman.message import Text, ToolUse

__all__ = ["PlainResult", "Turn", "WireBlock", "is_plain", "unfold", "unfolded"]

WireBlock: TypeAlias = dict[str, Any]


class Turn(Struct, gc=False):
    """One message of the wire. `content` is a list of blocks until `turns.collapse` makes a string of a lone text."""

    role: str
    content: Any


class PlainResult(Struct, frozen=True, gc=False, tag="tool_result", tag_field="type"):
    """The result of a call that is one plain text."""

    tool_use_id: str
    content: str


def is_plain(block: WireBlock) -> bool:
    """Whether a wire block is text and nothing else, so that its string may stand for it."""
    return len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str)


def unfolded(block: Any) -> WireBlock:
    """A block of a turn as a dict."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUse):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, PlainResult):
        return {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": block.content}
    wire: WireBlock = block
    return wire


def unfold(turns: Iterable[Any]) -> list[WireBlock]:
    """Turns as dicts, with all their blocks."""
    return [_unfolded(turn) if isinstance(turn, Turn) else {**turn, "content": _content(turn["content"])} for turn in turns]


def _unfolded(turn: Turn) -> WireBlock:
    return {"role": turn.role, "content": _content(turn.content)}


def _content(content: Any) -> Any:
    return content if isinstance(content, str) else [unfolded(block) for block in content]
