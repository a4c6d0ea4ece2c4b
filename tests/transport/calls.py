"""What the transport tests share: requests, clocks, a peer that says nothing, and the libraries that async tests run under."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
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

PATIENCE = 20.0
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


class SilentPeer:
    """A port that accepts one connection and says nothing. It reads the first bytes, and the rest only when asked what it `received`."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._spoken_to = Event()
        self._read_on = Event()
        self._closed = Event()
        self._data = b""

    def serve(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except OSError:
            return
        with peer:
            try:
                while piece := peer.recv(65536):
                    self._data += piece
                    self._spoken_to.set()
                    self._read_on.wait()
            except ConnectionResetError:
                pass
        self._closed.set()

    def spoken_to(self) -> None:
        """Wait until the client has sent something."""
        assert self._spoken_to.wait(PATIENCE)

    def received(self) -> bytes:
        """Wait until the client has closed the connection; all that it sent."""
        self._read_on.set()
        assert self._closed.wait(PATIENCE)
        return self._data

    def leave(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._read_on.set()


@contextmanager
def silent_peer() -> Iterator[SilentPeer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = SilentPeer(listener)
        thread = Thread(target=peer.serve, daemon=True)
        thread.start()
        try:
            yield peer
        finally:
            peer.leave()


LIBRARIES = ["asyncio", "uvloop", "trio"]


def run(library: str, main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function under one of `LIBRARIES`."""
    if library == "trio":
        return trio.run(main)

    async def as_coroutine() -> T:
        return await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if library == "uvloop" else None) as runner:
        return runner.run(as_coroutine())
