"""Cassettes: record real exchanges once, replay them for ever, byte for byte.

Strategy. A `Recorder` stands between a provider and its real transports and writes down each exchange: the request's method, path and
body, and of the answer its status and the exact pieces in which its body arrived, with their times. A `Replay` stands where the transports
would and gives the same pieces again. Requests are matched by a fingerprint of what they ask (method, path, the body's meaning), so
neither keys nor header order matter; the same request sent twice gets its answers in the order they were recorded. A request that the
cassette does not know is an error, never a guess and never a call.

A cassette is one JSON file that people can read and review: pieces are text where they are UTF-8, base64 where not. Only headers on a
short list are written, so a key cannot get into one. The bodies do hold prompts and answers: treat the file as you treat those.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from dragoman.errors import KINDS, ConnectionFailedError, DragomanError, ProviderError, RequestTimeoutError

if TYPE_CHECKING:
    from dragoman.transport import AsyncHTTPResponse, AsyncTransport, Clocks, HTTPResponse, Transport
    from dragoman.wire.base import HTTPRequest

__all__ = [
    "REQUEST_HEADERS",
    "RESPONSE_HEADERS",
    "Cassette",
    "CassetteError",
    "Exchange",
    "Piece",
    "Recorder",
    "Replay",
    "UnmatchedRequestError",
    "check_writable",
    "fingerprint",
]

VERSION = 1
REQUEST_HEADERS = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta"})
"""Request headers that a cassette may hold."""

RESPONSE_HEADERS = frozenset({"content-type", "date", "request-id", "retry-after", "retry-after-ms", "x-request-id", "x-should-retry"})
"""Response headers that a cassette may hold; `anthropic-ratelimit-*` and `x-ratelimit-*` are kept as well."""

_RATE_LIMITS = ("anthropic-ratelimit-", "x-ratelimit-", "ratelimit-")


class CassetteError(DragomanError):
    """A cassette that cannot be read or written. No provider failed, so nothing tries again."""


class UnmatchedRequestError(DragomanError):
    """A request that the cassette does not hold (any more). Record again, or mend the request."""


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of an answer's body as it arrived: `at` seconds after the request was sent; text, or base64 if it is not UTF-8."""

    at: float
    text: str = ""
    base64: str = ""

    @classmethod
    def of(cls, at: float, data: bytes) -> Piece:
        """The piece for these bytes."""
        try:
            return cls(at, text=data.decode())
        except UnicodeDecodeError:
            return cls(at, base64=base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes."""
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request and what came of it. `failure` is set if the transport failed, before or after some pieces."""

    fingerprint: str
    method: str
    path: str
    request_headers: dict[str, str] = {}
    request_body: Any = None
    status: int = 0
    response_headers: list[tuple[str, str]] = []
    pieces: list[Piece] = []
    failure: dict[str, str] | None = None


class Cassette(msgspec.Struct, frozen=True, kw_only=True):
    """A file of exchanges, in the order they were sent."""

    dragoman_cassette: int = VERSION
    exchanges: list[Exchange] = []

    @classmethod
    def load(cls, path: str | Path) -> Cassette:
        """Read a cassette. Raises CassetteError naming the file and what is wrong."""
        try:
            cassette = msgspec.json.decode(Path(path).read_bytes(), type=cls)
        except OSError as error:
            raise CassetteError(f"{path}: {error.strerror or error}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CassetteError(f"{path}: not a cassette: {error}") from error
        if cassette.dragoman_cassette > VERSION:
            raise CassetteError(f"{path}: a cassette of version {cassette.dragoman_cassette}; this dragoman reads up to {VERSION}")
        return cassette

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all, and the folders above it. Raises CassetteError naming the file and what is wrong."""
        with _part_of(path) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
            part.replace(path)


def check_writable(path: str | Path) -> None:
    """Raises CassetteError as `Cassette.save` would. A file that is there stays as it is."""
    with _part_of(path) as part:
        part.touch()


@contextmanager
def _part_of(path: str | Path) -> Generator[Path]:
    """The file that is written first, beside the one that it becomes. It does not stay. Raises CassetteError."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a device would be gone
            raise CassetteError(f"{path}: cannot be written: it is there and is not a file")
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CassetteError(f"{path}: cannot be written: {error.strerror or error}") from error
    except ValueError as error:  # a path that no file can have
        raise CassetteError(f"{path!s:.200}: cannot be written: {error}") from error


def fingerprint(request: HTTPRequest) -> str:
    """What a request asks, as 16 hexadecimal digits: method, path and the meaning of its body (JSON in any spelling)."""
    try:
        meaning = json.dumps(msgspec.json.decode(request.body), sort_keys=True, separators=(",", ":")).encode()
    except msgspec.MsgspecError:
        meaning = request.body
    return hashlib.sha256(b"\n".join((request.method.encode(), request.path.encode(), meaning))).hexdigest()[:16]


# ---- recording


class Recorder:
    """Records what goes over real transports. Give `transport` and `async_transport` to a provider; the file is written after each
    exchange and on `close`.

    Without transports of your own the stock ones are used. An existing file is replaced. A call raises CassetteError if the file cannot
    be written: the first one before anything is sent.
    """

    def __init__(self, path: str | Path, transport: Transport | None = None, async_transport: AsyncTransport | None = None) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._exchanges: list[Exchange | None] = []
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
            Cassette(exchanges=[exchange for exchange in self._exchanges if exchange is not None]).save(self.path)

    def _begin(self) -> int:
        """A place for one exchange: the order is that of sending. Raises CassetteError before the first, which is not paid for in vain."""
        with self._lock:
            if not self._exchanges:
                check_writable(self.path)
            self._exchanges.append(None)
            return len(self._exchanges) - 1

    def _end(self, place: int, exchange: Exchange) -> None:
        self._exchanges[place] = exchange
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
        self._place = recorder._begin()  # pyright: ignore[reportPrivateUsage]
        self._began = monotonic()
        self._pieces: list[Piece] = []
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._written = False

    def head(self, status: int, headers: Any) -> None:
        self._status = status
        self._headers = [
            (name.lower(), value) for name, value in headers if name.lower() in RESPONSE_HEADERS or name.lower().startswith(_RATE_LIMITS)
        ]

    def piece(self, data: bytes) -> None:
        self._pieces.append(Piece.of(round(monotonic() - self._began, 6), data))

    def end(self, error: ProviderError | None = None) -> None:
        if self._written:
            return
        self._written = True
        request = self._request
        try:
            body = msgspec.json.decode(request.body) if request.body else None
        except msgspec.MsgspecError:
            body = {"base64": base64.b64encode(request.body).decode()}
        failure = None
        if error is not None:
            failure = {"kind": error.kind, "message": error.message}
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
            pieces=self._pieces,
            failure=failure,
        )
        self._recorder._end(self._place, exchange)  # pyright: ignore[reportPrivateUsage]


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


# ---- replaying


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
