"""A connection on a blocking socket, for one call at a time; any thread may shut it.

Every wait is one `recv` or `send` with the time that the call's clocks leave, a second at most (see `LONGEST_WAIT`). The socket's timeout
is lazy: it is set only when it is longer than the clocks allow or much shorter, since setting it costs a system call; a wait that ends
too early looks at the clocks and goes on. While each wait may take as long as the one before, they are not even asked. TLS stands beside
the socket, not in it, so that each of its waits is such a wait, too.

A socket is shut (`shutdown`, which wakes a blocked read) rather than closed from outside: closing a descriptor does not wake its
reader, and the number may already belong to another connection. Name look-up and connect run in a short-lived thread of their own,
because `getaddrinfo` can neither be limited nor interrupted.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
from threading import Event, Lock, Thread, local
from time import monotonic
from weakref import WeakSet

from dragoman.errors import Phase
from dragoman.transport import LONGEST_WAIT, Clocks, wait_in_steps
from dragoman.transport.direct.addresses import Address, literal, new_socket, ordered
from dragoman.transport.direct.answer import Answer
from dragoman.transport.direct.faults import ClosedHere, ConnectError, Fault, ReadError, WriteError
from dragoman.transport.direct.options import HAPPY_EYEBALLS_DELAY, READ_SIZE, WRITE_SIZE
from dragoman.transport.direct.request import Key
from dragoman.transport.direct.tls import TLS, plain_buffer

__all__ = ["SocketConnection", "Stopped", "connected"]

_LOOK_AROUND = 0.5
"""Seconds after which an abandoned connect notices that nobody waits for it."""


class Stopped(Fault):
    """A clock ran out, which `SocketConnection.expired` names, or the call was aborted."""


class _Buffers(local):
    """What each thread receives into."""

    def __init__(self) -> None:
        self.cipher = memoryview(bytearray(READ_SIZE))
        self.plain = plain_buffer()


_buffers = _Buffers()


class SocketConnection:
    """One connection. `shut` may be called by any thread, all else by the thread of the call that uses it."""

    def __init__(self, key: Key, sock: socket.socket) -> None:
        self.key = key
        self.expired: Phase | None = None
        """The clock that ended a wait."""
        self._sock = sock
        self._tls: TLS | None = None
        self._timeout = 0.0
        self._allowed: Clocks | None = None  # the clocks by which every wait may take as long as the socket's timeout
        self._lock = Lock()
        self._shut = False
        self._closed = False
        _connections.add(self)

    def start_tls(self, tls: TLS, clocks: Clocks) -> None:
        """Shake hands. Raises ConnectError, Stopped."""
        self._tls = tls
        buffer = _buffers.cipher
        try:
            done = tls.handshake()
            while not done:
                self._send_all(tls.outgoing(), clocks)
                count = self._recv(buffer, clocks)
                if not count:
                    tls.handshake_eof()
                done = tls.handshake(buffer[:count])
            self._send_all(tls.outgoing(), clocks)
        except OSError as error:  # ssl.SSLError is one
            with contextlib.suppress(OSError, Stopped):
                self._send_all(tls.outgoing(), clocks)  # the alert that says why
            raise ConnectError("TLS") from error

    def send(self, data: memoryview, answer: Answer, clocks: Clocks) -> None:
        """Send a request: a view of it, since a traceback that shows local variables would show the bytes. Raises WriteError, Stopped."""
        try:
            for start in range(0, len(data), WRITE_SIZE):
                part = data[start : start + WRITE_SIZE]
                self._send_all(part if self._tls is None else self._tls.encrypt(part), clocks)
        except OSError as error:
            answer.excess = True  # half a request on the connection: no other may follow
            raise WriteError("connection") from error

    def receive(self, answer: Answer, clocks: Clocks) -> None:
        """Wait for bytes and feed them, or how the connection ended, to `answer`. Raises Stopped, ClosedHere."""
        buffer, tls = _buffers.cipher, self._tls
        try:
            count = self._recv(buffer, clocks)
            if clocks.aborted:
                raise Stopped
            if self._shut:  # a body that ends by closing looks complete when we have shut it ourselves
                raise ClosedHere("closed here")
            if not count:
                answer.eof(ragged=tls is not None)
                return
            clocks.received()
            if tls is None:
                answer.feed(buffer[:count])
                return
            ended = tls.decrypt(buffer[:count], _buffers.plain, answer.feed)
            if tls.has_outgoing:
                self._send_all(tls.outgoing(), clocks)
            if ended:
                answer.eof()
        except OSError as error:
            fault = ReadError("connection")
            fault.__cause__ = error
            answer.broken(fault)

    def alive(self) -> bool:
        """Whether nothing has come on this idle connection: neither an end nor bytes that nobody asked for."""
        try:
            self._set_timeout(0.0)
            self._sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    def shut(self) -> None:
        """End every wait on this connection, now and from now on. Any thread."""
        with self._lock:
            self._shut = True
            if not self._closed:
                with contextlib.suppress(OSError):
                    self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Shut and close. Idempotent."""
        self.shut()
        with self._lock:
            self._closed = True
            self._sock.close()

    def discard_copy(self) -> None:
        """In a forked child: close our copy of the descriptor, which leaves the parent's connection as it is. Takes no lock: a thread
        that does not exist here may hold it.
        """
        self._closed = True
        self._sock.close()

    def __del__(self) -> None:
        self._sock.close()  # of a transport that nobody has any more

    def _recv(self, buffer: memoryview, clocks: Clocks) -> int:
        while True:
            if self._allowed is not clocks:
                self._allow(clocks)
            try:
                return self._sock.recv_into(buffer)
            except TimeoutError as error:
                self._allowed = None
                if error.errno is not None:  # ETIMEDOUT: the connection itself
                    raise
            except BlockingIOError:  # a timeout of 0
                continue

    def _send_all(self, data: memoryview | bytes, clocks: Clocks) -> None:
        view = memoryview(data)
        while view:
            self._allow(clocks)
            try:
                view = view[self._sock.send(view) :]
            except TimeoutError as error:
                if error.errno is not None:
                    raise
            except BlockingIOError:
                continue

    def _allow(self, clocks: Clocks) -> None:
        """Let the next wait take as long as the clocks leave, at most. Raises Stopped if they leave nothing."""
        if clocks.aborted:
            raise Stopped
        seconds, phase = clocks.limit()
        if seconds is not None and seconds <= 0:
            self.expired = phase
            raise Stopped
        seconds = LONGEST_WAIT if seconds is None else min(seconds, LONGEST_WAIT)
        if not seconds / 2 <= self._timeout <= seconds:
            self._set_timeout(seconds)
        self._allowed = clocks if clocks.steady else None

    def _set_timeout(self, seconds: float) -> None:
        self._allowed = None
        self._sock.settimeout(seconds)
        self._timeout = seconds


