"""What every provider offers. `Provider` is the protocol, `ProviderBase` gives the four ways to call.

Strategy. A provider has two methods that matter, `events` and `aevents`; everything else follows from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import copy_context
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from dragoman.event import Event
from dragoman.hooks import CallInfo, CallSpan, TelemetrySetting, resolve_telemetry
from dragoman.request import Request
from dragoman.response import Response
from dragoman.retry import RetryPolicy
from dragoman.sources import AsyncIteratorSource, IteratorSource
from dragoman.stream import AsyncStream, Stream
from dragoman.transport import Timeouts

__all__ = ["Provider", "ProviderBase"]

OnEvent = Callable[[Event], object]


@runtime_checkable
class Provider(Protocol):
    """Anything that answers requests with events."""

    @property
    def name(self) -> str: ...
    @property
    def default_model(self) -> str: ...
    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Iterator[Event]:
        """The events of one call; a failure is the last of them (Failed)."""
        ...

    def aevents(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncIterator[Event]:
        """As `events`, for an event loop."""
        ...


class ProviderBase(ABC):
    """Gives `stream`, `astream`, `complete`, `acomplete`, `close`, `aclose` to a class with `events` and `aevents`."""

    name: str = ""
    default_model: str = ""
    telemetry: TelemetrySetting = "auto"

    @abstractmethod
    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Iterator[Event]:
        """The events of one call; a failure is the last of them (Failed)."""

    @abstractmethod
    def aevents(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncIterator[Event]:
        """As `events`, for an event loop."""

    def stream(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Stream:
        """The events of one call as a `Stream`, which raises at a failure.

        Raises ConfigError and InvalidInputError itself; everything else comes from the stream.
        """
        events = self.events(request, timeouts=timeouts, retry=retry)
        if isinstance(events, Stream):
            return events.raising()
        return Stream(IteratorSource(iter(events)), raises=True, span=self._span(request))

    def astream(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncStream:
        """As `stream`, for an event loop: `async with provider.astream(request) as stream`."""
        events = self.aevents(request, timeouts=timeouts, retry=retry)
        if isinstance(events, AsyncStream):
            return events.raising()
        return AsyncStream(AsyncIteratorSource(aiter(events)), raises=True, span=self._span(request))

    def complete(
        self,
        request: Request,
        *,
        on_event: OnEvent | None = None,
        stream: bool = True,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
    ) -> Response:
        """The finished answer. `on_event` sees each event first. `stream=False` asks for the answer in one piece. Raises ProviderError."""
        with self._call(request, stream=stream, timeouts=timeouts, retry=retry) as call:
            for event in call:
                if on_event is not None:
                    on_event(event)
            return call.response()

    async def acomplete(
        self,
        request: Request,
        *,
        on_event: OnEvent | Callable[[Event], Awaitable[object]] | None = None,
        stream: bool = True,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
    ) -> Response:
        """As `complete`, for an event loop; an `on_event` that returns an awaitable is awaited."""
        async with self._acall(request, stream=stream, timeouts=timeouts, retry=retry) as call:
            async for event in call:
                if on_event is not None:
                    result = on_event(event)
                    if isinstance(result, Awaitable):
                        await result
            return await call.response()

    def close(self) -> None:  # noqa: B027  # most fakes and wrappers hold nothing
        """Let go of all connections. The provider may be used again."""

    async def aclose(self) -> None:  # noqa: B027
        """As `close`, for the connections of the running event loop."""

    def _call(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> Stream:
        del stream  # a provider that only has events has one way to answer
        return self.stream(request, timeouts=timeouts, retry=retry)

    def _acall(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> AsyncStream:
        del stream
        return self.astream(request, timeouts=timeouts, retry=retry)

    def _span(self, request: Request, **details: Any) -> Callable[[], CallSpan | None] | None:
        """How to begin the telemetry of one call, or None if nobody observes. It begins in the context of this moment, wherever the
        stream is read.
        """
        telemetry = resolve_telemetry(self.telemetry)
        if telemetry is None:
            return None
        info = CallInfo(provider=self.name, model=request.model or self.default_model, request=request, **details)
        context = copy_context()
        return lambda: context.run(telemetry.started, info)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()
