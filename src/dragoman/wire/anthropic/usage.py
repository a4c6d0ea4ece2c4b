"""Anthropic's token counts as our disjoint `Usage` (spec: anthropic.md §10, §16).

`message_delta` repeats some counts and leaves out others, so the wire's own numbers are merged first (a later number replaces, null
and absent change nothing) and translated whole each time. The 5m/1h split comes only with `message_start`; what the total grows by
afterwards has no stated lifetime and is `cache_write_other`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from dragoman.response import Iteration, Usage
from dragoman.wire.json_values import as_list, as_object, as_string, is_object

__all__ = ["WireUsage", "usage_of"]

_KNOWN = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "cache_creation",
        "output_tokens_details",
        "server_tool_use",
        "service_tier",
        "speed",
        "inference_geo",
        "iterations",
        "cost",
    }
)
_SPLIT = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


class WireUsage:
    """The wire's numbers so far."""

    def __init__(self) -> None:
        self._raw: dict[str, Any] = {}

    def merge(self, usage: object) -> Usage | None:
        """Take another usage object; the complete usage so far, or None if `usage` held nothing."""
        if not is_object(usage):
            return None
        for key, value in usage.items():
            known = self._raw.get(key)
            if is_object(value) and is_object(known):
                self._raw[key] = {**known, **{k: v for k, v in value.items() if v is not None}}
            elif value is not None:
                self._raw[key] = value
        return usage_of(self._raw)


def usage_of(raw: dict[str, Any]) -> Usage:
    """One usage object of the wire. Counts that are no whole numbers are left in `extra`."""
    split = as_object(raw.get("cache_creation"))
    write_5m, write_1h = (_count(split.get(key)) for key in _SPLIT)
    total_write = _count(raw.get("cache_creation_input_tokens"))
    extra = {key: value for key, value in raw.items() if key not in _KNOWN and value is not None}
    rest = {key: value for key, value in split.items() if key not in _SPLIT and value is not None}
    if rest:
        extra["cache_creation"] = rest
    if any(_odd(raw.get(key)) for key in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")):
        extra = dict(raw)
    details = as_object(raw.get("output_tokens_details"))
    return Usage(
        input=_count(raw.get("input_tokens")),
        output=_count(raw.get("output_tokens")),
        reasoning=_count(details.get("thinking_tokens")),
        cache_read=_count(raw.get("cache_read_input_tokens")),
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write_other=max(0, total_write - write_5m - write_1h),
        server_tools={key: _count(value) for key, value in as_object(raw.get("server_tool_use")).items() if value is not None},
        iterations=[_iteration(as_object(item)) for item in as_list(raw.get("iterations"))],
        details={f"output.{key.removesuffix('_tokens')}": _count(n) for key, n in details.items() if key != "thinking_tokens" and n},
        reported_cost=_money(raw.get("cost")),
        service_tier=as_string(raw.get("service_tier")),
        speed=as_string(raw.get("speed")),
        inference_geo=as_string(raw.get("inference_geo")),
        extra={"anthropic": extra} if extra else {},
    )


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
