"""The blocking network layer: httpcore2's own streams, with our clocks on every wait.

httpcore2 lets a pool be given a `NetworkBackend`, a public interface. Ours wraps the stock one: before each read, write, TLS
handshake and connect it asks the call under way how long it may take, and it knows which socket to shut when that call is aborted
from another thread. That holds also while a request waits for its answer on a connection from the pool, which no other hook of
httpcore2 reaches.

Which call is under way is a context variable, set while a thread is inside httpcore2. A socket is shut (`shutdown`, which wakes a
blocked read) rather than closed from outside: closing a descriptor does not wake its reader, and the number may already belong to
another connection. It is closed by the thread that was inside, on its way out.

Name look-up and TCP connect run in a short-lived thread of their own, because `getaddrinfo` can neither be limited nor interrupted.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import Any
from weakref import WeakSet

import httpcore2

from dragoman.transport import LONGEST_WAIT, Clocks, wait_in_steps
from dragoman.transport.failure import Progress

__all__ = ["Call", "ClockedBackend", "ClockedStream", "current_call"]

_WRITE_SIZE = 256 * 1024
"""Bytes written per wait: the clock is looked at again between them."""


class Call:
    """One request on the network: its clocks, its progress, and the stream it is on."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.progress = Progress()
        self.farewell: float | None = None
        """While the response is being closed: seconds that a read may still take."""
        self._stream: ClockedStream | None = None
        clocks.on_abort(self.shut)

    def restart(self) -> None:
        """The request is sent again, on another connection."""
        self.release()
        self.progress = Progress()
        self.clocks.reconnect()

    def limit(self) -> float | None:
        """Seconds that the next wait may take. Raises ReadError once aborted, ReadTimeout once a clock has run out."""
        if self.clocks.aborted:
            raise httpcore2.ReadError("aborted")
        if self.farewell is not None:
            if self.farewell <= 0:
                raise httpcore2.ReadTimeout("closing")
            return self.farewell
        seconds, phase = self.clocks.limit()
        if seconds is not None and seconds <= 0:
            self.progress.expired = phase
            raise httpcore2.ReadTimeout(phase)
        return seconds

    def timed_out(self) -> None:
        """A wait took as long as `limit` said."""
        if self.farewell is None:
            self.progress.expired = self.clocks.limit()[1]

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """httpcore2's `trace` extension: tells when a connection is opened, and when the request itself goes out."""
        step = event.partition(".")[2]
        if step in ("connect_tcp.started", "connect_unix_socket.started"):
            self.progress.fresh = self.progress.dialing = True
        elif step in ("connect_tcp.complete", "connect_unix_socket.complete"):
            self.progress.dialing = False
        elif step == "send_request_headers.started" and info["request"].method != b"CONNECT":
            self.progress.sent = True
            self.clocks.connected()

    def got(self, data: bytes) -> None:
        """Bytes came, or the end of the connection. Raises ReadError if that end is our own abort."""
        if self.clocks.aborted:
            raise httpcore2.ReadError("aborted")
        if not data:
            self.progress.ended = True
        elif self.progress.sent:  # before that, they are a proxy's answer to CONNECT
            self.progress.answered = True
            self.clocks.received()

    def came(self) -> None:
        """Bytes came on a connection that is not ours, where `got` does not see them. Raises ReadError once aborted."""
        if self.clocks.aborted:
            raise httpcore2.ReadError("aborted")
        self.progress.answered = True
        self.clocks.received()

    def attach(self, stream: ClockedStream) -> None:
        """This call now uses `stream`."""
        self._stream = stream

    def shut(self) -> None:
        """Shut the connection that this call is using, if it still is. Any thread."""
        stream = self._stream
        if stream is not None:
            stream.shut(self)

    def release(self) -> None:
        """This call has no more to do with its connection; must come before the pool may give it to another call."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.detach(self)


current_call: ContextVar[Call] = ContextVar("current_call")
"""The call whose thread is inside httpcore2; set whenever that may read or write."""


class _Shutter:
    """A socket that may be shut from any thread, for as long as it is ours."""

    def __init__(self, sock: socket.socket | None) -> None:
        self._sock = sock
        self._lock = Lock()

    def shut(self) -> None:
        with self._lock:
            if self._sock is not None:
                _shutdown(self._sock)

    def close(self) -> None:
        with self._lock:
            sock, self._sock = self._sock, None
            if sock is not None:
                sock.close()


def _shutdown(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not SSLSocket.shutdown, which also drops the TLS object under its reader


class ClockedStream(httpcore2.NetworkStream):
    """A stock stream whose waits obey the call under way, whatever timeout httpcore2 passes."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._lock = Lock()
        self._inside = 0
        self._closed = False
        self._call: Call | None = None

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        del timeout
        call = current_call.get()
        self._enter(call)
        try:
            data = self._read(max_bytes, call)
        finally:
            self._leave()
        if self._closed:
            raise httpcore2.ReadError("the transport was closed")
        call.got(data)
        return data

    def _read(self, max_bytes: int, call: Call) -> bytes:
        while True:
            seconds = call.limit()
            longer = seconds is None or seconds > LONGEST_WAIT
            try:
                return self._inner.read(max_bytes, LONGEST_WAIT if longer else seconds)
            except httpcore2.TimeoutException:
                if not longer:
                    call.timed_out()
                    raise

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        del timeout
        call = current_call.get()
        self._enter(call)
        try:
            if len(buffer) <= _WRITE_SIZE:
                self._inner.write(buffer, call.limit())
            else:
                view = memoryview(buffer)
                for start in range(0, len(view), _WRITE_SIZE):
                    self._inner.write(bytes(view[start : start + _WRITE_SIZE]), call.limit())
        except httpcore2.TimeoutException:
            call.timed_out()
            raise
        finally:
            self._leave()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        del timeout
        call = current_call.get()
        # The handshake happens inside a socket object that nobody else has yet: a duplicate of the descriptor reaches it.
        twin = _Shutter(socket.socket(fileno=os.dup(self._inner.get_extra_info("socket").fileno())))
        call.clocks.on_abort(twin.shut)
        try:
            inner = self._inner.start_tls(ssl_context, server_hostname, call.limit())
        except httpcore2.TimeoutException:
            call.timed_out()
            self.close()
            raise
        except BaseException:  # an interrupt, too: the handshake has begun, so the connection is good for nothing else
            self.close()
            raise
        finally:
            twin.close()
        return _register(ClockedStream(inner))

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._inside:
                self._shut_inner()
                return
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def shut(self, call: Call) -> None:
        """Shut the socket if `call` is the one that uses it. Any thread."""
        with self._lock:
            if self._call is call and not self._closed:
                self._shut_inner()

    def detach(self, call: Call) -> None:
        """`call` has ended."""
        with self._lock:
            if self._call is call:
                self._call = None

    def discard(self) -> None:
        """In a forked child: close our copy of the descriptor, which leaves the parent's connection as it is. Takes no lock: a thread
        that does not exist here may hold it.
        """
        self._closed = True
        self._inner.close()

    def _shut_inner(self) -> None:
        sock = self._inner.get_extra_info("socket")
        if sock is not None:
            _shutdown(sock)

    def _enter(self, call: Call) -> None:
        with self._lock:
            if self._closed:
                raise httpcore2.ReadError("the connection is closed")
            self._inside += 1
            self._call = call
        call.attach(self)

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._closed or self._inside:
                return
        self._inner.close()


