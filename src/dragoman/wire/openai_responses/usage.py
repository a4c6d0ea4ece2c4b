"""Token counts of the Responses API as our disjoint `Usage`, and what else a finished response says of itself.

`input_tokens` of the wire includes what was read from and written to the cache, so `input` is what remains (forms.md, usage 1: otherwise
gpt-5.6's cache writes would be billed twice); a part larger than its whole leaves 0, and the raw numbers stay in `extra`. Reasoning is
part of the output in all 263 recordings with usage. Writes have lifetimes of their own (30 minutes, 12 hours), so they are
`cache_write_other`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from dragoman.message import Extra
from dragoman.response import Usage
from dragoman.wire.json_values import as_object, as_string, is_object
from dragoman.wire.openai_responses.kinds import WIRE

__all__ = ["response_extra", "usage_of"]

_KNOWN = frozenset({"input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"})
_MODALITIES = ("audio_tokens", "image_tokens")
_XAI_TICKS = Decimal(10) ** 10
"""xAI's `cost_in_usd_ticks` per US dollar."""

ECHOED = frozenset(
    {
        "id",
        "object",
        "model",
        "status",
        "error",
        "incomplete_details",
        "output",
        "output_text",
        "usage",
        "tool_usage",
        "service_tier",
        "background",
        "frequency_penalty",
        "include",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "store",
        "stream",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
"""Keys of a response that have a field here, or only repeat the request. All others are kept."""


def usage_of(response: dict[str, Any]) -> Usage:
    """The usage of a response object; empty if it has none."""
    raw = as_object(response.get("usage"))
    inputs, outputs = as_object(raw.get("input_tokens_details")), as_object(raw.get("output_tokens_details"))
    prompt, cached, written = _count(raw.get("input_tokens")), _count(inputs.get("cached_tokens")), _count(inputs.get("cache_write_tokens"))
    extra = {key: value for key, value in raw.items() if key not in _KNOWN and value is not None}
    if cached + written > prompt:
        extra |= {key: raw[key] for key in ("input_tokens", "input_tokens_details") if key in raw}
    elif is_object(inputs.get("cache_write_tokens_details")):
        extra["cache_write_tokens_details"] = inputs["cache_write_tokens_details"]
    total = raw.get("total_tokens")
    if total is not None and total != prompt + _count(raw.get("output_tokens")):
        extra["total_tokens"] = total
    tools = as_object(response.get("tool_usage"))
    if _any_count(tools):
        extra["tool_usage"] = tools
    return Usage(
        input=max(0, prompt - cached - written),
        output=_count(raw.get("output_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
        cache_read=cached,
        cache_write_other=written,
        server_tools=_server_tools(raw, tools),
        details={**_details("input", inputs), **_details("output", outputs)},
        reported_cost=_cost(extra),
        service_tier=as_string(response.get("service_tier")),
        extra={WIRE: extra} if extra else {},
    )


def _details(bucket: str, counts: dict[str, Any]) -> dict[str, int]:
    found = {f"{bucket}.{name.removesuffix('_tokens')}": _count(counts.get(name)) for name in _MODALITIES}
    return {name: count for name, count in found.items() if count}


def _server_tools(raw: dict[str, Any], tools: dict[str, Any]) -> dict[str, int]:
    """How often the provider's own tools ran: OpenAI's `tool_usage.<tool>.num_requests`, xAI's `<tool>_calls`."""
    counts = {name: _count(as_object(value).get("num_requests")) for name, value in tools.items()}
    calls = as_object(raw.get("server_side_tool_usage_details"))
    counts |= {name.removesuffix("_calls"): _count(value) for name, value in calls.items()}
    return {name: count for name, count in counts.items() if count}


def _cost(extra: dict[str, Any]) -> Decimal | None:
    """US dollars as the gateway billed: OpenRouter's `cost`, xAI's ticks."""
    cost, ticks = extra.get("cost"), extra.get("cost_in_usd_ticks")
    if isinstance(ticks, int) and not isinstance(ticks, bool) and ticks >= 0:
        return Decimal(ticks) / _XAI_TICKS
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        return Decimal(str(cost))
    return None


def _any_count(value: Any) -> bool:
    if is_object(value):
        return any(_any_count(v) for v in value.values())
    return _count(value) > 0


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def response_extra(response: dict[str, Any], event: dict[str, Any], started_id: str) -> Extra:
    """What a finished response and its event say that no field of ours holds, for `Response.extra`.

    The id is kept if it is not the one that the stream began with (GitHub Copilot makes a new one for each event).
    """
    values = {key: value for key, value in response.items() if key not in ECHOED and value not in (None, {}, [], "")}
    values |= {key: value for key, value in event.items() if key not in ("type", "response", "sequence_number") and value is not None}
    if response.get("id") and started_id and response["id"] != started_id:
        values["id"] = response["id"]
    return {WIRE: values} if values else {}
