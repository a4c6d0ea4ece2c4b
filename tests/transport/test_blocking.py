"""`HTTPX2Transport`: blocking calls, from any number of threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman.errors import (
    ConfigError,
    ConnectionFailedError,
    IncompleteStreamError,
    ProtocolError,
    RequestTimeoutError,
)
from dragoman.testing import Answer, Close, Gate, Raw, Repeat, Reset, Stall, Wait, WireServer, anthropic_stream
from dragoman.testing.certificate import Authority
from dragoman.transport import Clocks
from dragoman.transport.httpx2 import HTTPX2Transport

from .calls import PATIENCE, Asked, request_to, running, silent_peer

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")


@pytest.fixture
def transport() -> Iterator[HTTPX2Transport]:
    transport = HTTPX2Transport(trust_env=False)
    yield transport
    transport.close()
    gc.collect()


def fetch(transport: HTTPX2Transport, server: WireServer | str, clocks: Clocks | None = None, **headers: str) -> bytes:
    return transport.send(request_to(server, **headers), clocks or running()).read()


def in_thread(function: Callable[[], Any]) -> Callable[[], Any]:
    """Start `function`; the result waits for its result, or raises what it raised."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return lambda: future.result(PATIENCE)


class TestAnswer:
    def test_has_status_headers_and_body(self, transport: HTTPX2Transport) -> None:
        answer = Answer(status=418, headers=[("X-One", "1"), ("x-two", "a"), ("x-two", "b")], body=[b"ab", b"c"])
        with WireServer([answer]) as server:
            response = transport.send(request_to(server), running())
            assert response.status == 418
            pairs = [(name.lower(), value) for name, value in response.headers if name.lower().startswith("x-")]
            assert pairs == [("x-one", "1"), ("x-two", "a"), ("x-two", "b")]
            assert b"".join(response) == b"abc"

    def test_request_arrives_as_given(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            transport.send(request_to(server, b'{"a": 1}', "/v1/messages?beta=true", **{"x-api-key": "k"}), running()).read()
            request = server.requests[0]
        assert (request.method, request.path, request.body) == ("POST", "/v1/messages?beta=true", b'{"a": 1}')
        assert dict(request.headers) == {
            "host": server.url.removeprefix("http://"),
            "accept": "text/event-stream",
            "x-api-key": "k",
            "content-length": "8",
            "accept-encoding": "identity",
        }

    def test_whole_answers_may_come_compressed(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            fetch(transport, server, accept="application/json")
            assert server.requests[0].header("accept-encoding") == "gzip, deflate"

    def test_compressed_body_is_decoded_piece_by_piece(self, transport: HTTPX2Transport) -> None:
        gate = Gate()
        with WireServer([Answer(gzip=True, body=[b"one", Wait(gate), b"two"])]) as server:
            body = iter(transport.send(request_to(server), running()))
            assert next(body) == b"one"
            gate.open()
            assert b"".join(body) == b"two"

    def test_large_body_is_sent_whole(self, transport: HTTPX2Transport) -> None:
        body = os.urandom(1 << 20) * 3
        with WireServer(TEXT) as server:
            transport.send(request_to(server, body), running()).read()
            assert server.requests[0].body == body

    def test_redirects_are_handed_out_not_followed(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as other, WireServer([Answer(status=307, headers=[("location", other.url)])]) as server:
            response = transport.send(request_to(server, **{"x-api-key": "secret"}), running())
            response.read()
            assert response.status == 307
            assert other.connections == []

    def test_body_is_handed_out_as_it_comes(self, transport: HTTPX2Transport) -> None:
        gate = Gate()
        with WireServer([Answer(body=[b"first", Wait(gate), b"second"])]) as server:
            body = iter(transport.send(request_to(server), running()))
            assert next(body) == b"first"
            gate.reached()
            gate.open()
            assert next(body) == b"second"
            assert list(body) == []


class TestConnection:
    def test_is_used_again(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            for _ in range(3):
                fetch(transport, server)
            assert [request.connection for request in server.requests] == [0, 0, 0]

    def test_is_shut_at_once_when_the_answer_is_left_early(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            response = transport.send(request_to(server), running())
            next(iter(response))
            response.close()
            server.wait_closed(0)
            response.close()
            assert list(response) == []

    def test_is_never_drained_when_the_answer_is_left_early(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Repeat(b"y" * 1000, every=0.001)])) as server:
            response = transport.send(request_to(server), running())
            next(iter(response))
            response.close()
            server.wait_closed(0)

    def test_is_kept_if_the_end_of_a_complete_message_comes_in_a_moment(self, transport: HTTPX2Transport) -> None:
        gate = Gate()
        with WireServer([Answer(body=[b"message", Wait(gate)]), TEXT]) as server:
            clocks = running()
            response = transport.send(request_to(server), clocks)
            assert next(iter(response)) == b"message"
            gate.open()
            clocks.complete = True
            response.close()
            fetch(transport, server)
            assert [request.connection for request in server.requests] == [0, 0]

    def test_is_shut_if_the_end_of_a_complete_message_does_not_come(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(body=[b"message", Stall()])]) as server:
            clocks = running()
            response = transport.send(request_to(server), clocks)
            next(iter(response))
            clocks.complete = True
            response.close()
            server.wait_closed(0)

    def test_with_one_connection_a_second_call_follows_a_left_one(self) -> None:
        transport = HTTPX2Transport(trust_env=False, max_connections=1)
        with WireServer([Answer(body=[b"x", Stall()]), TEXT]) as server:
            response = transport.send(request_to(server), running())
            next(iter(response))
            response.close()
            assert fetch(transport, server) == b"whole"
            transport.close()

    def test_no_more_than_the_limit_are_open_at_once(self) -> None:
        transport = HTTPX2Transport(trust_env=False, max_connections=2)
        with WireServer(TEXT) as server, ThreadPoolExecutor(8) as threads:
            assert list(threads.map(lambda _: fetch(transport, server), range(40))) == [b"whole"] * 40
            assert len(server.connections) <= 2
            transport.close()

    def test_serves_eight_threads_at_once(self, transport: HTTPX2Transport) -> None:
        with WireServer(lambda request: Answer(body=[request.body])) as server, ThreadPoolExecutor(8) as threads:

            def call(number: int) -> bytes:
                return transport.send(request_to(server, b"%d" % number), running()).read()

            assert list(threads.map(call, range(200))) == [b"%d" % number for number in range(200)]

    def test_all_are_closed_by_close_and_the_transport_opens_new_ones(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            fetch(transport, server)
            transport.close()
            server.wait_closed(0)
            assert fetch(transport, server) == b"whole"

    def test_is_closed_by_close_also_while_it_is_read(self, transport: HTTPX2Transport) -> None:
        asked = Asked()
        with WireServer([Answer(body=[b"x", Stall()])]) as server:
            response = transport.send(request_to(server), running(asked, total=60))
            next(iter(response))
            asked.arm()
            waiting = in_thread(lambda: next(response))
            asked.wait()
            transport.close()
            with pytest.raises(ConnectionFailedError, match="connection broken"):
                waiting()
            server.wait_closed(0)

    def test_is_shut_if_a_complete_message_is_followed_by_much_more(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(body=[b"message", b"x" * (1 << 20)])]) as server:
            clocks = running()
            response = transport.send(request_to(server), clocks)
            next(iter(response))
            clocks.complete = True
            response.close()
            server.wait_closed(0)

    def test_is_closed_with_a_transport_that_nobody_has_any_more(self) -> None:
        with WireServer(TEXT) as server:
            transport = HTTPX2Transport(trust_env=False)
            fetch(transport, server)
            del transport
            server.wait_closed(0)

    def test_of_an_answer_outlives_its_transport(self) -> None:
        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate), b"y"])]) as server:
            transport = HTTPX2Transport(trust_env=False)
            response = transport.send(request_to(server), running())
            del transport
            gate.open()
            assert response.read() == b"xy"
            del response
            server.wait_closed(0)

    def test_forked_child_opens_its_own(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            fetch(transport, server)
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(0 if fetch(transport, server) == b"whole" else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(pid, 0)[1] == 0
            fetch(transport, server)
            assert [request.connection for request in server.requests] == [0, 1, 0]


class TestDeadPooledConnection:
    @pytest.mark.parametrize("after", ["close_silently", "reset", "drop_next"])
    def test_is_replaced_unseen(self, transport: HTTPX2Transport, after: Any) -> None:
        with WireServer([Answer(body=b"one", after=after), TEXT]) as server:
            assert fetch(transport, server) == b"one"
            assert fetch(transport, server) == b"whole"
            assert [request.connection for request in server.requests] == [0, 1]

    def test_is_replaced_by_a_fresh_one_not_by_another_dead_one(self, transport: HTTPX2Transport) -> None:
        gate = Gate()
        first = Answer(body=[b"x", Wait(gate)], after="drop_next")
        with WireServer([first, first, first, TEXT]) as server:
            waiting = [transport.send(request_to(server), running()) for _ in range(3)]
            gate.open()
            for response in waiting:
                response.read()
            assert fetch(transport, server) == b"whole"
            assert len(server.dropped) == 1

    def test_fresh_connection_that_dies_is_an_error(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(before=[Close()])]) as server:
            with pytest.raises(ConnectionFailedError, match="closed the connection without an answer") as caught:
                fetch(transport, server)
            assert caught.value.retryable
            assert len(server.requests) == 1

    def test_request_is_not_repeated_once_a_byte_of_the_answer_came(self, transport: HTTPX2Transport) -> None:
        with WireServer([TEXT, Answer(before=[Raw(b"HTTP/1.1 200"), Close()]), TEXT]) as server:
            fetch(transport, server)
            with pytest.raises(IncompleteStreamError):
                fetch(transport, server)
            assert len(server.requests) == 2


class TestTimeout:
    def fails(self, transport: HTTPX2Transport, server: WireServer | str, clocks: Clocks) -> RequestTimeoutError:
        with pytest.raises(RequestTimeoutError) as caught:
            fetch(transport, server, clocks)
        return caught.value

    def test_connect(self, transport: HTTPX2Transport) -> None:
        with WireServer(accept="never") as server:
            error = self.fails(transport, server, running(connect=0.05))
        assert (error.phase, error.message, error.retryable) == ("connect", "connect timeout after 0.05 s", True)

    def test_connect_covers_the_tls_handshake(self, transport: HTTPX2Transport) -> None:
        with silent_peer() as peer:
            error = self.fails(transport, f"https://127.0.0.1:{peer.port}", running(connect=0.5))
            assert error.phase == "connect"
            assert peer.received() != b""

    def test_first_byte(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(before=[Stall()])) as server:
            assert self.fails(transport, server, running(first_byte=0.05)).phase == "first_byte"
            server.wait_closed(0)

    def test_first_byte_covers_sending(self, transport: HTTPX2Transport) -> None:
        with silent_peer() as peer, pytest.raises(RequestTimeoutError) as caught:
            transport.send(request_to(f"http://127.0.0.1:{peer.port}", bytes(1 << 26)), running(first_byte=0.1))
        assert caught.value.phase == "first_byte"

    def test_idle(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            assert self.fails(transport, server, running(idle=0.05)).phase == "idle"
            server.wait_closed(0)

    def test_idle_begins_anew_with_every_byte_within_a_chunk(self, transport: HTTPX2Transport) -> None:
        pieces = [Raw(b"a\r\n"), *(step for _ in range(10) for step in (Raw(b"."), Repeat(b"", every=0.11, times=1)))]
        with WireServer([Answer(body=[*pieces, Raw(b"\r\n")])]) as server:
            assert fetch(transport, server, running(idle=1.0)) == b".........."

    def test_content_idle_is_not_reset_by_bytes(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Repeat(b": ping\n\n", every=0.01)])) as server:
            assert self.fails(transport, server, running(idle=PATIENCE, content_idle=0.1)).phase == "content_idle"

    @pytest.mark.parametrize("answer", [Answer(before=[Stall()]), Answer(body=[b"x", Stall()]), Answer(body=[Repeat(b"x", every=0.01)])])
    def test_total(self, transport: HTTPX2Transport, answer: Answer) -> None:
        with WireServer(answer) as server:
            error = self.fails(transport, server, running(first_byte=PATIENCE, idle=PATIENCE, total=0.5))
        assert (error.phase, error.retryable) == ("total", False)

    def test_waiting_for_a_free_connection_is_connecting(self) -> None:
        transport = HTTPX2Transport(trust_env=False, max_connections=1)
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            held = transport.send(request_to(server), running())
            assert self.fails(transport, server, running(connect=0.05)).phase == "connect"
            held.close()
            transport.close()

    def test_time_that_the_consumer_takes_does_not_count(self, transport: HTTPX2Transport) -> None:
        time = [0.0]
        clocks = running(now=lambda: time[0], idle=10, total=20)
        with WireServer(Answer(body=[b"a", b"b", b"c"])) as server:
            response = transport.send(request_to(server), clocks)
            clocks.pause()
            received = b""
            while True:
                time[0] += 1000
                clocks.resume()
                piece = next(iter(response), b"")
                clocks.pause()
                received += piece
                if not piece:
                    break
        assert received == b"abc"

    @pytest.mark.parametrize("name", ["HTTPX2Transport", "DirectTransport"])
    def test_is_closed_when_a_program_ends_that_did_not(self, name: str) -> None:
        program = f"""
import sys
from dragoman.transport import Clocks, Timeouts
from dragoman.transport.{name.removesuffix("Transport").lower()} import {name}
from dragoman.wire.base import HTTPRequest

transport = {name}()
request = HTTPRequest(path="/v1/messages", base_url=sys.argv[1], body=b"{{}}")
print(transport.send(request, Clocks(Timeouts())).read().decode())
"""
        environment = {**os.environ, "NO_PROXY": "*", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        with WireServer(TEXT) as server:
            command = [sys.executable, "-X", "dev", "-c", program, server.url]
            done = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=60)
        assert (done.stdout, done.stderr, done.returncode) == (b"whole\n", b"", 0)


