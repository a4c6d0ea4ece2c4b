"""What each model can do: the rules that the encoder and the local validation obey.

Strategy. The rules are data (`models.json`, with its date and sources); this file only finds the row. A row that is left out would
refuse nothing: `ModelRules()` is the model without any rule, which is what an id of no known line gets. An unknown id of a known line
gets the rules of the newest model of that line, since lines have only ever become stricter and new ids come out before we do.

The table is one immutable snapshot that is swapped whole, so readers take no lock and never see half of an update.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from dragoman.catalog.data import data_file
from dragoman.catalog.ids import LINES, find, line_of, version_of
from dragoman.catalog.info import ModelInfo

__all__ = ["EFFORTS", "ModelRules", "known", "reset", "rules", "update"]

ThinkingOff: TypeAlias = Literal["disabled", "between_tools", "never"]

EFFORTS = ("low", "medium", "high", "xhigh", "max")
"""The efforts of `output_config.effort`, lowest first (anthropic.md §3)."""

_CACHED_IDS = 1024
"""Look-ups kept per snapshot; a caller that makes up ids must not grow the process."""


class ModelRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one model accepts. The defaults are a model without any rule: everything is accepted, nothing is known.

    `id` is the catalogue's own name for the model whose rules these are, `""` for none; limits are in tokens, None if unknown. Source:
    anthropic.md §14, and `GET /v1/models` after `update`.
    """

    id: str = ""
    line: str = ""
    lifecycle: Literal["active", "deprecated", "retired", ""] = ""
    retires_at: str = ""
    """The day (ISO 8601) the model goes away or went; `""` if none is planned or known."""
    context_window: int | None = None
    max_output: int | None = None
    thinking_budget: bool = True
    """Takes `thinking: {type: enabled, budget_tokens}`."""
    thinking_adaptive: bool = True
    """Takes `thinking: {type: adaptive}`."""
    thinking_default_on: bool = False
    """Thinks when the request does not say."""
    thinking_off: ThinkingOff = "disabled"
    """The form that turns thinking off, or that nothing does."""
    effort: tuple[str, ...] = EFFORTS
    effort_max_without_thinking: str | None = None
    """The highest effort that is accepted while thinking is off; None: any."""
    sampling: bool = True
    """Takes temperature, top_p and top_k."""
    temperature_and_top_p_together: bool = True
    forced_tool_choice: bool = True
    """Takes tool_choice `any` and `tool` (never together with a thinking budget)."""
    thinking_prefix_bound: bool = False
    """Refuses a thinking block whose earlier conversation was changed."""
    mid_system: bool = True
    """Honours a system message among the others (accepting it is not enough)."""
    prefill: bool = True
    """Continues a trailing assistant turn."""
    caching: bool = True
    structured_output: bool = True
    strict_tools: bool = True
    image_input: bool = True
    pdf_input: bool = True
    fast_mode: bool = True

    @property
    def is_known(self) -> bool:
        """Whether these are a model's rules, not the lack of any."""
        return self.id != ""

    @property
    def auto_adaptive(self) -> bool:
        """Whether `ThinkingConfig.auto()` means adaptive: the model is known to be. Servers of unknown models mostly know budgets."""
        return self.is_known and self.thinking_adaptive


class _File(msgspec.Struct, frozen=True):
    models: list[ModelRules]
    aliases: dict[str, str]


class _Snapshot:
    """One state of the catalogue: rows by id, the newest of each line, and the look-ups made so far."""

    __slots__ = ("found", "newest", "rows")

    def __init__(self, rows: dict[str, ModelRules]) -> None:
        self.rows = rows
        self.found: dict[str, ModelRules] = {}
        self.newest: dict[str, ModelRules] = {}
        for row in rows.values():
            best = self.newest.get(row.line)
            if row.line and (best is None or version_of(row.id) > version_of(best.id)):
                self.newest[row.line] = row

    def rules(self, model_id: str) -> ModelRules:
        row = self.found.get(model_id)
        if row is None:
            row = find(model_id, self.rows) or self.newest.get(line_of(model_id)) or _NO_RULES
            if len(self.found) < _CACHED_IDS:
                self.found[model_id] = row
        return row


