"""Reading JSON that a peer sent: what has the wrong type counts as absent, so that no oddity of a host can raise."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["as_count", "as_list", "as_object", "as_objects", "as_string"]


def as_string(value: object) -> str:
    """A string, else `""`."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """A positive integer, else 0."""
    return value if isinstance(value, int) and value > 0 else 0


def as_object(value: object) -> dict[str, Any]:
    """An object, else `{}`."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A list, else `[]`."""
    items: list[Any] = value if isinstance(value, list) else []
    return items


def as_objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list; whatever else is in it is left out."""
    return [cast("dict[str, Any]", item) for item in as_list(value) if isinstance(item, dict)]
