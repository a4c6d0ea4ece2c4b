"""Keys of one object that would become one: a lone surrogate is sent as U+FFFD, and of two keys that then are the same one is lost.

Strategy. Keys are the caller's wherever a field is a dict, and a lone surrogate in one is as rare as can be. So a value is written once,
at msgspec's speed; only where that cannot be done is it walked, with a stack, since it may nest deeply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from dragoman.errors import Problem
from dragoman.fragments import scrub
from dragoman.message import Opaque
from dragoman.request import Request

__all__ = ["check_keys", "lost_keys"]

_encode = msgspec.json.Encoder().encode


def check_keys(request: Request, wire: str, out: list[Problem]) -> None:
    """Append every object of a request that would lose keys. What belongs to another wire is not sent, and not looked at."""
    for path in lost_keys(request, wire=wire):
        text = "keys of it become one, since half a character (a lone surrogate) is sent as U+FFFD"
        out.append(Problem(path, "broken_unicode", text, "use keys of whole characters"))


def lost_keys(value: object, *, wire: str = "") -> Iterator[str]:
    """The path of every object in a value (JSON, or a struct of ours) that would lose keys."""
    stack: list[tuple[object, str]] = [] if _is_whole(value) else [(value, "")]
    seen: set[int] = set()  # what is not sent has not been looked at, and may hold itself
    while stack:
        node, path = stack.pop()
        if id(node) in seen or isinstance(node, str):
            continue
        seen.add(id(node))
        members = list(_members(node, wire))
        if isinstance(node, dict) and len({name for name, _ in members}) < len(members):
            yield path
        stack += [(item, path + step if path else step.lstrip(".")) for step, item in reversed(members)]


def _members(node: object, wire: str) -> Iterator[tuple[str, object]]:
    """What a value holds, each with its step of the path, keys as they are sent."""
    if isinstance(node, dict):
        for key, item in cast("dict[object, object]", node).items():
            yield f".{scrub(key) if isinstance(key, str) else repr(key)}", item
    elif isinstance(node, list | tuple):
        for i, item in enumerate(cast("Sequence[object]", node)):
            yield f"[{i}]", item
    elif isinstance(node, msgspec.Struct) and not (isinstance(node, Opaque) and node.wire != wire):
        for name in node.__struct_fields__:
            held: object = getattr(node, name)
            if name != "extra":
                yield f".{name}", held
            elif isinstance(held, dict):
                yield f".extra.{wire}", cast("dict[object, object]", held).get(wire)


def _is_whole(value: object) -> bool:
    """Whether a value has no half character, beyond doubt."""
    try:
        _encode(value)
    except (UnicodeEncodeError, TypeError, RecursionError):  # also a subclass of `str`, or a stack that is nearly full
        return False
    return True
