"""The catalogue: what each model can do and what it costs. Data files and the rules for finding a row, nothing else.

`rules(model_id)` gives a model's capabilities; `update(models)` merges what the provider itself says over them, `reset()` undoes that.
Prices live in `dragoman.catalog.prices` and are loaded by `dragoman.catalog.cost` only.
"""

from __future__ import annotations

from dragoman.catalog.capabilities import EFFORTS, ModelRules, known, reset, rules, update
from dragoman.catalog.info import ModelInfo, model_info

__all__ = ["EFFORTS", "ModelInfo", "ModelRules", "known", "model_info", "reset", "rules", "update"]
