"""The transport plug-in: the only place where bytes meet the network.

A transport sends one `HTTPRequest` and gives back an `HTTPResponse` whose body is an iterator of bytes, cut anywhere. That is all a
simple plug-in needs (the docs show one of 20 lines). A thorough one also honours `Clocks`, which the driver shares with it for the
length of one attempt: every wait asks `limit()` how long it may take and under which name it fails, and `on_abort` registers what
must be shut when the caller closes the stream from another thread.

Nothing here imports an event loop or an HTTP client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from threading import Event, Lock
from time import monotonic
from typing import Literal, Protocol, TypeAlias, TypeGuard, runtime_checkable

import msgspec

from dragoman.errors import ConfigError, Phase, RequestTimeoutError
from dragoman.value import Value
from dragoman.wire.base import HTTPRequest

__all__ = [
    "LONGEST_WAIT",
    "YEAR",
    "Arrived",
    "AsyncHTTPResponse",
    "AsyncTransport",
    "Clocks",
    "HTTPResponse",
    "HeaderList",
    "PolledResponse",
    "SleepingTransport",
    "Timeouts",
    "Transport",
    "TransportName",
    "can_be_polled",
    "wait_in_steps",
]

TransportName: TypeAlias = Literal["auto", "direct", "httpx2"]
"""A transport of ours by name: what `dragoman.transport.choose` makes of it."""
LONGEST_WAIT = 1.0
"""Seconds after which a blocking wait returns to Python at the latest, to go on if nothing has happened. A signal (Ctrl-C) that comes in
the moment before a system call begins does not end that call, and Python looks at it only when the call returns."""
HeaderList: TypeAlias = Sequence[tuple[str, str]]
"""Response headers, in order; names in any case."""


YEAR = 31_536_000.0
"""Seconds: the longest limit that can be set. No limit is None."""


class Timeouts(Value, frozen=True, kw_only=True):
    """How long to wait for the network, in seconds; None waits for ever. The time a consumer takes never counts.

    `connect`: name look-up, TCP and TLS. `first_byte`: from the request sent to the answer's first byte. `idle`: between two reads of
    the body; any byte counts, pings too. `content_idle`: between two pieces of content; pings do not count. `total`: the whole call,
    all attempts, without the waits between them.
    Raises ConfigError for what is no number above 0, or longer than a year, which no system call takes.
    """

    connect: float | None = 10.0
    first_byte: float | None = 120.0
    idle: float | None = 60.0
    content_idle: float | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        for name in ("connect", "first_byte", "idle", "content_idle", "total"):
            seconds: object = getattr(self, name)
            if seconds is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= YEAR):
                continue
            raise ConfigError(f"Timeouts: {name} must be a number of seconds above 0, or None for no limit, not {seconds!r}")


class Clocks:
    """The clocks of one attempt, shared by the driver (which starts and stops them) and the transport (which waits by them).

    Has the attributes of `Timeouts`, so a simple transport can use it as one. `now` is the clock, in seconds; it is passed in so that
    tests can turn it. Within the body of an answer what `limit` leaves never ends earlier than it said before: a timer may stay where
    it is, and ask again when it goes off.
    """

    def __init__(self, timeouts: Timeouts, *, total_used: float = 0.0, now: Callable[[], float] = monotonic) -> None:
        # What follows counts seconds of waiting in this attempt, which stand still while nobody waits. What every event needs comes first:
        # attributes lie in memory in the order in which they are made.
        self._now = now
        self._waiting_since: float | None = None  # by `now`
        self._phase: Phase = "connect"
        self._waited = 0.0  # up to the latest pause
        self._phase_began = 0.0
        self.aborted = False
        """Whether `abort` was called."""
        self._content_began = 0.0
        self._total_began = -total_used
        self.connect = timeouts.connect
        self.first_byte = timeouts.first_byte
        self.idle = timeouts.idle
        self.content_idle = timeouts.content_idle
        self.total = timeouts.total
        self.complete = False
        """Set by the driver once the message is complete: `HTTPResponse.close` may then wait a moment for the end of the body, so that
        the connection can be used again."""
        self._lock = Lock()
        self._on_abort: list[Callable[[], None]] = []

    # ---- for the transport

    def limit(self) -> tuple[float | None, Phase]:
        """Seconds that the next wait may take at most (never below 0), and which phase has then run out. None: no limit."""
        waited, phase = self._elapsed(), self._phase
        timeout = self.idle if phase == "idle" else self.first_byte if phase == "first_byte" else self.connect
        left = None if timeout is None else timeout - (waited - self._phase_began)
        if self.content_idle is not None and self._phase == "idle":
            content = self.content_idle - (waited - self._content_began)
            if left is None or content < left:
                left, phase = content, "content_idle"
        if self.total is not None:
            total = self.total - (waited - self._total_began)
            if left is None or total < left:
                left, phase = total, "total"
        return (None if left is None else max(left, 0.0)), phase

    @property
    def steady(self) -> bool:
        """Whether each wait from now on may take as long as any other: only `idle` runs, and begins anew with each."""
        return self._phase == "idle" and self.content_idle is None and self.total is None

    def connected(self) -> None:
        """A connection is there (new or from the pool): the wait for the first byte begins."""
        if self._phase == "connect":
            self._enter("first_byte")

    def reconnect(self) -> None:
        """The pooled connection was dead before any answer: the wait for a connection begins again."""
        self._enter("connect")

    def expired(self, phase: Phase | None = None) -> RequestTimeoutError:
        """The error to raise when the time that `limit` gave has passed."""
        phase = phase or self.limit()[1]
        seconds = {"connect": self.connect, "first_byte": self.first_byte, "idle": self.idle}.get(phase)
        seconds = self.content_idle if phase == "content_idle" else self.total if phase == "total" else seconds
        return RequestTimeoutError(f"{phase} timeout after {seconds:g} s" if seconds is not None else f"{phase} timeout", phase=phase)

    def on_abort(self, callback: Callable[[], None]) -> None:
        """Call `callback`, from whatever thread aborts, to make a blocked wait end at once. Called immediately if that has happened."""
        with self._lock:
            if not self.aborted:
                self._on_abort.append(callback)
                return
        callback()

    # ---- for the driver

    def abort(self) -> None:
        """End every wait of this attempt. Idempotent; from any thread."""
        with self._lock:
            callbacks, self._on_abort = self._on_abort, []
            self.aborted = True
        for callback in callbacks:
            callback()

    def resume(self) -> None:
        """The driver begins to wait for the network."""
        self._waiting_since = self._now()

    def pause(self) -> float:
        """The wait is over; returns how long it was."""
        since = self._waiting_since
        if since is None:
            return 0.0
        self._waiting_since = None
        waited = self._now() - since
        self._waited += waited
        return waited

    def received(self) -> None:
        """Bytes of the answer have come: the idle clock starts anew."""
        waited = self._elapsed()
        if self._phase != "idle":
            self._phase = "idle"
            self._content_began = waited
        self._phase_began = waited

    def arrived(self) -> float:
        """The wait is over because bytes have come: `pause` and `received` in one."""
        since = self._waiting_since
        if since is None or self._phase != "idle":
            self.received()
            return self.pause()
        self._waiting_since = None
        wait = self._now() - since
        self._waited = self._phase_began = self._waited + wait
        return wait

    def content(self) -> None:
        """Content has come."""
        self._content_began = self._elapsed()

    @property
    def total_used(self) -> float:
        """Seconds of waiting so far, for the next attempt's clocks."""
        return self._waited - self._total_began

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self._phase_began = self._elapsed()

    def _elapsed(self) -> float:
        since = self._waiting_since
        return self._waited if since is None else self._waited + (self._now() - since)


