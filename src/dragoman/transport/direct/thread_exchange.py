"""The blocking calls, from any number of threads: one request sent, its answer handed out, its connection let go.

The counterpart of `loop_exchange.py`. One thread reads an answer; any thread may close it or abort the call. So each connection can be
shut from outside, which wakes the thread that waits on it, and only that thread lets go of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock
from weakref import ref

from dragoman.errors import DragomanError
from dragoman.transport import Clocks, HeaderList, Timeouts
from dragoman.transport.direct.answer import Answer
from dragoman.transport.direct.content import Unpacker, unpacker_for
from dragoman.transport.direct.faults import ClosedHere, Fault, ReadError, RemoteProtocolError, WriteError
from dragoman.transport.direct.options import DRAIN_LIMIT, FAREWELL, Options
from dragoman.transport.direct.pool import Pool
from dragoman.transport.direct.request import Heads, Outgoing
from dragoman.transport.direct.socket_connection import SocketConnection, Stopped, connected
from dragoman.transport.direct.tls import context_for
from dragoman.transport.failure import Progress, aborted, failure
from dragoman.wire.base import HTTPRequest

__all__ = ["ThreadExchange", "ThreadExchanges"]


class ThreadExchanges:
    """Sends over the process's own connections."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._heads = Heads()
        self._pool: Pool[SocketConnection] = Pool(options)

    def send(self, request: HTTPRequest, clocks: Clocks) -> ThreadExchange:
        """See `Transport.send`."""
        exchange = ThreadExchange(self._pool, self._heads.of(request), self._options, clocks)
        exchange.send()
        return exchange

    def forsake(self) -> None:
        """Close the idle connections; those in use are closed when their answers end."""
        _close_all(self._pool.clear()[0])

    def close(self) -> None:
        """Close all connections; those in use are shut, and closed by the threads that use them."""
        idle, busy = self._pool.clear()
        _close_all(idle)
        for connection in busy:
            connection.shut()


def _close_all(connections: Iterable[SocketConnection]) -> None:
    for connection in connections:
        connection.close()


