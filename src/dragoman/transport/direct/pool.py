"""The connections of one process or event loop: which are idle, how many there may be. Every step takes the same time, however many.

Idle connections are kept twice: per destination, to find one (the last used first, so that the others can grow old), and all together
by age, to find the oldest. Nothing is ever scanned: old ones are dropped from the old end as calls come and go, and one that dies
while idle is taken out where it is. Nothing here does I/O: what must be closed is returned.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from time import monotonic
from typing import Generic, Protocol, TypeVar

from dragoman.errors import ConnectionFailedError
from dragoman.transport.direct.options import Options
from dragoman.transport.direct.request import Key

__all__ = ["Pool", "Pooled"]


class Pooled(Protocol):
    """What a pool holds."""

    @property
    def key(self) -> Key: ...


C = TypeVar("C", bound=Pooled)


class Pool(Generic[C]):
    """Any thread."""

    def __init__(self, options: Options, now: Callable[[], float] = monotonic) -> None:
        self._options = options
        self._now = now
        self._lock = RLock()  # an answer that nobody closed may be collected, and let go, in the middle of a step
        self._all: set[C] = set()
        self._idle: dict[Key, OrderedDict[C, None]] = {}
        self._by_age: OrderedDict[C, float] = OrderedDict()
        self._busy = 0

    def take(self, key: Key, *, fresh: bool) -> tuple[C | None, list[C]]:
        """A place for one call: an idle connection, or None (always, if `fresh`) to open one; and connections to close.

        The place must be given back by `give_back` or `drop`. Raises ConnectionFailedError, at once, if `max_connections` calls are
        under way: nobody waits in a queue that no clock covers.
        """
        with self._lock:
            closing = self._expired()
            idle = None if fresh else self._idle.get(key)
            if idle:
                connection = next(reversed(idle))
                self._forget(connection)
                self._busy += 1
                return connection, closing
            limit = self._options.max_connections
            if limit is not None and self._busy + len(self._by_age) >= limit:
                if not self._by_age:
                    raise ConnectionFailedError(
                        f"all {limit} connections are in use: raise max_connections of the transport, or make fewer calls at once"
                    )
                closing.append(self._oldest())
            self._busy += 1
            return None, closing

    def opened(self, connection: C) -> None:
        """There is a new connection, in use."""
        with self._lock:
            self._all.add(connection)

    def give_back(self, connection: C) -> list[C]:
        """The call has ended and its connection can be used again. Returns connections to close: old or surplus ones, maybe this one."""
        with self._lock:
            self._busy -= 1
            if connection not in self._all:  # `clear` came before
                return [connection]
            self._idle.setdefault(connection.key, OrderedDict())[connection] = None
            self._by_age[connection] = self._now()
            closing = self._expired()
            limit = self._options.max_keepalive_connections
            while limit is not None and len(self._by_age) > limit:
                closing.append(self._oldest())
            return closing

    def drop(self, connection: C | None = None) -> None:
        """The call has ended and its connection, if it came to one, is closed."""
        with self._lock:
            self._busy -= 1
            if connection is not None:
                self._all.discard(connection)

    def died(self, connection: C) -> None:
        """A connection has come to its end; nothing happens unless it was idle."""
        with self._lock:
            if connection in self._by_age:
                self._forget(connection)
                self._all.discard(connection)

    def clear(self) -> tuple[list[C], list[C]]:
        """Forget all connections; returns those that were idle and those in use, to be closed."""
        with self._lock:
            idle = list(self._by_age)
            busy = [connection for connection in self._all if connection not in self._by_age]
            self._all.clear()
            self._idle.clear()
            self._by_age.clear()
            return idle, busy

    def _expired(self) -> list[C]:
        closing: list[C] = []
        expiry = self._options.keepalive_expiry
        if expiry is not None:
            limit = self._now() - expiry
            while self._by_age and next(iter(self._by_age.values())) < limit:
                closing.append(self._oldest())
        return closing

    def _oldest(self) -> C:
        connection = next(iter(self._by_age))
        self._forget(connection)
        self._all.discard(connection)
        return connection

    def _forget(self, connection: C) -> None:
        del self._by_age[connection]
        idle = self._idle[connection.key]
        del idle[connection]
        if not idle:
            del self._idle[connection.key]
