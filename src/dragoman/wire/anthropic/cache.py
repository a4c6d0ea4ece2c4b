"""Prompt-cache marks: which block carries one, and where `cache="auto"` puts ours (spec: anthropic.md §5, cases 2 to 5 and 44).

Strategy. The prefix order of the API is tools, system, messages. A mark whose block is left out or may not carry one (empty text,
thinking) moves back in that order to the nearest block that can; if that one is marked already, the prefix is cached there anyway and
the mark is done. With nothing before it, it is dropped.

`auto` adds at most what the caller leaves of the four marks a request may have, the most useful first: the end of the last user turn
(this request's own prefix), the end of tools + system (shared by all conversations), the end of the user turn before (what the last
request wrote). A place that carries a mark already needs none. Ours live 5 minutes, but 1 hour before a caller's 1h mark, since a 1h
mark must not come after a 5m one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from dragoman.validation.marks import CARRIERS, MAX_MARKS
from dragoman.wire.anthropic.plain import Turn, WireBlock, unfolded
from dragoman.wire.json_values import as_object, is_list, is_object

__all__ = ["MARKS", "MovedMark", "add_marks", "carry", "settle_marks", "without_marks"]

MARKS: dict[str, WireBlock] = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
"""A cache mark on the wire, by its lifetime; shared, never changed."""


class MovedMark(dict[str, Any]):
    """Stands among the blocks for a mark that its own block cannot carry, and for that block unless it is left out."""

    def __init__(self, mark: WireBlock, block: WireBlock | None) -> None:
        super().__init__(type="", mark=mark, block=block)


def carry(blocks: list[WireBlock], mark: WireBlock) -> bool:
    """Put a mark on the last block that can carry it, unless that one is marked; False if there is none. Changes the list only."""
    for position in range(len(blocks) - 1, -1, -1):
        block = unfolded(blocks[position])
        if block.get("type") in CARRIERS:
            if not _is_marked(block):
                blocks[position] = {**block, "cache_control": mark}
            return True
    return False


def settle_marks(tools: list[WireBlock], system: list[WireBlock], turns: Sequence[Turn]) -> int:
    """Replace every `MovedMark` by a mark on the nearest earlier carrier. Returns how many found none."""
    lost = 0
    before: list[list[WireBlock]] = []
    for blocks in (system, *(turn.content for turn in turns)):
        settled: list[WireBlock] = []
        for block in blocks:
            if not isinstance(block, MovedMark):
                settled.append(block)
                continue
            mark = block["mark"]
            if block["block"] is not None:
                settled.append(block["block"])
            if not any(carry(earlier, mark) for earlier in (settled, *reversed(before))) and not _carry_tool(tools, mark):
                lost += 1
        blocks[:] = settled
        before.append(blocks)
    return lost


def _carry_tool(tools: list[WireBlock], mark: WireBlock) -> bool:
    if not tools:
        return False
    if not _is_marked(tools[-1]):
        tools[-1] = {**tools[-1], "cache_control": mark}
    return True


def add_marks(tools: list[WireBlock], system: list[WireBlock], turns: Sequence[Turn], top: WireBlock | None = None) -> None:
    """The marks of `cache="auto"`, added to what the caller marked. `top`: the caller's top-level mark, which stands at the very end."""
    order = [tools, system, *(turn.content for turn in turns)]
    marked = [(position, mark) for position, blocks in enumerate(order) for mark in _marks_in(blocks)]
    last_hour = max([position for position, mark in marked if mark.get("ttl") == "1h"], default=-1)
    if top is not None and top.get("ttl") == "1h":
        last_hour = len(order)
    free = MAX_MARKS - (top is not None) - len(marked)
    for _, place in zip(range(free), _places(tools, system, turns), strict=False):
        position = next(index for index, blocks in enumerate(order) if blocks is place)
        _carry(place, MARKS["1h" if position < last_hour else "5m"])


def _carry(place: list[WireBlock], mark: WireBlock) -> None:
    """As `carry`; the last tool carries whatever its type is."""
    if not carry(place, mark):
        _carry_tool(place, mark)


def _places(tools: list[WireBlock], system: list[WireBlock], turns: Sequence[Turn]) -> list[list[WireBlock]]:
    """The lists whose ends want a mark of ours, the most useful first."""
    able = (turn.content for turn in reversed(turns) if turn.role == "user" and _can_carry(turn.content))
    users = list(islice(able, 2))
    prefix = [system or tools] if system or tools else []
    return [place for place in (*users[:1], *prefix, *users[1:]) if not _is_marked_at_end(place[-1:] if place is tools else place)]


def _can_carry(blocks: Sequence[Any]) -> bool:
    return any(unfolded(block).get("type") in CARRIERS for block in blocks)


def _is_marked_at_end(place: Sequence[Any]) -> bool:
    for block in map(unfolded, reversed(place)):
        if _is_marked(block):
            return True
        if block.get("type") in CARRIERS:
            return False
    return False


def _is_marked(block: WireBlock) -> bool:
    """Whether a block has a mark; null is none."""
    return is_object(block.get("cache_control"))


def _marks_in(blocks: Sequence[Any]) -> list[WireBlock]:
    """The marks of these blocks and of those that they hold, in order. Blocks that stand for themselves have none."""
    found: list[WireBlock] = []
    for block in blocks:
        if block.__class__ is not dict:
            continue
        inner = block["content"] if "content" in block else as_object(block["source"]).get("content") if "source" in block else None
        if is_list(inner):
            found += _marks_in(inner)
        if _is_marked(block):
            found.append(block["cache_control"])
    return found


def without_marks(block: Any) -> Any:
    """A block of the wire without its mark and those of the blocks that it holds; the block itself if there are none."""
    if not is_object(block):
        return block
    changed = {key: value for key, value in block.items() if key != "cache_control"}
    if is_list(inner := block.get("content")):
        changed["content"] = _all_without_marks(inner)
    elif is_object(source := block.get("source")) and is_list(inner := source.get("content")):
        changed["source"] = {**source, "content": _all_without_marks(inner)}
    return block if changed == block else changed


def _all_without_marks(blocks: list[Any]) -> list[Any]:
    return [without_marks(block) for block in blocks]
