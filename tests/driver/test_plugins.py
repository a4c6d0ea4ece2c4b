"""Transports of the user's own: what a plug-in may leave out, and what it may let through."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from weakref import ref

import pytest

from dragoman import (
    Anthropic,
    AsyncStream,
    ConfigError,
    ConnectionFailedError,
    IncompleteStreamError,
    Provider,
    Request,
    RequestTimeoutError,
    RetryPolicy,
)
from dragoman.testing import Replay, anthropic_events
from dragoman.testing.cassette import Cassette
from dragoman.transport import Arrived

ASK = Request("hi")
BODY = b"".join(anthropic_events("Hello"))


class Response:
    """The least that an answer needs; headers as a plain dict."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers = {"Content-Type": "text/event-stream" if status == 200 else "application/json"}
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    def read(self) -> bytes:
        return self._body

    def close(self) -> None:
        pass


class AsyncResponse(Response):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:  # type: ignore[override]
        return self._body

    async def close(self) -> None:  # type: ignore[override]
        pass


class Sender:
    """Only sends: no `close`."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def send(self, request: Any, timeouts: Any) -> Response:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return Response(answer, BODY if answer == 200 else b"{}")


class AsyncSender(Sender):
    """Only sends: neither `close` nor `sleep`."""

    async def send(self, request: Any, timeouts: Any) -> AsyncResponse:  # type: ignore[override]
        response = super().send(request, timeouts)
        return AsyncResponse(response.status, response.read())


def connect(**settings: Any) -> Anthropic:
    return Anthropic(**{"api_key": "k-1234567", "model": "claude-test-1", "retry": RetryPolicy(base=0), "telemetry": None, **settings})


def test_a_blocking_plug_in_that_only_sends_serves_retries_and_closing() -> None:
    with connect(transport=Sender(529, 200)) as provider:
        assert provider.complete(ASK).attempts == 2


def test_an_async_plug_in_that_only_sends_serves_retries_and_closing() -> None:
    async def main() -> int:
        async with connect(async_transport=AsyncSender(529, 200)) as provider:
            return (await provider.acomplete(ASK)).attempts

    assert asyncio.run(main()) == 2


@pytest.mark.parametrize(
    ("error", "expected"),
    [(OSError("boom"), ConnectionFailedError), (ConnectionResetError(), ConnectionFailedError), (TimeoutError(), RequestTimeoutError)],
)
def test_errors_of_the_system_that_a_plug_in_lets_through_are_typed_and_retried(error: OSError, expected: type[Exception]) -> None:
    assert connect(transport=Sender(error, 200)).complete(ASK).text == "Hello"
    with pytest.raises(expected) as raised:
        connect(transport=Sender(error), retry=RetryPolicy(max_attempts=1)).complete(ASK)
    assert raised.value.__cause__ is error
    assert "boom" not in str(raised.value)


def test_a_bug_in_a_plug_in_passes_unwrapped() -> None:
    with pytest.raises(ZeroDivisionError):
        connect(transport=Sender(ZeroDivisionError())).complete(ASK)


def test_ones_own_transport_is_never_gone_round() -> None:
    with pytest.raises(ConfigError, match=r"needs async_transport= too"):
        connect(transport=Sender(200)).astream(ASK)
    with pytest.raises(ConfigError, match=r"needs transport= too"):
        connect(async_transport=AsyncSender(200)).stream(ASK)
    with pytest.raises(ConfigError, match=r"needs async_transport= too"):
        connect(transport=Replay(Cassette()).transport).astream(ASK)


def test_anything_but_a_request_is_refused_by_its_type() -> None:
    provider = connect(transport=Sender(200))
    for call in (provider.complete, provider.stream, provider.events, provider.http_request, provider.count_tokens, provider.check):
        with pytest.raises(TypeError, match=r"takes a Request.*not str"):
            call("hi")  # type: ignore[operator]


@pytest.mark.parametrize("settings", [{"timeouts": 5}, {"retry": 3}])
def test_limits_of_another_type_are_a_config_error_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be a"):
        connect(**settings)
    with pytest.raises(ConfigError, match="must be a"):
        connect(transport=Sender(200)).complete(ASK, **settings)


def test_a_provider_can_be_told_from_other_things() -> None:
    assert isinstance(connect(), Provider)
    assert not isinstance(object(), Provider)


# ---- answers that can be polled


class Polled(AsyncResponse):
    """An answer whose pieces come one by one; None in the script: not yet, and `turn` is called while the driver waits."""

    arrival: asyncio.Future[object]

    def __init__(self, *script: bytes | BaseException | None, turn: Callable[[], object] = lambda: None) -> None:
        super().__init__(200, b"")
        self.script = list(script)
        self.turn = turn
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("not iterated over")

    def take(self) -> bytes | None:
        piece = self.script.pop(0) if self.script else b""
        if isinstance(piece, BaseException):
            raise piece
        if piece is None:
            loop = asyncio.get_running_loop()
            self.arrival = loop.create_future()
            loop.call_soon(self._wake, self.arrival)
        return piece

    def _wake(self, arrival: asyncio.Future[object]) -> None:
        self.turn()
        if not arrival.done():
            arrival.set_result(self.handed())

    def handed(self) -> object:
        """What comes with the waking."""
        return True  # as `asyncio.Event.wait` gives

    async def close(self) -> None:  # type: ignore[override]
        self.closed += 1


class Handing(Polled):
    """What comes while the driver waits is handed over with the waking."""

    def handed(self) -> object:
        return Arrived(self.script.pop(0)) if self.script and isinstance(self.script[0], bytes) else None  # type: ignore[arg-type]


class PollingSender:
    def __init__(self, *answers: Polled) -> None:
        self.answers = list(answers)

    async def send(self, request: Any, timeouts: Any) -> Polled:
        return self.answers.pop(0)


EVENTS = anthropic_events("Hello", ping=False)


def polled(*answers: Polled, **settings: Any) -> Anthropic:
    return connect(async_transport=PollingSender(*answers), **settings)


@pytest.mark.parametrize("kind", [Polled, Handing])
def test_an_answer_that_can_be_polled_is_not_iterated_over(kind: type[Polled]) -> None:
    async def main() -> None:
        answer = kind(None, EVENTS[0], None, None, b": ping\n\n", None, *EVENTS[1:3], None, b"".join(EVENTS[3:]))
        response = await polled(answer).acomplete(ASK)
        assert (response.text, answer.closed) == ("Hello", 1)

    asyncio.run(main())


def test_an_error_while_polling_is_the_calls_and_is_retried_like_any_other() -> None:
    async def main() -> None:
        broken = Polled(None, EVENTS[0], None, ConnectionResetError())
        whole = Polled(None, BODY)
        response = await polled(broken, whole).acomplete(ASK)
        assert (response.text, response.attempts, broken.closed, whole.closed) == ("Hello", 2, 1, 1)

    asyncio.run(main())


def test_the_end_of_a_polled_answer_before_its_message_is_whole_is_a_failure() -> None:
    async def main() -> None:
        with pytest.raises(IncompleteStreamError):
            await polled(Polled(*EVENTS[:3])).acomplete(ASK)

    asyncio.run(main())


def test_the_last_bytes_may_come_with_the_waking_and_whatever_comes_then_is_not_asked_for() -> None:
    async def main() -> None:
        answer = Handing(EVENTS[0], None, EVENTS[1], None, b": ping\n\n", None, *EVENTS[2:3], None, b"".join(EVENTS[3:]), AssertionError())
        response = await polled(answer).acomplete(ASK)
        assert (response.text, response.attempts, answer.closed) == ("Hello", 1, 1)
        assert response.timing is not None
        assert response.timing.bytes == sum(map(len, EVENTS)) + len(b": ping\n\n")

    asyncio.run(main())


def test_a_call_that_is_aborted_while_it_is_polled_ends() -> None:
    class Aborted(Polled):
        def take(self) -> bytes | None:
            if not self.script:
                stream._source.abort()  # pyright: ignore[reportPrivateUsage]  # as another thread may
                self.script = [AssertionError("asked again")]
                raise ConnectionResetError
            return super().take()

    async def main() -> None:
        nonlocal stream
        answer = Aborted(*EVENTS[:3])
        stream = polled(answer).astream(ASK)
        assert [event.type async for event in stream] == ["message_start", "block_start", "text_delta"]
        assert answer.closed == 1

    stream: AsyncStream
    asyncio.run(main())


def test_a_stream_that_is_kept_after_its_end_keeps_nothing_of_its_answer() -> None:
    class Seen(Handing):
        def take(self) -> bytes | None:
            piece = super().take()
            if piece is None:
                seen.append(ref(self.arrival))
            return piece

    async def main() -> None:
        answers = [Seen(*EVENTS[:3], None, b"".join(EVENTS[3:]))]
        stream = polled(*answers).astream(ASK)
        seen.append(ref(answers.pop()))
        assert (await stream.response()).text == "Hello"
        await asyncio.sleep(0)  # the loop itself holds the future that has woken this task
        gc.collect()
        assert [it() for it in seen] == [None, None]

    seen: list[ref[Any]] = []
    asyncio.run(main())


@pytest.mark.parametrize("kind", [Polled, Handing])
@pytest.mark.parametrize("leaving", ["cancelled", "closed"])
def test_a_polled_answer_that_is_left_while_it_is_awaited_is_closed(leaving: str, kind: type[Polled]) -> None:
    async def main() -> None:
        def leave() -> None:
            if leaving == "cancelled":
                reader.cancel()
            else:
                closing.append(asyncio.ensure_future(stream.aclose()))

        closing: list[asyncio.Future[None]] = []
        answer = kind(*EVENTS[:3], None, EVENTS[3], turn=leave)
        stream = polled(answer).astream(ASK)

        async def read() -> list[str]:
            return [event.type async for event in stream]

        reader = asyncio.ensure_future(read())
        [result] = await asyncio.gather(reader, return_exceptions=True)
        await asyncio.gather(*closing)
        assert (
            isinstance(result, asyncio.CancelledError)
            if leaving == "cancelled"
            else result == ["message_start", "block_start", "text_delta"]
        )
        assert (answer.closed, stream.closed, stream.partial().text) == (1, True, "He")

    asyncio.run(main())
