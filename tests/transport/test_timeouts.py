"""Time limits: what is refused when they are made. How they run out: `test_clocks.py`, `driver/test_stream.py`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dragoman import ConfigError, Timeouts


@pytest.mark.parametrize("name", ["connect", "first_byte", "idle", "content_idle", "total"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 1e12, "10", True, [5]])
def test_what_is_no_time_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^Timeouts: {name} must be a number of seconds above 0, or None for no limit, not "):
        Timeouts(**{name: value})


def test_there_may_be_no_limit() -> None:
    assert Timeouts(connect=None, first_byte=None, idle=31_536_000, total=0.001).connect is None