class TestAbortFromAnotherThread:
    def ends(self, waiting: Callable[[], Any]) -> None:
        with pytest.raises(ConnectionFailedError, match="aborted by the caller") as caught:
            waiting()
        assert not caught.value.retryable

    def test_while_connecting(self, transport: HTTPX2Transport) -> None:
        asked = Asked()
        with WireServer(accept="never") as server:
            clocks = running(asked)
            asked.arm()
            waiting = in_thread(lambda: fetch(transport, server, clocks))
            asked.wait()
            clocks.abort()
            self.ends(waiting)

    def test_during_the_tls_handshake(self, transport: HTTPX2Transport) -> None:
        clocks = running()
        with silent_peer() as peer:
            waiting = in_thread(lambda: fetch(transport, f"https://127.0.0.1:{peer.port}", clocks))
            peer.spoken_to()
            clocks.abort()
            self.ends(waiting)
            peer.received()

    def test_while_sending(self, transport: HTTPX2Transport) -> None:
        clocks = running()
        with silent_peer() as peer:
            request = request_to(f"http://127.0.0.1:{peer.port}", bytes(1 << 26))
            waiting = in_thread(lambda: transport.send(request, clocks))
            peer.spoken_to()
            clocks.abort()
            self.ends(waiting)

    @pytest.mark.parametrize("warm", [False, True], ids=["fresh connection", "connection from the pool"])
    def test_while_waiting_for_the_head(self, transport: HTTPX2Transport, warm: bool) -> None:
        gate = Gate()
        with WireServer([TEXT] * warm + [Answer(before=[Wait(gate)])]) as server:
            if warm:
                fetch(transport, server)
            clocks = running()
            waiting = in_thread(lambda: fetch(transport, server, clocks))
            gate.reached()
            clocks.abort()
            self.ends(waiting)
            server.wait_closed(0)
            assert len(server.requests) == warm + 1

    @pytest.mark.parametrize("framing", ["chunked", "length", "close"])
    def test_while_reading(self, transport: HTTPX2Transport, framing: Any) -> None:
        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate)], framing=framing, length=10)]) as server:
            clocks = running()
            waiting = in_thread(lambda: fetch(transport, server, clocks))
            gate.reached()
            clocks.abort()
            self.ends(waiting)
            server.wait_closed(0)

    def test_while_waiting_for_a_free_connection(self) -> None:
        transport = HTTPX2Transport(trust_env=False, max_connections=1)
        asked = Asked()
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            held = transport.send(request_to(server), running())
            clocks = running(asked)
            asked.arm()
            waiting = in_thread(lambda: fetch(transport, server, clocks))
            asked.wait()
            clocks.abort()
            self.ends(waiting)
            held.close()
            transport.close()

    def test_before_the_call_nothing_is_sent(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            clocks = running()
            clocks.abort()
            self.ends(lambda: fetch(transport, server, clocks))
            assert server.connections == []

    def test_after_the_answer_the_connection_is_left_alone(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            clocks = running()
            fetch(transport, server, clocks)
            clocks.abort()
            fetch(transport, server)
            assert [request.connection for request in server.requests] == [0, 0]

    def test_close_ends_the_iteration_of_another_thread(self, transport: HTTPX2Transport) -> None:
        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate)])]) as server:
            clocks = running()
            response = transport.send(request_to(server), clocks)
            waiting = in_thread(lambda: list(response))
            gate.reached()
            clocks.abort()
            response.close()
            self.ends(waiting)
            server.wait_closed(0)

    def test_between_two_reads_ends_the_next_one(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            clocks = running()
            response = transport.send(request_to(server), clocks)
            next(iter(response))
            clocks.abort()
            server.wait_closed(0)
            self.ends(lambda: next(response))
            self.ends(lambda: next(response))

    def test_close_alone_ends_it_too(self, transport: HTTPX2Transport) -> None:
        asked = Asked()
        with WireServer([Answer(body=[b"x", Stall()])]) as server:
            response = transport.send(request_to(server), running(asked, total=60))
            next(iter(response))
            asked.arm()
            waiting = in_thread(lambda: list(response))
            asked.wait()
            response.close()
            self.ends(waiting)
            server.wait_closed(0)

    def test_pool_is_usable_afterwards(self) -> None:
        transport = HTTPX2Transport(trust_env=False, max_connections=1)
        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate)]), TEXT]) as server:
            clocks = running()
            waiting = in_thread(lambda: fetch(transport, server, clocks))
            gate.reached()
            clocks.abort()
            self.ends(waiting)
            assert fetch(transport, server) == b"whole"
            transport.close()

    def test_a_hundred_leave_no_open_connection_and_no_thread(self, transport: HTTPX2Transport) -> None:
        with WireServer(Answer(body=[b"x", Stall()])) as server:
            for _ in range(100):
                response = transport.send(request_to(server), running())
                next(iter(response))
                response.close()
            server.wait_for(lambda: len(server.connections) == 100 and not server.open_connections)
            for thread in threading.enumerate():
                if thread.name == "dragoman connect":
                    thread.join(PATIENCE)
                    assert not thread.is_alive()


