"""`dragoman models`: the models that the catalogue knows, offline, or that a provider offers, and what they accept."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.catalog import ModelInfo
from dragoman.catalog.capabilities import ModelRules, known
from dragoman.cli.outcome import ANSWERED, UsageError
from dragoman.cli.terminal import Screen
from dragoman.errors import ConfigError
from dragoman.storage import to_json

__all__ = ["models"]


def models(*, filter: str, provider: str, json: bool) -> int:
    """A table, or with `json` one model per line, of the models whose id contains `filter`. Raises UsageError if there is none."""
    found = [model for model in (_offered(provider) if provider else known()) if filter in model.id]
    if not found:
        raise UsageError(f"no model with {filter!r} in its id; `dragoman models` lists all")
    screen = Screen()
    if json:
        for model in found:
            screen.write(to_json(model).decode() + "\n")
        return ANSWERED
    rows = [("model", "context", "output", "thinking", "state"), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        screen.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    return ANSWERED


def _offered(name: str) -> Sequence[ModelInfo]:
    from dragoman.connect import connect
    from dragoman.provider import HTTPProvider

    provider = connect(name)
    if not isinstance(provider, HTTPProvider):
        raise ConfigError(f"{name} has no list of models")
    with provider:
        return provider.models()


def _row(model: ModelRules | ModelInfo) -> tuple[str, ...]:
    if isinstance(model, ModelInfo):
        context, output, goes = model.max_input_tokens, model.max_tokens, model.retires_at[:10]
        kinds = [word for word, path in (("adaptive", "adaptive"), ("budget", "enabled")) if model.supports(f"thinking.types.{path}")]
        thinking = ", ".join(kinds) or ("?" if model.supports("thinking") is None else "none")
    else:
        context, output, goes = model.context_window, model.max_output, model.retires_at
        thinking = _thinking(model)
    state = f"{model.lifecycle}, goes {goes}" if goes and model.lifecycle != "retired" else model.lifecycle
    return model.id, f"{context:,}" if context else "?", f"{output:,}" if output else "?", thinking, state


def _thinking(rules: ModelRules) -> str:
    kinds = [word for word, has in (("adaptive", rules.thinking_adaptive), ("budget", rules.thinking_budget)) if has]
    always = ["always on"] if rules.thinking_off == "never" else ["on by default"] if rules.thinking_default_on else []
    return ", ".join([*kinds, *always]) or "none"
