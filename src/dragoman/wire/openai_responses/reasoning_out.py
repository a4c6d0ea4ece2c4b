"""A Thinking as the reasoning item it came from.

Strategy. `extra` remembers the lengths of the parts that were joined by blank lines (or, where a part carried more than text, the parts
themselves), so the text is cut where it was joined. A text that was changed since no longer has those lengths: it becomes one summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dragoman.message import Thinking
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_responses.blocks_in import PARAGRAPH
from dragoman.wire.openai_responses.kinds import WIRE

__all__ = ["write_reasoning"]

_ITEM = dict[str, Any]


def write_reasoning(block: Thinking) -> _ITEM:
    """A reasoning item; its text is cut into the parts that `extra` remembers, or is one summary if it was changed since."""
    own = block.extra.get(WIRE, {})
    item: _ITEM = {"type": "reasoning", **{key: value for key, value in own.items() if key not in ("content", "summary")}}
    content, summary = own.get("content"), own.get("summary")
    lengths = [n for part in (content, summary) if _are_lengths(part) for n in cast("list[int]", part)]
    texts = _cut(block.text, lengths) if lengths or not (content or summary) else None
    if texts is None and not _are_dicts(content) and not _are_dicts(summary):
        texts, content, summary = [block.text], None, None
    if texts is not None and not _are_dicts(summary):
        first = len(cast("list[int]", content)) if _are_lengths(content) else 0
        item["summary"] = [{"type": "summary_text", "text": text} for text in texts[first:]]
        if first:
            item["content"] = [{"type": "reasoning_text", "text": text} for text in texts[:first]]
    if _are_dicts(content):
        item["content"] = content
    item["summary"] = summary if _are_dicts(summary) else item.get("summary", [])
    if block.signature:
        item["encrypted_content"] = block.signature
    return item


def _are_lengths(value: Any) -> bool:
    return is_list(value) and all(isinstance(n, int) for n in value)


def _are_dicts(value: Any) -> bool:
    return is_list(value) and bool(value) and all(is_object(v) for v in value)


def _cut(text: str, lengths: Sequence[int]) -> list[str] | None:
    """The parts of a text that were joined by a blank line; None if it is no longer made of parts of those lengths."""
    if not lengths:
        return [text] if text else []
    if len(text) != sum(lengths) + len(PARAGRAPH) * (len(lengths) - 1):
        return None
    parts: list[str] = []
    start = 0
    for length in lengths:
        parts.append(text[start : start + length])
        start += length + len(PARAGRAPH)
    return parts if PARAGRAPH.join(parts) == text else None
