"""The caller's prompt-cache marks: at most four, and none that lives longer than one before it.

Strategy. Marks count where the encoder puts them, so the request is gone through as it will be written: tools, system, turns, and in a
user turn the results first. A mark whose block is left out or may not carry one moves to the nearest earlier block that can, and two that
meet there are one. What can carry a mark is said once, in `CARRIERS`, for the encoder too. Marks that the library adds by itself give way
to the caller's, so only the caller's are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, cast

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import (
    Audio,
    Block,
    Document,
    Image,
    InvalidToolUse,
    Opaque,
    Parts,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import ProviderTool, Request, Tool
from dragoman.validation.media import not_json
from dragoman.validation.sent import are_sent, is_foreign, is_hoistable

__all__ = ["CARRIERS", "MAX_MARKS", "check_marks"]

MAX_MARKS = 4
"""Cache marks that one request may have, the top-level one included (anthropic.md §3)."""

CARRIERS = frozenset({"text", "image", "document", "search_result", "tool_use", "tool_result"})
"""The wire types that a mark may be moved to or put on."""

_WIRE = "anthropic"

TTL = Literal["5m", "1h"]

_Role = Literal["carries", "stands", "moves"]
"""A block that can carry a mark; a mark on a block that others do not move to; a mark that has to move."""

_CARRIES: Final = "carries"
_STANDS: Final = "stands"
_MOVES: Final = "moves"


class _Place(NamedTuple):
    """A block that is written, or a mark whose own block is not or cannot carry it."""

    base: str
    position: int
    """Of the block in `base`; -1: it is `base` itself."""
    ttl: TTL | None
    """The lifetime of its mark."""
    role: _Role
    order: int = 1
    """0 for the results, which come first in a user turn."""

    @property
    def path(self) -> str:
        return self.base if self.position < 0 else f"{self.base}[{self.position}]"


def check_marks(request: Request, rules: ModelRules, out: list[Problem], *, in_messages: bool) -> None:
    """Append what is wrong with the caller's cache marks. `in_messages`: whether the messages may hold any."""
    if request.cache == "off" or not (in_messages or _has_marks(request)):
        return
    marks = _settled(chain.from_iterable(_turns(request)))
    automatic = _automatic(request, rules)
    allowed = MAX_MARKS if automatic is None else MAX_MARKS - 1
    if len(marks) > allowed:
        text = f"{len(marks)} cache marks are more than {allowed}: {', '.join(path for path, _ in marks)}"
        out.append(Problem(marks[allowed][0], "cache_marks", text, "remove some; a later mark covers what comes before it"))
    short = ""
    for path, ttl in (*marks, *([("extra_body.cache_control", automatic)] if automatic is not None else [])):
        if ttl == "5m":
            short = short or path
        elif short:
            text = f"a 1h cache mark comes after the 5m mark at {short}"
            out.append(Problem(path, "cache_order", text, "give the earlier mark 1h, or this one 5m"))


def _automatic(request: Request, rules: ModelRules) -> TTL | None:
    """The lifetime of the top-level mark, which stands on the last block and takes one of the four places; None without one."""
    if request.cache == "provider" and rules.caching:  # wins over what extra_body says
        return "5m"
    return _lifetime(request.extra_body.get("cache_control"))


def _has_marks(request: Request) -> bool:
    """Whether tools or system may hold a mark. Most requests have none at all, and then this is all that is done."""
    if any(_of_tool(tool) is not None for tool in request.tools):
        return True
    return not isinstance(request.system, str) and any(_of(block) is not None for block in request.system)


def _settled(places: Iterable[_Place]) -> list[tuple[str, TTL]]:
    """Path and lifetime of each mark where it ends, in the order of the wire. One that finds no carrier is dropped."""
    marks: dict[int, tuple[str, TTL]] = {}
    carrier: tuple[int, _Place] | None = None
    for position, place in enumerate(places):
        if place.role is _CARRIES:
            carrier = position, place
        holder = carrier if place.role is _MOVES else (position, place)
        if place.ttl is not None and holder is not None:
            marks.setdefault(holder[0], (holder[1].path, place.ttl))
    return [marks[position] for position in sorted(marks)]


# ---- where marks are, and could be


def _turns(request: Request) -> list[list[_Place]]:
    """The places of tools and system, then those of each turn."""
    ahead = [_Place("tools", i, _of_tool(tool), _CARRIES) for i, tool in enumerate(request.tools)]
    if not isinstance(request.system, str):
        ahead += _places(request.system, "system")
    elif _says(request.system):
        ahead.append(_Place("system", -1, None, _CARRIES))
    hoisted = _hoisted(request)
    for i in hoisted:
        ahead += _places(request.messages[i].content, f"messages[{i}].content")
    turns = [ahead]
    of_user: list[list[_Place]] = []
    role, mergeable = "", False
    as_text = request.foreign_thinking == "text"
    for i, message in enumerate(request.messages):
        if hoisted and i in hoisted:
            continue
        content = message.content
        places = list(_places(content, f"messages[{i}].content", foreign=is_foreign(message.origin, _WIRE), as_text=as_text))
        own = bool(message.extra and message.extra.get(_WIRE))
        carries = bool(places) and places[-1].role is _CARRIES
        kept = carries or are_sent(content, message.origin, wire=_WIRE, thinking_as_text=as_text)
        if not kept or (message.role == role and mergeable and not own):
            turns[-1] += places
        else:
            turns.append(places)
            role, mergeable = message.role, not own
            if role == "user":
                of_user.append(places)
    for turn in of_user:
        if len(turn) > 1:
            turn.sort(key=attrgetter("order"))  # stable
    return turns


