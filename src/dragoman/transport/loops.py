"""The connections of each event loop.

A connection belongs to the loop it was opened on. So every loop has connections of its own, which the loop itself closes at its end:
an async generator that is waiting in a loop is closed by the loop's `shutdown_asyncgens` (which `asyncio.run` calls, and trio
likewise), and ours closes the connections then, and forgets the loop. Two `asyncio.run`, one after the other, leave nothing open and
warn of nothing. A loop that was closed without that step is found by the next call from another loop, and its sockets are dropped
silently.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncGenerator, Callable
from threading import Lock
from typing import TYPE_CHECKING

import anyio
import httpcore2

from dragoman.transport import Clocks
from dragoman.transport.async_exchange import AsyncLease, AsyncPooledResponse, lease_from_client, lease_from_pool
from dragoman.transport.async_network import FOREIGN_OR_STOPPED, AsyncCall, AsyncClockedBackend, Stopped
from dragoman.transport.connecting import Target, Ways, pool_request
from dragoman.transport.failure import failure
from dragoman.transport.foreign import connection_died
from dragoman.transport.idle import Connections
from dragoman.transport.loop import Loop, current_loop
from dragoman.transport.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpx2

__all__ = ["LoopConnections", "sleep"]


class _OfLoop:
    """The connections of one loop. `slots` are taken by calls, if their number is limited."""

    def __init__(self, options: Options, ways: Ways, loop: Loop, forget: Callable[[], object]) -> None:
        backend = AsyncClockedBackend(loop.library)
        self.loop = loop
        self.connections: Connections[httpcore2.AsyncConnectionPool] = Connections(
            options, lambda key: httpcore2.AsyncConnectionPool(**ways.pool_options(key), network_backend=backend)
        )
        self.slots = None if options.max_connections is None else anyio.Semaphore(options.max_connections)
        self._forget = forget
        self._keeper = self._until_the_loop_ends()

    async def begin(self) -> None:
        await anext(self._keeper)

    async def close(self) -> None:
        await self._keeper.aclose()

    def close_soon(self) -> None:
        """From another loop or thread: let this loop close its connections."""

        def close() -> None:
            self.loop.spawn(self.close)

        self.loop.call(close)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._forget()
            with anyio.CancelScope(shield=True):
                await _close(self.connections.clear())


class LoopConnections:
    """Sends over the running loop's own connections, or over the user's client. Has the loops close them when nobody has it any more."""

    def __init__(self, options: Options, client: httpx2.AsyncClient | None) -> None:
        self._by_loop: dict[object, _OfLoop] = {}
        self._lock = Lock()
        self._options = options
        self._client = client
        self._ways = Ways(options)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            for here in list(self._by_loop.values()):
                here.close_soon()

    async def send(self, request: HTTPRequest, clocks: Clocks) -> AsyncPooledResponse:
        """See `Transport.send`."""
        target = Target.of(request.url)
        loop = current_loop()
        call = AsyncCall(clocks, loop)
        fresh = False
        try:
            while True:
                try:
                    lease = await self._lease(request, target, call, fresh)
                except FOREIGN_OR_STOPPED as error:
                    if clocks.aborted or not connection_died(error, call.progress):
                        cause = None if isinstance(error, Stopped) else error
                        raise failure(error, call.progress, clocks, target.where) from cause
                    call.restart()
                    fresh = True
                else:
                    return AsyncPooledResponse(lease, call, target.where)
        except BaseException:  # the task is being cancelled, too
            call.release()
            raise

    async def close(self) -> None:
        """Close this loop's connections. Other loops may be in the middle of calls: they close theirs at their end."""
        with self._lock:
            mine = self._by_loop.pop(current_loop().native, None)
        if mine is not None:
            await mine.close()

    async def _lease(self, request: HTTPRequest, target: Target, call: AsyncCall, fresh: bool) -> AsyncLease:
        if self._client is not None:
            return await lease_from_client(self._client, request, call)
        here = await self._of(call.loop)
        sent = pool_request(request, target, {"trace": call.trace})
        key = self._ways.key(target.url)
        call.progress.proxy = self._ways.proxy(key)
        if here.slots is not None:
            await call.wait(here.slots.acquire)
        try:
            pooled, closing = here.connections.take(key, fresh=fresh)
        except BaseException:  # certificates that cannot be loaded, say: the slot is free for another call
            if here.slots is not None:
                here.slots.release()
            raise

        async def back(finished: bool, owner: LoopConnections = self) -> None:
            del owner  # which lives as long as its answers: it closes what is left when it goes
            if here.slots is not None:
                here.slots.release()
            await _close(here.connections.give_back(pooled, usable=finished))

        try:
            await _close(closing)
            return await lease_from_pool(pooled.pool, sent, call, back)
        except BaseException:  # the task is being cancelled, too: who knows how far the request has come
            with anyio.CancelScope(shield=True):
                await back(False)
            raise

    async def _of(self, loop: Loop) -> _OfLoop:
        with self._lock:
            here = self._by_loop.get(loop.native)
            if here is not None:
                return here
            by_loop, native = self._by_loop, loop.native
            here = by_loop[native] = _OfLoop(self._options, self._ways, loop, lambda: by_loop.pop(native, None))
            stale = [key for key, other in self._by_loop.items() if other.loop.closed]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                for key in stale:
                    del self._by_loop[key]
        await here.begin()
        return here


async def _close(pools: list[httpcore2.AsyncConnectionPool]) -> None:
    for pool in pools:
        await pool.aclose()


async def sleep(seconds: float, clocks: Clocks) -> None:
    """Wait so many seconds, at most until `clocks.abort()`."""
    loop = current_loop()
    with anyio.CancelScope() as scope:
        clocks.on_abort(lambda: loop.call(scope.cancel))
        await anyio.sleep(seconds)
