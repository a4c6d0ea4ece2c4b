"""What the blocks of one request share while it is written: ids, reports of changes and problems, and what was met on the way.

Strategy. Reports are rare and blocks are many, so a path into the request is looked for only when there is something to report, and
values that a caller may fill freely are walked once, by the cheapest test that tells JSON from what an encoder would guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from dragoman.errors import Problem
from dragoman.event import Notice
from dragoman.message import Document, Extra, Parts, RedactedThinking, Thinking, ToolResult
from dragoman.validation.blocks import check_json
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.cache import MovedMark
from dragoman.wire.anthropic.plain import Turn, WireBlock
from dragoman.wire.anthropic.tool_ids import ToolIds

__all__ = ["DEBRIS", "JSON_LEAVES", "Writer", "is_json", "with_extra"]

DEBRIS = frozenset({"index", "partial_json"})
"""Keys of stream events that never belong into a finished block (case 88)."""

JSON_LEAVES = frozenset({str, int, bool, type(None)})
"""The types whose every value is JSON."""

_DEPTH_LIMIT = 510
"""How deep a JSON value may nest: 500 levels of the caller's, and what is written around them."""


class Writer:
    """What the blocks of one request share while it is written."""

    __slots__ = (
        "_notes",
        "base",
        "content",
        "features",
        "foreign",
        "ids",
        "inputs",
        "keep_marks",
        "lone",
        "message",
        "moved",
        "own",
        "problems",
        "replays_thinking",
        "signed",
        "thinking_as_text",
        "toolsets",
    )

    def __init__(self, *, keep_marks: bool, thinking_as_text: bool) -> None:
        self.ids = ToolIds()
        self.inputs: list[dict[str, Any]] = []
        """The inputs of all calls, which are looked at when all is written."""
        self.lone: list[Turn] = []
        """The turns that began with one block, which may turn out to be a lone text."""
        self.keep_marks = keep_marks
        self.thinking_as_text = thinking_as_text
        self.foreign = False
        """Whether the message at hand was written in another dialect."""
        self.replays_thinking = True
        """Whether the thinking of the message at hand may be sent back."""
        self.signed: list[tuple[int, Thinking | RedactedThinking]] = []
        """The thinking that is sent back, with the position of its message."""
        self.moved = False
        """Whether there is any `MovedMark`."""
        self.own: dict[int, WireBlock] = {}
        """Position of a turn → what its message carries beside role and content."""
        self.toolsets: dict[str, str] = {}
        """Tool id → the toolset that the call belongs to; its result has to say it too (anthropic.md §7)."""
        self.features: dict[str, None] = {}
        """What was met of `betas.BETAS`."""
        self.problems: list[Problem] = []
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}
        self.base = ""
        """`system` or `tools` while these are written."""
        self.message = 0
        self.content: Sequence[Any] = ()
        """The blocks (or tools) that are being written: where a path is looked for, which is needed rarely."""

    def path(self, block: object) -> str:
        """Where in the request a block of the content at hand is."""
        base = self.base or f"messages[{self.message}].content"
        return _path_of(block, self.content, base) or base

    def note(self, code: str, message: str, at: object) -> None:
        """Report a change, at a path or a block. The same one at many places is reported once, with the first place and the count."""
        known = self._notes.get((code, message))
        path, count = known or (at if isinstance(at, str) else self.path(at), 0)
        self._notes[code, message] = (path, count + 1)

    def notices(self) -> list[Notice]:
        """All that was reported."""
        return [
            Notice(code, message if count == 1 else f"{message} ({count} times)", path=path)
            for (code, message), (path, count) in self._notes.items()
        ]

    def problem(self, at: object, rule: str, message: str, fix: str) -> None:
        """Report what cannot be written, at a path or a block."""
        self.problems.append(Problem(at if isinstance(at, str) else self.path(at), rule, message, fix))

    def has_problem(self, path: str) -> bool:
        """Whether something at or below a path cannot be written."""
        return any(problem.path.startswith(path) for problem in self.problems)

    def check_json(self, value: Any, at: object, field: str) -> None:
        """Report what JSON has no form for in a value, a field of the block `at`, as `problems` does."""
        if not is_json(value):
            check_json(value, f"{self.path(at)}.{field}", self.problems)

    def moved_mark(self, mark: WireBlock, block: WireBlock | None = None) -> WireBlock | None:
        """What stands for a block that cannot carry its mark, or is left out."""
        if not self.keep_marks:
            return block
        self.moved = True
        return MovedMark(mark, block)


def _path_of(block: object, content: Sequence[Any], base: str) -> str:
    for index, outer in enumerate(content):
        if outer is block:
            return f"{base}[{index}]"
        if isinstance(outer, ToolResult):
            inner = _path_of(block, outer.content, f"{base}[{index}].content")
        elif isinstance(outer, Document) and isinstance(outer.source, Parts):
            inner = _path_of(block, outer.source.content, f"{base}[{index}].source.content")
        else:
            continue
        if inner:
            return inner
    return ""


def with_extra(w: Writer, wire: WireBlock, owner: object, extra: Extra) -> WireBlock:
    """`wire` with what its owner carries for this dialect; keys that have a field win. Other dialects' extra is left out."""
    for name, values in extra.items():
        if name != WIRE:
            w.note("extra_left_out", f"what a block carries for the {name} dialect is left out", owner)
            continue
        for key, value in values.items():
            if key in wire or (key == "cache_control" and not w.keep_marks):
                continue
            if key in DEBRIS:
                w.problem(
                    owner, "stream_debris", f"`{key}` belongs to a stream event, not to a finished block", "send finished blocks only"
                )
            w.check_json(value, owner, f"extra.{WIRE}.{key}")
            wire[key] = value
    return wire


def is_json(value: Any, depth: int = _DEPTH_LIMIT) -> bool:
    """Whether a value is plain JSON: no NaN, no set (whose order is not stable), no object that an encoder would have to guess."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        for key, item in value.items():
            if type(item) is not str and type(item) not in JSON_LEAVES and (depth <= 0 or not is_json(item, depth - 1)):
                return False
            if type(key) is not str and not isinstance(key, str):
                return False
        return True
    if kind is list or kind is tuple:
        for item in value:  # noqa: SIM110  # a generator would cost a second frame per level
            if type(item) not in JSON_LEAVES and (depth <= 0 or not is_json(item, depth - 1)):
                return False
        return True
    if kind in JSON_LEAVES:
        return True
    if kind is float:
        return isfinite(value)
    return _is_json_subclass(value, depth)


def _is_json_subclass(value: Any, depth: int) -> bool:
    if isinstance(value, str | int):
        return True
    if isinstance(value, dict):
        return is_json(dict(value), depth)  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, float) and isfinite(value)
