"""`HTTPProvider`: drives a wire. (What every provider offers is in `provider_base`, and can be had from here too.)

Strategy. `HTTPProvider` prepares a request (defaults, local checks, encoding) in plain functions, so mistakes surface in the call itself,
and leaves the rest to a `Call`, whose steps the drivers in `driver.py` carry out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex
from urllib.parse import urlsplit

from msgspec.structs import replace

from dragoman.auth import NoAuth
from dragoman.call import Call, Clock
from dragoman.driver import AsyncCallSource, CallSource
from dragoman.errors import ConfigError, InvalidInputError, Problem
from dragoman.event import Event, Failed
from dragoman.hooks import CallSpan, TelemetrySetting, resolve_telemetry
from dragoman.provider_base import Provider, ProviderBase
from dragoman.provider_settings import Defaults, check_limits, check_url, transports_of
from dragoman.request import Request
from dragoman.retry import RetryPolicy
from dragoman.stream import AsyncStream, Stream
from dragoman.transport import AsyncTransport, Timeouts, Transport, TransportName
from dragoman.wire.base import Auth, CountingWire, HTTPRequest, ModelsWire, Wire
from dragoman.wire.decoder import ValueDecoder

if TYPE_CHECKING:
    from dragoman.catalog import ModelInfo

__all__ = ["Defaults", "HTTPProvider", "Provider", "ProviderBase"]


class _History(NamedTuple):
    """What this needs of `dragoman.history`, which the first call imports."""

    local_problems: Callable[[Request, Wire], list[Problem]]
    problems: Callable[[Request, Wire], list[Problem]]
    required: Callable[[Request, str], list[Problem]]


BLOCKING_TOTAL = 600.0
"""Seconds that a call with `stream=False` may take when no total is set."""


class HTTPProvider(ProviderBase):
    """Drives one wire over a transport. Serves any number of threads and event loops.

    `label` begins error texts; `base_url` stands before the wire's paths (a transport of your own may do without); `validate="off"`
    leaves out `problems`, not the three checks without which no request makes sense. Plain http is refused unless the host is loopback
    or `allow_http` is set. `transport` and `async_transport` are objects of your own, or `"direct"` or `"httpx2"` to force one of ours
    (for both ways of calling, unless the other is named too); without one, `dragoman.transport.choose` decides host by host.
    """

    base_url: str = ""  # also for the repr of one whose making has failed

    def __init__(
        self,
        wire: Wire,
        transport: Transport | TransportName | None = None,
        auth: Auth | None = None,
        *,
        base_url: str = "",
        name: str = "",
        label: str = "",
        async_transport: AsyncTransport | TransportName | None = None,
        defaults: Defaults | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        validate: str = "error",
        allow_http: bool = False,
        telemetry: TelemetrySetting = "auto",
        clock: Clock | None = None,
    ) -> None:
        self.wire = wire
        self.name = name or wire.name
        self.label = label or self.name.capitalize()
        self.base_url = base_url.rstrip("/")
        self.defaults = defaults or Defaults()
        self.default_model = self.defaults.model
        self.timeouts = timeouts or Timeouts()
        self.retry = retry or RetryPolicy()
        self.telemetry = telemetry
        self._auth: Auth = auth or NoAuth()
        self._transport, self._async_transport = transports_of(transport, async_transport)
        self._clock = clock or Clock()
        check_limits(self.timeouts, self.retry)
        if validate not in ("error", "off"):
            raise ConfigError(f"validate must be 'error' or 'off', not {validate!r}")
        self.validate = validate
        if self.base_url or transport is None or isinstance(transport, str):
            check_url(self.base_url, allow_http=allow_http)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.base_url} model={self.default_model!r}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a key and connections and is not copied or pickled: share it or make another")

    # ---- transports, opened at the first call

    @property
    def transport(self) -> Transport:
        """The transport of blocking calls: yours, or one that goes directly to the server where it can and else by httpx2."""
        if self._transport is None:
            self._refuse_detour(self._async_transport, "transport", "async_transport")
            from dragoman.transport.choose import AutoTransport

            self._transport = AutoTransport()
        return self._transport

    @property
    def async_transport(self) -> AsyncTransport:
        """The transport of async calls: see `transport`."""
        if self._async_transport is None:
            self._refuse_detour(self._transport, "async_transport", "transport")
            from dragoman.transport.choose import AsyncAutoTransport

            self._async_transport = AsyncAutoTransport()
        return self._async_transport

    def _refuse_detour(self, other: object, missing: str, given: str) -> None:
        """With a transport of the caller's for one way of calling, the other way must not go to the network behind its back."""
        if other is not None and not _is_ours(other):
            raise ConfigError(f"{self.name}: {given}= is your own, so this way of calling needs {missing}= too: give both")

    def close(self) -> None:
        """Close the connections of blocking calls; the next call opens new ones."""
        close = getattr(self._transport, "close", None)  # a plug-in that only sends has none
        if close is not None:
            close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the next call opens new ones."""
        close = getattr(self._async_transport, "close", None)
        if close is not None:
            await close()

    # ---- calls

    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Stream:
        """The events of one call; a failure is the last of them. Raises ConfigError and InvalidInputError itself."""
        return self._begin(request, stream=True, timeouts=timeouts, retry=retry, raises=False)

    def aevents(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncStream:
        """As `events`, for an event loop."""
        return self._abegin(request, stream=True, timeouts=timeouts, retry=retry, raises=False)

    def _call(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> Stream:
        return self._begin(request, stream=stream, timeouts=timeouts, retry=retry, raises=True)

    def _acall(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None) -> AsyncStream:
        return self._abegin(request, stream=stream, timeouts=timeouts, retry=retry, raises=True)

    def _begin(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None, raises: bool) -> Stream:
        call, span = self._prepare_call(request, stream=stream, timeouts=timeouts, retry=retry)
        return Stream(CallSource(call, self.transport), raises=raises, span=span)

    def _abegin(self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None, raises: bool) -> AsyncStream:
        call, span = self._prepare_call(request, stream=stream, timeouts=timeouts, retry=retry)
        return AsyncStream(AsyncCallSource(call, self.async_transport), raises=raises, span=span)

    # ---- preparing: plain functions, no I/O

    def prepare(self, request: Request) -> Request:
        """The request as it will be encoded: with this provider's defaults. A provider with model suffixes overrides this. Raises
        TypeError for what is no Request.
        """
        _check_request(request)
        return self.defaults.fill(request)

    def check(self, request: Request) -> None:
        """Raises InvalidInputError for a prepared request that cannot be sent."""
        _check_request(request)
        history = _history()
        if self.validate == "error" and not history.local_problems(request, self.wire):
            return  # nothing that is required is missing either
        missing = history.required(request, self.label)
        if missing:
            raise InvalidInputError(missing, missing[0].message)
        if self.validate == "error":
            raise InvalidInputError(history.problems(request, self.wire))

    def http_request(self, request: Request, *, stream: bool = True) -> HTTPRequest:
        """What would be sent for this request, without credentials: for a look before sending. Raises InvalidInputError."""
        prepared = self.prepare(request)
        self.check(prepared)
        return self._addressed(self.wire.encode(prepared, stream=stream))

    def _addressed(self, encoded: HTTPRequest) -> HTTPRequest:
        return replace(encoded, base_url=self.base_url, headers={"user-agent": _user_agent(), **encoded.headers})

    def _prepare_call(
        self, request: Request, *, stream: bool, timeouts: Timeouts | None, retry: RetryPolicy | None
    ) -> tuple[Call, Callable[[], CallSpan | None] | None]:
        check_limits(timeouts or self.timeouts, retry or self.retry)
        prepared = self.prepare(request)
        self.check(prepared)
        encoded = self._addressed(self.wire.encode(prepared, stream=stream))
        limits = timeouts or self.timeouts
        if not stream:
            limits = Timeouts(connect=limits.connect, first_byte=None, idle=None, total=limits.total or BLOCKING_TOTAL)
        observe = self._observe(prepared, encoded, stream=stream)
        begun: list[CallSpan] = []

        def span() -> CallSpan | None:
            assert observe is not None
            started = observe()
            if started is not None:
                begun.append(started)
            return started

        call = Call(
            encoded,
            lambda status, headers: self.wire.decoder(prepared, status=status, headers=headers),
            label=self.label,
            provider=self.name,
            model=prepared.model,
            auth=self._auth,
            timeouts=limits,
            retry=retry or self.retry,
            clock=self._clock,
            extra_headers=None if observe is None else lambda: begun[0].headers() if begun else {},
        )
        return call, None if observe is None else span

    def _observe(self, prepared: Request, encoded: HTTPRequest, *, stream: bool) -> Callable[[], CallSpan | None] | None:
        if resolve_telemetry(self.telemetry) is None:
            return None
        url = urlsplit(self.base_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        sent = replace(prepared, **encoded.settled)
        return self._span(sent, streaming=stream, server_address=url.hostname or "", server_port=port)

    # ---- the endpoints beside messages

    def count_tokens(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> int:
        """The input tokens that this request would have. Raises as `complete`, and ConfigError if the provider cannot count."""
        prepared = self.prepare(request)
        self.check(prepared)
        wire = self._counting()
        return wire.read_count(self.fetch(wire.encode_count(prepared), timeouts=timeouts, retry=retry))

    async def acount_tokens(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> int:
        """As `count_tokens`, for an event loop."""
        prepared = self.prepare(request)
        self.check(prepared)
        wire = self._counting()
        return wire.read_count(await self.afetch(wire.encode_count(prepared), timeouts=timeouts, retry=retry))

    def models(self, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> list[ModelInfo]:
        """All models that the provider offers, page after page. Raises ProviderError, and ConfigError if it has no list."""
        wire = self._listing()
        found, after = wire.read_models(self.fetch(wire.encode_models(), timeouts=timeouts, retry=retry))
        while after:
            page, after = wire.read_models(self.fetch(wire.encode_models(after), timeouts=timeouts, retry=retry))
            found += page
        return found

    async def amodels(self, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> list[ModelInfo]:
        """As `models`, for an event loop."""
        wire = self._listing()
        found, after = wire.read_models(await self.afetch(wire.encode_models(), timeouts=timeouts, retry=retry))
        while after:
            page, after = wire.read_models(await self.afetch(wire.encode_models(after), timeouts=timeouts, retry=retry))
            found += page
        return found

    def model(self, id: str, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> ModelInfo:
        """One model: limits, capabilities, lifecycle. Raises ModelNotFoundError and other ProviderErrors."""
        wire = self._listing()
        return wire.read_model(self.fetch(wire.encode_model(id), timeouts=timeouts, retry=retry))

    async def amodel(self, id: str, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> ModelInfo:
        """As `model`, for an event loop."""
        wire = self._listing()
        return wire.read_model(await self.afetch(wire.encode_model(id), timeouts=timeouts, retry=retry))

    def _counting(self) -> CountingWire:
        if not isinstance(self.wire, CountingWire):
            raise ConfigError(f"{self.name} cannot count tokens: its wire has no such endpoint")
        return self.wire

    def _listing(self) -> ModelsWire:
        if not isinstance(self.wire, ModelsWire):
            raise ConfigError(f"{self.name} cannot list models: its wire has no such endpoint")
        return self.wire

    def _fetch_call(self, request: HTTPRequest, *, timeouts: Timeouts | None, retry: RetryPolicy | None) -> tuple[Call, ValueDecoder]:
        value = ValueDecoder(self.wire, label=self.label)
        limits = timeouts or self.timeouts
        call = Call(
            self._addressed(request),
            value.begin,
            label=self.label,
            provider=self.name,
            model="",
            auth=self._auth,
            timeouts=Timeouts(connect=limits.connect, first_byte=None, idle=None, total=limits.total or BLOCKING_TOTAL),
            retry=retry or self.retry,
            clock=self._clock,
        )
        return call, value

    def fetch(self, request: HTTPRequest, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Any:
        """Send a request of this provider and return its JSON answer. Raises ProviderError."""
        call, value = self._fetch_call(request, timeouts=timeouts, retry=retry)
        source = CallSource(call, self.transport)
        while events := source.pull():
            _raise_failure(events)
        return value.result

    async def afetch(self, request: HTTPRequest, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Any:
        """As `fetch`, for an event loop."""
        call, value = self._fetch_call(request, timeouts=timeouts, retry=retry)
        source = AsyncCallSource(call, self.async_transport)
        while events := await source.pull():
            _raise_failure(events)
        return value.result


@cache  # what has been imported costs an import statement a microsecond all the same
def _history() -> _History:
    from dragoman.history import local_problems, problems, required

    return _History(local_problems, problems, required)


@cache
def _user_agent() -> str:
    from dragoman import __version__

    return f"dragoman/{__version__}"


def _check_request(request: object) -> None:
    if not isinstance(request, Request):  # a string is a common slip
        raise TypeError(f"a call takes a Request, as in complete(Request(…)), not {type(request).__name__}")


def _is_ours(transport: object) -> bool:
    return type(transport).__module__.startswith(("dragoman.transport.", "dragoman.local"))


def _raise_failure(events: Sequence[Event]) -> None:
    for event in events:
        if isinstance(event, Failed):
            raise event.error
