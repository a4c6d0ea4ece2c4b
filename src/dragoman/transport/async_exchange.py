"""The answer on an event loop: the counterpart of `exchange.py`, over a pool of ours or a client of the user's.

Closing must happen even while the task that asks for it is being cancelled. So an answer that was read to its end is given back in
place (nothing there waits), and one that was left early is closed by a task of its own, which `close` waits for under a shield.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import httpx2

from dragoman.transport import HeaderList
from dragoman.transport.async_network import FOREIGN_OR_STOPPED, AsyncCall, Stopped
from dragoman.transport.connecting import checked_headers
from dragoman.transport.exchange import DRAIN_LIMIT, FAREWELL
from dragoman.transport.failure import aborted, failure
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpcore2

__all__ = ["AsyncLease", "AsyncPooledResponse", "lease_from_client", "lease_from_pool"]


@dataclass(slots=True)
class AsyncLease:
    """A connection that is ours until `give_back`: see `exchange.Lease`."""

    status: int
    headers: HeaderList
    body: AsyncGenerator[bytes, None]
    give_back: Callable[[bool], Awaitable[None]]
    bounded: bool
    """Whether each read of the body waits by the call's clocks on its own."""


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _generator(self._response)

    async def aclose(self) -> None:
        await self._response.aclose()


async def _generator(response: httpcore2.Response) -> AsyncGenerator[bytes, None]:
    stream = aiter(response.stream)  # type: ignore[arg-type]  # of a pool's async answer
    try:
        async for data in stream:
            yield data
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def lease_from_pool(
    pool: httpcore2.AsyncConnectionPool, request: httpcore2.Request, call: AsyncCall, give_back: Callable[[bool], Awaitable[None]]
) -> AsyncLease:
    """Send `request` and wait for the head of the answer. Raises foreign exceptions, and Stopped."""
    response = await call.wait(lambda: pool.handle_async_request(request))

    async def let_go(finished: bool) -> None:
        await response.aclose()
        await give_back(finished)

    body: AsyncGenerator[bytes, None]
    if any(name.lower() == b"content-encoding" for name, _ in response.headers):
        body = httpx2.Response(response.status, headers=response.headers, stream=_Body(response)).aiter_bytes()
    else:
        body = _generator(response)
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return AsyncLease(response.status, headers, body, let_go, bounded=True)


async def lease_from_client(client: httpx2.AsyncClient, request: HTTPRequest, call: AsyncCall) -> AsyncLease:
    """The same over the user's client, which is used as it is and never closed."""
    sent = client.build_request(
        request.method,
        request.url,
        headers=checked_headers(request),
        content=request.body,
        extensions={"trace": call.trace, "timeout": {}},
    )
    response = await call.wait(lambda: client.send(sent, stream=True, follow_redirects=False))
    call.came()

    async def let_go(finished: bool) -> None:
        del finished
        await response.aclose()

    async def body() -> AsyncGenerator[bytes, None]:
        chunks = response.aiter_bytes()
        try:
            async for data in chunks:
                call.came()
                yield data
        except GeneratorExit:
            await _run_out(response, chunks)
            raise
        finally:
            await chunks.aclose()

    return AsyncLease(response.status_code, response.headers.multi_items(), body(), let_go, bounded=False)


async def _run_out(response: httpx2.Response, chunks: AsyncIterator[bytes]) -> None:
    """Close an answer that was left early, then read it to the error that this makes. httpx2's generators do not close the ones below
    them: suspended, they would be left to the garbage collector, and trio warns of each. Only where closing is certain to end the read.
    """
    await response.aclose()
    if response.http_version.startswith("HTTP/1") and "network_stream" in response.extensions:
        with contextlib.suppress(*FOREIGN_OR_STOPPED):
            async for _ in chunks:
                pass


class AsyncPooledResponse:
    """An answer on a connection. One task reads it; any task of its loop may close it."""

    def __init__(self, lease: AsyncLease, call: AsyncCall, where: str) -> None:
        self.status = lease.status
        self.headers: HeaderList = lease.headers
        self._lease = lease
        self._call = call
        self._where = where
        self._over = False
        self._finished = False
        self._closing = False
        self._closed = anyio.Event()
        call.on_interrupt = self._start_closing
        call.busy = False

    def __aiter__(self) -> AsyncPooledResponse:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes. Raises as `Transport` says; after `close`, StopAsyncIteration."""
        if self._over or self._closing:
            if self._call.clocks.aborted and not self._finished:
                raise aborted()
            raise StopAsyncIteration
        call = self._call
        call.busy = True
        try:
            return await self._next()
        except StopAsyncIteration:
            if call.clocks.aborted:  # a body that ends by closing looks complete when we have shut it ourselves
                await self._let_go(finished=False)
                raise aborted() from None
            await self._let_go(finished=True)
            raise
        except FOREIGN_OR_STOPPED as error:
            await self._let_go(finished=False)
            if self._closing:  # closed by another task, which may not have told the clocks
                raise aborted() from error
            raise failure(error, call.progress, call.clocks, self._where) from (None if isinstance(error, Stopped) else error)
        except BaseException:  # the task is being cancelled
            await self._let_go(finished=False)
            raise
        finally:
            call.busy = False

    def _next(self) -> Awaitable[bytes]:
        body = self._lease.body
        return self._call.next_of(body) if self._lease.bounded else self._call.wait(lambda: anext(body))

    async def read(self) -> bytes:
        """The rest of the body, whole."""
        return b"".join([data async for data in self])

    async def close(self) -> None:
        """Let go of the connection: see `HTTPResponse`. Closes also while the task is being cancelled."""
        if self._over and not self._closing:
            return
        if self._call.busy:
            self._closing = True
            self._call.interrupt()  # the task that reads lets go on its way out
        else:
            self._start_closing()
        with anyio.CancelScope(shield=True):
            await self._closed.wait()

    def _start_closing(self) -> None:
        if not self._closing and not self._over:
            self._closing = True
            self._call.loop.spawn(self._close)

    async def _close(self) -> None:
        await self._let_go(finished=await self._drained())

    async def _drained(self) -> bool:
        """Whether the body is at its end, or will be in a moment that is worth waiting for."""
        call = self._call
        if call.clocks.aborted:
            return False
        call.farewell = FAREWELL if call.clocks.complete else 0.0
        size = 0
        try:
            while size <= DRAIN_LIMIT:
                size += len(await self._next())
        except StopAsyncIteration:
            return True
        except FOREIGN_OR_STOPPED:
            return False
        return False

    async def _let_go(self, finished: bool) -> None:
        if self._over:
            return
        self._over, self._finished = True, finished
        if not finished:
            self._call.shut()
        self._call.release()
        self._call.on_interrupt = None  # no cycle: an answer that is over goes when it is dropped
        with anyio.CancelScope(shield=True):
            try:
                await self._lease.body.aclose()
                await self._lease.give_back(finished)
            finally:
                self._closed.set()
