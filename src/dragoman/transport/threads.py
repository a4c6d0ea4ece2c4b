"""The connections of one process, for blocking calls from any number of threads."""

from __future__ import annotations

import os
from threading import Condition
from typing import TYPE_CHECKING
from weakref import finalize

import httpcore2

from dragoman.transport import LONGEST_WAIT, Clocks
from dragoman.transport.client_exchange import lease_from_client
from dragoman.transport.connecting import Target, Ways, pool_request
from dragoman.transport.exchange import Lease, PooledResponse, lease_from_pool
from dragoman.transport.failure import failure
from dragoman.transport.foreign import FOREIGN, connection_died
from dragoman.transport.idle import Connections
from dragoman.transport.network import Call, ClockedBackend
from dragoman.transport.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpx2

__all__ = ["ThreadConnections"]


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
                longer = seconds is None or seconds > LONGEST_WAIT
                if not self._changed.wait(LONGEST_WAIT if longer else seconds) and self._free <= 0 and not longer:
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


class ThreadConnections:
    """Sends over our own connections, or over the user's client. Closes the idle ones when nobody has it any more."""

    def __init__(self, options: Options, client: httpx2.Client | None) -> None:
        self._client = client
        self._ways = ways = Ways(options)
        backend = ClockedBackend()
        self._connections: Connections[httpcore2.ConnectionPool] = Connections(
            options, lambda key: httpcore2.ConnectionPool(**ways.pool_options(key), network_backend=backend)
        )
        self._slots = _Slots(options.max_connections)
        finalize(self, _forsaken, self._connections, os.getpid())  # also at the end of the program

    def send(self, request: HTTPRequest, clocks: Clocks) -> PooledResponse:
        """See `Transport.send`."""
        target = Target.of(request.url)
        call = Call(clocks)
        try:
            self._slots.take(call)
        except FOREIGN as error:
            raise failure(error, call.progress, clocks, target.where) from error
        fresh = False
        try:
            while True:
                try:
                    lease = self._lease(request, target, call, fresh)
                except FOREIGN as error:
                    if clocks.aborted or not connection_died(error, call.progress):
                        raise failure(error, call.progress, clocks, target.where) from error
                    call.restart()
                    fresh = True
                else:
                    return PooledResponse(lease, call, target.where)
        except BaseException:  # an interrupt, too: the slot is free for another call
            call.release()
            self._slots.give_back()
            raise

    def close(self) -> None:
        """Close all our connections."""
        _close(self._connections.clear())

    def _lease(self, request: HTTPRequest, target: Target, call: Call, fresh: bool) -> Lease:
        call.limit()
        if self._client is not None:
            return lease_from_client(self._client, request, call)
        key = self._ways.key(target.url)
        call.progress.proxy = self._ways.proxy(key)
        pooled, closing = self._connections.take(key, fresh=fresh)
        _close(closing)

        def back(finished: bool) -> None:
            _close(self._connections.give_back(pooled, usable=finished))
            self._slots.give_back()

        try:
            return lease_from_pool(pooled.pool, pool_request(request, target, {"trace": call.trace}), call, back)
        except BaseException:  # an interrupt, too: who knows how far the request has come
            _close(self._connections.give_back(pooled, usable=False))
            raise


def _forsaken(connections: Connections[httpcore2.ConnectionPool], pid: int) -> None:
    if pid == os.getpid():  # in a forked child, a lock may be held for ever
        _close(connections.clear())


def _close(pools: list[httpcore2.ConnectionPool]) -> None:
    for pool in pools:
        pool.close()
