"""`Recorder`: writes down what goes over real transports, as a cassette.

Strategy. It stands between a provider and its transports and hands everything on as it comes. An exchange is written once: when its body is
at its end, fails, or is closed. The key that the request carried is masked wherever a body repeats it, byte for byte, so that lengths and
pieces stay what they were.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from dragoman.auth import names_a_secret
from dragoman.errors import ProviderError, RequestTimeoutError
from dragoman.testing.cassette import (
    RATE_LIMITS,
    REQUEST_HEADERS,
    RESPONSE_HEADERS,
    Cassette,
    CassetteError,
    Exchange,
    Piece,
    check_writable,
    fingerprint,
)
from dragoman.wire.error_text import redact

if TYPE_CHECKING:
    from dragoman.transport import AsyncHTTPResponse, AsyncTransport, Clocks, HTTPResponse, Transport
    from dragoman.wire.base import HTTPRequest

__all__ = ["Recorder"]

log = logging.getLogger("dragoman")

_SHORTEST_SECRET = 4
"""Characters; anything shorter is no secret and would mangle ordinary words."""


class Recorder:
    """Records what goes over real transports. Give `transport` and `async_transport` to a provider; the file is written after each
    exchange and on `close`.

    Without transports of your own the stock ones are used. An existing file is replaced. A call raises CassetteError before it sends
    anything if the file cannot be written. If that fails after an answer, the answer is not lost for it: it is logged, and raised by the
    next call and when anything is closed; what is written then holds all exchanges.
    """

    def __init__(self, path: str | Path, transport: Transport | None = None, async_transport: AsyncTransport | None = None) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._exchanges: list[Exchange | None] = []
        self._unwritten = True  # whether the file holds less than it should
        self.transport: Transport = _RecordingTransport(self, transport)
        self.async_transport: AsyncTransport = _AsyncRecordingTransport(self, async_transport)

    def close(self) -> None:
        """Write the file, and close the connections of blocking calls (those of a loop are closed by the provider's `aclose`). Raises
        CassetteError if the file cannot be written.
        """
        self.transport.close()
        self._save()

    def _save(self) -> None:
        with self._lock:
            self._unwritten = True
            Cassette(exchanges=[exchange for exchange in self._exchanges if exchange is not None]).save(self.path)
            self._unwritten = False

    def _begin(self) -> int:
        """A place for one exchange: the order is that of sending. Raises CassetteError, so that no answer is paid for in vain."""
        with self._lock:
            if self._unwritten:
                check_writable(self.path)
            self._exchanges.append(None)
            return len(self._exchanges) - 1

    def _end(self, place: int, exchange: Exchange) -> None:
        self._exchanges[place] = exchange
        try:
            self._save()
        except CassetteError as error:
            log.error("%s", error)  # raised when there is no answer to be lost: by the next call, or `_settle`

    def _settle(self) -> None:
        """Write what could not be written before. Raises CassetteError."""
        if self._unwritten and self._exchanges:
            self._save()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class _Take:
    """One exchange while it is being recorded. It is written once: at the body's end, at its failure, or when it is closed."""

    def __init__(self, recorder: Recorder, request: HTTPRequest) -> None:
        self._recorder = recorder
        self._request = request
        self._secrets = _secrets_of(request)
        self._place = recorder._begin()  # pyright: ignore[reportPrivateUsage]
        self._began = monotonic()
        self._pieces: list[tuple[float, bytes]] = []
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._written = False

    def head(self, status: int, headers: Any) -> None:
        self._status = status
        self._headers = [
            (name.lower(), value) for name, value in headers if name.lower() in RESPONSE_HEADERS or name.lower().startswith(RATE_LIMITS)
        ]

    def piece(self, data: bytes) -> None:
        self._pieces.append((round(monotonic() - self._began, 6), data))

    def end(self, error: ProviderError | None = None) -> None:
        if self._written:
            return
        self._written = True
        request = self._request
        try:
            body = msgspec.json.decode(_masked(request.body, self._secrets)) if request.body else None
        except msgspec.MsgspecError:
            body = {"base64": base64.b64encode(_masked(request.body, self._secrets)).decode()}
        failure = None
        if error is not None:
            failure = {"kind": error.kind, "message": redact(error.message, [secret.decode() for secret in self._secrets])}
            if isinstance(error, RequestTimeoutError):
                failure["phase"] = error.phase
        exchange = Exchange(
            fingerprint=fingerprint(request),
            method=request.method,
            path=request.path,
            request_headers={name: value for name, value in request.headers.items() if name.lower() in REQUEST_HEADERS},
            request_body=body,
            status=self._status,
            response_headers=self._headers,
            pieces=self._written_pieces(),
            failure=failure,
        )
        self._recorder._end(self._place, exchange)  # pyright: ignore[reportPrivateUsage]

    def _written_pieces(self) -> list[Piece]:
        """The pieces as they came, the request's own key masked in them, also where it was cut."""
        data = _masked(b"".join([piece for _, piece in self._pieces]), self._secrets)
        pieces: list[Piece] = []
        begin = 0
        for at, piece in self._pieces:
            pieces.append(Piece.of(at, data[begin : begin + len(piece)]))
            begin += len(piece)
        return pieces


def _secrets_of(request: HTTPRequest) -> list[bytes]:
    """The values of the headers that hold a key or token, the longest first."""
    values = [value.removeprefix("Bearer ") for name, value in request.headers.items() if names_a_secret(name)]
    return sorted((value.encode() for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


def _masked(data: bytes, secrets: list[bytes]) -> bytes:
    """The same number of bytes, with a `*` for each of a secret's."""
    for secret in secrets:
        data = data.replace(secret, b"*" * len(secret))
    return data


class _RecordingTransport:
    def __init__(self, recorder: Recorder, inner: Transport | None) -> None:
        self._recorder = recorder
        self._inner = inner

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        if self._inner is None:
            from dragoman.transport.choose import AutoTransport

            self._inner = AutoTransport()
        take = _Take(self._recorder, request)
        try:
            response = self._inner.send(request, timeouts)
        except ProviderError as error:
            take.end(error)
            raise
        take.head(response.status, response.headers)
        return _RecordedResponse(response, take)

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._recorder._settle()  # pyright: ignore[reportPrivateUsage]


class _RecordedResponse:
    def __init__(self, inner: HTTPResponse, take: _Take) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._take = take

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._inner:
                self._take.piece(data)
                yield data
        except ProviderError as error:
            self._take.end(error)
            raise
        self._take.end()

    def read(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        self._inner.close()
        self._take.end()


class _AsyncRecordingTransport:
    def __init__(self, recorder: Recorder, inner: AsyncTransport | None) -> None:
        self._recorder = recorder
        self._inner = inner

    def _real(self) -> AsyncTransport:
        if self._inner is None:
            from dragoman.transport.choose import AsyncAutoTransport

            self._inner = AsyncAutoTransport()
        return self._inner

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        take = _Take(self._recorder, request)
        try:
            response = await self._real().send(request, timeouts)
        except ProviderError as error:
            take.end(error)
            raise
        take.head(response.status, response.headers)
        return _AsyncRecordedResponse(response, take)

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        await self._real().sleep(seconds, clocks)

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner.close()
        self._recorder._settle()  # pyright: ignore[reportPrivateUsage]


class _AsyncRecordedResponse:
    """No async generator, here and in the replay: one that is left early is closed by nobody, and trio warns of it."""

    def __init__(self, inner: AsyncHTTPResponse, take: _Take) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._pieces = aiter(inner)
        self._take = take

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await anext(self._pieces)
        except StopAsyncIteration:
            self._take.end()
            raise
        except ProviderError as error:
            self._take.end(error)
            raise
        self._take.piece(data)
        return data

    async def read(self) -> bytes:
        return b"".join([data async for data in self])

    async def close(self) -> None:
        await self._inner.close()
        self._take.end()