# ---- making one


def connected(key: Key, context: ssl.SSLContext | None, clocks: Clocks) -> SocketConnection:
    """A new connection to `key`, by TLS if there is a context.

    Raises ConnectError; Stopped; RequestTimeoutError; ConfigError for a context that cannot be used.
    """
    _, host, port = key
    seconds, phase = clocks.limit()
    dialing = _Dialing(host, port, seconds)
    clocks.on_abort(dialing.done.set)
    try:
        finished = wait_in_steps(dialing.done, seconds)
        if clocks.aborted:
            raise Stopped
        if not finished or dialing.timed_out:
            raise clocks.expired(phase)
        connection = SocketConnection(key, dialing.result())
    except BaseException:  # an interrupt, too: whoever dials closes what nobody waits for
        dialing.leave()
        raise
    if context is not None:
        clocks.on_abort(connection.shut)
        try:
            connection.start_tls(TLS(context, host), clocks)
        except Stopped:
            connection.close()
            if connection.expired is not None and not clocks.aborted:
                raise clocks.expired(connection.expired) from None
            raise
        except BaseException:  # an interrupt in the handshake, too
            connection.close()
            raise
    return connection


class _Dialing:
    """A connect in a thread of its own; whoever waits for it may leave, then its result is closed."""

    def __init__(self, host: str, port: int, seconds: float | None) -> None:
        self.done = Event()
        self.timed_out = False
        self._where = (host, port)
        self._deadline = None if seconds is None else monotonic() + seconds
        self._lock = Lock()
        self._left = False
        self._sock: socket.socket | None = None
        self._error: OSError | UnicodeError | None = None
        Thread(target=self._run, name="dragoman connect", daemon=True).start()

    def result(self) -> socket.socket:
        """The socket. Raises ConnectError."""
        if self._sock is None:
            raise ConnectError(self._where[0]) from self._error
        return self._sock

    def leave(self) -> None:
        with self._lock:
            self._left = True
            sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def _run(self) -> None:
        host, port = self._where
        try:
            sock = self._dial(literal(host, port) or ordered(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except (OSError, UnicodeError) as error:
            self._error = error
        else:
            with self._lock:
                if self._left and sock is not None:
                    sock.close()
                else:
                    self._sock = sock
        finally:
            self.done.set()

    def _dial(self, addresses: list[Address]) -> socket.socket | None:
        """A connected socket: happy eyeballs over all addresses. None if nobody waits any more. Raises OSError."""
        waiting = list(reversed(addresses))
        errors: list[OSError] = []
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    if waiting:
                        self._try(waiting.pop(), selector, errors)
                    elif not selector.get_map():
                        raise errors[0]
                    sock = self._first(selector, HAPPY_EYEBALLS_DELAY if waiting else None, errors)
                    if sock is not None or self._left or self.timed_out:
                        return sock
            finally:
                for key in list(selector.get_map().values()):
                    key.fileobj.close()  # type: ignore[union-attr]  # sockets

    def _try(self, address: Address, selector: selectors.BaseSelector, errors: list[OSError]) -> None:
        try:
            sock = new_socket(address[0])
        except OSError as error:
            errors.append(error)
            return
        try:
            with contextlib.suppress(BlockingIOError):
                sock.connect(address[1])
        except OSError as error:
            sock.close()
            errors.append(error)
        else:
            selector.register(sock, selectors.EVENT_WRITE)

    def _first(self, selector: selectors.BaseSelector, delay: float | None, errors: list[OSError]) -> socket.socket | None:
        """The first socket that has connected; None if one has failed, or after `delay`, or if there is no reason to wait any more."""
        until = None if delay is None else monotonic() + delay
        while selector.get_map() and not self._left:
            now = monotonic()
            if self._deadline is not None and now >= self._deadline:
                self.timed_out = True
                return None
            ends = [end - now for end in (until, self._deadline) if end is not None]
            ready = selector.select(max(0.0, min([_LOOK_AROUND, *ends])))
            for key, _ in ready:
                sock: socket.socket = key.fileobj  # type: ignore[assignment]  # only sockets are in it
                selector.unregister(sock)
                number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if not number:
                    return sock
                sock.close()
                errors.append(OSError(number, os.strerror(number)))
            if ready or (until is not None and monotonic() >= until):
                return None
        return None


_connections: WeakSet[SocketConnection] = WeakSet()


def _close_after_fork() -> None:
    for connection in list(_connections):
        connection.discard_copy()
    _connections.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_after_fork)
