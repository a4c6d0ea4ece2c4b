"""Text that arrives in pieces, and the JSON of a tool's input, which is parsed once, when it is whole.

Both the decoders and the `Accumulator` fold deltas; this is the one place that knows how to do it in linear time and what counts as
an executable input.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, TypeGuard

import msgspec

from dragoman.message import InvalidReason

__all__ = ["INPUT_DEPTH_LIMIT", "JOIN_EVERY", "NESTING_LIMIT", "Fragments", "parse_input", "scrub", "scrub_tree"]

JOIN_EVERY = 512
"""Pieces are joined when so many have come: a long stream then costs a few bytes per delta, not a small string object each."""

INPUT_DEPTH_LIMIT = 256
"""How deep a tool's input may nest; deeper is `invalid_json` (nothing real comes near, and a parser's stack must not decide)."""

NESTING_LIMIT = 1000
"""How deep `scrub_tree` goes: what nests deeper cannot be written, and a value that holds itself must end somewhere."""


class Fragments:
    """Append is O(1), the whole is O(text), and asking for the text in between costs one join.

    `add` takes a piece; the hot loops do what it does themselves, with `pieces` and `join`. `pieces` is the same list for ever, so that
    they may hold it themselves.
    """

    __slots__ = ("_joined", "pieces")

    def __init__(self) -> None:
        self._joined: list[str] = []
        self.pieces: list[str] = []

    def add(self, piece: str) -> None:
        """One more piece."""
        self.pieces.append(piece)
        if len(self.pieces) >= JOIN_EVERY:
            self.join()

    def join(self) -> None:
        """Make one string of the latest pieces."""
        self._joined.append("".join(self.pieces))
        self.pieces.clear()

    def text(self) -> str:
        """Everything so far."""
        if self.pieces:
            self.join()
        if len(self._joined) > 1:
            self._joined[:] = ["".join(self._joined)]
        return self._joined[0] if self._joined else ""

    def __bool__(self) -> bool:
        return bool(self.pieces or self._joined)


def scrub(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD; surrogates that stand as a pair become their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def scrub_tree(value: Any) -> Any:
    """A JSON value with `scrub` applied to every string in it, keys too; of keys that become the same the last stays.

    It may nest to any depth that can be written, whatever is left of the stack. Raises RecursionError beyond `NESTING_LIMIT`.
    """
    whole: list[Any] = [value]
    stack: list[tuple[dict[Any, Any] | list[Any], int]] = [(whole, 0)]
    while stack:
        copy, depth = stack.pop()
        if depth > NESTING_LIMIT:
            raise RecursionError("a value nests too deeply to be JSON")
        place: Any
        item: Any
        for place, item in list(copy.items() if isinstance(copy, dict) else enumerate(copy)):
            if isinstance(item, str):
                copy[place] = scrub(item)
            elif isinstance(item, dict | list | tuple):
                copy[place] = inner = _own(item)  # pyright: ignore[reportUnknownArgumentType]
                stack.append((inner, depth + 1))
    return whole[0]


def _own(value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> dict[Any, Any] | list[Any]:
    """A copy whose values may be replaced."""
    if isinstance(value, dict):
        return {scrub(key) if isinstance(key, str) else key: item for key, item in value.items()}
    return list(value)


def parse_input(raw: str) -> dict[str, Any] | InvalidReason:
    """The value of a tool's input text, or why it is none.

    `""` is `{}` (a tool without arguments). Text that ends before its JSON does is `incomplete`; NaN, Infinity, numbers beyond a
    double, trailing text, bad escapes and control characters are `invalid_json`; anything but an object is `not_an_object`.
    Lone surrogates become U+FFFD. Nothing else is repaired or guessed.
    """
    if not raw:
        return {}
    if raw.count("{") + raw.count("[") > INPUT_DEPTH_LIMIT and _depth(raw) > INPUT_DEPTH_LIMIT:
        return "invalid_json"
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeEncodeError):  # a lone surrogate is refused, near the end even as "truncated"
        raw = re.sub(_ESCAPES, _whole, scrub(raw))
        try:
            value = msgspec.json.decode(raw)
        except msgspec.MsgspecError as error:
            return "incomplete" if _is_cut_off(raw, error) else "invalid_json"
    return value if _is_object(value) else "not_an_object"


def _is_cut_off(raw: str, error: Exception) -> bool:
    """Whether msgspec stopped because the text did. It calls a number cut after its sign, point or exponent an invalid one."""
    text = str(error)
    return "truncated" in text or ("invalid number" in text and text.endswith(f"(byte {len(raw.encode())})"))


_ESCAPES = (
    r"(?s)\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\."
)
"""Compiled at first use, as all patterns here: an import should cost nothing for what is rare."""


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


_NOT_BRACKETS = r'(?s)"(?:[^"\\]+|\\.)*"?|[^][{}"]+'
_STEPS = {"{": 1, "[": 1, "}": -1, "]": -1}


def _depth(raw: str) -> int:
    """The deepest nesting of a JSON text, brackets inside strings not counted."""
    return max(accumulate(map(_STEPS.__getitem__, re.sub(_NOT_BRACKETS, "", raw))), default=0)
