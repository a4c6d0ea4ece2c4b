"""One connection of a `WireServer`: parses requests with h11, plays answers step by step, and knows how it ended.

A connection is an `asyncio.Protocol` with one task that serves its requests in turn. Every wait of that task races against the
client's going away, which the protocol learns at once, also in the middle of a stall: that is the signal which tests of
cancellation wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, TypeAlias

import h11

from dragoman.testing.answer import Answer, Close, Delay, Framing, Raw, Repeat, Reset, Send, Stall, Step, Wait

__all__ = ["Connection", "RecordedRequest", "Served"]

_RST_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on, zero seconds: closing sends RST."""

_BODY_LIMIT = 256 * 1024 * 1024
_TLS_HANDSHAKE = b"\x16\x03"
"""How a connection of TLS begins: the type of its first record, and the version's first byte."""


@dataclass(frozen=True, eq=False)
class RecordedRequest:
    """A request as it came: header names in lower case. The repr shows neither headers nor body: they hold keys and prompts."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)
    connection: int
    """Index of its connection in `WireServer.connections`: equal for two requests that shared one."""

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, or `default`."""
        return next((value for key, value in self.headers if key == name.lower()), default)

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, and what its client can take: how RFC 9112 wants the answer to end (sections 6.1, 9.3, 9.6)."""

    request: RecordedRequest
    chunks: bool
    """Whether it knows chunked bodies: HTTP/1.0 does not."""
    last: bool
    """Whether the connection is to be closed after the answer."""


class _ClientGone(Exception):
    """The client has closed the connection, or we have: nothing more can be sent."""


_Noted: TypeAlias = Literal["opened", "changed", "dropped", "error"]


class Served:
    """What all connections of one server share: where answers come from, who is told, and which tasks run."""

    def __init__(self, take: Callable[[RecordedRequest], Answer], note: Callable[[_Noted, object], None]) -> None:
        self.take = take
        self.note = note
        self.tasks: set[asyncio.Task[None]] = set()

    async def finish(self) -> None:
        """Cancel what still runs."""
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.sleep(0)


class Connection(asyncio.Protocol):
    """A connection that the server accepted. `index`, `requests` (how many came whole), `ended`."""

    def __init__(self, served: Served) -> None:
        self.index = -1
        self.requests = 0
        self.ended: Literal["", "by client", "reset by client", "by server"] = ""
        """How it ended; empty while it is open."""
        self._served = served
        self._transport: asyncio.Transport | None = None
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=1024 * 1024)
        self._arrived: asyncio.Queue[_Asked | None] = asyncio.Queue()
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._drop_next = False
        self._begun = False

    @property
    def closed(self) -> bool:
        """Whether either side has closed it."""
        return bool(self.ended)

    def __repr__(self) -> str:
        return f"<connection {self.index}: requests {self.requests}, {'closed ' + self.ended if self.ended else 'open'}>"

    def abort(self) -> None:
        """Close at once. On the server's loop only."""
        self._end("by server")
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._served.note("opened", self)
        task = asyncio.get_running_loop().create_task(self._serve())
        self._served.tasks.add(task)
        task.add_done_callback(self._finished)

    def data_received(self, data: bytes) -> None:
        if not self._begun and data.startswith(_TLS_HANDSHAKE):  # no mistake of the test: as a real server, say so in plain text and close
            self._write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self._close()
            return
        self._begun = True
        self._parse(data)

    def eof_received(self) -> bool:
        self._end("by client")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("reset by client" if isinstance(exc, ConnectionError) else "by client")

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._served.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # raised by a function of the script: `WireServer.stop` tells the test
            self._served.note("error", error)
            self.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self, how: Literal["by client", "reset by client", "by server"]) -> None:
        if not self.ended:
            self.ended = how
            self._gone.set()
            self._writable.set()
            self._arrived.put_nowait(None)
            self._served.note("changed", self)

    # ---- requests

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.receive_data(data)
            while True:
                event = self._parser.next_event()
                if isinstance(event, h11.Request):
                    self._request, self._body = event, bytearray()
                    if self._parser.they_are_waiting_for_100_continue:
                        self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
                elif isinstance(event, h11.Data):
                    self._body += event.data
                    if len(self._body) > _BODY_LIMIT:
                        raise h11.RemoteProtocolError("request body too large")
                elif isinstance(event, h11.EndOfMessage):
                    self._complete()
                else:
                    return
        except h11.RemoteProtocolError as error:
            mistake = RuntimeError(f"connection {self.index}: what the client sent is not HTTP: {error}")
            mistake.__cause__ = error
            self._served.note("error", mistake)
            self.abort()

    def _complete(self) -> None:
        request = self._request
        assert request is not None
        self.requests += 1
        recorded = RecordedRequest(
            method=request.method.decode(),
            path=request.target.decode(),
            headers=[(name.decode(), value.decode("latin-1")) for name, value in request.headers],
            body=bytes(self._body),
            connection=self.index,
        )
        modern = request.http_version != b"1.0"
        said = {option.strip().lower() for name, value in recorded.headers if name == "connection" for option in value.split(",")}
        self._arrived.put_nowait(_Asked(recorded, chunks=modern, last="close" in said or not modern))
        rest, _ = self._parser.trailing_data
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=1024 * 1024)
        if rest:
            self._parser.receive_data(rest)

    # ---- answers

    async def _serve(self) -> None:
        try:
            while (asked := await self._arrived.get()) is not None:
                if self._drop_next:
                    self._served.note("dropped", asked.request)
                    self._close()
                    return
                await self._answer(asked, self._served.take(asked.request))
                if self.ended == "by server":  # what has come after a last request is not looked at
                    return
        except _ClientGone:
            return

    async def _answer(self, asked: _Asked, answer: Answer) -> None:
        for step in answer.before:
            await self._play(step, bytes)
        steps = answer.steps()
        framing = answer.framing
        if framing == "auto":
            framing = "length" if answer.whole else "chunked" if asked.chunks else "close"
        frame = self._head(answer, steps, framing, last=asked.last)
        if asked.request.method != "HEAD":
            for step in _compressed(steps) if answer.gzip else steps:
                await self._play(step, frame)
            if frame is _chunk:
                await self._send(b"0\r\n\r\n")
        if answer.after == "reset":
            self._reset()
        elif answer.after in ("close", "close_silently") or framing == "close" or asked.last:
            self._close()
        self._drop_next = answer.after == "drop_next"

    def _head(self, answer: Answer, steps: list[bytes | Step], framing: Framing, *, last: bool) -> Callable[[bytes], bytes]:
        headers = answer.header_list()
        names = {name.lower() for name, _ in headers}
        frame: Callable[[bytes], bytes] = bytes
        if answer.gzip and "content-encoding" not in names:
            headers.append(("content-encoding", "gzip"))
        if framing == "chunked":
            frame = _chunk
            headers.append(("transfer-encoding", "chunked"))
        elif framing == "length" and "content-length" not in names and answer.status not in (204, 304):
            pieces = _compressed(steps) if answer.gzip else steps
            total = sum(len(_payload(step)) for step in pieces)
            headers.append(("content-length", str(total if answer.length is None else answer.length)))
        closes = answer.after == "close" or framing == "close" or (last and answer.after in ("keep", "drop_next"))
        if closes and "connection" not in names:
            headers.append(("connection", "close"))
        reason = answer.reason
        if reason is None:
            reason = HTTPStatus(answer.status).phrase if answer.status in HTTPStatus._value2member_map_ else ""
        lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers), "", ""]
        self._write("\r\n".join(lines).encode("latin-1"))
        return frame

    async def _play(self, step: bytes | Step, frame: Callable[[bytes], bytes]) -> None:
        match step:
            case bytes():
                await self._send(frame(step))
            case Send(data):
                await self._send(frame(data))
            case Raw(data):
                await self._send(data)
            case Delay(seconds):
                await self._pause(seconds)
            case Wait(gate):
                opened = asyncio.Event()
                loop = asyncio.get_running_loop()

                def on_open() -> None:
                    with contextlib.suppress(RuntimeError):  # opened after the server has stopped
                        loop.call_soon_threadsafe(opened.set)

                gate.arrive(on_open)
                await self._unless_gone(opened.wait())
            case Stall():
                await self._gone.wait()
                raise _ClientGone
            case Repeat(data, every, times):
                count = 0
                while times is None or count < times:
                    await self._pause(every)
                    await self._send(frame(data))
                    count += 1
            case Close():
                self._close()
                raise _ClientGone
            case Reset():
                self._reset()
                raise _ClientGone

    async def _send(self, data: bytes) -> None:
        self._write(data)
        if not self._writable.is_set():
            await self._writable.wait()
        else:
            await asyncio.sleep(0)  # one piece per turn of the loop, so that pieces leave as they come
        if self._gone.is_set():
            raise _ClientGone

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._gone.is_set() and data:
            self._transport.write(data)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._gone.wait(), seconds)
        except TimeoutError:
            return
        raise _ClientGone

    async def _unless_gone(self, wait: Awaitable[object]) -> None:
        tasks = [asyncio.ensure_future(wait), asyncio.ensure_future(self._gone.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if self._gone.is_set():
            raise _ClientGone

    def _close(self) -> None:
        self._end("by server")
        if self._transport is not None:
            self._transport.close()

    def _reset(self) -> None:
        self._end("by server")
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST_ON_CLOSE)
            self._transport.abort()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _payload(step: bytes | Step) -> bytes:
    if isinstance(step, bytes):
        return step
    if isinstance(step, Repeat):
        return step.data * (step.times or 0)
    return step.data if isinstance(step, Send) else b""


def _compressed(steps: Iterable[bytes | Step]) -> list[bytes | Step]:
    """The steps with their bytes as one gzip stream, flushed after each piece, as a proxy that compresses a stream does it."""
    packer = zlib.compressobj(wbits=31)
    packed: list[bytes | Step] = []
    for step in steps:
        data = _payload(step)
        packed.append(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH) if data else step)
    packed.append(packer.flush())
    return packed
