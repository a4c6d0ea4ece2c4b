"""`DirectTransport`: what `tests.transport.test_blocking` asks of the httpx2 transport, asked of the direct one."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dragoman.transport.direct import DirectTransport
from tests.transport import test_blocking as asked

WITHOUT_QUEUE = "a call beyond max_connections fails at once: see test_limits"

OTHER: dict[str, str] = {
    "test_no_more_than_the_limit_are_open_at_once": WITHOUT_QUEUE,
    "test_waiting_for_a_free_connection_is_connecting": WITHOUT_QUEUE,
    "test_while_waiting_for_a_free_connection": WITHOUT_QUEUE,
}


@pytest.fixture(autouse=True)
def _over_the_direct_transport(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if reason := OTHER.get(request.node.originalname):
        pytest.skip(reason)
    monkeypatch.setattr(asked, "HTTPX2Transport", DirectTransport)


@pytest.fixture
def transport() -> Iterator[DirectTransport]:
    transport = DirectTransport(trust_env=False)
    yield transport
    transport.close()
    gc.collect()


class TestAnswer(asked.TestAnswer):
    pass


class TestConnection(asked.TestConnection):
    pass


class TestDeadPooledConnection(asked.TestDeadPooledConnection):
    pass


class TestTimeout(asked.TestTimeout):
    pass


class TestAbortFromAnotherThread(asked.TestAbortFromAnotherThread):
    pass


class TestFailure(asked.TestFailure):
    pass
