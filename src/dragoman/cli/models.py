"""`dragoman models`: the models that the catalogue knows, and what they accept. Offline."""

from __future__ import annotations

from dragoman.catalog.capabilities import ModelRules, known
from dragoman.cli.outcome import ANSWERED, UsageError
from dragoman.cli.terminal import Screen
from dragoman.storage import to_json

__all__ = ["models"]

_COLUMNS = ("model", "context", "output", "thinking", "state")


def models(*, filter: str, json: bool) -> int:
    """A table, or with `json` one model per line, of the models whose id contains `filter`. Raises UsageError if there is none."""
    found = [rules for rules in known() if filter in rules.id]
    if not found:
        raise UsageError(f"no model with {filter!r} in its id; `dragoman models` lists all")
    screen = Screen()
    if json:
        for rules in found:
            screen.write(to_json(rules).decode() + "\n")
        return ANSWERED
    rows = [_COLUMNS, *(_row(rules) for rules in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        screen.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    return ANSWERED


def _row(rules: ModelRules) -> tuple[str, ...]:
    thinking = [word for word, has in (("adaptive", rules.thinking_adaptive), ("budget", rules.thinking_budget)) if has]
    always = ["always on"] if rules.thinking_off == "never" else ["on by default"] if rules.thinking_default_on else []
    return (
        rules.id,
        f"{rules.context_window:,}" if rules.context_window else "?",
        f"{rules.max_output:,}" if rules.max_output else "?",
        ", ".join([*thinking, *always]) or "none",
        f"{rules.lifecycle}, goes {rules.retires_at}" if rules.retires_at and rules.lifecycle != "retired" else rules.lifecycle,
    )
