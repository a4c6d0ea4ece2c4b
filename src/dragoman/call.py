"""One logical call, without I/O: attempts, hold-back, retries, timing, as a generator of steps.

Strategy. `Call.steps()` says what to do next (`Send`, `Body`, `Release`, `Sleep`, `Emit`) and is told how it went; the two drivers in
`driver.py` only carry the steps out, one blocking, one awaiting. So everything that can be wrong about a call is written once
and tested without a network. A body is read without a step per piece: that goes to a `Reading` (see `reading.py`).

Rules kept here: what an attempt gives is held back until its first BlockStart or its end, so that a retried attempt leaves no
trace; after a BlockStart nothing is retried; the connection is released before the terminal event is handed out; clocks run only
inside a step that waits for the network.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from random import random
from time import monotonic, time
from typing import Any, TypeAlias

import msgspec

from dragoman.auth import names_a_secret
from dragoman.errors import AuthError, PermissionDeniedError, ProviderError
from dragoman.event import BlockStart, Event, Failed, MessageStart, MessageStop, Retrying
from dragoman.reading import Meter, Reading
from dragoman.response import RateLimits, Timing
from dragoman.retry import RetryPolicy, RetryState, retry_after
from dragoman.transport import Clocks, HeaderList, Timeouts
from dragoman.wire.base import Auth, Decoder, HTTPRequest, lower_headers
from dragoman.wire.error_text import redact

__all__ = ["Body", "Call", "Clock", "Emit", "Head", "Release", "Send", "Sleep", "Step"]

log = logging.getLogger("dragoman")
"""Requests and retries at DEBUG: ids, statuses and timings, never a key, a prompt or a server's message."""


class Clock(msgspec.Struct, frozen=True):
    """Where time and chance come from; tests pass their own. All in seconds; `wall` is Unix time."""

    now: Callable[[], float] = monotonic
    wall: Callable[[], float] = time
    random: Callable[[], float] = random


class Send(msgspec.Struct, frozen=True):
    """Send this; answer with a `Head`, or throw the ProviderError."""

    request: HTTPRequest
    clocks: Clocks


class Head(msgspec.Struct, frozen=True):
    """An answer has begun."""

    status: int
    headers: HeaderList


class Body(msgspec.Struct, frozen=True):
    """Read the body and give what comes to `reading`, errors too, handing out what it returns, until it is over."""

    reading: Reading


class Release(msgspec.Struct, frozen=True):
    """Let go of the answer and its connection."""


class Sleep(msgspec.Struct, frozen=True):
    """Wait so many seconds, or until the call is aborted."""

    seconds: float
    clocks: Clocks


class Emit(msgspec.Struct, frozen=True):
    """Hand these events to the consumer."""

    events: Sequence[Event]


Step: TypeAlias = Send | Body | Release | Sleep | Emit


