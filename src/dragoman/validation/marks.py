"""The caller's prompt-cache marks: at most four, and none that lives longer than one before it.

Strategy. Marks are looked at in the order of the wire, tools, system, messages, and where the encoder puts them: a mark on a block that
cannot carry one moves to the nearest earlier block that can, and two that meet there are one. Marks that the library adds by itself give
way to the caller's, so only the caller's are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, cast

from dragoman.errors import Problem
from dragoman.message import Block, CacheControl, Document, Image, Opaque, Parts, Text, ToolResult, ToolUse
from dragoman.request import Request

__all__ = ["MAX_MARKS", "check_marks"]

MAX_MARKS = 4
"""Cache marks in one request (anthropic.md §3)."""

TTL = Literal["5m", "1h"]


def check_marks(request: Request, out: list[Problem], *, in_messages: bool) -> None:
    """Append what is wrong with the caller's cache marks. `in_messages`: whether the messages may hold any."""
    if request.cache == "off" or not (in_messages or _has_marks(request)):
        return
    marks: dict[str, TTL] = {}
    carrier = ""
    for path, ttl, carries in _places(request):
        if carries:
            carrier = path
        if ttl is not None and carrier:
            marks.setdefault(carrier, ttl)
    automatic = _automatic(request)
    allowed = MAX_MARKS if automatic is None else MAX_MARKS - 1
    if len(marks) > allowed:
        text = f"{len(marks)} cache marks are more than {allowed}: {', '.join(marks)}"
        out.append(Problem(list(marks)[allowed], "cache_marks", text, "remove some; a later mark covers what comes before it"))
    short = ""
    for path, ttl in (*marks.items(), *([("extra_body.cache_control", automatic)] if automatic is not None else [])):
        if ttl == "5m":
            short = short or path
        elif short:
            text = f"a 1h cache mark comes after the 5m mark at {short}"
            out.append(Problem(path, "cache_order", text, "give the earlier mark 1h, or this one 5m"))


def _automatic(request: Request) -> TTL | None:
    """The lifetime of the top-level mark, which stands on the last block and takes one of the four places; None without one."""
    mark: object = request.extra_body.get("cache_control")
    if isinstance(mark, dict):
        return "1h" if cast("dict[str, object]", mark).get("ttl") == "1h" else "5m"
    return "5m" if request.cache == "provider" else None


def _has_marks(request: Request) -> bool:
    """Whether tools or system hold a mark. Most requests have none at all, and then this is all that is done."""
    if any(_ttl(tool) is not None for tool in request.tools):
        return True
    return not isinstance(request.system, str) and any(_ttl(block) is not None for block in request.system)


def _places(request: Request) -> Iterator[tuple[str, TTL | None, bool]]:
    """Every place that has a mark or could carry one, before or at a mark: path, lifetime, whether it can carry."""
    for i, tool in enumerate(request.tools):
        yield f"tools[{i}]", _ttl(tool), True
    if not isinstance(request.system, str):
        yield from _blocks("system", request.system)
    messages = list(enumerate(request.messages))
    hoisted = [pair for pair in messages if pair[1].role == "system"]
    if request.hoist_system == "leading":
        hoisted = list(takewhile(lambda pair: pair[1].role == "system", messages))
    ahead = {i for i, _ in hoisted}
    for i, message in (*hoisted, *(pair for pair in messages if pair[0] not in ahead)):
        yield from _blocks(f"messages[{i}].content", message.content)


def _blocks(base: str, blocks: Sequence[Block]) -> Iterator[tuple[str, TTL | None, bool]]:
    for j, block in enumerate(blocks):
        path = f"{base}[{j}]"
        if isinstance(block, ToolResult):
            yield from _blocks(f"{path}.content", block.content)
        elif isinstance(block, Document) and isinstance(block.source, Parts):
            yield from _blocks(f"{path}.source.content", block.source.content)
        yield path, _ttl(block), _carries(block)


def _ttl(block: object) -> TTL | None:
    cache = getattr(block, "cache", None)
    if isinstance(cache, CacheControl):
        return cache.ttl
    mark: object = block.data.get("cache_control") if isinstance(block, Opaque) else None
    if isinstance(mark, dict):
        return "1h" if cast("dict[str, object]", mark).get("ttl") == "1h" else "5m"
    return None


def _carries(block: Block) -> bool:
    if isinstance(block, Text):
        return bool(block.text.strip())
    return isinstance(block, Image | Document | ToolUse | ToolResult) or (isinstance(block, Opaque) and "cache_control" in block.data)
