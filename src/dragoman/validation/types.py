"""Every field of a request against its annotation: what a type checker would have said to those who have none.

Strategy. The annotations are the only table. Nearly all requests are right, so the first look (`Look`) only says whether values are of
the annotations' very types; for what a long history is mostly made of, `turns` says so itself on its way through. Only when something
else is found is the request walked value by value, with a path for each; there a subclass (`StrEnum`, `numpy.float64`) is what it
derives from. The first look also tells which rare things are there at all, so nobody else has to search for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeGuard, cast, get_args, get_origin

import msgspec
from msgspec.structs import fields

from dragoman.errors import Problem
from dragoman.message import Block, CacheControl, Message, Origin, Text
from dragoman.request import OutputFormat, Request, ThinkingConfig, Tool, ToolNamed
from dragoman.validation.blocks import BLOCKS

__all__ = ["Look", "wrong_types"]

_NONE = type(None)
_KEYS = frozenset({str})
_PLAIN = frozenset({str, bool, int, float, _NONE, dict})

_BLOCK_FIX = "use Text(…), ToolUse(…) …, or Opaque(data, wire=…) for a wire's own block"
_NO_ITEM: dict[type, tuple[str, str, str]] = {
    Message: ("not_a_message", "is no Message", "use user(…), assistant(…), system(…) or Message(…)"),
    Tool: ("not_a_tool", "is no tool", "use Tool(…) or ProviderTool(…)"),
    BLOCKS[-1]: ("not_a_block", "is no content block", _BLOCK_FIX),
    Text: ("not_a_block", "is no Text", "give `system` one string, or a list of Text(…)"),
}
"""What is said of a list's wrong item, by the first of these classes that the list may hold: rule, text, fix."""

_WORDS = {str: "a string", bool: "True or False", int: "an integer", float: "a number", dict: "a dict"}
_MADE_BY: dict[type, str] = {
    ThinkingConfig: "ThinkingConfig.adaptive(), .budget(tokens), .auto() or .off()",
    OutputFormat: "OutputFormat.of(type) or OutputFormat(schema)",
    ToolNamed: "ToolNamed(name)",
    CacheControl: "CacheControl()",
}

_ELSEWHERE = {"any": "required", "enabled": "budget", "disabled": "off"}
"""What the wires call values of ours."""


class _Spec(NamedTuple):
    """One annotation, its union flattened."""

    plain: frozenset[type] = frozenset()
    """Types of which every value is right."""
    literals: tuple[str, ...] = ()
    classes: tuple[type, ...] = ()
    """Structs."""
    item: _Spec | None = None
    """Of a list."""
    value: _Spec | None = None
    """Of a dict with string keys."""
    anything: bool = False


class _Field(NamedTuple):
    name: str
    get: Callable[[Any], Any]
    spec: _Spec
    plain: frozenset[type]
    """Types of which every value is right."""
    empty: frozenset[type]
    """Types of which the empty value is right."""
    default: object
    """What it is when nothing is said."""


def _spec(annotation: Any) -> _Spec:
    if annotation is Any:
        return _Spec(anything=True)
    if annotation in _PLAIN:
        return _Spec(frozenset({annotation, int} if annotation is float else {annotation}))
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _Spec(literals=args)
    if origin is dict:
        value = _spec(args[1])
        return _Spec(frozenset({dict})) if value.anything else _Spec(value=value)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _Spec(item=_spec(args[0]))
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _Spec(classes=(annotation,))
    parts = [_spec(arg) for arg in args]
    return _Spec(
        plain=frozenset[type]().union(*[part.plain for part in parts]),
        literals=tuple(chain.from_iterable(part.literals for part in parts)),
        classes=tuple(chain.from_iterable(part.classes for part in parts)),
        item=next((part.item for part in parts if part.item is not None), None),
        value=next((part.value for part in parts if part.value is not None), None),
    )


@cache
def _plan(cls: type[msgspec.Struct]) -> tuple[_Field, ...]:
    """The fields of a class that can be wrong."""
    plan: list[_Field] = []
    for field in fields(cls):
        spec = _spec(field.type)
        if not spec.anything:
            empty = {list: spec.item, dict: spec.value}
            kinds = frozenset({kind for kind, inner in empty.items() if inner is not None})
            plan.append(_Field(field.name, attrgetter(field.name), spec, spec.plain, kinds, field.default))
    return tuple(plan)


# ---- the first look


class Look:
    """A first look at a request: whether values are right beyond doubt, and which rare things they hold."""

    __slots__ = ("classes", "extras")

    def __init__(self) -> None:
        self.classes: set[type] = set()
        """Classes of the values that were looked at."""
        self.extras = False
        """Whether any of them has an `extra`."""

    def settings(self, request: Request) -> bool:
        """Whether all but the messages is of the annotations' very types."""
        values = _values(request)
        containers, others = _doubtful(tuple(map(type, values)))
        fits = True
        for at, spec in containers:
            if values[at]:
                fits = self._fits(values[at], spec) and fits
        for at, spec, default in others:
            if values[at] is not default:
                fits = self._fits(values[at], spec) and fits
        return fits

    def message(self, message: Message) -> bool:
        """The same of a message and all that it holds."""
        return self._fits(message, _MESSAGE)

    def origin(self, origin: Origin) -> bool:
        """The same of where a message comes from."""
        return self._fits(origin, _ORIGIN)

    def block(self, block: Block) -> bool:
        """The same of a block."""
        return self._fits(block, _BLOCK)

    def _fields(self, holder: Any, plan: Iterable[_Field]) -> bool:
        fits = True
        for name, get, spec, plain, empty, _ in plan:
            held = get(holder)
            if type(held) not in plain and (type(held) not in empty or held):
                fits = self._fits(held, spec) and fits
                if name == "extra":
                    self.extras = True
        return fits

    def _fits(self, value: Any, spec: _Spec) -> bool:
        """All of a value is looked at, whatever is found, so that nothing rare is missed."""
        kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind in spec.plain:
            return True
        if kind in spec.classes:
            self.classes.add(kind)
            return self._fields(value, _plan(kind))
        if kind is list and spec.item is not None:
            return self._all_fit(value, spec.item)
        if kind is dict and spec.value is not None:
            return self._all_fit(value.values(), spec.value) and _KEYS.issuperset(map(type, value))
        return kind is str and value in spec.literals

    def _all_fit(self, values: Iterable[Any], spec: _Spec) -> bool:
        fits = True
        for value in values:
            fits = self._fits(value, spec) and fits
        return fits