def _hoisted(request: Request) -> dict[int, None]:
    """The positions of the messages that go to the system text."""
    hoisted: dict[int, None] = {}
    for i, message in enumerate(request.messages):
        if message.role == "system" and is_hoistable(message, _WIRE):
            hoisted[i] = None
        elif request.hoist_system == "leading":
            break
    return hoisted


def _places(blocks: Sequence[Block], base: str, *, foreign: bool = False, as_text: bool = False) -> Iterator[_Place]:
    """The places of a content. `foreign`: another dialect's; `as_text`: thinking that cannot be sent back is sent as text."""
    block: Any
    for i, block in enumerate(blocks):
        kind: type = type(block)  # pyright: ignore[reportUnknownVariableType]
        if kind is ToolUse or kind is Image or kind is InvalidToolUse:
            yield _Place(base, i, _of(block), _CARRIES)
        elif kind is Text or kind is Refusal:
            if _says(block.text):
                yield _Place(base, i, _of(block), _CARRIES)
            elif kind is Text and block.cache is not None:
                yield _Place(base, i, block.cache.ttl, _MOVES)
        elif kind is ToolResult:
            yield from _around(block, block.content, base, i, "content", 0)
        elif kind is Document:
            yield from _around(block, block.source.content if isinstance(block.source, Parts) else (), base, i, "source.content", 1)
        elif kind is Thinking or kind is RedactedThinking:
            said = as_text and kind is Thinking and (foreign or not block.signature) and _says(block.text)
            ttl = _of(block)
            if said or ttl is not None:
                yield _Place(base, i, ttl, _CARRIES if said else _MOVES)
        elif kind is Audio:
            if foreign and _says(block.transcript):
                yield _Place(base, i, None, _CARRIES)
        elif kind is Opaque:
            if block.wire == _WIRE and not not_json(block.data, ""):  # it may hold itself
                yield from _whole(block.data, base, i, f"{base}[{i}].data")
        elif (kind is ServerToolUse or kind is ServerToolResult) and not foreign:
            if kind is ServerToolResult and not not_json(block.content, ""):
                yield from _inside(block.content, f"{base}[{i}].content")
            yield _Place(base, i, _of(block), _STANDS)


def _around(block: ToolResult | Document, content: Sequence[Block], base: str, index: int, field: str, order: int) -> list[_Place]:
    """The places within a result or document, and its own, which carries what finds no place within."""
    ttl: TTL | None = None
    within: list[_Place] = []
    if len(content) > 1 or (content and (type(part := content[0]) is not Text or part.cache is not None or part.extra)):
        carrier = -1
        for place in _places(content, f"{base}[{index}].{field}"):
            if place.role is _MOVES:
                if carrier < 0:
                    ttl = ttl or place.ttl
                elif within[carrier].ttl is None:
                    within[carrier] = within[carrier]._replace(ttl=place.ttl)
                continue
            if place.role is _CARRIES:
                carrier = len(within)
            within.append(place)
    marks = [place._replace(role=_STANDS, order=order) for place in within if place.ttl is not None]
    own = block.cache.ttl if block.cache is not None else ttl or _of(block)
    return [*marks, _Place(base, index, own, _CARRIES, order)]


def _whole(data: dict[str, Any], base: str, index: int, path: str) -> list[_Place]:
    """The places of a block of the wire: those of the blocks within, and its own."""
    kind = data.get("type")
    order = 0 if kind == "tool_result" else 1
    source = data.get("source")
    if "content" in data:
        within = _inside(data["content"], f"{path}.content")
    else:
        within = _inside(cast("dict[str, Any]", source).get("content"), f"{path}.source.content") if isinstance(source, dict) else []
    role: _Role = _CARRIES if isinstance(kind, str) and kind in CARRIERS else _STANDS
    return [*(place._replace(order=order) for place in within), _Place(base, index, _lifetime(data.get("cache_control")), role, order)]


def _inside(content: object, base: str) -> list[_Place]:
    """The marks on blocks of the wire that another holds."""
    if not isinstance(content, list):
        return []
    found: list[_Place] = []
    for i, data in enumerate(cast("list[object]", content)):
        if isinstance(data, dict):
            found += _whole(cast("dict[str, Any]", data), base, i, f"{base}[{i}]")
    return [place._replace(role=_STANDS) for place in found if place.ttl is not None]


# ---- lifetimes


def _of_tool(tool: Tool | ProviderTool) -> TTL | None:
    if tool.cache is None and isinstance(tool, ProviderTool) and "cache_control" in tool.options:
        return _lifetime(tool.options["cache_control"])
    return _of(tool)


def _of(holder: Any) -> TTL | None:
    """The lifetime of the mark of a block or tool: of its field or, as `decode_request` keeps it where there is none, in its `extra`."""
    cache = getattr(holder, "cache", None)
    if cache is not None:
        ttl: TTL = cache.ttl
        return ttl
    extra = holder.extra
    return _lifetime(extra.get(_WIRE, {}).get("cache_control")) if extra else None


def _lifetime(mark: object) -> TTL | None:
    """The lifetime that a mark in the words of the wire has; None if it is none."""
    if not isinstance(mark, dict):
        return None
    return "1h" if cast("dict[str, object]", mark).get("ttl") == "1h" else "5m"


def _says(text: str) -> bool:
    """Whether a text is sent: it is neither empty nor only white space."""
    return bool(text) and not text.isspace()
