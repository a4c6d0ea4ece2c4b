"""The network layer for event loops, asyncio and trio: one cancel scope per wait, and a stream that tells how far it has come.

The counterpart of `network.py`. Here a wait can be cancelled, so an anyio cancel scope carries the deadline of whichever clock runs
out first: one around everything up to the head of the answer (pool, connect, TLS, request), whose deadline the stream moves as bytes
arrive, then one around each read of the socket. An abort from any thread goes to the loop, cancels the scope, and shuts the socket;
if nobody waits at that moment, the loop is given a task of its own that closes the response. A task's own cancellation passes
through untouched.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextvars import ContextVar
from math import inf
from typing import Any, TypeVar, cast

import anyio
import httpcore2

from dragoman.errors import Phase
from dragoman.transport import Clocks
from dragoman.transport.failure import Progress
from dragoman.transport.foreign import FOREIGN
from dragoman.transport.loop import Loop

__all__ = ["FOREIGN_OR_STOPPED", "AsyncCall", "AsyncClockedBackend", "AsyncClockedStream", "Stopped", "current_call"]

T = TypeVar("T")


class Stopped(Exception):
    """A wait was ended by an abort or by a clock, which `AsyncCall.progress` and the clocks then tell."""


FOREIGN_OR_STOPPED: tuple[type[Exception], ...] = (*FOREIGN, Stopped)
"""What `AsyncCall.wait` raises when a request fails."""


class AsyncCall:
    """One request on the network: its loop, clocks, progress, the scope of its wait, and the stream it is on."""

    def __init__(self, clocks: Clocks, loop: Loop) -> None:
        self.clocks = clocks
        self.loop = loop
        self.progress = Progress()
        self.farewell: float | None = None
        """While the response is being closed: seconds that it may still take."""
        self.busy = True
        """Whether a task is at work for this call, which will see by itself that it was aborted."""
        self.on_interrupt: Callable[[], None] | None = None
        """Called on the loop if the call is aborted while no task is at work for it."""
        self._scope: anyio.CancelScope | None = None
        self._phase: Phase = "connect"
        self._stream: AsyncClockedStream | None = None
        clocks.on_abort(lambda: loop.call(self.interrupt))

    def restart(self) -> None:
        """The request is sent again, on another connection."""
        self.release()
        self.progress = Progress()
        self.clocks.reconnect()

    async def wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`. Raises Stopped if the call is aborted or a clock runs out first."""
        if self.clocks.aborted and self.farewell is None:
            raise Stopped
        token = current_call.set(self)
        try:
            with anyio.CancelScope() as self._scope:
                self._extend()
                return await work()
        finally:
            self._scope = None
            current_call.reset(token)
        if not self.clocks.aborted and self.farewell is None:
            self.progress.expired = self._phase
        raise Stopped

    async def next_of(self, body: AsyncIterator[bytes]) -> bytes:
        """The next piece of a body whose reads wait by themselves: most pieces need none. Raises as `wait`."""
        token = current_call.set(self)
        try:
            return await anext(body)
        finally:
            current_call.reset(token)

    async def read(self, stream: httpcore2.AsyncNetworkStream, max_bytes: int) -> bytes:
        """Read from the socket, within the wait under way or in one of its own."""
        if self._scope is not None:
            data = await stream.read(max_bytes)
        else:
            data = await self.wait(lambda: stream.read(max_bytes))
        self._got(data)
        return data

    def interrupt(self) -> None:
        """End the wait, or what is left of the call, now. On the loop."""
        self.shut()
        if self._scope is not None:
            self._scope.cancel()
        elif not self.busy and self.on_interrupt is not None:
            self.on_interrupt()

    def shut(self) -> None:
        """Shut the connection that this call is using, if it still is. On the loop."""
        if self._stream is not None:
            self._stream.shut(self)

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """httpcore2's `trace` extension: tells when a connection is opened, and when the request itself goes out."""
        step = event.partition(".")[2]
        if step in ("connect_tcp.started", "connect_unix_socket.started"):
            self.progress.fresh = self.progress.dialing = True
        elif step in ("connect_tcp.complete", "connect_unix_socket.complete"):
            self.progress.dialing = False
        elif step == "send_request_headers.started" and info["request"].method != b"CONNECT":
            self.progress.sent = True
            self.clocks.connected()
            self._extend()

    def _got(self, data: bytes) -> None:
        """Bytes came, or the end of the connection. Raises ReadError if that end is our own abort."""
        if self.clocks.aborted and self.farewell is None:
            raise httpcore2.ReadError("aborted")
        if not data:
            self.progress.ended = True
        elif self.progress.sent:  # before that, they are a proxy's answer to CONNECT
            self.progress.answered = True
            self.clocks.received()
            self._extend()

    def came(self) -> None:
        """Bytes came on a connection that is not ours, where `read` does not see them."""
        self.progress.answered = True
        self.clocks.received()

    def attach(self, stream: AsyncClockedStream) -> None:
        """This call now uses `stream`. Raises ReadError if it may not wait any more."""
        self._stream = stream
        if self.farewell is not None and self.farewell <= 0:
            raise httpcore2.ReadError("closing")

    def release(self) -> None:
        """This call has no more to do with its connection; must come before the pool may give it to another call."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.detach(self)

    def _extend(self) -> None:
        if self._scope is None:
            return
        if self.farewell is not None:
            seconds: float | None = self.farewell
        else:
            seconds, self._phase = self.clocks.limit()
        self._scope.deadline = inf if seconds is None else anyio.current_time() + seconds


current_call: ContextVar[AsyncCall] = ContextVar("current_call")
"""The call whose task is inside httpcore2; set whenever that may read or write."""


class AsyncClockedStream(httpcore2.AsyncNetworkStream):
    """A stock stream that tells its call what comes. Its waits have the call's limits, whatever timeout httpcore2 passes."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._call: AsyncCall | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore2's interface
        del timeout
        return await self._attached().read(self._inner, max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        del timeout
        self._attached()
        await self._inner.write(buffer)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        del timeout
        self._attached()
        try:
            inner = await self._inner.start_tls(ssl_context, server_hostname)
        except BaseException:  # a cancelled handshake, too: the stock stream closes itself on errors only
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise
        return AsyncClockedStream(inner)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def shut(self, call: AsyncCall) -> None:
        """Shut the socket if `call` is the one that uses it. On the loop."""
        if self._call is not call:
            return
        sock = self._inner.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError, TypeError):  # uvloop's socket cannot be shut: there the cancelled wait closes it
                sock.shutdown(socket.SHUT_RDWR)

    def detach(self, call: AsyncCall) -> None:
        """`call` has ended."""
        if self._call is call:
            self._call = None

    def _attached(self) -> AsyncCall:
        self._call = call = current_call.get()
        call.attach(self)
        return call


class AsyncClockedBackend(httpcore2.AsyncNetworkBackend):
    """The stock backend of the running library, with clocks."""

    def __init__(self, library: str) -> None:
        stock = httpcore2.TrioBackend() if library == "trio" else httpcore2.AnyIOBackend()
        self._stock = cast("httpcore2.AsyncNetworkBackend", stock)  # httpcore2 has a stand-in of another type, without anyio or trio

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        del timeout
        return AsyncClockedStream(await self._stock.connect_tcp(host, port, None, local_address, socket_options))
