"""What the transport tests share: requests, clocks, a peer that says nothing, and the libraries that async tests run under."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import trio
import uvloop

from dragoman.testing import WireServer
from dragoman.transport import Clocks, Timeouts
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import pytest

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds after which a test gives up on something that should happen at once."""


def request_to(server: WireServer | str, body: bytes = b"{}", path: str = "/v1/messages", **headers: str) -> HTTPRequest:
    url = server if isinstance(server, str) else server.url
    return HTTPRequest(path=path, base_url=url, body=body, headers={"accept": "text/event-stream", **headers})


def running(now: Callable[[], float] = monotonic, **timeouts: float | None) -> Clocks:
    """Clocks of which nothing runs out unless it is given."""
    given: dict[str, Any] = {"connect": None, "first_byte": None, "idle": None, **timeouts}
    clocks = Clocks(Timeouts(**given), now=now)
    clocks.resume()
    return clocks


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the proxies of this machine's environment away."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Asked:
    """A clock that tells when it was looked at: whoever asks for a limit is about to wait. With a limit that stays the same it may not be
    asked at every wait, so give a `total`.
    """

    def __init__(self) -> None:
        self._event = Event()
        self._armed = False

    def arm(self) -> None:
        self._armed = True

    def __call__(self) -> float:
        if self._armed:
            self._event.set()
        return monotonic()

    def wait(self) -> None:
        assert self._event.wait(PATIENCE)


@contextmanager
def silent_peer() -> Iterator[tuple[int, Callable[[], bytes]]]:
    """A port that accepts connections and says nothing; and a function that returns all that the client sent before it closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)

        def received() -> bytes:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(PATIENCE)
                data = b""
                try:
                    while piece := peer.recv(65536):
                        data += piece
                except ConnectionResetError:
                    pass
                return data

        yield listener.getsockname()[1], received


LIBRARIES = ["asyncio", "uvloop", "trio"]


def run(library: str, main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function under one of `LIBRARIES`."""
    if library == "trio":
        return trio.run(main)

    async def as_coroutine() -> T:
        return await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if library == "uvloop" else None) as runner:
        return runner.run(as_coroutine())
