"""Retry policies: what is refused, and how the waits grow. How calls are repeated: `driver/test_call.py`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dragoman import ConfigError, RetryPolicy, ServerError
from dragoman.retry import RetryState, retry_after


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", -1),
        ("max_attempts", 2.0),
        ("max_attempts", True),
        ("max_attempts", "3"),
        ("base", -0.1),
        ("base", "1"),
        ("factor", -2),
        ("cap", math.nan),
        ("max_wait", None),
        ("max_wait", -1),
        ("jitter", "equal"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_its_name(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^RetryPolicy: {field} must be "):
        RetryPolicy(**{field: value})


def test_without_limits_is_a_policy_too() -> None:
    policy = RetryPolicy(cap=math.inf, max_wait=math.inf)
    assert RetryState(policy, lambda: 0.5).next_delay(ServerError("x", retry_after=1e6)) == 1e6
    assert RetryState(policy, lambda: 0.5).next_delay(ServerError("x", retry_after=1e20)) == 31_536_000


@pytest.mark.parametrize("factor", [2.0, 10, 1e300])
def test_a_wait_never_grows_beyond_its_cap(factor: float) -> None:
    state = RetryState(RetryPolicy(max_attempts=2000, factor=factor, cap=7.0, jitter="none"), lambda: 1.0)
    waits = [state.next_delay(ServerError("x")) for _ in range(1999)]
    assert waits[0] == 0.5
    assert waits[-1] == 7.0
    assert state.next_delay(ServerError("x")) is None


def test_a_reset_that_cannot_be_read_is_as_if_absent() -> None:
    assert retry_after(429, {"x-ratelimit-reset": "later", "ratelimit-reset": "4"}) == 4
    assert retry_after(429, {"retry-after": "later", "ratelimit-reset": "4"}) is None