class TestFailure:
    def test_refused_port(self, transport: HTTPX2Transport) -> None:
        with WireServer(accept="refuse") as server, pytest.raises(ConnectionFailedError) as caught:
            fetch(transport, server)
        assert caught.value.message == f"ConnectError: cannot connect to 127.0.0.1:{server.port}: Connection refused"
        assert type(caught.value.__cause__).__name__ == "ConnectError"
        assert caught.value.retryable

    def test_unknown_host(self, transport: HTTPX2Transport, monkeypatch: pytest.MonkeyPatch) -> None:
        def lookup(*args: Any, **kwargs: Any) -> Any:
            raise socket_error

        import socket

        socket_error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        with pytest.raises(ConnectionFailedError, match=r"cannot connect to api\.example:80: Name or service not known"):
            fetch(transport, "http://api.example")

    @pytest.mark.parametrize(
        ("hosts", "trusted", "reason"),
        [((), False, "unable to get local issuer certificate"), (("other.example",), True, "IP address mismatch")],
        ids=["untrusted authority", "wrong host"],
    )
    def test_certificate(self, hosts: tuple[str, ...], trusted: bool, reason: str) -> None:
        authority = Authority()
        transport = HTTPX2Transport(trust_env=False, verify=authority.client_context() if trusted else True)
        with WireServer(TEXT, tls=authority.server_context(*hosts)) as server:
            with pytest.raises(ConnectionFailedError, match=f"certificate verify failed: .*{reason}"):
                fetch(transport, server, **{"x-api-key": "secret"})
            assert server.requests == []
        transport.close()

    def test_trusted_certificate_is_accepted_and_reused(self) -> None:
        authority = Authority()
        transport = HTTPX2Transport(trust_env=False, verify=authority.client_context())
        with WireServer(anthropic_stream("hi"), tls=authority.server_context()) as server:
            assert fetch(transport, server) == fetch(transport, server)
            assert [request.connection for request in server.requests] == [0, 0]
            transport.close()

    def test_unverified_certificate_is_accepted_on_demand(self) -> None:
        transport = HTTPX2Transport(trust_env=False, verify=False)
        with WireServer(TEXT, tls=Authority().server_context()) as server:
            assert fetch(transport, server) == b"whole"
            transport.close()

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=[b"x", Close()]),
            Answer(body=[b"x", Raw(b"5\r\nab"), Close()]),
            Answer(body=[b"abc", Close()], framing="length", length=10),
        ],
        ids=["between chunks", "within a chunk", "before the promised length"],
    )
    def test_cut_body_is_incomplete(self, transport: HTTPX2Transport, answer: Answer) -> None:
        with WireServer([answer]) as server, pytest.raises(IncompleteStreamError, match="before the end of its answer"):
            fetch(transport, server)

    def test_what_came_before_a_cut_was_handed_out(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(body=[b"abc", Close()])]) as server:
            body = iter(transport.send(request_to(server), running()))
            assert next(body) == b"abc"
            with pytest.raises(IncompleteStreamError):
                next(body)

    def test_reset(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(body=[b"x", Reset()])]) as server, pytest.raises(ConnectionFailedError, match=r"broken by .*reset by peer"):
            fetch(transport, server)

    @pytest.mark.parametrize(
        "answer",
        [Answer(before=[Raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Close()]), Answer(body=[b"x", Raw(b"zz\r\n"), Stall()])],
        ids=["another protocol", "a broken chunk"],
    )
    def test_what_is_not_http(self, transport: HTTPX2Transport, answer: Answer) -> None:
        with WireServer([answer]) as server, pytest.raises(ProtocolError, match="is not HTTP"):
            fetch(transport, server)

    def test_broken_gzip(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(headers=[("content-encoding", "gzip")], body=b"plain")]) as server:
            with pytest.raises(ProtocolError, match="content encoding"):
                fetch(transport, server)
            server.wait_closed(0)

    @pytest.mark.parametrize("url", ["", "ftp://host", "http://", "http://[::1"])
    def test_url_that_cannot_be_used(self, transport: HTTPX2Transport, url: str) -> None:
        with pytest.raises(ConfigError, match="base_url"):
            fetch(transport, url)

    @pytest.mark.parametrize("value", ["sk-secret\n", " sk-secret", "sk-secret\r\nx: y", "sk-sécret"])
    def test_header_that_cannot_be_sent_is_named_but_not_quoted(self, transport: HTTPX2Transport, value: str) -> None:
        with WireServer(TEXT) as server, pytest.raises(ConfigError, match="the header 'x-api-key'") as caught:
            fetch(transport, server, **{"x-api-key": value})
        assert "cret" not in str(caught.value)
        assert caught.value.__cause__ is None

    def test_texts_hold_no_secret(self, transport: HTTPX2Transport) -> None:
        with WireServer([Answer(body=[Reset()])]) as server:
            url = server.url.replace("http://", "http://user:hunter2@")
            response = transport.send(request_to(url, b"prompt", "/v1?key=sk-secret", **{"x-api-key": "sk-secret"}), running())
            with pytest.raises(ConnectionFailedError) as caught:
                response.read()
        error: BaseException | None = caught.value
        while error is not None:
            assert not any(secret in str(error) + repr(error) for secret in ("sk-secret", "hunter2", "prompt"))
            error = error.__cause__ or error.__context__

    def test_user_and_password_of_the_url_become_basic_auth(self, transport: HTTPX2Transport) -> None:
        with WireServer(TEXT) as server:
            fetch(transport, server.url.replace("http://", "http://user:hunter2@"))
            assert server.requests[0].header("authorization") == "Basic dXNlcjpodW50ZXIy"

    def test_keyboard_interrupt_passes_and_shuts_the_connection(self, transport: HTTPX2Transport) -> None:
        clocks = running(total=60)

        def interrupt() -> None:
            raise KeyboardInterrupt

        with WireServer([Answer(body=[b"x", Stall()])]) as server:
            response = transport.send(request_to(server), clocks)
            next(iter(response))
            clocks.received = interrupt  # type: ignore[method-assign]
            clocks.limit = interrupt  # type: ignore[method-assign, assignment]
            with pytest.raises(KeyboardInterrupt):
                next(iter(response))
            server.wait_closed(0)


