"""Transports of the user's own: what a plug-in may leave out, and what it may let through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dragoman import Anthropic, ConfigError, ConnectionFailedError, Provider, Request, RequestTimeoutError, RetryPolicy
from dragoman.testing import Replay, anthropic_events
from dragoman.testing.cassette import Cassette

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
    with pytest.raises(TypeError, match=r"takes a Request.*not str"):
        connect(transport=Sender(200)).complete("hi")  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"timeouts": 5}, {"retry": 3}])
def test_limits_of_another_type_are_a_config_error_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be a"):
        connect(**settings)
    with pytest.raises(ConfigError, match="must be a"):
        connect(transport=Sender(200)).complete(ASK, **settings)


def test_a_provider_can_be_told_from_other_things() -> None:
    assert isinstance(connect(), Provider)
    assert not isinstance(object(), Provider)
