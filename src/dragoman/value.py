"""The base of every public value: a frozen struct that compares by value, never hashes, and fits into pydantic models.

All model types are `msgspec.Struct`s built on `Value`. Frozen means nobody can change one; unhashable because most hold lists or
dicts, and a type that is sometimes hashable is a trap. Constructors copy the lists and dicts they are given (`own_list`,
`own_dict`), so a caller's later change to its own list cannot reach into a value.

The pydantic hooks build pydantic-core's schema as the plain dicts that it is, so pydantic is never imported from here.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec
from msgspec.structs import force_setattr

__all__ = ["Value", "own_dict", "own_list", "snake_case"]


def snake_case(name: str) -> str:
    """The tag of a class: `ToolUse` is written as `tool_use`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all model types. Subclasses inherit frozen, omit_defaults and unhashability."""

    __hash__: ClassVar[None]  # type: ignore[assignment]  # like `list`: equal by value, not hashable

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, Any]:
        """A field of this type in a pydantic model: an instance passes, JSON data is read in the stored form."""
        del source, handler

        def validate(value: object) -> object:
            from dragoman.storage import from_builtins

            return value if isinstance(value, cls) else from_builtins(value, cls)

        def serialize(value: object) -> object:
            from dragoman.storage import to_builtins

            return to_builtins(value)

        return {
            "type": "function-plain",
            "function": {"type": "no-info", "function": validate},
            "serialization": {"type": "function-plain", "function": serialize},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: object, handler: object) -> dict[str, Any]:
        """The JSON schema of the stored form, for OpenAPI pages."""
        del core_schema, handler
        from dragoman.storage import json_schema

        return json_schema(cls)


Value.__hash__ = None  # set after the class body: msgspec would take an annotated default for a field


def own_list(value: msgspec.Struct, *names: str) -> None:
    """Replace each named field that is a sequence by a list of our own (for `__post_init__`)."""
    for name in names:
        given = getattr(value, name)
        if not isinstance(given, str):
            force_setattr(value, name, list(given))


def own_dict(value: msgspec.Struct, *names: str) -> None:
    """Replace each named dict field by a shallow copy (for `__post_init__`)."""
    for name in names:
        force_setattr(value, name, dict(getattr(value, name)))
