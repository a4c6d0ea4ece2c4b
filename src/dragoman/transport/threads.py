"""The pools of one process, for blocking calls from any number of threads."""

from __future__ import annotations

from threading import Condition
from typing import TYPE_CHECKING

import httpcore2

from dragoman.transport import Clocks
from dragoman.transport.client_exchange import lease_from_client
from dragoman.transport.connecting import PoolSet, Target, pool_request, sync_pool
from dragoman.transport.exchange import Lease, PooledResponse, lease_from_pool
from dragoman.transport.failure import failure
from dragoman.transport.foreign import FOREIGN, connection_died
from dragoman.transport.network import Call, ClockedBackend
from dragoman.transport.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpx2

__all__ = ["ThreadPools"]


class _Slots:
    """At most so many calls at once. httpcore2's own queue could neither be limited by our clocks nor left by an abort."""

    def __init__(self, count: int | None) -> None:
        self._free = count
        self._changed = Condition()

    def take(self, call: Call) -> None:
        """Wait for a slot. Raises as `Call.limit`."""
        if self._free is None:
            return
        with self._changed:
            if self._free <= 0:
                call.clocks.on_abort(self._wake)
            while self._free <= 0:
                seconds = call.limit()
                if not self._changed.wait(seconds) and self._free <= 0:
                    call.timed_out()
                    raise httpcore2.PoolTimeout("no free connection")
            call.limit()
            self._free -= 1

    def give_back(self) -> None:
        """A call has ended."""
        if self._free is not None:
            with self._changed:
                self._free += 1
                self._changed.notify()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class ThreadPools:
    """Sends over our pools, or over the user's client."""

    def __init__(self, options: Options, client: httpx2.Client | None) -> None:
        self._client = client
        backend = ClockedBackend()
        self._pools: PoolSet[httpcore2.ConnectionPool] = PoolSet(options, lambda options, proxy: sync_pool(options, proxy, backend))
        self._slots = _Slots(options.max_connections)

    def send(self, request: HTTPRequest, clocks: Clocks) -> PooledResponse:
        """See `Transport.send`."""
        target = Target.of(request.url)
        call = Call(clocks)
        try:
            self._slots.take(call)
        except FOREIGN as error:
            raise failure(error, call.progress, clocks, target.where) from error
        try:
            while True:
                try:
                    lease = self._lease(request, target, call)
                except FOREIGN as error:
                    if clocks.aborted or not connection_died(error, call.progress):
                        raise failure(error, call.progress, clocks, target.where) from error
                    call.restart()
                else:
                    return PooledResponse(lease, call, target.where)
        except BaseException:
            call.release()
            self._slots.give_back()
            raise

    def close(self) -> None:
        """Close all connections of our pools."""
        for pool in self._pools.clear():
            pool.close()

    def _lease(self, request: HTTPRequest, target: Target, call: Call) -> Lease:
        call.limit()
        if self._client is not None:
            return lease_from_client(self._client, request, call)
        key, pool = self._pools.take(target.url)
        extensions = {"trace": call.trace, "timeout": {"pool": None}}
        try:
            return lease_from_pool(pool, pool_request(request, target, extensions), call, lambda finished: self._back(key, pool, finished))
        except BaseException:
            self._pool_back(key, pool, finished=False)
            raise

    def _back(self, key: str | None, pool: httpcore2.ConnectionPool, finished: bool) -> None:
        self._pool_back(key, pool, finished)
        self._slots.give_back()

    def _pool_back(self, key: str | None, pool: httpcore2.ConnectionPool, finished: bool) -> None:
        if finished:
            self._pools.give_back(key, pool)
        elif self._pools.drop(pool):
            pool.close()
