"""The blocking answer: one request sent, its body read and its connection let go, whoever asks for it and whenever.

A `Lease` is what stands behind an answer, be it a pool of ours or a client of the user's: status, headers, an iterator of decoded
bytes, and how to give the connection back. `PooledResponse` puts the rules on it that hold for both: foreign exceptions become ours,
the connection goes back exactly once, and `close` may come from another thread while this one reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

import httpx2

from dragoman.transport import HeaderList
from dragoman.transport.failure import aborted, failure
from dragoman.transport.foreign import FOREIGN
from dragoman.transport.network import Call, current_call

if TYPE_CHECKING:
    import httpcore2

__all__ = ["DRAIN_LIMIT", "FAREWELL", "Lease", "PooledResponse", "lease_from_pool"]

FAREWELL = 0.05
"""Seconds that `close` waits for the end of a body whose message is complete, so that its connection can be used again."""

DRAIN_LIMIT = 64 * 1024
"""Bytes of a body that `close` reads at most in that time."""


@dataclass(slots=True)
class Lease:
    """A connection that is ours until `give_back`."""

    status: int
    headers: HeaderList
    body: Iterator[bytes]
    give_back: Callable[[bool], None]
    """Called once; whether the body was read to its end."""
    drains: bool
    """Whether reading the body obeys `Call.farewell`."""


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


def lease_from_pool(pool: httpcore2.ConnectionPool, request: httpcore2.Request, call: Call, give_back: Callable[[bool], None]) -> Lease:
    """Send `request` and wait for the head of the answer. Raises foreign exceptions."""
    token = current_call.set(call)
    try:
        response = pool.handle_request(request)
    finally:
        current_call.reset(token)

    def let_go(finished: bool) -> None:
        response.close()
        give_back(finished)

    body: Iterator[bytes]
    if any(name.lower() == b"content-encoding" for name, _ in response.headers):
        body = httpx2.Response(response.status, headers=response.headers, stream=_Body(response)).iter_bytes()
    else:
        body = response.iter_stream()
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return Lease(response.status, headers, body, let_go, drains=True)


class PooledResponse:
    """An answer on a connection. One thread reads it; any thread may close it."""

    def __init__(self, lease: Lease, call: Call, where: str) -> None:
        self.status = lease.status
        self.headers: HeaderList = lease.headers
        self._lease = lease
        self._call = call
        self._where = where
        self._reading = Lock()
        self._over = False
        self._finished = False
        self._leaving = False

    def __iter__(self) -> PooledResponse:
        return self

    def __next__(self) -> bytes:
        """The next bytes. Raises as `Transport` says; after `close`, StopIteration."""
        try:
            with self._reading:
                return self._next()
        finally:
            if self._leaving:  # `close` was called meanwhile, and could not wait for us
                self.close()

    def _next(self) -> bytes:
        if self._over or self._leaving:
            if self._call.clocks.aborted and not self._finished:
                raise aborted()
            raise StopIteration
        call = self._call
        token = current_call.set(call)
        try:
            return next(self._lease.body)
        except StopIteration:
            if call.clocks.aborted:  # a body that ends by closing looks complete when we have shut it ourselves
                self._let_go(finished=False)
                raise aborted() from None
            self._let_go(finished=True)
            raise
        except FOREIGN as error:
            self._let_go(finished=False)
            if self._leaving:  # closed by another thread, which may not have told the clocks
                raise aborted() from error
            raise failure(error, call.progress, call.clocks, self._where) from error
        except BaseException:  # KeyboardInterrupt in the middle of a read
            self._let_go(finished=False)
            raise
        finally:
            current_call.reset(token)

    def read(self) -> bytes:
        """The rest of the body, whole."""
        return b"".join(self)

    def close(self) -> None:
        """Let go of the connection: see `HTTPResponse`."""
        self._leaving = True
        if not self._reading.acquire(blocking=False):
            self._call.shut()  # the thread that reads wakes up and lets go on its way out
            return
        try:
            if not self._over:
                self._let_go(finished=self._drained())
        finally:
            self._reading.release()

    def _drained(self) -> bool:
        """Whether the body is at its end, or will be in a moment that is worth waiting for."""
        if not self._lease.drains or self._call.clocks.aborted:
            return False
        self._call.farewell = FAREWELL if self._call.clocks.complete else 0.0
        size = 0
        token = current_call.set(self._call)
        try:
            for data in self._lease.body:
                size += len(data)
                if size > DRAIN_LIMIT:
                    return False
        except FOREIGN:
            return False
        finally:
            current_call.reset(token)
        return True

    def _let_go(self, finished: bool) -> None:
        if self._over:
            return
        self._over, self._finished = True, finished
        if not finished:
            self._call.shut()
        self._call.release()
        self._lease.give_back(finished)