class ThreadExchange:
    """One request and its answer. One thread reads it; any thread may close it."""

    def __init__(self, pool: Pool[SocketConnection], outgoing: Outgoing, options: Options, clocks: Clocks) -> None:
        self.status = 0
        self.headers: HeaderList = ()
        self._pool = pool
        self._outgoing = outgoing
        self._options = options
        self._clocks = clocks
        self._answer = Answer(options.max_header_bytes, bodiless=outgoing.bodiless)
        self._connection: SocketConnection | None = None
        self._unpacker: Unpacker | None = None
        self._unpacked: Iterator[bytes] = iter(())
        self._reading = Lock()
        self._holding = Lock()
        self._over = False
        self._finished = False
        self._leaving = False
        this = ref(self)  # else clocks and exchange would be a cycle, and one that nobody closes would live until the next collection
        clocks.on_abort(lambda: None if (exchange := this()) is None else exchange._shut())

    # ---- the request

    def send(self) -> None:
        """Send and wait for the head of the answer. Raises as `Transport.send`; lets go of the connection then."""
        try:
            reused = self._connect(fresh=False)
            try:
                self._round_trip()
            except (ReadError, WriteError, RemoteProtocolError) as error:
                if not reused or self._answer.begun or self._clocks.aborted or isinstance(error, ClosedHere):
                    raise
                self._detach(reusable=False)  # the server had closed it while it was idle, and did not see the request
                self._clocks.reconnect()
                self._answer = Answer(self._options.max_header_bytes, bodiless=self._outgoing.bodiless)
                self._connect(fresh=True)
                self._round_trip()
            self._unpacker = unpacker_for(self._answer.headers)
        except Fault as error:
            raise self._failed(error) from _cause(error)
        except BaseException:  # an interrupt, too: half a call is on the connection
            self._let_go(finished=False)
            raise
        self.status, self.headers = self._answer.status, self._answer.headers

    def _connect(self, *, fresh: bool) -> bool:
        """Get a connection; whether it was used before."""
        if self._clocks.aborted:
            raise Stopped
        pool, key = self._pool, self._outgoing.key
        while True:
            connection, closing = pool.take(key, fresh=fresh)
            _close_all(closing)
            if connection is None:
                break
            if connection.alive():
                self._attach(connection)
                return True
            connection.close()
            pool.drop(connection)
        try:
            context = context_for(self._options) if key[0] else None
            self._clocks.reconnect()  # loading certificates, and this package, is not the network's time
            connection = connected(key, context, self._clocks)
        except BaseException:  # an interrupt, too: its place in the pool is free for another call
            pool.drop()
            raise
        pool.opened(connection)
        self._attach(connection)
        return False

    def _attach(self, connection: SocketConnection) -> None:
        connection.expired = None
        with self._holding:
            self._connection = connection
        if self._clocks.aborted:  # it may have looked for the connection just before
            raise Stopped
        self._clocks.connected()

    def _round_trip(self) -> None:
        connection, answer = self._connection, self._answer
        assert connection is not None
        unsent: WriteError | None = None
        try:
            connection.send(memoryview(self._outgoing.head + self._outgoing.body), answer, self._clocks)
        except WriteError as error:  # a server may refuse a request before it has read all of it, and say so
            unsent = error
        while not answer.head and answer.fault is None:
            connection.receive(answer, self._clocks)
        if not answer.head and answer.fault is not None:  # else what came before the fault is handed out first
            raise answer.fault if unsent is None or answer.begun else unsent

    # ---- the answer

    def __iter__(self) -> ThreadExchange:
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
            if self._clocks.aborted and not self._finished:
                raise aborted()
            raise StopIteration
        answer, connection, clocks = self._answer, self._connection, self._clocks
        assert connection is not None
        try:
            while not clocks.aborted:
                if self._unpacker is not None and (data := next(self._unpacked, b"")):
                    return data
                if answer.pieces:
                    data = answer.take()
                    if self._unpacker is None:
                        return data
                    self._unpacked = self._unpacker.unpack(data)
                elif answer.complete:
                    if self._unpacker is not None:
                        self._unpacker.finish()
                    self._let_go(finished=True)
                    raise StopIteration
                elif answer.fault is not None:
                    raise answer.fault
                else:
                    connection.receive(answer, clocks)
            raise Stopped
        except StopIteration:
            raise
        except Fault as error:
            raise self._failed(error) from _cause(error)
        except BaseException:  # KeyboardInterrupt in the middle of a read
            self._let_go(finished=False)
            raise

    def read(self) -> bytes:
        """The rest of the body, whole."""
        return b"".join(self)

    def close(self) -> None:
        """Let go of the connection: see `HTTPResponse`."""
        self._leaving = True
        if not self._reading.acquire(blocking=False):
            self._shut()  # the thread that reads wakes up and lets go on its way out
            return
        try:
            if not self._over:
                self._let_go(finished=self._at_end())
        finally:
            self._reading.release()

    def _at_end(self) -> bool:
        """Whether the body is at its end, or is in a moment that is worth waiting for."""
        answer, connection = self._answer, self._connection
        if self._clocks.complete and connection is not None and not self._clocks.aborted:
            clocks = Clocks(Timeouts(total=FAREWELL))
            clocks.resume()
            size = 0
            try:
                while not answer.complete and answer.fault is None and size <= DRAIN_LIMIT:
                    size += len(answer.take())
                    connection.receive(answer, clocks)
            except Fault:
                return False
        return answer.complete

    # ---- the end

    def _failed(self, error: Fault) -> DragomanError:
        """Our error for a fault; lets go of the connection."""
        if self._leaving and not self._clocks.aborted:  # closed by another thread, which has not told the clocks
            self._let_go(finished=False)
            return aborted()
        answer, connection = self._answer, self._connection
        expired = None if connection is None else connection.expired
        progress = Progress(answered=answer.begun, ended=answer.ended, expired=expired)
        self._let_go(finished=False)
        return failure(error, progress, self._clocks, self._outgoing.where)

    def _let_go(self, *, finished: bool) -> None:
        if self._over:
            return
        self._over, self._finished = True, finished
        self._detach(reusable=finished and self._answer.reusable)

    def _detach(self, *, reusable: bool) -> None:
        with self._holding:  # from here on, no abort of this call reaches the connection
            connection, self._connection = self._connection, None
        self._answer.release()
        if connection is None:
            return
        if reusable:
            _close_all(self._pool.give_back(connection))
        else:
            self._pool.drop(connection)
            connection.close()

    def _shut(self) -> None:
        """End the wait under way, and the connection. Any thread."""
        with self._holding:
            if self._connection is not None:
                self._connection.shut()

    def __del__(self) -> None:
        if not self._over:
            self._detach(reusable=False)


def _cause(error: Fault) -> BaseException | None:
    return None if isinstance(error, Stopped) else error