_NO_RULES = ModelRules()
_lock = threading.Lock()
_snapshot: _Snapshot | None = None


def _local() -> _Snapshot:
    file = msgspec.json.decode(data_file("models.json"), type=_File)
    rows = {row.id: row for row in file.models}
    rows.update({alias: rows[target] for alias, target in file.aliases.items()})
    return _Snapshot(rows)


def _current() -> _Snapshot:
    global _snapshot  # noqa: PLW0603  # the one place that holds the catalogue's state
    snapshot = _snapshot
    if snapshot is None:
        with _lock:
            snapshot = _snapshot = _snapshot or _local()
    return snapshot


def rules(model_id: str) -> ModelRules:
    """The rules of a model by its id, however decorated.

    The exact id, else the longest known id that it continues at a separator, else the newest model of its line, else no rules.
    """
    snapshot = _snapshot
    row = None if snapshot is None else snapshot.found.get(model_id)  # as nearly always
    return _current().rules(model_id) if row is None else row


def known() -> list[ModelRules]:
    """Every model that the catalogue has rules for, each once, in the catalogue's order (newest first within a line)."""
    return list({row.id: row for row in _current().rows.values()}.values())


def update(models: Iterable[ModelInfo]) -> None:
    """Merge what `provider.models()` answered over the local data, for this process, until `reset()`. Safe from any thread.

    What an answer leaves out stays as it was; a model that was unknown starts from the rules of its line.
    """
    global _snapshot  # noqa: PLW0603
    _current()
    given = list(models)
    with _lock:
        before = _snapshot or _local()
        rows = dict(before.rows)
        for info in given:
            if info.id:
                row = _merged(info, before)
                rows[info.id] = row
                if before.rules(info.id).id == row.id:
                    rows.update({name: row for name, old in before.rows.items() if old.id == row.id})
        _snapshot = _Snapshot(rows)


def reset() -> None:
    """Forget every `update`: the local data alone. Safe from any thread."""
    global _snapshot  # noqa: PLW0603
    with _lock:
        _snapshot = _local()


def _merged(info: ModelInfo, table: _Snapshot) -> ModelRules:
    exact = find(info.id, table.rows)
    base = exact or table.newest.get(info.line or line_of(info.id)) or _NO_RULES
    changes: dict[str, Any] = {"id": exact.id if exact else info.id}
    line = info.line or base.line
    if line in LINES or info.line:
        changes["line"] = line
    if info.lifecycle in ("active", "deprecated", "retired"):
        changes |= {"lifecycle": info.lifecycle, "retires_at": info.retires_at}
    if info.max_input_tokens:
        changes["context_window"] = info.max_input_tokens
    if info.max_tokens:
        changes["max_output"] = info.max_tokens
    for field, capability in _CAPABILITIES.items():
        supported = info.supports(capability)
        if supported is not None:
            changes[field] = supported
    efforts = {level: info.supports(f"effort.{level}") for level in EFFORTS}
    if info.supports("effort") is not None:
        changes["effort"] = tuple(level for level, supported in efforts.items() if supported)
    off = {form: info.supports(f"thinking.types.{form}") for form in ("disabled", "between_tools")}
    if off["disabled"] is not None:
        changes["thinking_off"] = "disabled" if off["disabled"] else "between_tools" if off["between_tools"] else "never"
    return msgspec.structs.replace(base, **changes)


_CAPABILITIES = {
    "thinking_budget": "thinking.types.enabled",
    "thinking_adaptive": "thinking.types.adaptive",
    "structured_output": "structured_outputs",
    "strict_tools": "structured_outputs",
    "image_input": "image_input",
    "pdf_input": "pdf_input",
}
"""Our rule, and the entry of `ModelInfo.capabilities` that decides it."""
