"""A thinking budget as one of OpenAI's efforts, for both protocols: they take a word where others take a number of tokens."""

from __future__ import annotations

from typing import Final

from dragoman.request import Effort

__all__ = ["EFFORTS", "effort_of"]

EFFORTS: Final[tuple[tuple[int, Effort], ...]] = ((1024, "minimal"), (2048, "low"), (8192, "medium"), (16384, "high"))
"""The largest budget in tokens that each effort stands for; more is `xhigh`. The inverse of the table of `ThinkingConfig.auto`."""


def effort_of(budget: int) -> Effort:
    """The smallest effort that has room for this many tokens."""
    for most, effort in EFFORTS:
        if budget <= most:
            return effort
    return "xhigh"
