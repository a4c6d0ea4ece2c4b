"""The pools of each event loop.

A connection belongs to the loop it was opened on. So every loop gets pools of its own, which the loop itself closes at its end: an
async generator that is waiting in a loop is closed by the loop's `shutdown_asyncgens` (which `asyncio.run` calls, and trio likewise),
and ours closes the pools then, and forgets the loop. Two `asyncio.run`, one after the other, leave nothing open and warn of nothing.
A loop that was closed without that step is found by the next call from another loop, and its sockets are dropped silently.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Callable
from threading import Lock
from typing import TYPE_CHECKING

import anyio

from dragoman.transport import Clocks
from dragoman.transport.async_exchange import AsyncLease, AsyncPooledResponse, lease_from_client, lease_from_pool
from dragoman.transport.async_network import FOREIGN_OR_STOPPED, AsyncCall, AsyncClockedBackend, Stopped
from dragoman.transport.connecting import PoolSet, Target, async_pool, pool_request
from dragoman.transport.failure import failure
from dragoman.transport.foreign import connection_died
from dragoman.transport.loop import Loop, current_loop
from dragoman.transport.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpcore2
    import httpx2

__all__ = ["LoopPools", "sleep"]


class _Pools:
    """The pools of one loop."""

    def __init__(self, options: Options, loop: Loop, forget: Callable[[], object]) -> None:
        backend = AsyncClockedBackend(loop.library)
        self.loop = loop
        self.pools: PoolSet[httpcore2.AsyncConnectionPool] = PoolSet(options, lambda options, proxy: async_pool(options, proxy, backend))
        self._forget = forget
        self._keeper = self._until_the_loop_ends()

    async def begin(self) -> None:
        await anext(self._keeper)

    async def close(self) -> None:
        await self._keeper.aclose()

    def close_soon(self) -> None:
        """From another loop or thread: let this loop close its pools."""

        def close() -> None:
            self.loop.spawn(self.close)

        self.loop.call(close)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._forget()
            with anyio.CancelScope(shield=True):
                for pool in self.pools.clear():
                    await pool.aclose()


class LoopPools:
    """Sends over the pools of the running loop, or over the user's client."""

    def __init__(self, options: Options, client: httpx2.AsyncClient | None) -> None:
        self._options = options
        self._client = client
        self._lock = Lock()
        self._by_loop: dict[object, _Pools] = {}

    async def send(self, request: HTTPRequest, clocks: Clocks) -> AsyncPooledResponse:
        """See `Transport.send`."""
        target = Target.of(request.url)
        loop = current_loop()
        call = AsyncCall(clocks, loop)
        try:
            while True:
                try:
                    lease = await self._lease(request, target, call)
                except FOREIGN_OR_STOPPED as error:
                    if clocks.aborted or not connection_died(error, call.progress):
                        cause = None if isinstance(error, Stopped) else error
                        raise failure(error, call.progress, clocks, target.where) from cause
                    call.restart()
                else:
                    return AsyncPooledResponse(lease, call, target.where)
        except BaseException:
            call.release()
            raise

    async def close(self) -> None:
        """Close this loop's pools; the other loops close theirs."""
        with self._lock:
            mine = self._by_loop.pop(current_loop().native, None)
            others, self._by_loop = list(self._by_loop.values()), {}
        for pools in others:
            pools.close_soon()
        if mine is not None:
            await mine.close()

    async def _lease(self, request: HTTPRequest, target: Target, call: AsyncCall) -> AsyncLease:
        if self._client is not None:
            return await lease_from_client(self._client, request, call)
        pools = (await self._pools(call.loop)).pools
        key, pool = pools.take(target.url)

        async def back(finished: bool) -> None:
            if finished:
                pools.give_back(key, pool)
            elif pools.drop(pool):
                await pool.aclose()

        try:
            return await lease_from_pool(pool, pool_request(request, target, {"trace": call.trace}), call, back)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await back(False)
            raise

    async def _pools(self, loop: Loop) -> _Pools:
        with self._lock:
            pools = self._by_loop.get(loop.native)
            if pools is not None:
                return pools
            by_loop, native = self._by_loop, loop.native
            pools = by_loop[native] = _Pools(self._options, loop, lambda: by_loop.pop(native, None))
            stale = [key for key, other in self._by_loop.items() if other.loop.closed]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                for key in stale:
                    del self._by_loop[key]
        await pools.begin()
        return pools


async def sleep(seconds: float, clocks: Clocks) -> None:
    """Wait so many seconds, at most until `clocks.abort()`."""
    loop = current_loop()
    with anyio.CancelScope() as scope:
        clocks.on_abort(lambda: loop.call(scope.cancel))
        await anyio.sleep(seconds)
