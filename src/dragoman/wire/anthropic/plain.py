"""Blocks of ours that are the wire's own JSON: a text that is nothing else, and a call without options (spec: anthropic.md §5).

Strategy. Such blocks are most of any history, and msgspec writes them as they are, so turns hold them as themselves; only what looks into
a turn (a moved mark, broken text) makes dicts of the few that it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from dragoman.message import Text, ToolUse

__all__ = ["WireBlock", "is_plain", "is_plain_text", "unfold", "unfolded"]

WireBlock: TypeAlias = dict[str, Any]


def is_plain_text(block: Any) -> bool:
    """Whether a block of ours is text and nothing else, and not empty."""
    return (
        block.__class__ is Text
        and not block.extra
        and block.cache is None
        and not block.citations
        and (text := block.text) != ""
        and not text.isspace()
    )


def is_plain(block: WireBlock) -> bool:
    """Whether a wire block is text and nothing else, so that its string may stand for it."""
    return len(block) == 2 and "text" in block


def unfolded(block: Any) -> WireBlock:
    """A block of a turn as a dict."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUse):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    wire: WireBlock = block
    return wire


def unfold(turns: Sequence[WireBlock]) -> None:
    """Make dicts of all blocks that stand for themselves."""
    for turn in turns:
        content: str | list[Any] = turn["content"]
        if not isinstance(content, str):
            turn["content"] = [unfolded(block) for block in content]
