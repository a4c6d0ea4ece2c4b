"""How much the model may think, and how long it may answer (spec: anthropic.md §3, §14; design §2 ThinkingConfig, max_tokens)."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.catalog import ModelRules
from dragoman.request import Effort, Request, ThinkingConfig
from dragoman.wire.anthropic.plain import WireBlock
from dragoman.wire.anthropic.writer import Writer
from dragoman.wire.json_values import as_object

__all__ = ["AUTO_BUDGETS", "BUDGET_MINIMUM", "DEFAULT_MAX_TOKENS", "Settings", "settle"]

BUDGET_MINIMUM = 1024
"""Tokens: the least that a thinking budget may be, and what a clamped one leaves for the answer."""

DEFAULT_MAX_TOKENS = 8192
"""Tokens: max_tokens of a model that nobody said anything about, and the answer's room beside a thinking budget."""

AUTO_BUDGETS: dict[Effort | None, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    None: 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 32768,
}
"""Tokens: the budget of `ThinkingConfig.auto()` by effort, where the model is not adaptive."""


EFFORTS: dict[Effort, str] = {"minimal": "low"}
"""Efforts under another name on this wire: its lowest is `low`."""


class Settings(NamedTuple):
    """What a request comes to for one model."""

    max_tokens: int
    thinking: WireBlock | None
    thinks: bool
    effort: str | None


def settle(w: Writer, request: Request, rules: ModelRules, default_max_tokens: int | None) -> Settings:
    """Max tokens, the thinking object, whether the model will think, and the effort to send."""
    config = request.thinking
    effort: str | None = None if request.effort is None else EFFORTS.get(request.effort, request.effort)
    budget: int | None = None
    clamp = False
    by_effort = config is not None and config.mode == "auto" and not rules.auto_adaptive
    if effort != request.effort and not by_effort:
        w.note("effort_renamed", f"effort `{request.effort}` is sent as `{effort}`, the lowest there is", "effort")
    if config is not None and config.mode == "auto":
        if rules.auto_adaptive:
            config = ThinkingConfig.adaptive(display=config.display)
        elif rules.thinking_budget:
            config = ThinkingConfig.budget(AUTO_BUDGETS[request.effort], clamp=True, display=config.display)
            if effort not in rules.effort or not rules.is_known:
                effort = None  # it has chosen the budget; the model itself takes none
        else:
            w.note("thinking_left_out", "the model does not think; nothing is sent", "thinking")
            config = None
    if config is not None and config.mode == "budget":
        budget, clamp = config.budget_tokens or 0, config.clamp
    max_tokens = request.max_tokens if request.max_tokens is not None else _max_tokens(budget, clamp, rules, default_max_tokens)
    if budget is not None and clamp:
        clamped = max(BUDGET_MINIMUM, min(budget, max_tokens - BUDGET_MINIMUM))
        if clamped != budget:
            w.note("thinking_budget_clamped", f"the thinking budget of {budget} tokens is sent as {clamped}", "thinking.budget_tokens")
            budget = clamped
    thinking = None if config is None else _thinking(config, budget, rules)
    given = as_object(request.extra_body.get("thinking")).get("type", "" if rules.thinking_default_on else "disabled")
    thinks = given not in ("disabled", "between_tools") if config is None else config.mode != "off"
    return Settings(max_tokens, thinking, thinks, effort)


def _max_tokens(budget: int | None, clamp: bool, rules: ModelRules, default: int | None) -> int:
    limit = rules.max_output
    result = default if default is not None else limit if limit is not None else DEFAULT_MAX_TOKENS
    if budget is not None:
        result = max(result, (max(budget, BUDGET_MINIMUM) if clamp else budget) + DEFAULT_MAX_TOKENS)
    return result if limit is None else min(result, limit)


def _thinking(config: ThinkingConfig, budget: int | None, rules: ModelRules) -> WireBlock:
    if config.mode == "off":
        return {"type": "between_tools" if rules.thinking_off == "between_tools" else "disabled"}
    wire: WireBlock = {"type": "adaptive"} if budget is None else {"type": "enabled", "budget_tokens": budget}
    if config.display is not None:
        wire["display"] = config.display
    return wire
