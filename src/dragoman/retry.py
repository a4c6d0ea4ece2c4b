"""Whether and when to try again: pure decisions. Nothing here sleeps, reads a clock or draws a random number by itself.

Strategy. `RetryState` is asked once per failed attempt and answers with a delay or None. What decides, in order: nothing after
content was handed out; the error's own `retryable` (which a server's `x-should-retry` may have set); the number of attempts; timeouts
of a sent request at most once, since they may bill twice; and a wait the server asks for that is longer than we are willing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from dragoman.errors import ConfigError, ProviderError, QuotaExceededError, RequestTimeoutError
from dragoman.value import Value

__all__ = ["RetryPolicy", "RetryState", "retry_after", "should_retry"]


LONGEST_WAIT = 31_536_000.0
"""Seconds: a year, also where the policy sets no limit. A longer wait is one that no system call takes."""


class RetryPolicy(Value, frozen=True, kw_only=True):
    """How often and how patiently to retry. Times in seconds.

    Back-off before attempt n + 1 is `base * factor ** (n - 1)`, at most `cap`; with `jitter="full"` a random share of it (0 to all).
    The delay is at least what the server's Retry-After says; more than `max_wait` of it means: do not retry. `retry_timeouts=False`
    never repeats a request that timed out after it was sent. `max_attempts=1` never retries. Raises ConfigError for a value that makes no
    sense.
    """

    max_attempts: int = 3
    base: float = 0.5
    factor: float = 2.0
    cap: float = 30.0
    jitter: Literal["full", "none"] = "full"
    max_wait: float = 120.0
    retry_timeouts: bool = True

    def __post_init__(self) -> None:
        attempts = self.max_attempts
        if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"RetryPolicy: max_attempts must be a whole number from 1, not {attempts!r}")
        for name in ("base", "factor", "cap", "max_wait"):
            value: object = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:  # NaN is not
                raise ConfigError(f"RetryPolicy: {name} must be a number from 0, not {value!r}")
        if self.jitter not in ("full", "none"):
            raise ConfigError(f"RetryPolicy: jitter must be 'full' or 'none', not {self.jitter!r}")


class RetryState:
    """The retries of one call. `random` gives numbers in [0, 1)."""

    def __init__(self, policy: RetryPolicy, random: Callable[[], float]) -> None:
        self.policy = policy
        self.attempt = 1
        """The attempt under way, from 1."""
        self._random = random
        self._timed_out = False

    def next_delay(self, error: ProviderError) -> float | None:
        """Seconds to wait before the next attempt, or None if `error` is final. Counts the attempt."""
        policy = self.policy
        if not error.retryable or isinstance(error, QuotaExceededError) or self.attempt >= policy.max_attempts:
            return None
        if isinstance(error, RequestTimeoutError) and error.phase in ("first_byte", "idle", "content_idle"):
            if self._timed_out or not policy.retry_timeouts:
                return None
            self._timed_out = True
        delay = self._backoff()
        if error.retry_after is not None:
            if error.retry_after > policy.max_wait:
                return None
            delay = max(delay, error.retry_after)
        self.attempt += 1
        return min(delay, LONGEST_WAIT)

    def _backoff(self) -> float:
        policy = self.policy
        try:
            backoff = min(policy.cap, policy.base * policy.factor ** (self.attempt - 1))
        except OverflowError:
            backoff = policy.cap
        return backoff * self._random() if policy.jitter == "full" else backoff


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """What the server's `x-should-retry` says (lower-case header names), None if it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def retry_after(status: int, headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the server asks to wait, from an answer with an error status; never negative, None if it does not say.

    `retry-after-ms` wins over `retry-after` (seconds or an HTTP date). Only a 429 with neither is read further: `x-ratelimit-reset`,
    `ratelimit-reset` (seconds, a duration like `1m30s`, or a Unix time), then the latest `anthropic-ratelimit-*-reset` whose
    `-remaining` is 0. Dates count from `now`, else from the answer's own `date` header; without either they are not read.
    A reset that cannot be read is as if absent; a Retry-After that cannot be read says that there is none. Header names in lower case.
    """
    if status < 400:
        return None
    reference = now or _date(headers.get("date", ""))
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    if "retry-after" in headers or "retry-after-ms" in headers:
        text = headers.get("retry-after", "")
        seconds = _number(text)
        return max(0.0, seconds) if seconds is not None else _until(_date(text), reference)
    if status != 429:
        return None
    for name in ("x-ratelimit-reset", "ratelimit-reset"):
        wait = _reset(headers.get(name, ""), reference)
        if wait is not None:
            return wait
    waits = [
        _until(_iso(headers.get(f"{name[:-10]}-reset", "")), reference)
        for name, value in headers.items()
        if name.startswith("anthropic-ratelimit-") and name.endswith("-remaining") and value.strip() == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _reset(text: str, reference: datetime | None) -> float | None:
    value = _number(text)
    if value is None:
        match = _DURATION.fullmatch(text.strip())
        if match is None or not any(match.groups()):
            return _until(_iso(text), reference)
        days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    if value < 1e9:
        return max(0.0, value)
    moment = value / 1000 if value > 1e11 else value  # some gateways give milliseconds since 1970
    return None if reference is None else max(0.0, moment - reference.timestamp())


def _date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # dear to import, and few servers send a date

    try:
        value = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _iso(text: str) -> datetime | None:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _until(moment: datetime | None, reference: datetime | None) -> float | None:
    if moment is None or reference is None:
        return None
    return max(0.0, (moment - reference).total_seconds())
