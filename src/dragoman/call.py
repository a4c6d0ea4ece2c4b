"""One logical call, without I/O: attempts, hold-back, retries, timing, as a generator of steps.

Strategy. `Call.steps()` says what to do next (`Send`, `Read`, `Release`, `Sleep`, `Emit`) and is told how it went; the two drivers in
`driver.py` only carry the steps out, one blocking, one awaiting. So everything that can be wrong about a call is written once
and tested without a network.

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

from dragoman.errors import ERROR_BODY_LIMIT, AuthError, PermissionDeniedError, ProviderError
from dragoman.event import (
    BlockStart,
    Event,
    Failed,
    MessageStart,
    MessageStop,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from dragoman.message import Audio, Refusal, ServerToolUse, Text, Thinking, ToolUse
from dragoman.response import RateLimits, Timing
from dragoman.retry import RetryPolicy, RetryState, retry_after
from dragoman.transport import Clocks, HeaderList, Timeouts
from dragoman.wire.base import Auth, Decoder, HTTPRequest, lower_headers
from dragoman.wire.error_text import redact

__all__ = ["Call", "Clock", "Emit", "Head", "Read", "Release", "Send", "Sleep", "Step", "is_content"]


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


class Read(msgspec.Struct, frozen=True):
    """Read more of the body; answer with its bytes, `b""` at the end, or throw the ProviderError."""


class Release(msgspec.Struct, frozen=True):
    """Let go of the answer and its connection."""


class Sleep(msgspec.Struct, frozen=True):
    """Wait so many seconds, or until the call is aborted."""

    seconds: float
    clocks: Clocks


class Emit(msgspec.Struct, frozen=True):
    """Hand these events to the consumer."""

    events: Sequence[Event]


Step: TypeAlias = Send | Read | Release | Sleep | Emit

_SECRET_NAMES = ("auth", "key", "token", "secret", "cookie", "password")
"""In a header's name, they say that its value is not for other eyes."""

_READ = Read()
_TERMINAL = (MessageStop, Failed)
_CONTENT = (TextDelta, ThinkingDelta, ToolInputDelta)
_EMPTY_SHELLS = (Text, Refusal, Thinking, ToolUse, ServerToolUse, Audio)


def is_content(event: Event) -> bool:
    """Whether an event brings content: a delta of text, thinking or tool input, or a block that comes whole."""
    if type(event) is BlockStart:
        return type(event.block) not in _EMPTY_SHELLS
    return type(event) in _CONTENT


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
        self._began: float | None = None
        self._started = 0.0
        self._first_byte: float | None = None
        self._first_content: float | None = None
        self._finished: float | None = None
        self._longest_gap = 0.0
        self._bytes = 0
        self._refreshed = False
        self._notices: Sequence[Event] = request.notices
        self.clocks = Clocks(timeouts, now=clock.now)
        """The clocks of the attempt under way."""
        self.rate_limits: RateLimits | None = None

    @property
    def timing(self) -> Timing:
        """What has been measured so far."""
        return Timing(
            started=self._started,
            first_byte=self._first_byte,
            first_content=self._first_content,
            finished=self._finished,
            longest_gap=self._longest_gap,
            attempts=self._retry.attempt,
            bytes=self._bytes,
        )

    def steps(self) -> Generator[Step, Any, None]:
        """The whole call. Ends after the terminal event was emitted."""
        self._began, self._started = self._clock.now(), self._clock.wall()
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
            return (yield from self._failed(Failed(self._transport_error(error)), [], {}))
        headers = lower_headers(head.headers)
        decoder = self._new_decoder(head.status, head.headers)
        log.debug("%s: HTTP %d after %.3f s, request id %s", self._provider, head.status, self._since(), decoder.request_id or "none")
        self.rate_limits = decoder.rate_limits or self.rate_limits
        held: list[Event] | None = []  # None once content has been handed out
        error_bytes = 0
        while True:
            try:
                data: bytes = yield _READ
            except ProviderError as error:
                events = decoder.close(self._transport_error(error))
            else:
                if data:
                    self._received(len(data))
                    events = decoder.feed(data)
                    error_bytes += len(data) if head.status >= 400 else 0
                    if error_bytes >= ERROR_BODY_LIMIT and not events:
                        events = decoder.close()
                else:
                    events = decoder.close()
            if not events:
                continue
            self.clocks.content()
            if self._first_content is None:
                self._mark_content(events)
            last = events[-1]
            if held is not None:
                held += events
                if isinstance(last, Failed) and not any(isinstance(event, BlockStart) for event in held):
                    return (yield from self._failed(last, held, headers))
                if type(last) not in _TERMINAL and not any(isinstance(event, BlockStart) for event in events):
                    continue
                events, held = held, None
            if type(last) in _TERMINAL:
                if isinstance(last, Failed):
                    self._complete(last.error, headers)
                self._finished = self._since()
                self.clocks.complete = isinstance(last, MessageStop)
                yield Release()
                yield Emit(self._with_notices(events))
                return False, None
            yield Emit(self._with_notices(events))

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
        self._finished = self._since()
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

    def _transport_error(self, error: ProviderError) -> ProviderError:
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
        values = [
            value
            for name, value in self._authorized.headers.items()
            if plain.get(name) != value or any(word in name.lower() for word in _SECRET_NAMES)
        ]
        return [*values, *(value.removeprefix("Bearer ") for value in values)]

    def _since(self) -> float:
        return self._clock.now() - (self._began or 0.0)

    def _received(self, count: int) -> None:
        self._bytes += count
        self.clocks.received()
        if self._first_byte is None:
            self._first_byte = self._since()

    def _mark_content(self, events: Sequence[Event]) -> None:
        if any(is_content(event) for event in events):
            self._first_content = self._since()

    def waited(self, seconds: float) -> None:
        """The driver tells how long a read took."""
        if self._first_byte is not None and seconds > self._longest_gap:
            self._longest_gap = seconds
