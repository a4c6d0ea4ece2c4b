"""Reading JSON from a peer that may send anything: each reader gives a value of the type asked for, or that type's empty value."""

from __future__ import annotations

from math import isfinite
from typing import Any, TypeGuard

__all__ = ["as_list", "as_object", "as_objects", "as_string", "is_finite", "is_list", "is_object"]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def as_object(value: Any) -> dict[str, Any]:
    """The object, or `{}` for null and anything else."""
    return value if is_object(value) else {}


def as_list(value: Any) -> list[Any]:
    """The array, or `[]`."""
    return value if is_list(value) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects in an array; whatever else is in it is left out."""
    return [item for item in as_list(value) if is_object(item)]


def as_string(value: Any) -> str:
    """The string, or `""`."""
    return value if isinstance(value, str) else ""


def is_finite(value: Any) -> bool:
    """Whether there is no NaN and no infinity in a JSON value: msgspec would write null for them."""
    if isinstance(value, float):
        return isfinite(value)
    if is_object(value):
        return all(is_finite(item) for item in value.values())
    if isinstance(value, list | tuple):
        return all(is_finite(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return True
