"""A blocking wait returns to Python again and again, whatever its clocks allow: that is when Python sees a signal that came just before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, Timer
from time import monotonic
from typing import Any

import pytest

import dragoman.cli.local
import dragoman.testing.scenarios
import dragoman.transport
import dragoman.transport.direct.socket_connection
import dragoman.transport.network
import dragoman.transport.threads
from dragoman.local.server import LocalServer
from dragoman.testing import Answer, Gate, Wait, WireServer
from dragoman.transport import LONGEST_WAIT, Transport, wait_in_steps
from dragoman.transport.direct import DirectTransport
from dragoman.transport.httpx2 import HTTPX2Transport

from .calls import PATIENCE, request_to, running

STEP = 0.01


@pytest.fixture(autouse=True)
def _short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LONGEST_WAIT == 1
    for module in (dragoman.transport, dragoman.transport.direct.socket_connection, dragoman.transport.network):
        monkeypatch.setattr(module, "LONGEST_WAIT", STEP)


@contextmanager
def opens_after(gate: Gate, looks: int) -> Iterator[Callable[[], float]]:
    """A clock that opens a gate, at which the server waits, when it was looked at so many times meanwhile. Gives up after `PATIENCE`."""
    seen = 0
    waits, late = Event(), Event()
    watch = Thread(target=lambda: (gate.reached(), waits.set()))
    patience = Timer(PATIENCE, lambda: (late.set(), gate.open()))

    def now() -> float:
        nonlocal seen
        seen += waits.is_set()
        if seen == looks:
            gate.open()
        return monotonic()

    watch.start()
    patience.start()
    yield now
    patience.cancel()
    watch.join()
    assert not late.is_set()
    assert seen >= looks


@pytest.mark.parametrize("transport", [DirectTransport, lambda: HTTPX2Transport(trust_env=False)], ids=["direct", "httpx2"])
@pytest.mark.parametrize("limits", [{}, {"idle": 60.0, "first_byte": 60.0}], ids=["no limit", "long limits"])
@pytest.mark.parametrize(
    "answer",
    [lambda gate: Answer(before=[Wait(gate)], body=b"xy"), lambda gate: Answer(body=[b"x", Wait(gate), b"y"])],
    ids=["head", "body"],
)
def test_a_read_looks_around_and_goes_on(
    transport: Callable[[], Transport], limits: dict[str, Any], answer: Callable[[Gate], Answer]
) -> None:
    gate = Gate()
    with WireServer(answer(gate)) as server, opens_after(gate, 5) as now:
        with_steps = transport()
        assert with_steps.send(request_to(server), running(now, **limits)).read() == b"xy"
        with_steps.close()


def test_an_event_is_waited_for_in_steps() -> None:
    class Counting(Event):
        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            assert timeout <= STEP
            self.waits += 1
            if self.waits == 4:
                self.set()
            return self.is_set()

    assert wait_in_steps(Counting(), None)
    assert wait_in_steps(Counting(), PATIENCE)
    assert not wait_in_steps(Counting(), STEP * 2.5)


@pytest.mark.parametrize("serve", [lambda: dragoman.testing.scenarios.serve("good"), lambda: serve_local()], ids=["faults", "local"])
def test_what_serves_until_it_is_interrupted_looks_around(serve: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    class Interrupted(Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal looks
            assert timeout == STEP
            looks += 1
            if looks == 3:
                raise KeyboardInterrupt
            return False

    for module in (dragoman.testing.scenarios, dragoman.cli.local):
        monkeypatch.setattr(module, "Event", Interrupted)
    monkeypatch.setattr(dragoman.cli.local.LocalModel, "serve", lambda *_, **__: LocalServer("http://127.0.0.1:1", "m"))
    with contextlib.suppress(KeyboardInterrupt):
        serve()
    assert looks == 3


def serve_local() -> None:
    dragoman.cli.local.serve(model="/some.gguf", port=0, api_key="", threads=1)


def test_a_free_connection_is_waited_for_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dragoman.transport.threads, "LONGEST_WAIT", STEP)
    transport = HTTPX2Transport(trust_env=False, max_connections=1)
    gate = Gate()
    with WireServer([Answer(body=[b"x", Wait(gate)]), Answer(body=b"y")]) as server, opens_after(gate, 5) as now:
        held = transport.send(request_to(server), running())
        reading = Thread(target=held.read)
        reading.start()
        assert transport.send(request_to(server), running(now, connect=60.0)).read() == b"y"
        reading.join()
        transport.close()
