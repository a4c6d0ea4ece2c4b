"""Token counts of chat hosts, made disjoint (OpenAI's API reference, "usage"; the exceptions from recordings of each host).

Strategy. OpenAI's counts contain each other: `prompt_tokens` has the cached and the newly cached tokens in it, `completion_tokens` the
reasoning. Hosts copy the names but not always the meaning, so what lies outside its whole is found by arithmetic (`total_tokens` tells)
or, where the arithmetic is wrong too, by the dialect's row. What no field of `Usage` holds stays in `extra`, and so do the raw
numbers wherever they contradict each other.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeGuard

from msgspec.structs import replace

from dragoman.response import Usage
from dragoman.wire.json_values import as_object, as_string
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.names import WIRE

__all__ = ["reported_cost", "usage_of"]

_TICKS_PER_DOLLAR = 10  # as a power of ten: xAI bills in ticks of 1e-10 US dollars

_CACHED = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
"""Where hosts without `prompt_tokens_details` say what came from the cache: DeepSeek; Hugging Face and Moonshot; Anthropic's name."""

_READ = frozenset(
    {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "prompt_cache_hit_tokens",
        "prompt_cache_miss_tokens",
        "cached_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "cache_creation",
        "reasoning_tokens",
        "audio_prompt_tokens",
        "cost",
        "cost_in_usd_ticks",
        "service_tier",
        "server_tool_use",
        "server_tool_use_details",
    }
)
"""Keys that a field holds; all others go to `extra`."""

_READ_DETAILS = frozenset(
    {"cached_tokens", "cache_write_tokens", "audio_tokens", "image_tokens", "video_tokens", "text_tokens", "reasoning_tokens"}
)
_MODALITIES = ("audio", "image", "video")


def usage_of(raw: dict[str, Any], dialect: Dialect, *, model: str = "", service_tier: str = "") -> Usage:
    """The usage that a `usage` object means. Wrong types count as absent; nothing raises."""
    prompt, completion, total = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens"), _count(raw, "total_tokens")
    of_prompt, of_completion = as_object(raw.get("prompt_tokens_details")), as_object(raw.get("completion_tokens_details"))
    extra: dict[str, Any] = {key: value for key, value in raw.items() if key not in _READ and value is not None}

    audio = _count(of_prompt, "audio_tokens") or _count(raw, "audio_prompt_tokens")
    if audio and total == prompt + completion + audio:  # Mistral: sound is not part of prompt_tokens
        prompt += audio
    reasoning = _count(of_completion, "reasoning_tokens") or _count(raw, "reasoning_tokens")
    if dialect.hidden_reasoning and not reasoning and total > prompt + completion:  # Google: only the total knows the thoughts
        reasoning = total - prompt - completion
        completion += reasoning
    elif reasoning and (total == prompt + completion + reasoning or dialect.reasons_outside(model)):
        completion += reasoning

    cached = max(_count(of_prompt, "cached_tokens"), *(_count(raw, key) for key in _CACHED))
    written = max(_count(of_prompt, "cache_write_tokens"), _count(raw, "cache_creation_input_tokens"))
    split = as_object(raw.get("cache_creation"))
    written_5m, written_1h = _count(split, "ephemeral_5m_input_tokens"), _count(split, "ephemeral_1h_input_tokens")
    written = max(written, written_5m + written_1h)
    fresh = max(0, prompt - cached - written)

    details: dict[str, int] = {}
    for bucket, whole, parts, key in (
        ("input", fresh, {**of_prompt, "audio_tokens": audio}, "prompt_tokens_details"),
        ("output", completion, of_completion, "completion_tokens_details"),
    ):
        kept = {name: value for name, value in parts.items() if name not in _READ_DETAILS and value}
        for modality in _MODALITIES:
            count = _count(parts, f"{modality}_tokens")
            if count > whole:  # some of it was cached, and nobody says how much: no part of this bucket
                kept[f"{modality}_tokens"] = count
            elif count:
                details[f"{bucket}.{modality}"] = count
        if kept:
            extra[key] = kept
    if cached + written > prompt:
        extra["prompt_tokens"] = raw.get("prompt_tokens")
        extra["prompt_tokens_details"] = {**as_object(extra.get("prompt_tokens_details")), "cached_tokens": cached}
    billed = reported_cost(raw)
    if billed is None and raw.get("cost") is not None:
        extra["cost"] = raw["cost"]
    usage = Usage(
        input=fresh,
        output=completion,
        reasoning=reasoning,
        cache_read=cached,
        cache_write_5m=written_5m,
        cache_write_1h=written_1h,
        cache_write_other=written - written_5m - written_1h,
        server_tools=_server_tools(raw),
        details=details,
        reported_cost=billed,
        service_tier=as_string(raw.get("service_tier")) or service_tier,
    )
    if total and total != usage.total:
        extra["total_tokens"] = total
    if not extra:
        return usage
    return replace(usage, extra={WIRE: extra})


def reported_cost(raw: dict[str, Any]) -> Decimal | None:
    """US dollars as the host billed: OpenRouter's and Vercel's `cost`, Perplexity's `cost.total_cost`, Venice's `cost.usd`, xAI's ticks."""
    cost: Any = raw.get("cost")
    if isinstance(cost, dict):
        table = as_object(cost)  # pyright: ignore[reportUnknownArgumentType]
        cost = table.get("total_cost", table.get("usd"))
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        return Decimal(str(cost))
    ticks = raw.get("cost_in_usd_ticks")
    if _is_count(ticks):  # 0 where xAI's models run at Azure, which bills apart
        return Decimal(ticks).scaleb(-_TICKS_PER_DOLLAR)
    return None


def _server_tools(raw: dict[str, Any]) -> dict[str, int]:
    counts = {**as_object(raw.get("server_tool_use")), **as_object(raw.get("server_tool_use_details"))}
    return {key: value for key, value in counts.items() if _is_count(value)}


def _count(raw: dict[str, Any], key: str) -> int:
    value = raw.get(key)
    return value if _is_count(value) else 0


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
