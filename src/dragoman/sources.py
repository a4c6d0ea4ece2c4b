"""Where a stream's events come from: what a source is, and the sources of providers that are plain iterators of events.

The HTTP drivers (`driver.py`) are sources, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from time import monotonic, time
from typing import Protocol, TypeGuard

from dragoman.errors import ProviderError
from dragoman.event import Event, Failed, MessageStop, Retrying
from dragoman.reading import is_content
from dragoman.response import RateLimits, Timing

__all__ = ["AsyncIteratorSource", "AsyncSource", "IteratorSource", "PolledSource", "Source", "can_be_polled"]


class Source(Protocol):
    """Where a Stream's events come from."""

    @property
    def timing(self) -> Timing: ...
    @property
    def rate_limits(self) -> RateLimits | None: ...
    def pull(self) -> Sequence[Event]:
        """The next events; none: it is over."""
        ...

    def abort(self) -> None:
        """Stop at once and let go of everything. Idempotent, from any thread."""
        ...


class AsyncSource(Protocol):
    """As `Source`, for an event loop. `abort` can be called without one; `close` also waits until all is shut."""

    @property
    def timing(self) -> Timing: ...
    @property
    def rate_limits(self) -> RateLimits | None: ...
    async def pull(self) -> Sequence[Event]: ...
    def abort(self) -> None: ...
    async def close(self) -> None: ...


class PolledSource(Protocol):
    """What an async source may also offer: its `pull` in two steps, so that a stream can wait without a coroutine for each event."""

    @property
    def arrival(self) -> Awaitable[object]:
        """After a `poll` or `woken` that gave None: what to wait for, once. What it gives is for `woken`. If the wait is cancelled, abort
        and close.
        """
        ...

    def poll(self) -> Sequence[Event] | None:
        """The next events, as `pull`; None: there are none yet, await `arrival`."""
        ...

    def woken(self, arrived: object) -> Sequence[Event] | None:
        """The wait for `arrival` has given this: then as `poll`."""
        ...


def can_be_polled(source: object) -> TypeGuard[PolledSource]:
    """Whether a source is a `PolledSource`."""
    return hasattr(source, "poll")


class _Measured:
    """The timing of events that come from an iterator: measured as they are pulled."""

    def __init__(self) -> None:
        self._wall = time()
        self._began: float | None = None
        self._first: float | None = None
        self._content: float | None = None
        self._finished: float | None = None
        self._attempts = 1
        self.rate_limits: RateLimits | None = None

    @property
    def timing(self) -> Timing:
        return Timing(
            started=self._wall,
            first_byte=self._first,
            first_content=self._content,
            finished=self._finished,
            attempts=self._attempts,
        )

    def _begin(self) -> float:
        """When the first event was asked for."""
        if self._began is None:
            self._wall, self._began = time(), monotonic()
        return self._began

    def _mark(self, event: Event) -> None:
        since = monotonic() - self._begin()
        if isinstance(event, Retrying):
            self._attempts = event.attempt + 1
            return
        self._first = since if self._first is None else self._first
        if self._content is None and is_content(event):
            self._content = since
        if isinstance(event, MessageStop | Failed):
            self._finished = since

    def _failed(self, error: ProviderError) -> Failed:
        """A failure that a provider raised, as the event that it should have handed out: so the call ends as any other that fails."""
        failed = Failed(error)
        self._mark(failed)
        return failed


class IteratorSource(_Measured):
    """A source over any iterator of events; its `close` method, if it has one, is called on abort."""

    def __init__(self, events: Iterator[Event]) -> None:
        super().__init__()
        self._events = events

    def pull(self) -> Sequence[Event]:
        """The next event."""
        self._begin()
        try:
            for event in self._events:
                self._mark(event)
                return [event]
        except ProviderError as error:
            return [self._failed(error)]
        return []

    def abort(self) -> None:
        """Close the iterator."""
        close = getattr(self._events, "close", None)
        if close is not None:
            close()


class AsyncIteratorSource(_Measured):
    """A source over any async iterator of events; its `aclose` method, if it has one, is called on close."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        super().__init__()
        self._events = events

    async def pull(self) -> Sequence[Event]:
        """The next event."""
        self._begin()
        try:
            async for event in self._events:
                self._mark(event)
                return [event]
        except ProviderError as error:
            return [self._failed(error)]
        return []

    def abort(self) -> None:
        """Nothing can be shut without the loop; `close` does it."""

    async def close(self) -> None:
        """Close the iterator."""
        close = getattr(self._events, "aclose", None)
        if close is not None:
            await close()
