"""The base of every public value: a frozen struct that compares by value, never hashes, and fits into pydantic models.

All model types are `msgspec.Struct`s built on `Value`. Frozen means nobody can change one; unhashable because most hold lists or
dicts, and a type that is sometimes hashable is a trap. Constructors copy the lists and dicts they are given (`own_list`,
`own_dict`), so a caller's later change to its own list cannot reach into a value.

The pydantic hooks build pydantic-core's schema as the plain dicts that it is, so pydantic is never imported from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self, SupportsIndex

import msgspec
from msgspec.structs import force_setattr

__all__ = ["NOT_PICKLED", "Secret", "Value", "own_dict", "own_list", "snake_case"]


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
            from dragoman.errors import StorageError
            from dragoman.storage import from_builtins

            if isinstance(value, cls):
                return value
            try:
                return from_builtins(value, cls)
            except StorageError as error:
                raise ValueError(str(error)) from error  # what pydantic makes its ValidationError of

        def serialize(value: object) -> object:
            from dragoman.storage import to_builtins

            return to_builtins(value)

        return {
            "type": "function-plain",
            "ref": _ref(cls.__name__),
            "function": {"type": "no-info", "function": validate},
            "serialization": {"type": "function-plain", "function": serialize},
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: object, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """The JSON schema of the stored form, for OpenAPI pages: a reference, with all types it needs among the page's definitions."""
        del core_schema
        from dragoman.storage import json_schema

        definitions: dict[str, Any] = json_schema(cls)["$defs"]
        refs = {name: _ref(name) for name in definitions}
        links = {f"#/$defs/{name}": handler({"type": "definition-ref", "schema_ref": ref})["$ref"] for name, ref in refs.items()}
        # pydantic takes definitions from core schemas with a `ref` only: one tuple of them hands it all
        handler({"type": "tuple", "items_schema": [_definition(ref, _linked(definitions[name], links)) for name, ref in refs.items()]})
        return {"$ref": links[f"#/$defs/{cls.__name__}"]}


def _ref(name: str) -> str:
    """What pydantic knows a type of ours by: a qualified name and, after the colon, what tells namesakes apart."""
    return f"dragoman.{name}:0"


def _definition(ref: str, schema: Any) -> dict[str, Any]:
    """A core schema that pydantic writes as this JSON schema, once, under this name."""

    def write(core_schema: object, handler: object) -> Any:
        del core_schema, handler
        return schema

    return {"type": "any", "ref": ref, "metadata": {"pydantic_js_functions": [write]}}


def _linked(schema: Any, links: dict[str, str]) -> Any:
    """A JSON schema with its references renamed."""
    if isinstance(schema, str):
        return links.get(schema, schema)
    if isinstance(schema, dict):
        return {key: _linked(value, links) for key, value in schema.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(schema, list | tuple):
        return [_linked(item, links) for item in schema]  # pyright: ignore[reportUnknownVariableType]
    return schema


Value.__hash__ = None  # set after the class body: msgspec would take an annotated default for a field


NOT_PICKLED = "credentials are not pickled: a key must not get into a file or a queue; pass the settings and read the key anew"


class Secret(str):
    """A key or token: a string for whoever sends it, and nothing to see for whoever looks.

    Its repr, and so that of every dict, list, traceback or log record it stands in, does not show it; it is not pickled, and neither
    `to_json` nor msgspec writes it. `str(secret)` gives the plain text.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "[secret]" if self else "''"

    def __getitem__(self, key: SupportsIndex | slice) -> Secret:
        return Secret(super().__getitem__(key))  # what shortens long texts before it shows them

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(NOT_PICKLED)


def own_list(value: msgspec.Struct, *names: str) -> None:
    """Replace each named field that is a sequence by a list of our own (for `__post_init__`)."""
    for name in names:
        given = getattr(value, name)
        if type(given) is list or not isinstance(given, str):
            force_setattr(value, name, [*given])


def own_dict(value: msgspec.Struct, *names: str) -> None:
    """Replace each named dict field by a shallow copy (for `__post_init__`)."""
    for name in names:
        force_setattr(value, name, dict(getattr(value, name)))
