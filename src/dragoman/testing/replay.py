"""`Replay`: gives what a cassette holds, where a provider's transports would stand.

Strategy. A request is matched by its fingerprint; the same request sent twice gets its answers in the order they were recorded. One that
the cassette does not know is an error, never a guess and never a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dragoman.errors import KINDS, ConnectionFailedError, DragomanError, ProviderError, RequestTimeoutError
from dragoman.testing.cassette import Cassette, Exchange, fingerprint

if TYPE_CHECKING:
    from dragoman.transport import AsyncHTTPResponse, AsyncTransport, Clocks, HTTPResponse, Transport
    from dragoman.wire.base import HTTPRequest

__all__ = ["Replay", "UnmatchedRequestError"]


class UnmatchedRequestError(DragomanError):
    """A request that the cassette does not hold (any more). Record again, or mend the request."""


class Replay:
    """Answers from a cassette, without a network and without waiting. Give `transport` and `async_transport` to a provider.

    Raises UnmatchedRequestError in the call for a request that is not on the cassette, or was sent more often than it was recorded. Waits
    between retries are not waited for.
    """

    def __init__(self, cassette: str | Path | Cassette) -> None:
        self._cassette = cassette if isinstance(cassette, Cassette) else Cassette.load(cassette)
        self._lock = Lock()
        self._left: dict[str, list[Exchange]] = {}
        for exchange in self._cassette.exchanges:
            self._left.setdefault(exchange.fingerprint, []).append(exchange)
        self.transport: Transport = _ReplayTransport(self)
        self.async_transport: AsyncTransport = _AsyncReplayTransport(self)

    @property
    def unused(self) -> list[Exchange]:
        """What was recorded and not asked for yet, in the order of the cassette."""
        with self._lock:
            left = [exchange for exchanges in self._left.values() for exchange in exchanges]
        return [exchange for exchange in self._cassette.exchanges if any(exchange is one for one in left)]

    def _take(self, request: HTTPRequest) -> Exchange:
        mark = fingerprint(request)
        with self._lock:
            left = self._left.get(mark)
            if left:
                return left.pop(0)
        known = "was sent more often than it was recorded" if left is not None else "is not on the cassette"
        held = ", ".join(f"{exchange.method} {exchange.path} {exchange.fingerprint}" for exchange in self._cassette.exchanges)
        raise UnmatchedRequestError(f"{request.method} {request.path} with fingerprint {mark} {known}, which holds: {held or 'nothing'}")


def _failure(exchange: Exchange) -> ProviderError | None:
    if exchange.failure is None:
        return None
    message = exchange.failure.get("message", "")
    cls = KINDS.get(exchange.failure.get("kind", ""), ConnectionFailedError)
    if issubclass(cls, RequestTimeoutError):
        return cls(message, phase=exchange.failure.get("phase", "idle"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return cls(message)


class _ReplayedResponse:
    def __init__(self, exchange: Exchange) -> None:
        self.status = exchange.status
        self.headers = exchange.response_headers
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._exchange.pieces:
            yield piece.data
        failure = _failure(self._exchange)
        if failure is not None:
            raise failure

    def read(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        """Nothing is open."""


class _ReplayTransport:
    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        timeouts.connected()
        exchange = self._replay._take(request)  # pyright: ignore[reportPrivateUsage]
        failure = _failure(exchange)
        if failure is not None and not exchange.status:
            raise failure
        return _ReplayedResponse(exchange)

    def sleep(self, seconds: float, clocks: Clocks) -> None:
        """A replay does not wait."""

    def close(self) -> None:
        """Nothing is open."""


class _AsyncReplayedResponse:
    def __init__(self, inner: HTTPResponse) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._pieces = iter(inner)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for data in self._pieces:
            return data
        raise StopAsyncIteration

    async def read(self) -> bytes:
        return self._inner.read()

    async def close(self) -> None:
        """Nothing is open."""


class _AsyncReplayTransport:
    def __init__(self, replay: Replay) -> None:
        self._blocking = _ReplayTransport(replay)

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        return _AsyncReplayedResponse(self._blocking.send(request, timeouts))

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """A replay does not wait."""

    async def close(self) -> None:
        """Nothing is open."""
