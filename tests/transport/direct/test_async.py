"""`AsyncDirectTransport`: what `tests.transport.test_async` asks of the httpx2 transport, asked of the direct one."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any

import pytest

from dragoman.testing import Answer, Gate, Wait, WireServer
from dragoman.transport.direct import AsyncDirectTransport
from tests.transport import test_async as asked
from tests.transport.calls import PATIENCE, request_to, run, running

LIBRARIES = ["asyncio", "uvloop"]

WITHOUT_QUEUE = "a call beyond max_connections fails at once: see test_limits"

OTHER: dict[str, str] = {
    "test_no_more_than_the_limit_are_open_at_once": WITHOUT_QUEUE,
    "test_waiting_for_a_free_connection_is_connecting": WITHOUT_QUEUE,
}


@pytest.fixture(autouse=True)
def _over_the_direct_transport(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if reason := OTHER.get(request.node.originalname):
        pytest.skip(reason)
    if "own" in request.fixturenames and request.getfixturevalue("own"):
        pytest.skip("the direct transport has no clients of the user's")
    monkeypatch.setattr(asked, "AsyncHTTPX2Transport", AsyncDirectTransport)
    monkeypatch.setattr(asked, "LIBRARIES", LIBRARIES)


@pytest.fixture(params=LIBRARIES)
def inside(request: pytest.FixtureRequest) -> Any:
    def run_and_collect(main: Callable[[], Awaitable[Any]]) -> Any:
        result = run(request.param, main)
        gc.collect()
        return result

    return run_and_collect


class TestAnswer(asked.TestAnswer):
    def test_has_status_headers_and_body(self, inside: asked.Run) -> None:
        async def main() -> None:
            async with asked.opened() as transport:
                response = await transport.send(request_to(server), running())
                assert response.status == 418
                assert [value for name, value in response.headers if name == "x-two"] == ["a", "b"]
                assert await anext(aiter(response)) == b"ab"
                gate.open()
                assert [data async for data in response] == [b"c"]

        gate = Gate()
        with WireServer([Answer(status=418, headers=[("x-two", "a"), ("x-two", "b")], body=[b"ab", Wait(gate), b"c"])]) as server:
            inside(main)


class TestConnection(asked.TestConnection):
    def test_belongs_to_its_loop_when_several_run_at_once(self) -> None:
        transport = AsyncDirectTransport()
        results: list[bytes] = []

        async def main() -> None:
            results.extend([await asked.fetch(transport, server) for _ in range(5)])

        with WireServer(asked.TEXT) as server:
            threads = [Thread(target=run, args=(library, main)) for library in LIBRARIES * 3]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            assert results == [b"whole"] * 30
            server.wait_closed()
            assert len(server.connections) == 6


class TestTimeout(asked.TestTimeout):
    pass


class TestCancellation(asked.TestCancellation):
    pass


class TestAbort(asked.TestAbort):
    pass


class TestFailure(asked.TestFailure):
    pass
