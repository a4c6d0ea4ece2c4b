"""`FallbackProvider`: a provider over providers, which asks the next one when one fails before it has said anything.

Strategy. A call goes to the first provider. What it sends before its first content is held back; if it then fails in an error that the
caller named, that attempt is forgotten, the consumer is told by a `Retrying` event with no delay, and the next provider is asked. From the
first content on nothing is held and nothing is tried again, so nobody ever sees two answers mixed. All decisions are in `_Run`; the two
iterators below it only pull.

Each provider keeps its own retries, time limits and telemetry: a fallback begins where those have given up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from copy import copy
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from dragoman.errors import ConfigError, DragomanError, ProviderError, is_retryable
from dragoman.event import BlockStart, Event, Failed, MessageStop, Retrying
from dragoman.provider import HTTPProvider
from dragoman.provider_base import Provider, ProviderBase
from dragoman.request import Request
from dragoman.response import RateLimits
from dragoman.retry import RetryPolicy
from dragoman.sources import AsyncIteratorSource, IteratorSource
from dragoman.stream import AsyncStream, Stream
from dragoman.transport import Timeouts

__all__ = ["FallbackOn", "FallbackProvider"]

FallbackOn: TypeAlias = type[ProviderError] | Sequence[type[ProviderError]] | Callable[[ProviderError], bool]
"""The errors after which the next provider is asked: a class, several, or a function that says so."""


class FallbackProvider(ProviderBase):
    """Asks each provider in turn until one answers.

    `on` names the errors that lead to the next one; by default those that may go away by themselves (`error.retryable`), so neither a
    bad request nor an exhausted quota is carried on unless it is named: `on=(RateLimitedError, AuthError)`. The error of the last provider
    asked is the call's error.

    A request's `model` is meant for the first provider. The others use their own default model, or, where they have none, that of the
    request. Raises ConfigError if there is no provider, if one of them is something else, or if `on` is none of its forms.
    """

    def __init__(self, providers: Sequence[Provider], *, on: FallbackOn = is_retryable, name: str = "fallback") -> None:
        self.providers = _checked(providers)
        self.name = name
        self.default_model = self.providers[0].default_model
        self._leads_on = _rule(on)

    def __repr__(self) -> str:
        return f"<FallbackProvider {self.name}: {', '.join(provider.name for provider in self.providers)}>"

    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Stream:
        """The events of the first provider that answers; a failure is the last of them.

        Raises ConfigError and InvalidInputError of the first provider itself; those of a later one come from the iteration.
        """
        return self._begin(request, stream=True, timeouts=timeouts, retry=retry, raises=False)

    def aevents(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncStream:
        """As `events`, for an event loop."""
        return self._abegin(request, stream=True, timeouts=timeouts, retry=retry, raises=False)

    def _call(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> Stream:
        return self._begin(request, stream=stream, timeouts=timeouts, retry=retry, raises=True)

    def _acall(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> AsyncStream:
        return self._abegin(request, stream=stream, timeouts=timeouts, retry=retry, raises=True)

    def _begin(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None, raises: bool) -> Stream:
        def ask(provider: Provider, asked: Request) -> Iterator[Event]:
            if not stream and isinstance(provider, HTTPProvider | FallbackProvider):
                return provider._begin(asked, stream=False, timeouts=timeouts, retry=retry, raises=False)  # pyright: ignore[reportPrivateUsage]
            return iter(provider.events(asked, timeouts=timeouts, retry=retry))

        return Stream(_Source(_Events(_Run(self.providers, self._leads_on, request), ask)), raises=raises)

    def _abegin(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None, raises: bool) -> AsyncStream:
        def ask(provider: Provider, asked: Request) -> AsyncIterator[Event]:
            if not stream and isinstance(provider, HTTPProvider | FallbackProvider):
                return provider._abegin(asked, stream=False, timeouts=timeouts, retry=retry, raises=False)  # pyright: ignore[reportPrivateUsage]
            return aiter(provider.aevents(asked, timeouts=timeouts, retry=retry))

        return AsyncStream(_AsyncSource(_AsyncEvents(_Run(self.providers, self._leads_on, request), ask)), raises=raises)

    def close(self) -> None:
        """Close all providers, in turn, even if closing one of them fails."""
        with ExitStack() as stack:
            for provider in reversed(self.providers):
                close: Callable[[], object] | None = getattr(provider, "close", None)
                if close is not None:
                    stack.callback(close)

    async def aclose(self) -> None:
        """As `close`, for the connections of the running event loop."""
        async with AsyncExitStack() as stack:
            for provider in reversed(self.providers):
                close: Callable[[], Awaitable[Any]] | None = getattr(provider, "aclose", None)
                if close is not None:
                    stack.push_async_callback(close)


_FOUR_NAMES = ("name", "default_model", "events", "aevents")
"""What makes a provider."""


def _checked(providers: Any) -> tuple[Provider, ...]:
    """Raises ConfigError for what is no list of providers. (A string is the name of one, at best.)"""
    if isinstance(providers, str) or not hasattr(providers, "__iter__"):
        raise ConfigError(f"FallbackProvider takes a list of providers, not {type(providers).__name__}")
    given: tuple[Any, ...] = tuple(providers)
    if not given:
        raise ConfigError("FallbackProvider needs at least one provider")
    for at, item in enumerate(given):
        if isinstance(item, type) or not all(hasattr(item, name) for name in _FOUR_NAMES):
            kind = f"the class {item.__name__}" if isinstance(item, type) else f"of type {type(item).__name__}"
            raise ConfigError(f"FallbackProvider: its items must be providers; use connect(…). Item {at} is {kind}")
    return given


def _rule(on: object) -> Callable[[ProviderError], bool]:
    if callable(on) and not isinstance(on, type):
        return cast("Callable[[ProviderError], bool]", on)
    named: tuple[object, ...] = tuple(cast("Iterable[object]", on)) if isinstance(on, tuple | list | set | frozenset) else (on,)
    classes = tuple(cls for cls in named if isinstance(cls, type) and issubclass(cls, ProviderError))
    if len(classes) < len(named):
        raise ConfigError("FallbackProvider: on= takes a class of ProviderError, several of them, or a function from the error to a bool")
    return lambda error: isinstance(error, classes)


class _Run:
    """One call: which provider is asked, what is held back, and what the consumer is told."""

    def __init__(self, providers: Sequence[Provider], leads_on: Callable[[ProviderError], bool], request: Request) -> None:
        self._providers = providers
        self._leads_on = leads_on
        self._request = request
        self._asked = 0
        self._attempts = 0  # of the providers that were given up
        self._own = 1  # of the one that is asked
        self._content = False
        self._held: list[Event] = []

    @property
    def provider(self) -> Provider:
        """Who is asked now."""
        return self._providers[self._asked]

    @property
    def request(self) -> Request:
        """What it is asked."""
        if self._asked and self._request.model and self.provider.default_model:
            return self._request.replace(model="")
        return self._request

    def take(self, event: Event) -> list[Event] | Retrying:
        """The events to hand out; or, as a lone Retrying, that the next provider is to be asked."""
        if self._content:
            return [self._counted(event)]
        if isinstance(event, Retrying):
            self._own = event.attempt + 1
            return [replace(event, attempt=self._attempts + event.attempt)]
        if isinstance(event, Failed) and self._asked + 1 < len(self._providers) and self._leads_on(event.error):
            self._attempts += self._own
            self._own = 1
            self._asked += 1
            self._held.clear()
            return Retrying(self._attempts, 0.0, event.error)
        self._held.append(self._counted(event))
        if not isinstance(event, BlockStart | MessageStop | Failed):
            return []
        self._content = True
        return self.rest()

    def rest(self) -> list[Event]:
        """What is held back, for there comes no more."""
        held, self._held = self._held, []
        return held

    def _counted(self, event: Event) -> Event:
        """The event; an error with the attempts of the providers before its own."""
        if not isinstance(event, Failed) or not self._attempts:
            return event
        error = copy(event.error)
        error.attempts += self._attempts
        error.__cause__ = event.error.__cause__
        return replace(event, error=error)


class _Events:
    """The events of one call, blocking. `close` may come from any thread."""

    def __init__(self, run: _Run, ask: Callable[[Provider, Request], Iterator[Event]]) -> None:
        self._run = run
        self._ask = ask
        self._ready: deque[Event] = deque()
        self._closed = False
        self._events = ask(run.provider, run.request)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._ready:
            try:
                event = next(self._events)
            except StopIteration:  # without an end: a provider of the caller's
                self._ready.extend(self._run.rest())
                if not self._ready:
                    raise
                break
            except ProviderError as error:  # a provider of the caller's that raises what it should hand out
                event = Failed(error)
            taken = self._run.take(event)
            if isinstance(taken, Retrying):
                _close(self._events)
                try:
                    self._events = self._ask(self._run.provider, self._run.request)
                except DragomanError as error:  # a mistake that only this provider sees: say also why it was asked
                    raise error from taken.error
                if self._closed:  # meanwhile, by another thread
                    _close(self._events)
                self._ready.append(taken)
            else:
                self._ready.extend(taken)
        return self._ready.popleft()

    def close(self) -> None:
        """Leave the call that is under way."""
        self._closed = True
        _close(self._events)

    def rate_limits(self) -> RateLimits | None:
        """What the answer's headers said, once it has ended."""
        return self._events.response().rate_limits if isinstance(self._events, Stream) else None


