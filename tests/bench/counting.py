"""Cost without a clock: how many lines of dragoman run for some work, which no other load on the machine can change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dragoman

__all__ = ["growth", "lines_run"]

PACKAGE = str(Path(dragoman.__file__).parent)


def lines_run(work: Callable[[], object]) -> int:
    """Lines of our package that run while `work` does. What C does in one call counts as its line."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work_of: Callable[[int], Callable[[], object]], size: int, times: int = 5) -> float:
    """How many times the lines run for `times` the size; what is done once per call anyway is not counted.

    `work_of` prepares the work of a size. Exactly `times` is linear; the square of it, quadratic.
    """
    work_of(size)()  # what is loaded at first use is there
    once = lines_run(work_of(0))
    small, large = work_of(size), work_of(size * times)
    return (lines_run(large) - once) / (lines_run(small) - once)