class TestOwnClient:
    def test_is_used_as_it_is_and_never_closed(self) -> None:
        with WireServer(TEXT) as server, httpx2.Client(trust_env=False, headers={"x-mine": "1"}) as client:
            transport = HTTPX2Transport(client=client)
            assert fetch(transport, server) == b"whole"
            transport.close()
            assert not client.is_closed
            assert fetch(transport, server) == b"whole"
            assert [request.header("x-mine") for request in server.requests] == ["1", "1"]
            assert [request.connection for request in server.requests] == [0, 0]

    def test_follows_no_redirect_even_if_told_to(self) -> None:
        answer = Answer(status=302, headers=[("location", "/elsewhere")])
        with WireServer([answer]) as server, httpx2.Client(trust_env=False, follow_redirects=True) as client:
            response = HTTPX2Transport(client=client).send(request_to(server), running())
            assert response.status == 302
            response.close()

    @pytest.mark.parametrize(
        ("answer", "timeouts", "phase"),
        [
            (Answer(before=[Stall()]), {"first_byte": 0.05}, "first_byte"),
            (Answer(body=[b"x", Stall()]), {"first_byte": PATIENCE, "idle": 0.05}, "idle"),
            (Answer(body=[b"x", Stall()]), {"idle": PATIENCE, "total": 0.5}, "total"),
            (Answer(body=[Repeat(b"x", every=0.01)]), {"idle": PATIENCE, "total": 0.5}, "total"),
        ],
    )
    def test_obeys_the_clocks(self, answer: Answer, timeouts: dict[str, float], phase: str) -> None:
        with WireServer(answer) as server, httpx2.Client(trust_env=False) as client:
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(HTTPX2Transport(client=client), server, running(**timeouts))
            assert caught.value.phase == phase
            server.wait_closed(0)

    def test_connect_timeout(self) -> None:
        with WireServer(accept="never") as server, httpx2.Client(trust_env=False) as client:
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(HTTPX2Transport(client=client), server, running(connect=0.05))
            assert caught.value.phase == "connect"

    @pytest.mark.parametrize("answer", [lambda gate: Answer(before=[Wait(gate)]), lambda gate: Answer(body=[b"x", Wait(gate)])])
    def test_abort_from_another_thread(self, answer: Callable[[Gate], Answer]) -> None:
        gate = Gate()
        with WireServer([answer(gate)]) as server, httpx2.Client(trust_env=False) as client:
            clocks = running()
            waiting = in_thread(lambda: fetch(HTTPX2Transport(client=client), server, clocks))
            gate.reached()
            clocks.abort()
            with pytest.raises(ConnectionFailedError, match="aborted"):
                waiting()
            server.wait_closed(0)

    def test_dead_pooled_connection_is_replaced(self) -> None:
        with WireServer([Answer(body=b"one", after="drop_next"), TEXT]) as server, httpx2.Client(trust_env=False) as client:
            transport = HTTPX2Transport(client=client)
            assert [fetch(transport, server), fetch(transport, server)] == [b"one", b"whole"]

    def test_other_options_besides_are_refused(self) -> None:
        with httpx2.Client() as client, pytest.raises(ConfigError, match="client="):
            HTTPX2Transport(client=client, verify=False)


def test_repr_shows_no_proxy_password() -> None:
    assert "hunter2" not in repr(HTTPX2Transport(proxy="http://user:hunter2@127.0.0.1:1")) + repr(
        vars(HTTPX2Transport(proxy="http://u:hunter2@h"))
    )
