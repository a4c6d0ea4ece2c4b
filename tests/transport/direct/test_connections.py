"""What only the direct transports do: limits without a queue, several addresses per host, back-pressure, answers nobody closes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys
from threading import Event
from typing import Any

import pytest

from dragoman.errors import ConfigError, ConnectionFailedError, ProtocolError, ProviderError, RequestTimeoutError
from dragoman.testing import Answer, Close, Raw, Stall, WireServer
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport, loop_dialing, socket_connection
from dragoman.transport.direct.addresses import literal, ordered
from dragoman.transport.direct.answer import Answer as Incoming
from dragoman.transport.direct.loop_connection import LoopConnection
from dragoman.transport.direct.options import BODY_LIMIT, READ_SIZE
from tests.transport.calls import PATIENCE, request_to, run, running
from tests.transport.peers import listening

from .drive import BOTH, fetching

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")
STALLING = Answer(body=[b"x", Stall()])


class TestLimit:
    def test_of_connections_is_an_error_at_once_blocking(self) -> None:
        transport = DirectTransport(max_connections=1)
        with WireServer([STALLING, TEXT]) as server:
            held = transport.send(request_to(server), running())
            with pytest.raises(ConnectionFailedError, match="all 1 connections are in use"):
                transport.send(request_to(server), running())
            held.close()
            assert transport.send(request_to(server), running()).read() == b"whole"
            transport.close()

    def test_of_connections_is_an_error_at_once_on_a_loop(self) -> None:
        async def main() -> None:
            transport = AsyncDirectTransport(max_connections=1)
            held = await transport.send(request_to(server), running())
            with pytest.raises(ConnectionFailedError, match="all 1 connections are in use"):
                await transport.send(request_to(server), running())
            await held.close()
            assert await (await transport.send(request_to(server), running())).read() == b"whole"
            await transport.close()

        with WireServer([STALLING, TEXT]) as server:
            asyncio.run(main())

    @BOTH
    def test_is_free_again_after_every_way_to_fail(self, library: str) -> None:
        answers = [
            Answer(before=[Close()]),
            Answer(before=[Raw(b"rubbish"), Close()]),
            Answer(body=[b"x", Close()]),
            Answer(headers=[("content-encoding", "br")], body=b"x"),
            Answer(headers=[("content-encoding", "gzip")], body=b"x"),
            STALLING,
            TEXT,
        ]
        with WireServer(answers) as server, fetching(library, max_connections=1) as fetch:
            for _ in answers[:-1]:
                with pytest.raises(ProviderError) as caught:
                    fetch(request_to(server), running(idle=0.1))
                assert "are in use" not in str(caught.value)
            with pytest.raises(ConnectionFailedError, match="Connection refused"):
                fetch(request_to(f"http://127.0.0.1:{unused_port()}"))
            assert fetch(request_to(server))[2] == b"whole"

    @BOTH
    def test_of_header_bytes(self, library: str) -> None:
        answer = Answer(headers=[("x", "a" * 2000)], body=b"whole")
        with WireServer(answer) as server:
            with fetching(library, max_header_bytes=1000) as fetch, pytest.raises(ProtocolError, match="is not HTTP"):
                fetch(request_to(server))
            with fetching(library) as fetch:
                assert fetch(request_to(server))[2] == b"whole"


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class TestAddresses:
    def found(self, monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
        """`api.example` has the loopback address once per port."""
        entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: entries)
        for module in (loop_dialing, socket_connection):
            monkeypatch.setattr(module, "HAPPY_EYEBALLS_DELAY", 0.01)

    @BOTH
    def test_one_that_refuses_is_passed_over(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(TEXT) as server, fetching(library) as fetch:
            self.found(monkeypatch, unused_port(), server.port)
            assert fetch(request_to("http://api.example"))[2] == b"whole"

    @BOTH
    def test_one_that_hangs_does_not_hold_up_the_next(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(accept="never") as hanging, WireServer(TEXT) as server, fetching(library) as fetch:
            self.found(monkeypatch, hanging.port, server.port)
            assert fetch(request_to("http://api.example"))[2] == b"whole"

    @BOTH
    def test_all_refuse(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with fetching(library) as fetch:
            self.found(monkeypatch, unused_port(), unused_port())
            with pytest.raises(ConnectionFailedError, match=r"cannot connect to api\.example:80: Connection refused"):
                fetch(request_to("http://api.example"))

    @BOTH
    def test_all_hang_until_the_clock_runs_out(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(accept="never") as one, WireServer(accept="never") as other, fetching(library) as fetch:
            self.found(monkeypatch, one.port, other.port)
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(request_to("http://api.example"), running(connect=0.1))
            assert caught.value.phase == "connect"

    @BOTH
    def test_none(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with fetching(library) as fetch:
            self.found(monkeypatch)
            with pytest.raises(ConnectionFailedError, match=r"cannot connect to api\.example:80: No address"):
                fetch(request_to("http://api.example"))

    def test_families_take_turns_and_the_first_begins(self) -> None:
        def entry(family: int, host: str) -> tuple[Any, ...]:
            return family, 1, 6, "", (host, 1)

        six, four = socket.AF_INET6, socket.AF_INET
        found = [entry(six, "a"), entry(six, "b"), entry(six, "c"), entry(four, "d"), entry(four, "d"), entry(four, "e")]
        assert [host for _, (host, _) in ordered(found)] == ["a", "d", "b", "e", "c"]

    def test_literal_addresses_need_no_look_up(self) -> None:
        assert literal("127.0.0.1", 80) == [(socket.AF_INET, ("127.0.0.1", 80))]
        assert literal("::1", 80) == [(socket.AF_INET6, ("::1", 80, 0, 0))]
        assert literal("localhost", 80) == []


class Transport:
    """What a `LoopConnection` asks of asyncio, recorded."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append(name)


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts the timers that are set."""

    timers = 0

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(*args, **kwargs)


class TestTimer:
    """One per connection, set only when it has to be."""

    def reads(self, loop: asyncio.AbstractEventLoop, count: int, **timeouts: float) -> LoopConnection:
        """The connection after so many waits for the body, each ended by bytes."""

        async def main() -> LoopConnection:
            buffer = memoryview(bytearray(READ_SIZE))
            with socket.socket() as sock:
                connection = LoopConnection(loop, (False, "h", 80), sock, buffer, buffer, lambda gone: None)
                connection.connection_made(Transport())  # type: ignore[arg-type]
                incoming = Incoming(1000)
                connection.begin(incoming, running(**timeouts))
                data = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
                for _ in range(count):
                    connection.get_buffer(-1)[: len(data)] = data
                    asyncio.get_running_loop().call_soon(connection.buffer_updated, len(data))
                    await connection.wait("head" if not incoming.head else "body")
                    if incoming.pieces:
                        incoming.take()
                    data = b"more"
                return connection

        return loop.run_until_complete(main())

    @pytest.mark.parametrize("count", [5, 50])
    def test_is_set_once_however_many_reads_there_are(self, count: int) -> None:
        loop = CountingLoop()
        try:
            connection = self.reads(loop, count, idle=PATIENCE)
            assert loop.timers == 1
            connection.abort()
        finally:
            loop.close()

    def test_is_not_set_without_a_limit(self) -> None:
        loop = CountingLoop()
        try:
            self.reads(loop, 5)
            assert loop.timers == 0
        finally:
            loop.close()


class TestBackPressure:
    def test_reading_pauses_at_the_limit_and_goes_on_when_all_was_taken(self) -> None:
        async def main() -> list[str]:
            buffer = memoryview(bytearray(READ_SIZE))
            with socket.socket() as sock:
                connection = LoopConnection(asyncio.get_running_loop(), (False, "h", 80), sock, buffer, buffer, lambda gone: None)
                transport = Transport()
                connection.connection_made(transport)  # type: ignore[arg-type]
                incoming = Incoming(1000)
                connection.begin(incoming, running())

                def came(data: bytes) -> None:
                    connection.get_buffer(-1)[: len(data)] = data
                    connection.buffer_updated(len(data))

                came(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
                while "pause_reading" not in transport.calls:
                    came(bytes(READ_SIZE))
                assert BODY_LIMIT < incoming.size <= BODY_LIMIT + READ_SIZE
                came(bytes(READ_SIZE))
                incoming.take()
                connection.resume()
                connection.resume()
                return transport.calls

        assert asyncio.run(main()) == ["pause_reading", "resume_reading"]

    @pytest.mark.parametrize("library", ["asyncio", "uvloop"])
    def test_slow_consumer_gets_all_of_it(self, library: str) -> None:
        body = bytes(range(256)) * 32_000

        async def main() -> None:
            transport = AsyncDirectTransport()
            response = await transport.send(request_to(server), running())
            got = b""
            async for data in response:
                assert len(data) <= BODY_LIMIT + READ_SIZE
                got += data
                for _ in range(20):
                    await asyncio.sleep(0)
            assert got == body
            await transport.close()

        with WireServer(Answer(body=body)) as server:
            run(library, main)


class TestBytesThatNobodyAskedFor:
    """An answer sent in advance must not become the answer to the next request."""

    @BOTH
    @pytest.mark.parametrize("poison", [b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison", b"\r\n"], ids=["an answer", "a line break"])
    def test_on_an_idle_connection_end_it(self, library: str, poison: bytes) -> None:
        answered, poisoned = Event(), Event()

        def serve(peer: socket.socket) -> None:
            while peer.recv(65536):
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole")
                assert answered.wait(PATIENCE)
                peer.sendall(poison)
                poisoned.set()

        with listening(serve) as port, fetching(library) as fetch:
            assert fetch(request_to(f"http://127.0.0.1:{port}"))[2] == b"whole"
            answered.set()
            assert poisoned.wait(PATIENCE)
            assert fetch(request_to(f"http://127.0.0.1:{port}"))[2] == b"whole"

    def test_on_an_idle_connection_end_it_as_they_come(self) -> None:
        async def main() -> None:
            transport = AsyncDirectTransport()
            response = await transport.send(request_to(f"http://127.0.0.1:{port}"), running())
            assert await response.read() == b"whole"
            answered.set()
            assert await asyncio.to_thread(closed.wait, PATIENCE)
            await transport.close()

        answered, closed = Event(), Event()

        def serve(peer: socket.socket) -> None:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole")
            assert answered.wait(PATIENCE)
            peer.sendall(b"more")
            with contextlib.suppress(ConnectionResetError):
                peer.recv(65536)
            closed.set()

        with listening(serve) as port:
            asyncio.run(main())


class TestRefusedRequest:
    def test_answer_that_comes_before_all_was_sent_is_read(self) -> None:
        """On a loop, where reading goes on while a large body is being sent."""

        def serve(peer: socket.socket) -> None:
            peer.recv(1000)
            peer.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig")
            while peer.recv(65536):
                pass

        with listening(serve) as port, fetching("asyncio") as fetch:
            status, _, body = fetch(request_to(f"http://127.0.0.1:{port}", bytes(1 << 26)))
        assert (status, body) == (413, b"big")


class TestLeftOpen:
    def test_answer_that_nobody_closes_lets_go_of_its_connection_blocking(self) -> None:
        transport = DirectTransport(max_connections=1)
        with WireServer([STALLING, TEXT]) as server:
            next(iter(transport.send(request_to(server), running())))
            gc.collect()
            server.wait_closed(0)
            assert transport.send(request_to(server), running()).read() == b"whole"
            transport.close()

    @pytest.mark.parametrize("read", [True, False], ids=["idle", "within an answer"])
    def test_connections_of_a_transport_that_is_garbage_are_closed_without_a_warning(self, read: bool) -> None:
        """Also if it is part of a cycle, of which Python looks at the sockets first."""

        def use_and_forget() -> None:
            transport = DirectTransport()
            response = transport.send(request_to(server), running())
            next(iter(response))
            if read:
                response.read()
            cycle: list[object] = [response, transport]
            cycle.append(cycle)

        with WireServer([TEXT if read else STALLING] * 20) as server:
            for _ in range(20):
                use_and_forget()
            gc.collect()
            server.wait_for(lambda: not server.open_connections)

    @pytest.mark.parametrize("library", ["asyncio", "uvloop"])
    def test_answer_that_nobody_closes_lets_go_of_its_connection_on_a_loop(self, library: str) -> None:
        async def main() -> None:
            transport = AsyncDirectTransport(max_connections=1)
            response = await transport.send(request_to(server), running())
            assert await anext(aiter(response)) == b"x"
            del response
            gc.collect()
            await asyncio.to_thread(server.wait_closed, 0)
            assert await (await transport.send(request_to(server), running())).read() == b"whole"
            await transport.close()

        with WireServer([STALLING, TEXT]) as server:
            run(library, main)


def test_other_loops_than_asyncio_are_named_in_the_error() -> None:
    with pytest.raises(ConfigError, match="use AsyncHTTPX2Transport"):
        run("trio", lambda: AsyncDirectTransport().send(request_to("http://127.0.0.1:1"), running()))


def test_importing_it_loads_no_loop_no_parser_and_no_tls() -> None:
    code = "import sys, dragoman.transport.direct; print([m for m in ('asyncio', 'httptools', 'httpx2', 'anyio') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