_SETTINGS = tuple(field for field in _plan(Request) if field.name != "messages")
_values = attrgetter(*(field.name for field in _SETTINGS))


@lru_cache(maxsize=256)  # the requests of a program are of few shapes
def _doubtful(kinds: tuple[type, ...]) -> tuple[list[tuple[int, _Spec]], list[tuple[int, _Spec, object]]]:
    """Which settings, by position, are not known to be right by these types: those that are if they are empty, and those that are if they
    are the default.
    """
    containers: list[tuple[int, _Spec]] = []
    others: list[tuple[int, _Spec, object]] = []
    for at, (field, kind) in enumerate(zip(_SETTINGS, kinds, strict=True)):
        if kind in field.empty:
            containers.append((at, field.spec))
        elif kind not in field.plain:
            others.append((at, field.spec, field.default))
    return containers, others


_MESSAGE = _Spec(classes=(Message,))
_BLOCK = _Spec(classes=BLOCKS)
_ORIGIN = _Spec(classes=(Origin,))


# ---- value by value


def wrong_types(request: Request) -> list[Problem]:
    """Every value whose type its field does not have, settings first, then messages."""
    out: list[Problem] = []
    _walk_fields(request, "", out)
    return sorted(out, key=lambda problem: problem.path.startswith("messages"))


def _walk_fields(value: msgspec.Struct, path: str, out: list[Problem]) -> None:
    for field in _plan(type(value)):
        _walk(field.get(value), field.spec, f"{path}.{field.name}" if path else field.name, out)


def _walk(value: Any, spec: _Spec, path: str, out: list[Problem]) -> None:
    if any(_is(value, kind) for kind in spec.plain):
        return
    if isinstance(value, str) and spec.literals:
        if value not in spec.literals:
            rule = "unknown_role" if path.endswith(".role") else "unknown_value"
            fix = f'use "{_ELSEWHERE[value]}"' if _ELSEWHERE.get(value) in spec.literals else f"use {_expected(spec)}"
            out.append(Problem(path, rule, "is no value that this field can have", fix))
    elif _is_one_of(value, spec.classes):
        _walk_fields(cast("msgspec.Struct", value), path, out)
    elif spec.item is not None and _is_list(value):
        for i, item in enumerate(value):
            _walk_item(item, spec.item, f"{path}[{i}]", out)
    elif spec.value is not None and _is_dict(value):
        for key, item in value.items():
            if isinstance(key, str):
                _walk(item, spec.value, f"{path}.{key}", out)
            else:
                out.append(Problem(path, "wrong_type", f"has a key that is {_kind(key)}", "use strings as keys"))
    else:
        out.append(Problem(path, "wrong_type", f"is {_kind(cast('object', value))}", f"use {_expected(spec)}"))


def _walk_item(item: Any, spec: _Spec, path: str, out: list[Problem]) -> None:
    known = next((cls for cls in _NO_ITEM if cls in spec.classes), None)
    if known is None or _is_one_of(item, spec.classes):
        _walk(item, spec, path, out)
    else:
        out.append(Problem(path, *_NO_ITEM[known]))


def _is_one_of(value: object, classes: tuple[type, ...]) -> bool:
    """Whether a value is of one of these classes; a block is of the class itself, since the wires' tables know no other."""
    return isinstance(value, classes) and (type(value) in classes or not isinstance(value, BLOCKS))


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a list, of whatever."""
    return isinstance(value, list)


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether a value is a dict, of whatever."""
    return isinstance(value, dict)


def _is(value: object, kind: type) -> bool:
    """Whether a value is of a plain type; True and False are no numbers."""
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _kind(value: object) -> str:
    return "None" if value is None else f"of type {type(value).__name__}"


def _expected(spec: _Spec) -> str:
    """The annotation in words."""
    words = [f'"{literal}"' for literal in spec.literals]
    words += [_MADE_BY.get(cls, f"{cls.__name__}(…)") for cls in spec.classes]
    if spec.item is not None:
        words.append("a list of " + (" or ".join(f"{cls.__name__}(…)" for cls in spec.item.classes) or "strings"))
    if spec.value is not None:
        words.append("a dict of " + ("dicts by wire name" if dict in spec.value.plain else "strings"))
    words += [word for kind, word in _WORDS.items() if kind in spec.plain and not (kind is int and float in spec.plain)]
    said = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"{said}, or leave it out" if _NONE in spec.plain else said
