"""The connections of one transport in one process or loop, and those of them that wait to be used again.

Each connection is an httpcore2 pool of one, and a call has it to itself. That costs nothing, for HTTP/1.1 could not share it and
HTTP/2 had better not (see `connecting.py`), and it makes every step here take the same time however many calls run: one shared pool
goes over all its connections at the beginning and the end of each call. It also lets a call ask for a connection that is certainly
fresh, when the one it was given turned out to be dead.

Idle connections are used in reverse order, so that the rest can grow old and be closed. Nothing here does I/O: what must be closed
is returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Generic, TypeAlias, TypeVar

import httpcore2

from dragoman.transport.options import Options

__all__ = ["Connections", "Key", "Pooled"]

_Pool = TypeVar("_Pool", httpcore2.ConnectionPool, httpcore2.AsyncConnectionPool)

Key: TypeAlias = tuple[str | None, bytes, bytes, int | None]
"""What a connection is good for: the proxy's URL, and scheme, host and port of the server."""


@dataclass(slots=True, eq=False)
class Pooled(Generic[_Pool]):
    """A pool of one connection."""

    key: Key
    pool: _Pool
    idle_since: float = 0.0


class Connections(Generic[_Pool]):
    """All connections. Any thread."""

    def __init__(self, options: Options, make: Callable[[Key], _Pool], now: Callable[[], float] = monotonic) -> None:
        self._make: Callable[[Key], _Pool] = make
        self._expiry = options.keepalive_expiry
        self._limit = options.max_keepalive_connections
        self._now = now
        self._lock = Lock()
        self._all: set[Pooled[_Pool]] = set()
        self._idle: dict[Key, deque[Pooled[_Pool]]] = {}
        self._idle_count = 0

    def take(self, key: Key, *, fresh: bool = False) -> tuple[Pooled[_Pool], list[_Pool]]:
        """A connection for one call, idle so far or (always, if `fresh`) yet to be opened; and pools to close."""
        with self._lock:
            closing = self._expired(key)
            idle = self._idle.get(key)
            if idle and not fresh:
                self._idle_count -= 1
                return idle.pop(), closing
            pooled = Pooled(key, self._make(key))
            self._all.add(pooled)
            return pooled, closing

    def give_back(self, pooled: Pooled[_Pool], *, usable: bool) -> list[_Pool]:
        """The call has ended. Returns pools to close: this one, if it cannot be used again, and old or surplus ones."""
        with self._lock:
            if pooled not in self._all:  # `clear` came before
                return [pooled.pool]
            if not usable or not pooled.pool.connections:
                self._all.discard(pooled)
                return [pooled.pool]
            pooled.idle_since = self._now()
            self._idle.setdefault(pooled.key, deque()).append(pooled)
            self._idle_count += 1
            closing = self._expired(pooled.key)
            while self._limit is not None and self._idle_count > self._limit:
                closing.append(self._drop(min(self._idle, key=lambda key: self._idle[key][0].idle_since)))
            return closing

    def clear(self) -> list[_Pool]:
        """Forget all connections, also those in use; returns their pools to be closed."""
        with self._lock:
            pools = [pooled.pool for pooled in self._all]
            self._all.clear()
            self._idle.clear()
            self._idle_count = 0
            return pools

    def _expired(self, key: Key) -> list[_Pool]:
        closing: list[_Pool] = []
        if self._expiry is not None:
            oldest = self._now() - self._expiry
            while (idle := self._idle.get(key)) and idle[0].idle_since < oldest:
                closing.append(self._drop(key))
        return closing

    def _drop(self, key: Key) -> _Pool:
        idle = self._idle[key]
        pooled = idle.popleft()
        if not idle:
            del self._idle[key]
        self._idle_count -= 1
        self._all.discard(pooled)
        return pooled.pool
