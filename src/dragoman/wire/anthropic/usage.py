"""Anthropic's token counts as our disjoint `Usage` (spec: anthropic.md §10, §16).

`message_delta` repeats some counts and leaves out others, so the wire's own numbers are merged first (a later number replaces, null
and absent change nothing) and translated whole each time. The 5m/1h split comes only with `message_start`; what the total grows by
afterwards has no stated lifetime and is `cache_write_other`.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dragoman.response import Iteration, Usage
from dragoman.wire.json_values import as_list, as_object, as_string, is_object

__all__ = ["WireUsage", "usage_of"]

_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_creation_input_tokens": "",  # the total, of which the split is a part
    "cache_read_input_tokens": "cache_read",
}
"""The wire's plain counts, and the field that each becomes."""

_WORDS = {"service_tier": "service_tier", "speed": "speed", "inference_geo": "inference_geo"}
_SPLIT = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


class WireUsage:
    """The wire's numbers so far."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] = {}

    def merge(self, usage: object) -> Usage | None:
        """Take another usage object; the complete usage so far, or None if `usage` held nothing."""
        if not is_object(usage):
            return None
        if not self._raw:
            self._raw = {key: value for key, value in usage.items() if value is not None}
            return usage_of(self._raw)
        for key, value in usage.items():
            known = self._raw.get(key)
            if is_object(value) and is_object(known):
                self._raw[key] = {**known, **{k: v for k, v in value.items() if v is not None}}
            elif value is not None:
                self._raw[key] = value
        return usage_of(self._raw)


def usage_of(raw: dict[str, Any]) -> Usage:
    """One usage object of the wire. Counts that are no whole numbers are left in `extra`."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    written, odd = 0, False
    for key, value in raw.items():
        if value is None:
            continue
        name = _COUNTS.get(key)
        if name is not None:
            count = value
            if type(value) is not int or value < 0:
                count = _count(value)
                odd = odd or _odd(value)
            if name:
                fields[name] = count
            else:
                written = count
        elif key in _WORDS:
            fields[_WORDS[key]] = as_string(value)
        elif key in _TABLES:
            _TABLES[key](value, fields, extra)
        else:
            extra[key] = value
    split = fields.get("cache_write_5m", 0) + fields.get("cache_write_1h", 0)
    if written > split:
        fields["cache_write_other"] = written - split
    if odd:
        extra = dict(raw)
    if extra:
        fields["extra"] = {"anthropic": extra}
    return Usage(**fields)


def _creation(value: object, fields: dict[str, Any], extra: dict[str, Any]) -> None:
    split = as_object(value)
    fields["cache_write_5m"], fields["cache_write_1h"] = (_count(split.get(key)) for key in _SPLIT)
    if rest := {key: item for key, item in split.items() if key not in _SPLIT and item is not None}:
        extra["cache_creation"] = rest


def _output_details(value: object, fields: dict[str, Any], extra: dict[str, Any]) -> None:
    del extra
    details = as_object(value)
    fields["reasoning"] = _count(details.get("thinking_tokens"))
    fields["details"] = {f"output.{key.removesuffix('_tokens')}": _count(n) for key, n in details.items() if key != "thinking_tokens" and n}


def _server_tools(value: object, fields: dict[str, Any], extra: dict[str, Any]) -> None:
    del extra
    fields["server_tools"] = {key: _count(n) for key, n in as_object(value).items() if n is not None}


def _iterations(value: object, fields: dict[str, Any], extra: dict[str, Any]) -> None:
    del extra
    fields["iterations"] = [_iteration(as_object(item)) for item in as_list(value)]


def _cost(value: object, fields: dict[str, Any], extra: dict[str, Any]) -> None:
    del extra
    fields["reported_cost"] = _money(value)


_TABLES: dict[str, Callable[[object, dict[str, Any], dict[str, Any]], None]] = {
    "cache_creation": _creation,
    "output_tokens_details": _output_details,
    "server_tool_use": _server_tools,
    "iterations": _iterations,
    "cost": _cost,
}
"""What is more than a number or a word, and who reads it."""


def _iteration(item: dict[str, Any]) -> Iteration:
    counts = {key: value for key, value in item.items() if key not in ("type", "model")}
    return Iteration(as_string(item.get("type")), model=as_string(item.get("model")), usage=usage_of(counts))


def _count(value: object) -> int:
    if type(value) is int:
        return max(0, value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _odd(value: object) -> bool:
    return value is not None and (isinstance(value, bool) or _count(value) != value)


def _money(value: object) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None
