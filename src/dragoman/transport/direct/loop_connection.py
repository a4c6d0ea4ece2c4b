"""A connection on an asyncio loop: a `BufferedProtocol` that feeds an `Answer`, and one task that waits for it.

Strategy. Bytes are received into a buffer that all connections of the loop share: they are parsed before the loop turns, so nothing
of it is kept. The task waits on a future, and only when there is nothing to take. Its deadline is lazy: one timer per connection, which
stays where it is while the deadline moves on with every wait, asks the clocks when it goes off, and is set anew if that was too early.
An answer that is not being read fills up to `BODY_LIMIT`; then the socket is not read any more.

The socket is our own from the start (see `loop_dialing.py`), so that it can be looked at, and closed in a forked child.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Literal, TypeAlias
from weakref import WeakSet

from dragoman.errors import ConfigError, Phase
from dragoman.transport import Arrived, Clocks
from dragoman.transport.direct.answer import Answer
from dragoman.transport.direct.faults import ClosedHere, ConnectError, Fault, ReadError, WriteError
from dragoman.transport.direct.options import BODY_LIMIT, WRITE_SIZE
from dragoman.transport.direct.request import Key
from dragoman.transport.direct.tls import TLS

__all__ = ["LoopConnection", "Stopped"]

Wants: TypeAlias = Literal["head", "body", "bytes", "write"]


class Stopped(Fault):
    """A clock ran out, which `LoopConnection.expired` names, or the call was aborted."""


class LoopConnection(asyncio.BufferedProtocol):
    """One connection, used by one call at a time. Only on its loop. `buffer`, `plain`: the loop's, for what comes, and decrypted."""

    __slots__ = (
        "__weakref__",
        "_armed",
        "_buffer",
        "_closed",
        "_handshake",
        "_loop",
        "_on_end",
        "_plain",
        "_sock",
        "_stock",
        "_timer",
        "_tls",
        "_transport",
        "_waiter",
        "_wants",
        "_write_paused",
        "answer",
        "clocks",
        "expired",
        "key",
        "lost",
        "paused",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        key: Key,
        sock: socket.socket,
        buffer: memoryview,
        plain: memoryview,
        on_end: Callable[[LoopConnection], object],
    ) -> None:
        self.key = key
        self.answer: Answer | None = None
        """What is being received. None: the connection is idle."""
        self.clocks: Clocks | None = None
        self.expired: Phase | None = None
        """The clock that ended a wait."""
        self.lost: Fault | None = None
        """How the connection ended, if it did."""
        self.paused = False
        """Whether the socket is not being read, since the consumer has not taken what there is."""
        self._loop = loop
        # asyncio's own loops make a plain Future: made without them it costs half; others may make one of their own kind
        self._stock = getattr(type(loop), "create_future", None) is asyncio.BaseEventLoop.create_future
        self._sock = sock
        self._buffer = buffer
        self._plain = plain
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._tls: TLS | None = None
        self._handshake: asyncio.Future[None] | None = None
        self._waiter: asyncio.Future[Arrived | None] | None = None
        self._wants: Wants = "head"
        self._timer: asyncio.TimerHandle | None = None
        self._armed = False
        self._write_paused = False
        self._closed = False
        _connections.add(self)

    # ---- for the call

    def begin(self, answer: Answer, clocks: Clocks) -> None:
        """A call takes the connection over."""
        self.answer, self.clocks, self.expired, self._armed = answer, clocks, None, False

    def rest(self) -> None:
        """The call has ended; the connection waits for the next one."""
        self.answer = self.clocks = None
        if self.paused:
            self._resume()

    async def send(self, data: memoryview) -> None:
        """Send, in slices, as fast as the peer takes it. Ends early if the answer comes meanwhile. Raises Stopped; cancellation passes.

        `data` is a view, since a traceback that shows local variables would show the bytes.
        """
        answer = self.answer
        assert answer is not None
        for start in range(0, len(data), WRITE_SIZE):
            if answer.head or answer.fault is not None:
                answer.excess = True  # half a request on the connection: no other may follow
                return
            if self.lost is not None:
                raise self.lost
            part = data[start : start + WRITE_SIZE]
            assert self._transport is not None
            if self._transport.is_closing():  # a write has failed: each further one would be warned of, and `wait_head` says why
                return
            try:
                self._transport.write(part if self._tls is None else self._tls.encrypt(part))
            except ssl.SSLError as error:
                raise WriteError("TLS") from error
            while self._write_paused and self.lost is None and not answer.head and answer.fault is None:
                await self.wait("write")

    async def wait_head(self) -> None:
        """Wait until the head of the answer has come, or a fault. Raises as `send`."""
        answer = self.answer
        assert answer is not None
        while not answer.head and answer.fault is None:
            if self.lost is not None:
                raise self.lost
            await self.wait("head")

    def resume(self) -> None:
        """The consumer has taken what there was."""
        if self.paused:
            self._resume()

    @property
    def settled(self) -> bool:
        """Whether the connection is open and the request has left, so that another may follow."""
        return self.lost is None and self._transport is not None and not self._transport.get_write_buffer_size()

    def alive(self) -> bool:
        """Whether nothing has come on this idle connection, also nothing that the loop has not seen yet: neither an end nor bytes."""
        if self.lost is not None or self._closed:
            return False
        try:
            self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    def abort(self) -> None:
        """Close at once, and wake whoever waits. Idempotent."""
        if self.lost is None:
            self.lost = ClosedHere("closed here")
        if not self._closed:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._transport is not None:
                self._transport.abort()
        self._wake(force=True)

    def discard(self) -> None:
        """Its loop is closed: break the cycle with its transport, which then closes the socket."""
        self._closed = True
        self._transport = None

    def discard_copy(self) -> None:
        """In a forked child: close our copy of the descriptor, which leaves the parent's connection as it is."""
        self._closed = True
        self._sock.close()

    # ---- waiting

    async def wait(self, wants: Wants) -> None:
        """Wait until there is something to take of the body or it is at its end ("body"), the head has come ("head"), or the peer takes
        more of the request ("write"); for a fault in any case. Raises Stopped; cancellation passes, and closes the connection.
        """
        clocks = self.clocks
        assert clocks is not None
        if clocks.aborted:
            raise Stopped
        try:
            await self.arrival(wants)
        except BaseException:  # the task is being cancelled
            self.abort()
            raise
        if clocks.aborted or self.expired is not None:
            raise Stopped

    def arrival(self, wants: Wants) -> asyncio.Future[Arrived | None]:
        """What `wait` waits for, for a caller that awaits it itself: it then has to look what has happened. "bytes" is as "body", but
        what the read that ends the wait brings of the body is its result, and taken; None: look.
        """
        if not self._armed or wants != self._wants:
            self._wants = wants
            self._arm()
        loop = self._loop
        waiter: asyncio.Future[Arrived | None] = asyncio.Future(loop=loop) if self._stock else loop.create_future()
        self._waiter = waiter
        return waiter

    def _arm(self) -> None:
        """See to it that the timer goes off no later than the clocks allow. It may go off too early: then it asks them again."""
        assert self.clocks is not None
        self._armed = True
        seconds, _ = self.clocks.limit()
        if seconds is None:
            return
        deadline = self._loop.time() + seconds
        timer = self._timer
        if timer is None or timer.when() > deadline:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._armed = False
        if self._waiter is None or self.clocks is None:
            return  # the next wait sets it again
        seconds, phase = self.clocks.limit()
        if seconds is None or seconds > 0:
            self._arm()
        else:
            self.expired = phase
            self._wake(force=True)

    def _wake(self, *, force: bool = False) -> None:
        waiter = self._waiter
        if waiter is None:
            return
        answer = self.answer
        if (
            force
            or answer is None
            or answer.pieces
            or answer.complete
            or answer.fault is not None
            or (self._wants in ("head", "write") and answer.head)
            or (self._wants == "write" and not self._write_paused)
        ):
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def _resume(self) -> None:
        self.paused = False
        if self._transport is not None and not self._closed:
            self._transport.resume_reading()

    # ---- asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of create_connection, so one that reads and writes

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        answer = self.answer
        if answer is None:
            data = self._buffer[:nbytes]
            if self._handshake is not None:  # always before there is an answer to wait for
                self._step(data)
            elif not self._still_idle(data):
                self.abort()
            return
        if self._tls is None:
            answer.feed(self._buffer[:nbytes])
        else:
            self._decrypt(self._tls, self._buffer[:nbytes], answer)
        waiter = self._waiter
        if waiter is not None and self._wants == "bytes" and answer.pieces:  # as nearly always
            self._waiter = None
            if not waiter.done():
                waiter.set_result(Arrived(answer.take()))
        else:
            self._came(answer)

    def _came(self, answer: Answer) -> None:
        """Bytes of the answer have come, but they may not be what is waited for."""
        if self._waiter is not None:
            if self.clocks is not None:
                self.clocks.received()
            self._wake()
        if answer.size > BODY_LIMIT and not self.paused and not self._closed and self._transport is not None:
            self.paused = True
            self._transport.pause_reading()

    def _still_idle(self, data: memoryview) -> bool:
        """Whether bytes that nobody asked for are TLS's own: a session ticket, a key update."""
        tls = self._tls
        parts: list[int] = []
        try:
            return tls is not None and not tls.decrypt(data, self._plain, lambda part: parts.append(len(part))) and not parts
        except ssl.SSLError:
            return False

    def _decrypt(self, tls: TLS, data: memoryview, answer: Answer) -> None:
        try:
            ended = tls.decrypt(data, self._plain, answer.feed)
        except ssl.SSLError as error:
            self._lose(ReadError("TLS"), error)
            self.abort()
            return
        if tls.has_outgoing and self._transport is not None:
            self._transport.write(tls.outgoing())
        if ended:
            answer.eof()

    def eof_received(self) -> bool:
        if self._handshake is not None:
            self._broken_handshake(None)
        else:
            self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        if self._handshake is not None:
            self._broken_handshake(exc)
        self._end(exc)
        self._transport = None

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._wake()

    def _end(self, error: Exception | None) -> None:
        """The connection is at its end: cleanly, or by an error."""
        if self.lost is None:
            if error is not None:
                self._lose(ReadError("connection"), error)
            else:
                self.lost = ReadError("closed by the peer")
                if self.answer is not None:
                    self.answer.eof(ragged=self._tls is not None)
        self._on_end(self)
        self._wake(force=True)

    def _lose(self, fault: Fault, error: BaseException) -> None:
        if not isinstance(error, Fault):
            fault.__cause__ = error
        self.lost = fault
        if self.answer is not None:
            self.answer.broken(fault)

    # ---- TLS handshake

    async def start_tls(self, tls: TLS) -> None:
        """Shake hands. Raises ConnectError."""
        self._tls = tls
        self._handshake = done = self._loop.create_future()
        self._step(b"")
        await done

    def _step(self, data: memoryview | bytes) -> None:
        tls, handshake = self._tls, self._handshake
        assert tls is not None
        assert handshake is not None
        if handshake.done():  # cancelled
            return
        try:
            if tls.handshake(data):
                self._handshake = None  # what comes before the task runs is no part of it
                handshake.set_result(None)
        except ssl.SSLError as error:
            fault = ConnectError("TLS")
            fault.__cause__ = error
            handshake.set_exception(fault)
        except ConfigError as error:
            handshake.set_exception(error)
        finally:
            if tls.has_outgoing and self._transport is not None:
                self._transport.write(tls.outgoing())

    def _broken_handshake(self, error: Exception | None) -> None:
        handshake = self._handshake
        if handshake is None or handshake.done():
            return
        fault = ConnectError("TLS")
        try:
            assert self._tls is not None
            self._tls.handshake_eof()
        except ssl.SSLError as reason:
            fault.__cause__ = error or reason
        handshake.set_exception(fault)


_connections: WeakSet[LoopConnection] = WeakSet()


def _close_after_fork() -> None:
    for connection in list(_connections):
        connection.discard_copy()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_after_fork)
