"""A transport and a clock that tests turn by hand: no network, no waiting. One script serves the blocking and the async driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from dragoman import Anthropic, Event, ProviderError, Request, Response, RetryPolicy
from dragoman.call import Clock
from dragoman.transport import Clocks, HeaderList
from dragoman.wire.base import HTTPRequest

SSE_HEADERS = (("content-type", "text/event-stream"), ("request-id", "req_1"))


class Time:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> float:
        return self.at

    def go(self, seconds: float) -> Callable[[], None]:
        def advance() -> None:
            self.at += seconds

        return advance

    def clock(self, random: float = 1.0) -> Clock:
        return Clock(now=self.now, wall=lambda: 1_700_000_000.0 + self.at - 1000, random=lambda: random)


Piece = bytes | ProviderError | Callable[[], Any]


class Answer:
    """One scripted answer: bytes are handed out, errors raised, callables called on the way."""

    def __init__(self, *pieces: Piece, status: int = 200, headers: HeaderList = SSE_HEADERS) -> None:
        self.pieces = pieces
        self.status = status
        self.headers = headers
        self.closed = 0
        self.read_to_end = False

    def _pieces(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            elif isinstance(piece, ProviderError):
                raise piece
            else:
                piece()
        self.read_to_end = True


class FakeResponse:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.status = answer.status
        self.headers = answer.headers

    def __iter__(self) -> Iterator[bytes]:
        return self.answer._pieces()

    def read(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        self.answer.closed += 1


class AsyncFakeResponse:
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.status = answer.status
        self.headers = answer.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.answer._pieces():
            yield piece

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])

    async def close(self) -> None:
        self.answer.closed += 1


class FakeTransport:
    """Gives the scripted answers in turn; an error in the script is raised by `send`."""

    def __init__(self, *answers: Answer | ProviderError) -> None:
        self.answers = list(answers)
        self.requests: list[HTTPRequest] = []
        self.clocks: list[Clocks] = []

    def _next(self, request: HTTPRequest, timeouts: Clocks) -> Answer:
        self.requests.append(request)
        self.clocks.append(timeouts)
        answer = self.answers.pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    def send(self, request: HTTPRequest, timeouts: Clocks) -> FakeResponse:
        return FakeResponse(self._next(request, timeouts))

    def close(self) -> None:
        pass


class AsyncFakeTransport:
    def __init__(self, inner: FakeTransport) -> None:
        self.inner = inner
        self.slept: list[float] = []

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncFakeResponse:
        return AsyncFakeResponse(self.inner._next(request, timeouts))

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        self.slept.append(seconds)

    async def close(self) -> None:
        pass


NO_WAIT = RetryPolicy(base=0.0)


def provider(*answers: Answer | ProviderError, time: Time | None = None, **settings: Any) -> tuple[Anthropic, FakeTransport]:
    """A provider over scripted answers, for both ways of calling."""
    transport = FakeTransport(*answers)
    settings = {"api_key": "sk-ant-secret-key-1", "model": "claude-test-1", "retry": NO_WAIT, "telemetry": None, **settings}
    made = Anthropic(transport=transport, async_transport=AsyncFakeTransport(transport), clock=(time or Time()).clock(), **settings)
    return made, transport


def events_of(made: Anthropic, way: str, request: Request, **call: Any) -> list[Event]:
    """All events of one call, blocking or async."""
    if way == "sync":
        return list(made.events(request, **call))

    async def collect() -> list[Event]:
        return [event async for event in made.aevents(request, **call)]

    return asyncio.run(collect())


def complete(made: Anthropic, way: str, request: Request, **call: Any) -> Response:
    """One call to its end, blocking or async."""
    return made.complete(request, **call) if way == "sync" else asyncio.run(made.acomplete(request, **call))


def kinds(events: Sequence[Event]) -> list[str]:
    return [event.type for event in events]
