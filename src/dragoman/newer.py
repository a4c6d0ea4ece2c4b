"""Reading what a newer version of dragoman wrote: unknown blocks, events and stop reasons, and the format's version.

Strategy. A walk goes down untyped JSON along a type, as msgspec describes it, and puts what this version does not know into forms
that it does: an unknown block becomes an `Opaque`, an unknown event an `OpaqueEvent`, both whole and marked as ours, so that writing
gives them back as they came. It runs only after msgspec has refused the data as they are, or a `v` stands in them. What it does not
recognise it leaves alone, for msgspec to judge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias, cast, get_args

from dragoman.errors import StorageError
from dragoman.event import Event, OpaqueEvent
from dragoman.message import Block, Message, Opaque, ServerToolUse, Source, ToolUse
from dragoman.request import Request
from dragoman.response import Response, StopReason

__all__ = ["OWN_WIRE", "VERSION", "Walk", "as_object", "is_unknown_block", "is_unknown_event", "walk_of"]

VERSION = 1
"""The version of the stored form that is written, and the newest that is read."""

OWN_WIRE = "dragoman"
"""The `wire` of an Opaque that holds a stored block of a version newer than ours."""

_BLOCK_TAGS = frozenset(cls.type for cls in get_args(Block))
_SOURCE_TAGS = frozenset(cls.type for cls in get_args(Source))
_EVENT_TAGS = frozenset(cls.type for cls in get_args(Event))
_SOURCED = ("image", "audio", "video", "document")  # a tuple: what is looked for in it may be unhashable
_STOPS = frozenset(get_args(StopReason))

Walk: TypeAlias = Callable[[Any, str], Any]
"""Takes untyped JSON and its path; gives it back with what this version does not know put into forms that it does."""


def _is_unknown(data: object, tags: frozenset[str]) -> bool:
    tag = (as_object(data) or {}).get("type")
    return isinstance(tag, str) and tag not in tags


def is_unknown_block(data: dict[str, Any]) -> bool:
    """Whether these are the data of a block that this version has no type for: by its own tag, or by its source's."""
    return _is_unknown(data, _BLOCK_TAGS) or (data.get("type") in _SOURCED and _is_unknown(data.get("source"), _SOURCE_TAGS))


def is_unknown_event(data: dict[str, Any]) -> bool:
    """Whether these are the data of an event that this version has no type for."""
    return _is_unknown(data, _EVENT_TAGS)


@lru_cache(maxsize=256)
def walk_of(type: Any) -> Walk | None:
    """The walk of a type; None where nothing in it can need a change. Raises StorageError, when run, for a newer `v`."""
    from msgspec import inspect

    return _Walker().of(inspect.type_info(type))


class _Walker:
    """Builds the walk of one type from msgspec's description of it; None where nothing can need a change."""

    def __init__(self) -> None:
        self._structs: dict[type, Walk] = {}

    def of(self, info: Any) -> Walk | None:
        """The walk of a described type."""
        match type(info).__name__:
            case "UnionType":
                return self._union(info.types)
            case "StructType":
                return self._union((info,))
            case "ListType" | "VarTupleType" | "CollectionType":
                return _list_walk(self.of(info.item_type))
            case "DictType":
                return _dict_walk(self.of(info.value_type))
            case "LiteralType":
                return _stop if _STOPS.issuperset(info.values) and "end_turn" in info.values else None
            case _:
                return None

    def _union(self, infos: tuple[Any, ...]) -> Walk | None:
        structs = [info for info in infos if type(info).__name__ == "StructType"]
        others = [other for info in infos if info not in structs and (other := self.of(info)) is not None]
        if not structs and not others:
            return None
        by_tag = {info.tag: self._struct(info) for info in structs}
        tag_field: str | None = structs[0].tag_field if structs else None
        classes = {info.cls for info in structs}

        def walk(obj: Any, path: str) -> Any:
            data = as_object(obj)
            if data is None or not structs:
                for step in others:
                    obj = step(obj, path)
                return obj
            if Opaque in classes and is_unknown_block(data):
                return {"type": "opaque", "data": data, "wire": OWN_WIRE}
            if OpaqueEvent in classes and is_unknown_event(data):
                return {"type": "opaque_event", "data": data, "wire": OWN_WIRE, "kind": data["type"]}
            tag = data.get(tag_field) if tag_field else None
            known = by_tag.get(tag) if tag is None or isinstance(tag, str) else None
            return obj if known is None else known(data, path)

        return walk

    def _struct(self, info: Any) -> Walk:
        cls: type = info.cls
        if cls in self._structs:
            return self._structs[cls]
        names: set[str] = {info.tag_field} if info.tag_field else set()
        steps: dict[str, Walk] = {}

        def walk(obj: dict[str, Any], path: str) -> Any:
            if cls in (Message, Request, Response):
                check_version(obj, path)
            if cls in (ToolUse, ServerToolUse) and obj.get("input") == "":
                obj = {**obj, "input": {}}
            # unknown fields are left out here, since msgspec fails over a lone surrogate in their name
            return {name: steps[name](value, f"{path}.{name}") if name in steps else value for name, value in obj.items() if name in names}

        self._structs[cls] = walk
        for field in info.fields:
            names.add(field.encode_name)
            if (step := self.of(field.type)) is not None:
                steps[field.encode_name] = step
        return walk


def as_object(obj: Any) -> dict[str, Any] | None:
    """The dict, or None for anything else."""
    return cast("dict[str, Any]", obj) if isinstance(obj, dict) else None


def _list_walk(walk: Walk | None) -> Walk | None:
    if walk is None:
        return None

    def each(obj: Any, path: str) -> Any:
        if not isinstance(obj, list | tuple):
            return obj
        return [walk(item, f"{path}[{index}]") for index, item in enumerate(cast("list[Any]", obj))]

    return each


def _dict_walk(walk: Walk | None) -> Walk | None:
    if walk is None:
        return None

    def each(obj: Any, path: str) -> Any:
        data = as_object(obj)
        return obj if data is None else {key: walk(item, f"{path}[...]") for key, item in data.items()}

    return each


def _stop(obj: Any, path: str) -> Any:
    del path
    return "unknown" if isinstance(obj, str) and obj not in _STOPS else obj


def check_version(obj: dict[str, Any], path: str) -> None:
    version: object = obj.get("v", 1)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise StorageError(f"cannot be read: `v` is not a format version (a whole number from 1), at {path}.v", f"{path}.v")
    if version > VERSION:
        raise StorageError(
            f"cannot be read: written in format version {version}, this library reads up to {VERSION}: upgrade dragoman, at {path}.v",
            f"{path}.v",
        )