def wait_in_steps(event: Event, seconds: float | None) -> bool:
    """`event.wait(seconds)`, in steps of LONGEST_WAIT."""
    while seconds is None or seconds > LONGEST_WAIT:
        if event.wait(LONGEST_WAIT):
            return True
        seconds = None if seconds is None else seconds - LONGEST_WAIT
    return event.wait(seconds)


class HTTPResponse(Protocol):
    """An answer whose body has not been read yet."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> HeaderList: ...
    def __iter__(self) -> Iterator[bytes]:
        """The body's bytes, decoded from any content encoding, cut anywhere; ends at the end of the body."""
        ...

    def read(self) -> bytes:
        """The rest of the body, whole."""
        ...

    def close(self) -> None:
        """Let go of the connection: back to the pool if the body was read to its end, else shut at once, never drained (with
        `Clocks.complete`, the end of the body may be awaited for a moment). Idempotent, any thread.
        """
        ...


class Transport(Protocol):
    """Sends requests. Serves any number of threads at once.

    `send` and the iteration of an answer raise ConnectionFailedError (no connection, or it was reset), RequestTimeoutError (a clock ran
    out), IncompleteStreamError (the body was cut), ProtocolError (what came is not HTTP) and ConfigError (a URL, header or proxy that
    cannot be used), the foreign exception as `__cause__`; no foreign exception leaks. Redirects are never followed: a key must not
    travel to another host.
    """

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        """Send and wait for the answer's head."""
        ...

    def close(self) -> None:
        """Close all connections. The transport may be used again: it then opens new ones."""
        ...


@runtime_checkable
class SleepingTransport(Protocol):
    """What a blocking transport may also offer: its own way of waiting between attempts. A replay does not wait at all."""

    def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait, at most until `clocks.abort()`."""
        ...


class AsyncHTTPResponse(Protocol):
    """As `HTTPResponse`, for an event loop."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> HeaderList: ...
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def read(self) -> bytes: ...
    async def close(self) -> None: ...


class Arrived(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a body, one at least, as the result of a wait. Its repr shows how many: an event loop writes the results of futures into
    the reprs of its tasks, and those into logs.
    """

    data: bytes

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes>"


class PolledResponse(Protocol):
    """What an async answer may also offer: its iteration in two steps, so that a driver can wait without a coroutine for each read."""

    @property
    def arrival(self) -> Awaitable[object]:
        """After a `take` that gave None: what to wait for, once, before the next one. It may give what has come, in an `Arrived`:
        that is then taken. Whatever else it gives says nothing, and `take` is asked. If the wait is cancelled, close the answer.
        """
        ...

    def take(self) -> bytes | None:
        """What has come of the body since the last time, `b""` at its end; None: nothing yet, await `arrival`. Raises as iteration."""
        ...


def can_be_polled(response: object) -> TypeGuard[PolledResponse]:
    """Whether an answer is a `PolledResponse`. `isinstance` of a protocol takes twenty times as long."""
    return hasattr(response, "take")


class AsyncTransport(Protocol):
    """As `Transport`, for any number of event loops, each with its own connections. Offers `sleep`, so that the driver needs no loop."""

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse: ...
    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait, at most until `clocks.abort()`."""
        ...

    async def close(self) -> None: ...
