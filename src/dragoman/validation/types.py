"""Every field of a request against its annotation: what a type checker would have said to those who have none.

Strategy. The annotations are the only table. Nearly all requests are right, so the first look is at columns: the texts of all Text blocks
at once, the ids of all calls at once, each as one set of types. What a long history is mostly made of is looked at even quicker, in one
loop (`_uncommon`). Only when something else is found is the request walked value by value, with a path for each; there a subclass
(`StrEnum`, `numpy.float64`) is what it derives from. The first look also tells which rare things are there at all (`Seen`), so nobody
else has to search for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeGuard, cast, get_args, get_origin

import msgspec
from msgspec.structs import fields

from dragoman.errors import Problem
from dragoman.message import Block, CacheControl, Message, Origin, Role, Text, ToolResult, ToolUse
from dragoman.request import OutputFormat, Request, ThinkingConfig, Tool, ToolNamed
from dragoman.validation.blocks import BLOCKS

__all__ = ["Seen", "check_types", "wrong_types"]

_NONE = type(None)
_ROLES = frozenset(get_args(Role))
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


class Seen(NamedTuple):
    """What a request holds somewhere: classes of values, and whether any has an `extra`."""

    classes: frozenset[type]
    extras: bool


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
    plan = (_Field(field.name, attrgetter(field.name), _spec(field.type)) for field in fields(cls))
    return tuple(field for field in plan if not field.spec.anything)


# ---- the first look


class _Columns:
    """Whether all values are right beyond doubt."""

    def __init__(self) -> None:
        self.classes: set[type] = set()
        self.extras = False

    def fit(self, column: Sequence[Any], spec: _Spec) -> bool:
        """Whether every value of a column is of the annotation's very types."""
        kinds = set(map(type, column))
        fits = True
        for kind in kinds - spec.plain:
            values: Sequence[Any] = column if len(kinds) == 1 else [value for value in column if type(value) is kind]
            if kind in spec.classes:
                self.classes.add(kind)
                for field in _plan(kind):
                    fits = self.fit_field(values, field) and fits
            elif kind is list and spec.item is not None:
                fits = self.fit(list(chain.from_iterable(values)), spec.item) and fits
            elif kind is dict and spec.value is not None:
                if any(values):
                    keys = set(map(type, chain.from_iterable(values)))
                    fits = self.fit([item for value in values for item in value.values()], spec.value) and keys == {str} and fits
            else:
                fits = fits and kind is str and set(values) <= set(spec.literals)
        return fits

    def fit_field(self, holders: Sequence[Any], field: _Field) -> bool:
        """The same for one field of all holders. What is a list or dict was made one by its holder, and is mostly empty."""
        spec = field.spec
        if spec.plain:
            if spec.plain.issuperset(map(type, map(field.get, holders))):
                return True
        elif not spec.literals and not spec.classes:
            if not any(map(field.get, holders)):
                return True
            if field.name == "extra":
                self.extras = True
        return self.fit(list(map(field.get, holders)), spec)


def check_types(request: Request, out: list[Problem]) -> Seen:
    """Append every value whose type its field does not have. The answer is whole only if there is none."""
    columns = _Columns()
    messages, blocks, origins = _uncommon(request.messages)
    fits = [columns.fit_field([request], field) for field in _plan(Request) if field.name != "messages"]
    fits += [columns.fit(messages, _MESSAGES), columns.fit(blocks, _BLOCKS), columns.fit(origins, _ORIGINS)]
    if not all(fits):
        out += wrong_types(request)
    return Seen(frozenset(columns.classes), columns.extras)


_MESSAGES = _Spec(classes=(Message,))
_BLOCKS = _Spec(classes=BLOCKS)
_ORIGINS = _Spec(classes=(Origin,))


def _uncommon(messages: Sequence[Message]) -> tuple[list[Message], list[Block], list[Origin]]:
    """What is not right at first sight: messages, blocks of the other messages, and where those come from.

    Text, calls and results without options are nearly all of a long history, and a plain loop is four times as fast as columns.
    """
    odd: list[Message] = []
    blocks: list[Block] = []
    origins: list[Origin] = []
    for message in messages:
        if message.__class__ is not Message or message.role.__class__ is not str or message.role not in _ROLES or message.extra:
            odd.append(message)
            continue
        if message.origin is not None:
            origins.append(message.origin)
        for block in message.content:
            cls = block.__class__
            if cls is Text:
                inner: Any = block
            elif cls is ToolUse:
                call: Any = block
                if (
                    call.id.__class__ is str
                    and call.name.__class__ is str
                    and call.input.__class__ is dict
                    and call.cache is None
                    and not call.extra
                ):
                    continue
                blocks.append(block)
                continue
            elif cls is ToolResult:
                result: Any = block
                content = result.content
                if (
                    result.tool_use_id.__class__ is not str
                    or result.is_error.__class__ is not bool
                    or result.cache is not None
                    or result.extra
                    or len(content) != 1
                ):
                    blocks.append(block)
                    continue
                inner = content[0]
                if inner.__class__ is not Text:
                    blocks.append(block)
                    continue
            else:
                blocks.append(block)
                continue
            if inner.text.__class__ is not str or inner.cache is not None or inner.citations or inner.extra:
                blocks.append(block)
    return odd, blocks, origins


# ---- value by value


def wrong_types(request: Request) -> list[Problem]:
    """The same, value by value: settings first, then messages."""
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