class Call:
    """One call from its first attempt to its last event. `decoder` makes a decoder for an answer's status and headers."""

    def __init__(
        self,
        request: HTTPRequest,
        decoder: Callable[[int, HeaderList], Decoder],
        *,
        label: str,
        provider: str,
        model: str,
        auth: Auth,
        timeouts: Timeouts,
        retry: RetryPolicy,
        clock: Clock,
        extra_headers: Callable[[], dict[str, str]] | None = None,
    ) -> None:
        self._request = request
        self._authorized = auth.apply(request)  # a missing key is the caller's mistake: raised by the call itself
        self._new_decoder = decoder
        self._label = label
        self._provider = provider
        self._model = model
        self._auth = auth
        self._timeouts = timeouts
        self._retry = RetryState(retry, clock.random)
        self._clock = clock
        self._extra_headers = extra_headers
        self._meter = Meter(clock.now, clock.wall)
        self._refreshed = False
        self._notices: Sequence[Event] = request.notices
        self.clocks = Clocks(timeouts, now=clock.now)
        """The clocks of the attempt under way."""
        self.rate_limits: RateLimits | None = None

    @property
    def timing(self) -> Timing:
        """What has been measured so far."""
        return self._meter.timing(self._retry.attempt)

    def steps(self) -> Generator[Step, Any, None]:
        """The whole call. Ends after the terminal event was emitted."""
        self._meter.begin()
        while True:
            failure = yield from self._attempt()
            if failure is None:
                return
            self.clocks = self._next_clocks()
            log.debug("%s: attempt %d failed (%s), next in %.3f s", self._provider, failure.attempt, failure.error.kind, failure.delay)
            yield Emit([failure])
            yield Sleep(failure.delay, self.clocks)

    def _next_clocks(self) -> Clocks:
        """Fresh clocks for another attempt; the total goes on, and so does an abort."""
        clocks = Clocks(self._timeouts, total_used=self.clocks.total_used, now=self._clock.now)
        self.clocks.on_abort(clocks.abort)
        return clocks

    def _attempt(self) -> Generator[Step, Any, Retrying | None]:
        """One attempt. Returns how to go on if it failed and may be repeated, None if its terminal event was emitted."""
        while True:
            again, retrying = yield from self._exchange()
            if not again:
                return retrying
            self.clocks = self._next_clocks()

    def _exchange(self) -> Generator[Step, Any, tuple[bool, Retrying | None]]:
        """Send once and read the answer. (True, None): the credentials were renewed, send again at once."""
        request = self._authorized
        if self._extra_headers is not None and (more := self._extra_headers()):
            request = msgspec.structs.replace(request, headers={**request.headers, **more})
        log.debug("%s: %s %s, attempt %d", self._provider, request.method, request.path, self._retry.attempt)
        for notice in request.notices:
            log.debug("%s: %s at %s", self._provider, notice.code, notice.path or "the request")
        try:
            head: Head = yield Send(request, self.clocks)
        except ProviderError as error:
            return (yield from self._failed(Failed(self.named(error)), [], {}))
        # what a good answer's headers say of waiting and limits is nothing to do with an error within it, whatever status that one names
        headers = lower_headers(head.headers) if head.status >= 400 else {}
        decoder = self._new_decoder(head.status, head.headers)
        log.debug("%s: HTTP %d after %.3f s, request id %s", self._provider, head.status, self._meter.since(), decoder.request_id or "none")
        self.rate_limits = decoder.rate_limits or self.rate_limits
        reading = Reading(decoder, refused=head.status >= 400, clocks=self.clocks, meter=self._meter, told=self._with_notices)
        yield Body(reading)
        events = reading.events
        last = events[-1] if events else None
        if isinstance(last, Failed):
            if not reading.out and not any(isinstance(event, BlockStart) for event in events):
                return (yield from self._failed(last, events, headers))
            self._complete(last.error, headers)
        self._meter.finished = self._meter.since()
        self.clocks.complete = isinstance(last, MessageStop)
        yield Release()
        yield Emit(self._with_notices(events))
        return False, None

    def _failed(self, failed: Failed, held: list[Event], headers: dict[str, str]) -> Generator[Step, Any, tuple[bool, Retrying | None]]:
        """An attempt failed before any content: repeat it, or let its events out."""
        error = failed.error
        self._complete(error, headers)
        yield Release()
        if isinstance(error, AuthError) and not isinstance(error, PermissionDeniedError) and not self._refreshed:
            self._refreshed = True
            if self._auth.refresh(error):
                self._authorized = self._auth.apply(self._request)
                return True, None
        attempt = self._retry.attempt
        delay = None if self.clocks.aborted else self._retry.next_delay(error)
        if delay is not None:
            return False, Retrying(attempt, delay, error)
        self._meter.finished = self._meter.since()
        started = any(isinstance(event, MessageStart) for event in held)
        yield Emit(self._with_notices(held) if started else [failed])
        return False, None

    # ---- details

    def _with_notices(self, events: list[Event]) -> list[Event]:
        """What encoding changed is told behind the MessageStart; `events` are about to be handed out."""
        if not self._notices:
            return events
        for at, event in enumerate(events, 1):
            if isinstance(event, MessageStart):
                events[at:at] = self._notices
                self._notices = ()
                break
        return events

    def named(self, error: ProviderError) -> ProviderError:
        """An error of the transport, under the provider's name: `Anthropic request failed: idle timeout after 60 s`."""
        prefix = f"{self._label} request failed"
        if not error.message.startswith(prefix):
            error.args = (f"{prefix}: {error.message}", *error.args[1:])
        return error

    def _complete(self, error: ProviderError, headers: dict[str, str]) -> None:
        """Fill in what only the driver knows, and take every trace of a key out."""
        error.provider = error.provider or self._provider
        error.model = error.model or self._model
        error.attempts = self._retry.attempt
        if error.status is not None and error.retry_after is None:
            now = datetime.fromtimestamp(self._clock.wall(), UTC)
            error.retry_after = retry_after(error.status, headers, now)
        secrets = self._secrets()
        error.args = (redact(error.message, secrets), *error.args[1:])
        error.body = redact(error.body, secrets)

    def _secrets(self) -> list[str]:
        """What the auth put on the request, whatever it is, and what the caller put there under a name that speaks of secrets."""
        plain = self._request.headers
        values = [value for name, value in self._authorized.headers.items() if plain.get(name) != value or names_a_secret(name)]
        return [*values, *(value.removeprefix("Bearer ") for value in values)]