class _Connecting:
    """A connect in a thread of its own; whoever waits for it may leave, then its result is closed."""

    def __init__(self, connect: Callable[[], httpcore2.NetworkStream]) -> None:
        self.done = Event()
        self._connect = connect
        self._lock = Lock()
        self._left = False
        self._stream: httpcore2.NetworkStream | None = None
        self._error: BaseException | None = None
        Thread(target=self._run, name="dragoman connect", daemon=True).start()

    def _run(self) -> None:
        try:
            stream = self._connect()
        except BaseException as error:  # noqa: BLE001  # handed over to the waiting thread, as it is
            self._error = error
        else:
            with self._lock:
                if self._left:
                    stream.close()
                else:
                    self._stream = stream
        self.done.set()

    def result(self) -> httpcore2.NetworkStream:
        if self._error is not None:
            raise self._error
        assert self._stream is not None
        return self._stream

    def leave(self) -> None:
        with self._lock:
            self._left = True
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()


class ClockedBackend(httpcore2.NetworkBackend):
    """The stock backend, with clocks."""

    def __init__(self) -> None:
        self._stock = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        del timeout
        options = None if socket_options is None else list(socket_options)
        call = current_call.get()
        seconds = call.limit()
        connecting = _Connecting(lambda: self._stock.connect_tcp(host, port, seconds, local_address, options))
        call.clocks.on_abort(connecting.done.set)
        try:
            finished = wait_in_steps(connecting.done, seconds)
            call.limit()
            if not finished:
                call.timed_out()
                raise httpcore2.ConnectTimeout("connect")
            return _register(ClockedStream(connecting.result()))
        except BaseException:  # an interrupt, too: whoever connects closes what nobody waits for
            connecting.leave()
            raise


_streams: WeakSet[ClockedStream] = WeakSet()


def _register(stream: ClockedStream) -> ClockedStream:
    _streams.add(stream)
    return stream


def _discard_after_fork() -> None:
    for stream in list(_streams):
        stream.discard()
    _streams.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_discard_after_fork)
