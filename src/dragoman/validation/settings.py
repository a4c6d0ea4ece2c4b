"""The parameters of a request: against their ranges, against each other, against the API version and the model.

Strategy. A request is small and its model's rules are data, so every check is a plain comparison, grouped by what the reader would look
up. Where a field is left at its default, `max_tokens`, `thinking` and the sampling parameters count as they stand in `extra_body`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from dragoman.catalog import EFFORTS, ModelRules
from dragoman.errors import Problem
from dragoman.request import Request, ToolNamed

__all__ = ["check_settings"]

LATEST_API_VERSION = "2026-10-21"
"""From this version on the Messages API refuses sampling parameters (anthropic.md §18)."""

MIN_BUDGET = 1024
"""Tokens; the smallest thinking budget."""

_LONG_OUTPUT = ("output-128k", "output-300k")
_INTERLEAVED = "interleaved-thinking"
_THINKING_TYPES = {"enabled": "budget", "adaptive": "adaptive", "disabled": "off", "between_tools": "off"}


def check_settings(request: Request, rules: ModelRules, *, api_version: str, betas: Sequence[str], out: list[Problem]) -> None:
    """Append what is wrong with the parameters for the Messages API of this version, with these betas on."""
    mode, budget, clamp = _thinking(request)
    max_tokens = _check_max_tokens(request, rules, betas, out)
    if mode:
        _check_budget(max_tokens, rules, betas, mode, budget, clamp, out)
        _check_thinking(rules, mode, out)
    _check_effort(request, rules, mode, out)
    _check_sampling(request, rules, mode, api_version, out)
    _check_forced_tool(request, rules, mode, out)
    if request.output is not None and not rules.structured_output:
        out.append(Problem("output", "structured_output", f"{rules.id} has no structured output", "ask for a tool call instead"))
    if request.extra_body.get("speed") == "fast" and not rules.fast_mode:
        out.append(Problem("extra_body.speed", "fast_mode", f"{rules.id} has no fast mode", "leave `speed` out, and `:fast` off the id"))
    for i, stop in enumerate(request.stop_sequences):
        if not stop.strip():
            out.append(
                Problem(f"stop_sequences[{i}]", "stop_sequence", "is empty or only white space", "give at least one other character")
            )
    for key, value in request.metadata.items():
        if key != "user_id":
            text = "the Messages API knows only `user_id`"
            out.append(Problem(f"metadata.{key}", "metadata", text, "keep other facts in `trace`"))
        elif value is not None and not isinstance(value, str):
            out.append(Problem("metadata.user_id", "metadata", "is no string", "give it as a string"))


def _thinking(request: Request) -> tuple[str, int | None, bool]:
    """The mode ("" if nothing is said), the budget and whether it may be moved."""
    config = request.thinking
    if config is not None:
        return config.mode, config.budget_tokens, config.clamp
    raw = request.extra_body.get("thinking")
    if isinstance(raw, dict):
        body = cast("dict[str, Any]", raw)
        budget = body.get("budget_tokens")
        return _THINKING_TYPES.get(str(body.get("type")), ""), budget if isinstance(budget, int) else None, False
    return "", None, False


def _check_max_tokens(request: Request, rules: ModelRules, betas: Sequence[str], out: list[Problem]) -> int | None:
    """The number that is sent; None if nothing, or no number, is given."""
    path, given = "max_tokens", request.max_tokens
    if given is None and "max_tokens" in request.extra_body:
        path, raw = "extra_body.max_tokens", request.extra_body["max_tokens"]
        if not isinstance(raw, int) or isinstance(raw, bool):
            out.append(Problem(path, "max_tokens", "is no integer", "give 1 or more, or leave it out"))
            return None
        given = raw
    if given is None:
        return None
    if given < 0:
        out.append(Problem(path, "max_tokens", f"{given} is negative", "give 1 or more; 0 only fills the prompt cache"))
    if rules.max_output is not None and given > rules.max_output and not any(beta.startswith(_LONG_OUTPUT) for beta in betas):
        text = f"{given} is more than the {rules.max_output} tokens that {rules.id} can write"
        out.append(Problem(path, "max_tokens", text, "lower it, or leave it out"))
    return given


def _check_budget(
    max_tokens: int | None, rules: ModelRules, betas: Sequence[str], mode: str, budget: int | None, clamp: bool, out: list[Problem]
) -> None:
    """A max_tokens that is left out is made large enough, as far as the model's limit goes; one that is given is kept."""
    if (mode == "budget" and clamp) or (mode == "auto" and not rules.auto_adaptive and rules.thinking_budget):
        if max_tokens is not None and max_tokens <= MIN_BUDGET:
            text = f"max_tokens {max_tokens} has no room for the smallest budget, {MIN_BUDGET} tokens, and an answer"
            out.append(Problem("thinking", "thinking_budget", text, "raise max_tokens, or leave `thinking` out"))
        return
    if mode != "budget":
        return
    if budget is None:
        out.append(Problem("thinking", "thinking_budget", "has no budget", "use ThinkingConfig.budget(tokens)"))
        return
    if budget < MIN_BUDGET:
        out.append(
            Problem("thinking", "thinking_budget", f"a budget of {budget} is below {MIN_BUDGET} tokens", "raise it, or pass clamp=True")
        )
    ceiling = max_tokens if max_tokens is not None else rules.max_output
    interleaved = any(beta.startswith(_INTERLEAVED) for beta in betas)  # there the budget spans all rounds of a turn
    if ceiling is not None and budget >= ceiling and not interleaved:
        text = f"a budget of {budget} leaves nothing of max_tokens {ceiling} for the answer"
        out.append(Problem("thinking", "thinking_budget", text, "raise max_tokens above it, lower it, or pass clamp=True"))