def _close(events: Iterator[Event]) -> None:
    close: Callable[[], object] | None = getattr(events, "close", None)
    if close is not None:
        close()


class _AsyncEvents:
    """As `_Events`, for an event loop."""

    def __init__(self, run: _Run, ask: Callable[[Provider, Request], AsyncIterator[Event]]) -> None:
        self._run = run
        self._ask = ask
        self._ready: deque[Event] = deque()
        self._events = ask(run.provider, run.request)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            try:
                event = await anext(self._events)
            except StopAsyncIteration:  # without an end: a provider of the caller's
                self._ready.extend(self._run.rest())
                if not self._ready:
                    raise
                break
            except ProviderError as error:  # a provider of the caller's that raises what it should hand out
                event = Failed(error)
            taken = self._run.take(event)
            if isinstance(taken, Retrying):
                await self.aclose()
                try:
                    self._events = self._ask(self._run.provider, self._run.request)
                except DragomanError as error:  # a mistake that only this provider sees: say also why it was asked
                    raise error from taken.error
                self._ready.append(taken)
            else:
                self._ready.extend(taken)
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Leave the call that is under way."""
        close: Callable[[], Awaitable[object]] | None = getattr(self._events, "aclose", None)
        if close is not None:
            await close()

    async def rate_limits(self) -> RateLimits | None:
        """What the answer's headers said, once it has ended."""
        return (await self._events.response()).rate_limits if isinstance(self._events, AsyncStream) else None


class _Source(IteratorSource):
    """Adds the rate limits of the provider that answered."""

    def __init__(self, events: _Events) -> None:
        super().__init__(events)
        self._run = events

    def pull(self) -> Sequence[Event]:
        batch = super().pull()
        if batch and isinstance(batch[-1], MessageStop):
            self.rate_limits = self._run.rate_limits()
        return batch


class _AsyncSource(AsyncIteratorSource):
    """As `_Source`, for an event loop."""

    def __init__(self, events: _AsyncEvents) -> None:
        super().__init__(events)
        self._run = events

    async def pull(self) -> Sequence[Event]:
        batch = await super().pull()
        if batch and isinstance(batch[-1], MessageStop):
            self.rate_limits = await self._run.rate_limits()
        return batch
