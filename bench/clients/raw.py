"""The floor: the answer off a socket with nothing made of it. What any client costs beyond this is its own.

Three readers. The raw reader takes the HTTP chunks apart, as it must to have the bytes of the events, and decodes nothing; on an event
loop it hands them to a task that iterates over them, as every reader for coroutines must. With BENCH_CALLBACKS it does all in the callback
of the socket, and only the end wakes a task. With BENCH_BARE the chunks are not taken apart: it receives until the answer is at its end.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from material import Answer

_BARE = bool(os.environ.get("BENCH_BARE"))
_CALLBACKS = _BARE or bool(os.environ.get("BENCH_CALLBACKS"))
_HEAD_END = b"\r\n\r\n"
_END = b"\r\n0\r\n\r\n"
_BUFFER = 256 * 1024


def _request(model: str, *, stream: bool = True) -> bytes:
    body = b'{"model":"%s","max_tokens":1024,"stream":%s}' % (model.encode(), b"true" if stream else b"false")
    return b"POST /v1/messages HTTP/1.1\r\nhost: bench\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class _Chunks:
    """One answer, its chunks taken apart by hand: the least that a reader of events has to do."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._rest = b""
        self._left = -1  # of a body with a length; -1: chunked
        self._headed = False

    def feed(self, data: bytes) -> bool:
        """Take bytes. True: the answer is whole."""
        if self._rest:
            data = self._rest + data
        at = 0
        if not self._headed:
            at = data.find(_HEAD_END) + 4
            if at < 4:
                self._rest = data
                return False
            self._headed = True
            length = data.find(b"content-length: ", 0, at)
            if length >= 0:
                self._left = int(data[length + 16 : data.index(b"\r\n", length)])
        if self._left >= 0:
            self._left -= len(data) - at
            self.pieces.append(data[at:])
            return self._left <= 0
        keep, whole = self.pieces.append, len(data)
        while (line := data.find(b"\r\n", at)) > 0:
            begin = line + 2
            end = begin + int(data[at:line], 16)
            if end + 2 > whole:
                break
            if end == begin:
                return True
            keep(data[begin:end])
            at = end + 2
        self._rest = data[at:]
        return False

    def whole(self) -> bytes:
        """The body, so that it can be checked."""
        return b"".join(self.pieces)


class _Bytes:
    """One answer, only received."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes | memoryview) -> bool:
        """Take bytes. True: the answer is whole."""
        received = self._data
        received += data
        if received.endswith(_END):
            return True
        if not received.endswith(b"}"):
            return False
        head = received.find(_HEAD_END)
        at = received.find(b"content-length: ", 0, head)
        return at >= 0 and len(received) == head + 4 + int(received[at + 16 : received.index(b"\r\n", at)])

    def whole(self) -> bytes:
        """Head and body as they came."""
        return bytes(self._data)


_Reader = _Bytes if _BARE else _Chunks


class _Connection(asyncio.BufferedProtocol):
    """Receives into one buffer that all connections share."""

    buffer = bytearray(_BUFFER)
    view = memoryview(buffer)

    def __init__(self) -> None:
        self.first = 0.0
        self._reader: Any = None
        self._done: asyncio.Future[bytes] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self._reader = _Reader()
        self.first = 0.0
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._done

    async def iterate(self, request: bytes) -> bytes:
        """Send, and hand every read's events to this task."""
        loop = asyncio.get_running_loop()
        done, whole = self.ask(request), []
        pieces = self._reader.pieces
        while pieces or not done.done():
            if not pieces:
                self._waiter = loop.create_future()
                await self._waiter
            whole.append(b"".join(pieces))
            pieces.clear()
        return b"".join(whole)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self.view

    def buffer_updated(self, nbytes: int) -> None:
        self.first = self.first or perf_counter()
        reader, done = self._reader, self._done
        if reader is not None and done is not None and reader.feed(bytes(self.view[:nbytes])):
            done.set_result(reader.whole() if _CALLBACKS else b"")
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            waiter.set_result(None)


class Client:
    """A socket, and a BufferedProtocol."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = ("127.0.0.1", parts.port)
        self._tls = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE")) if parts.scheme == "https" else None
        self._socket: socket.socket | None = None
        self._buffer = memoryview(bytearray(_BUFFER))
        self._idle: list[_Connection] = []

    def check(self, answer: Any, expected: Answer) -> bool:
        """Every delta has come."""
        return answer.count(b"event: content_block_delta\n") == expected.count

    def _ask(self, model: str, *, stream: bool = True) -> tuple[bytes, float]:
        if self._socket is None:
            plain = socket.create_connection(self._address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._tls.wrap_socket(plain, server_hostname="127.0.0.1") if self._tls else plain
        self._socket.sendall(_request(model, stream=stream))
        receive, buffer, reader = self._socket.recv_into, self._buffer, _Reader()
        count = receive(buffer)
        first = perf_counter()
        while not reader.feed(bytes(buffer[:count])):
            count = receive(buffer)
        return reader.whole(), first

    async def _aask(self, model: str, *, stream: bool = True) -> tuple[bytes, float]:
        if self._idle:
            connection = self._idle.pop()
        else:
            host, port = self._address
            _, connection = await asyncio.get_running_loop().create_connection(_Connection, host, port, ssl=self._tls)
        data = await (connection.ask if _CALLBACKS else connection.iterate)(_request(model, stream=stream))
        self._idle.append(connection)
        return data, connection.first

    def stream(self, model: str) -> bytes:
        """The bytes of a whole stream."""
        return self._ask(model)[0]

    async def astream(self, model: str) -> bytes:
        """As `stream`."""
        return (await self._aask(model))[0]

    def timed(self, model: str) -> tuple[float, float]:
        """When the first byte and the end came."""
        _, first = self._ask(model)
        return first, perf_counter()

    async def atimed(self, model: str) -> tuple[float, float]:
        """As `timed`."""
        _, first = await self._aask(model)
        return first, perf_counter()

    def complete(self, model: str) -> bytes:
        """The bytes of an answer that does not stream."""
        return self._ask(model, stream=False)[0]

    async def acomplete(self, model: str) -> bytes:
        """As `complete`."""
        return (await self._aask(model, stream=False))[0]