def _check_thinking(rules: ModelRules, mode: str, out: list[Problem]) -> None:
    if mode == "budget" and not rules.thinking_budget:
        fix = "use ThinkingConfig.adaptive() and `effort`" if rules.thinking_adaptive else "leave `thinking` out"
        out.append(Problem("thinking", "thinking_unsupported", f"{rules.id} takes no thinking budget", fix))
    elif mode == "adaptive" and not rules.thinking_adaptive:
        fix = "use ThinkingConfig.budget(tokens)" if rules.thinking_budget else "leave `thinking` out"
        out.append(Problem("thinking", "thinking_unsupported", f"{rules.id} has no adaptive thinking", fix))
    elif mode == "auto" and not rules.thinking_adaptive and not rules.thinking_budget:
        out.append(Problem("thinking", "thinking_unsupported", f"{rules.id} does not think", "leave `thinking` out"))
    elif mode == "off" and rules.thinking_off == "never":
        text = f"{rules.id} cannot be without thinking"
        out.append(Problem("thinking", "thinking_off", text, 'leave `thinking` out and set effort="low", or choose another model'))


def _check_effort(request: Request, rules: ModelRules, mode: str, out: list[Problem]) -> None:
    if request.effort is None:
        return
    effort = "low" if request.effort == "minimal" else request.effort
    if not rules.effort:
        if mode != "auto":  # there it chooses the budget
            out.append(Problem("effort", "effort", f"{rules.id} has no effort", "leave it out, or use ThinkingConfig.auto()"))
    elif effort not in rules.effort:
        out.append(Problem("effort", "effort", f"{rules.id} has no effort `{effort}`", f"use one of {', '.join(rules.effort)}"))
    elif mode == "off" and rules.effort_max_without_thinking is not None:
        highest = rules.effort_max_without_thinking
        if EFFORTS.index(effort) > EFFORTS.index(highest):
            text = f"{rules.id} takes no effort above `{highest}` without thinking"
            out.append(Problem("effort", "effort", text, f'use effort="{highest}", or turn thinking on'))


_RANGES = {"temperature": (0.0, 1.0), "top_p": (0.0, 1.0), "top_k": (0.0, math.inf)}


def _check_sampling(request: Request, rules: ModelRules, mode: str, api_version: str, out: list[Problem]) -> None:
    body = request.extra_body
    if request.temperature is None and request.top_p is None and request.top_k is None and not body:
        return
    fields = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
    given = {name: body.get(name) if value is None else value for name, value in fields.items()}
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return
    for name, value in given.items():
        low, high = _RANGES[name]
        if not isinstance(value, int | float) or not low <= value <= high:  # NaN fails both comparisons
            span = f"{low:g} or more" if high == math.inf else f"between {low:g} and {high:g}"
            out.append(Problem(name, "sampling_range", "is out of range", f"give a number {span}"))
        elif api_version >= LATEST_API_VERSION:
            out.append(
                Problem(name, "api_version", f"API version {api_version} takes no {name}", 'leave it out, or use api_version="2023-06-01"')
            )
        elif not rules.sampling:
            out.append(Problem(name, "sampling_unsupported", f"{rules.id} takes no {name}", "leave it out"))
        elif mode in ("budget", "adaptive", "auto") or (mode == "" and rules.thinking_default_on):
            text = _with_thinking(name, value)
            if text:
                out.append(Problem(name, "thinking_sampling", text, "leave it out, or turn thinking off"))
    if "temperature" in given and "top_p" in given and not rules.temperature_and_top_p_together and rules.sampling:
        text = f"{rules.id} takes temperature or top_p, not both"
        out.append(Problem("top_p", "temperature_and_top_p", text, "set one of them"))


def _with_thinking(name: str, value: float) -> str:
    """Why a value cannot go with thinking, or `""`. Recordings show temperature 1 and top_p 0.95 accepted."""
    if name == "temperature" and value != 1:
        return "with thinking, temperature can only be 1"
    if name == "top_p" and value < 0.95:
        return "with thinking, top_p can only be 0.95 to 1"
    return "top_k cannot be set together with thinking" if name == "top_k" else ""


def _check_forced_tool(request: Request, rules: ModelRules, mode: str, out: list[Problem]) -> None:
    choice = request.tool_choice
    if choice != "required" and not isinstance(choice, ToolNamed):
        return
    if not rules.forced_tool_choice:
        text = f"{rules.id} cannot be made to call a tool"
        out.append(Problem("tool_choice", "tool_choice_unsupported", text, 'use "auto" or "required_if_allowed"'))
    elif mode in ("budget", "adaptive", "auto"):
        text = "a tool cannot be forced while thinking is on"
        out.append(Problem("tool_choice", "thinking_tool_choice", text, 'use "auto" or "required_if_allowed", or turn thinking off'))
    elif mode == "" and rules.thinking_default_on:
        off = "set thinking=ThinkingConfig.off()" if rules.thinking_off != "never" else "choose another model"
        text = f"{rules.id} thinks unless told not to, and a tool cannot be forced while it does"
        out.append(Problem("tool_choice", "thinking_tool_choice", text, f'use "auto" or "required_if_allowed", or {off}'))
