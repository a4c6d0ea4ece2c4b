"""The calls on an asyncio loop: one request sent, its answer handed out, its connection let go.

Closing never waits for the peer, and works while the task that asks for it is being cancelled: it is one step, `abort`, which asyncio
carries out in its next turn. Only for the end of a complete message `close` waits, for `FAREWELL` at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from weakref import ref

from dragoman.errors import DragomanError
from dragoman.transport import Arrived, Clocks, HeaderList
from dragoman.transport.direct.answer import Answer
from dragoman.transport.direct.content import Unpacker, unpacker_for
from dragoman.transport.direct.faults import ClosedHere, Fault, ReadError, RemoteProtocolError, WriteError
from dragoman.transport.direct.loop_connection import LoopConnection, Stopped
from dragoman.transport.direct.loop_dialing import connected
from dragoman.transport.direct.loop_pool import OfLoop, call_on, close_all
from dragoman.transport.direct.options import DRAIN_LIMIT, FAREWELL, Options
from dragoman.transport.direct.request import Outgoing
from dragoman.transport.direct.tls import context_for
from dragoman.transport.failure import Progress, aborted, failure

__all__ = ["LoopExchange"]


class LoopExchange:
    """One request and its answer. One task reads it; any task of its loop may close it."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "_clocks",
        "_connecting",
        "_connection",
        "_cut",
        "_finished",
        "_here",
        "_options",
        "_outgoing",
        "_over",
        "_reading",
        "_unpacked",
        "_unpacker",
        "arrival",
        "headers",
        "status",
    )

    def __init__(self, here: OfLoop, outgoing: Outgoing, options: Options, clocks: Clocks) -> None:
        self.status = 0
        self.headers: HeaderList = ()
        self._here = here
        self._outgoing = outgoing
        self._options = options
        self._clocks = clocks
        self._answer = Answer(options.max_header_bytes, bodiless=outgoing.bodiless)
        self.arrival: asyncio.Future[Arrived | None]
        """See `PolledResponse`."""
        self._connection: LoopConnection | None = None
        self._connecting: asyncio.Timeout | None = None
        self._unpacker: Unpacker | None = None
        self._unpacked: Iterator[bytes] = iter(())
        self._reading = False  # the latest `take` gave None: see `_is_awaited`
        self._over = False
        self._finished = False
        self._cut = False
        this = ref(self)  # else clocks and exchange would be a cycle, and one that nobody closes would live until the next collection
        clocks.on_abort(lambda: None if (exchange := this()) is None else exchange._abort())

    # ---- the request

    async def send(self) -> None:
        """Send and wait for the head of the answer. Raises as `Transport.send`; lets go of the connection then."""
        try:
            reused = await self._connect(fresh=False)
            try:
                await self._round_trip()
            except (ReadError, WriteError, RemoteProtocolError) as error:
                if not reused or self._answer.begun or self._clocks.aborted or isinstance(error, ClosedHere):
                    raise
                self._drop()  # the server had closed it while it was idle, and did not see the request
                self._clocks.reconnect()
                self._answer = Answer(self._options.max_header_bytes, bodiless=self._outgoing.bodiless)
                await self._connect(fresh=True)
                await self._round_trip()
            self._unpacker = unpacker_for(self._answer.headers)
        except Fault as error:
            raise self._failed(error) from _cause(error)
        except BaseException:  # the task is being cancelled, too: half a call is on the connection
            self._let_go(finished=False)
            raise
        self.status, self.headers = self._answer.status, self._answer.headers

    async def _connect(self, *, fresh: bool) -> bool:
        """Get a connection; whether it was used before."""
        if self._clocks.aborted:
            raise Stopped
        pool, key = self._here.pool, self._outgoing.key
        while True:
            connection, closing = pool.take(key, fresh=fresh)
            close_all(closing)
            if connection is None:
                break
            if connection.alive():
                self._attach(connection)
                return True
            connection.abort()
            pool.drop(connection)
        try:
            context = context_for(self._options) if key[0] else None
            self._clocks.reconnect()  # loading certificates, and this package, is not the network's time
            connection = await self._open(context)
        except BaseException:  # the task is being cancelled, too: its place in the pool is free for another call
            pool.drop()
            raise
        pool.opened(connection)
        self._attach(connection)
        return False

    async def _open(self, context: ssl.SSLContext | None) -> LoopConnection:
        here, key = self._here, self._outgoing.key
        seconds, phase = self._clocks.limit()
        try:
            async with asyncio.timeout(seconds) as self._connecting:
                return await connected(
                    here.loop,
                    key,
                    context,
                    lambda sock: LoopConnection(here.loop, key, sock, here.buffer, here.plain, here.pool.died),
                )
        except TimeoutError as error:
            if self._clocks.aborted:
                raise Stopped from error
            raise self._clocks.expired(phase) from error
        finally:
            self._connecting = None

    def _attach(self, connection: LoopConnection) -> None:
        self._connection = connection
        connection.begin(self._answer, self._clocks)
        if self._clocks.aborted:  # by another thread, whose call to this loop is still to come
            raise Stopped
        self._clocks.connected()

    async def _round_trip(self) -> None:
        connection, answer = self._connection, self._answer
        assert connection is not None
        await connection.send(memoryview(self._outgoing.head + self._outgoing.body))
        await connection.wait_head()
        if not answer.head and answer.fault is not None:  # else what came before the fault is handed out first
            raise answer.fault

    # ---- the answer

    def __aiter__(self) -> LoopExchange:
        return self

    async def __anext__(self) -> bytes:
        """The next bytes. Raises as `Transport` says; after `close`, StopAsyncIteration."""
        data = self.take()
        while data is None:
            try:
                arrived = await self.arrival
            except BaseException:  # the task is being cancelled
                self._let_go(finished=False)
                raise
            finally:
                self._reading = False
            self._clocks.received()
            if arrived is None:
                data = self.take()
            elif self._over and not self._finished:  # closed by another task after the bytes came and before this one ran
                raise aborted()
            else:
                data = arrived.data
        if not data:
            raise StopAsyncIteration
        return data

    def take(self) -> bytes | None:
        """See `PolledResponse`."""
        answer = self._answer
        while (connection := self._connection) is not None:  # while the answer is not over
            unpacker = self._unpacker
            if unpacker is not None and (data := self._unpack_on()):
                self._reading = False
                return data
            if answer.pieces:
                self._reading = False
                if connection.paused:
                    connection.resume()
                if unpacker is None:
                    return answer.take()
                self._unpacked = unpacker.unpack(answer.take())
            elif answer.complete:
                self._end()
            elif answer.fault is not None or connection.lost is not None or connection.expired is not None or self._clocks.aborted:
                fault = answer.fault or connection.lost or Stopped()
                raise self._failed(fault) from _cause(fault)
            else:
                self._reading = True
                self.arrival = connection.arrival("bytes" if unpacker is None else "body")
                return None
        if self._cut or (self._clocks.aborted and not self._finished):
            self._cut = False
            raise aborted()
        return b""

    def _unpack_on(self) -> bytes:
        try:
            return next(self._unpacked, b"")
        except Fault as error:
            raise self._failed(error) from _cause(error)

    def _is_awaited(self) -> bool:
        """Whether a task waits for bytes, was woken without any and will ask `take`, or is being cancelled. One that was given bytes
        waits no longer.
        """
        if not self._reading:
            return False
        arrival = self.arrival
        return not arrival.done() or arrival.cancelled() or arrival.result() is None

    async def read(self) -> bytes:
        """The rest of the body, whole."""
        return b"".join([data async for data in self])

    async def close(self) -> None:
        """Let go of the connection: see `HTTPResponse`. Closes also while the task is being cancelled."""
        if self._over:
            return
        answer, connection = self._answer, self._connection
        if self._is_awaited():  # by another task, which then sees that its answer was cut
            self._cut = True
        elif self._clocks.complete and not answer.complete and connection is not None and not self._clocks.aborted:
            with contextlib.suppress(TimeoutError, Fault):
                async with asyncio.timeout(FAREWELL):
                    await self._until_end(answer, connection)
        self._let_go(finished=answer.complete and not self._cut)

    async def _until_end(self, answer: Answer, connection: LoopConnection) -> None:
        size = 0
        while not answer.complete and answer.fault is None and connection.lost is None:
            size += len(answer.take())
            if size > DRAIN_LIMIT:
                return
            connection.resume()
            await connection.wait("body")

    # ---- the end

    def _end(self) -> None:
        """The body is at its end."""
        try:
            if self._unpacker is not None:
                self._unpacker.finish()
        except Fault as error:
            raise self._failed(error) from _cause(error)
        self._let_go(finished=True)

    def _failed(self, error: Fault) -> DragomanError:
        """Our error for a fault; lets go of the connection."""
        answer, connection = self._answer, self._connection
        expired = None if connection is None else connection.expired
        progress = Progress(answered=answer.begun, ended=answer.ended, expired=expired)
        self._let_go(finished=False)
        return failure(error, progress, self._clocks, self._outgoing.where)

    def _let_go(self, *, finished: bool) -> None:
        if self._over:
            return
        self._over, self._finished = True, finished
        connection, self._connection = self._connection, None
        self._answer.release()
        if connection is None:
            return
        if finished and self._answer.reusable and connection.settled:
            connection.rest()
            close_all(self._here.pool.give_back(connection))
        else:
            self._here.pool.drop(connection)
            connection.abort()
            connection.rest()

    def _drop(self) -> None:
        """Let go of a connection that was dead from the beginning."""
        self._answer.release()
        connection, self._connection = self._connection, None
        if connection is not None:
            self._here.pool.drop(connection)
            connection.abort()
            connection.rest()

    def _abort(self) -> None:
        """Called by `Clocks.abort`, from any thread."""
        if not self._over:
            call_on(self._here.loop, self._interrupt)

    def _interrupt(self) -> None:
        """On the loop: end the wait under way, and the connection."""
        if self._connecting is not None:
            with contextlib.suppress(RuntimeError):  # it has ended in this very turn
                self._connecting.reschedule(self._here.loop.time())
        elif self._connection is not None and not self._over:
            if self._is_awaited() or not self._answer.head:
                self._connection.abort()  # the task that waits lets go on its way out
            else:
                self._let_go(finished=False)

    def __del__(self) -> None:
        connection, pool = self._connection, self._here.pool
        if connection is not None:

            def let_go() -> None:
                pool.drop(connection)
                connection.abort()
                connection.rest()

            call_on(self._here.loop, let_go)


def _cause(error: Fault) -> BaseException | None:
    return None if isinstance(error, Stopped) else error
