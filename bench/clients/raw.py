"""The floor: the bytes of the answer off a socket, with nothing made of them. What any client costs beyond this is its own."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from material import Answer

_END = b"\r\n0\r\n\r\n"
_BUFFER = 256 * 1024


def _request(model: str, *, stream: bool = True) -> bytes:
    body = b'{"model":"%s","max_tokens":1024,"stream":%s}' % (model.encode(), b"true" if stream else b"false")
    return b"POST /v1/messages HTTP/1.1\r\nhost: bench\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def _is_whole(data: bytearray | bytes) -> bool:
    if data.endswith(_END):
        return True
    head = data.find(b"\r\n\r\n")
    at = data.find(b"content-length: ", 0, head)
    return at >= 0 and len(data) == head + 4 + int(data[at + 16 : data.index(b"\r\n", at)])


class _Reader(asyncio.BufferedProtocol):
    """Reads into one buffer and keeps the pieces."""

    buffer = bytearray(_BUFFER)
    view = memoryview(buffer)

    def __init__(self) -> None:
        self.data = bytearray()
        self.first = 0.0
        self.done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self.data = bytearray()
        self.first = 0.0
        self.done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.done

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self.view

    def buffer_updated(self, nbytes: int) -> None:
        self.first = self.first or perf_counter()
        self.data += self.view[:nbytes]
        if self.done is not None and self.data.endswith((_END, b"}")) and _is_whole(self.data):
            self.done.set_result(bytes(self.data))


class Client:
    """A socket, and a BufferedProtocol."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = ("127.0.0.1", parts.port)
        self._tls = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE")) if parts.scheme == "https" else None
        self._socket: socket.socket | None = None
        self._idle: list[_Reader] = []

    def check(self, answer: Any, expected: Answer) -> bool:
        """Every delta has come."""
        return answer.count(b"event: content_block_delta\n") == expected.count and answer.endswith(_END)

    def _ask(self, model: str, *, stream: bool = True) -> tuple[bytes, float]:
        if self._socket is None:
            plain = socket.create_connection(self._address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._tls.wrap_socket(plain, server_hostname="127.0.0.1") if self._tls else plain
        self._socket.sendall(_request(model, stream=stream))
        data = bytearray(self._socket.recv(_BUFFER))
        first = perf_counter()
        while not _is_whole(data):
            data += self._socket.recv(_BUFFER)
        return bytes(data), first

    async def _aask(self, model: str, *, stream: bool = True) -> tuple[bytes, float]:
        if self._idle:
            reader = self._idle.pop()
        else:
            host, port = self._address
            _, reader = await asyncio.get_running_loop().create_connection(_Reader, host, port, ssl=self._tls)
        data = await reader.ask(_request(model, stream=stream))
        self._idle.append(reader)
        return data, reader.first

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
