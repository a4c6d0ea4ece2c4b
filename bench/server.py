"""The mock server: a process of its own that replays pre-rendered answers, so cheap that it is never what is measured.

Strategy. Each answer is rendered once per model name (see `material.py`) and kept; an answer at full speed is one write, a paced one is a
timer per event. Every event is an HTTP chunk of its own, as the real service sends them. Requests are not read beyond their model and
whether they ask for a stream.

The events of paced streams are spread evenly over time by a clock of the server's own, whoever reads them: if they followed the moments
at which a client asked, one that asks quickly would get its events in bunches, several at each turn of its loop, and another would not.

`python bench/server.py [certificate.pem]` prints one line of JSON, the ports: `{"http": …, "https": …}`, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import ssl
import sys
from functools import lru_cache
from itertools import count

from material import Answer

__all__ = ["Connection", "serve"]

_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_STREAMS = re.compile(rb'"stream": ?true')
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_turns = count()
_GOLDEN = (5**0.5 - 1) / 2  # the multiples of it, modulo 1, lie evenly, however many they are


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@lru_cache
def paced(model: str) -> list[bytes]:
    """What is written at each tick: the head and the first events together, then event by event, the end with the last."""
    chunks = [_chunk(event) for event in Answer.of(model).events()]
    return [_HEAD + b"".join(chunks[:3]), *chunks[3:-3], b"".join(chunks[-3:]) + _END]


def next_beat(now: float, pace: float) -> float:
    """The beat of the next paced answer, in seconds, at or before `now`: evenly between those before it, whenever they came."""
    shift = next(_turns) * _GOLDEN % 1
    return (math.floor(now / pace - shift) + shift) * pace


@lru_cache
def at_once(model: str) -> bytes:
    """A whole stream."""
    return b"".join(paced(model))


@lru_cache
def plain(model: str) -> bytes:
    """An answer that does not stream."""
    body = Answer.of(model).message()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class Connection(asyncio.Protocol):
    """One client, one request after another."""

    def __init__(self) -> None:
        self._received: list[bytes] = []
        self._size = 0
        self._needed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is written to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Collect the request; answer when it is whole."""
        self._received.append(data)
        self._size += len(data)
        if not self._needed:
            whole = b"".join(self._received)
            self._received[:] = [whole]
            end = whole.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(whole, 0, end + 2)
            self._needed = end + 4 + (int(length[1]) if length else 0)
        if self._size >= self._needed:
            request = b"".join(self._received)
            self._received.clear()
            self._size = self._needed = 0
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        found = _MODEL.search(request)
        if found is None:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        model = found[1].decode()
        if not _STREAMS.search(request):
            self._transport.write(plain(model))
        elif pace := Answer.of(model).pace:
            loop = asyncio.get_running_loop()
            self._tick(loop, next_beat(loop.time(), pace / 1000), pace / 1000, paced(model), 0)
        else:
            self._transport.write(at_once(model))

    def _tick(self, loop: asyncio.AbstractEventLoop, began: float, pace: float, chunks: list[bytes], n: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(chunks[n])
        if n + 1 < len(chunks):
            loop.call_at(began + (n + 1) * pace, self._tick, loop, began, pace, chunks, n + 1)


async def serve(certificate: str = "") -> None:
    """Serve on two free ports of 127.0.0.1, the second with TLS if there is a certificate, until standard input ends."""
    loop = asyncio.get_running_loop()
    servers = {"http": await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096)}
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        servers["https"] = await loop.create_server(Connection, "127.0.0.1", 0, ssl=context, backlog=4096)
    print(json.dumps({name: server.sockets[0].getsockname()[1] for name, server in servers.items()}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:2]))
