"""`WireServer` itself, seen by raw sockets and by plain HTTP clients."""

from __future__ import annotations

import asyncio
import gc
import gzip
import http.client
import json
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import httpx2
import pytest
import trio

import dragoman.testing
from dragoman.testing import (
    Answer,
    Authority,
    Close,
    Delay,
    Gate,
    Raw,
    RecordedRequest,
    Repeat,
    Reset,
    Send,
    Stall,
    Wait,
    WireServer,
    anthropic_error,
    anthropic_events,
    anthropic_message,
    anthropic_stream,
    content_text,
    content_thinking,
    content_tool_use,
    open_scenario,
    serve,
    sse,
)

REQUEST = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


@contextmanager
def dialled(server: WireServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        yield sock


def all_of(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65536), b""))


def exchange(answer: Answer, request: bytes = REQUEST) -> bytes:
    """Everything that the server sends for one request, until it closes."""
    with WireServer([answer]) as server, dialled(server) as sock:
        sock.sendall(request)
        return all_of(sock)


class TestScript:
    def test_serves_one_answer_per_request_in_order(self) -> None:
        with WireServer([Answer(body=b"1"), Answer(body=b"2")]) as server:
            assert [httpx2.get(server.url, trust_env=False).text for _ in range(2)] == ["1", "2"]

    def test_says_so_when_it_is_at_its_end(self) -> None:
        with WireServer([Answer()]) as server:
            httpx2.get(server.url, trust_env=False)
            response = httpx2.get(server.url, trust_env=False)
        assert response.status_code == 400
        assert response.json()["error"]["message"] == "WireServer: the script is at its end: answers 1, and this is request 2"

    def test_repeats_its_last_answer_on_demand(self) -> None:
        with WireServer([Answer(body=b"1"), Answer(body=b"2")], repeat=True) as server:
            assert [httpx2.get(server.url, trust_env=False).text for _ in range(3)] == ["1", "2", "2"]

    def test_single_answer_serves_every_request(self) -> None:
        with WireServer(Answer(body=b"1")) as server:
            assert [httpx2.get(server.url, trust_env=False).text for _ in range(3)] == ["1"] * 3

    def test_function_makes_the_answer_from_the_request(self) -> None:
        with WireServer(lambda request: Answer(body=request.path)) as server:
            assert httpx2.get(server.url + "/a?b=c", trust_env=False).text == "/a?b=c"

    def test_can_be_added_to_while_it_runs(self) -> None:
        with WireServer() as server:
            server.add(Answer(body=b"1"))
            server.always(Answer(body=b"2"))
            assert [httpx2.get(server.url, trust_env=False).text for _ in range(3)] == ["1", "2", "2"]

    def test_error_of_a_function_is_raised_when_the_server_stops(self) -> None:
        def broken(request: RecordedRequest) -> Answer:
            raise LookupError("mine")

        server = WireServer(broken).start()
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.get(server.url, trust_env=False)
        with pytest.raises(LookupError, match="mine"):
            server.stop()

    def test_error_of_a_function_does_not_hide_the_tests_own(self) -> None:
        def broken(request: RecordedRequest) -> Answer:
            raise LookupError("mine")

        with pytest.raises(httpx2.RemoteProtocolError) as caught, WireServer(broken) as server:
            httpx2.get(server.url, trust_env=False)
        assert any("LookupError('mine')" in note for note in caught.value.__notes__)

    def test_client_that_does_not_speak_http_is_told_when_the_server_stops(self) -> None:
        server = WireServer().start()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(b"\0\1rubbish\r\n\r\n")
            server.wait_closed()
        with pytest.raises(RuntimeError, match="connection 0: what the client sent is not HTTP: illegal request line"):
            server.stop()

    def test_client_that_speaks_tls_is_turned_away(self) -> None:
        with WireServer() as server:
            with pytest.raises(httpx2.ConnectError, match="WRONG_VERSION_NUMBER"):
                httpx2.get(server.url.replace("http:", "https:"), trust_env=False)
            assert server.requests == []

    def test_function_that_forgets_to_return_is_told(self) -> None:
        server = WireServer(lambda request: None).start()  # type: ignore[arg-type, return-value]
        with pytest.raises(httpx2.RemoteProtocolError):
            httpx2.get(server.url, trust_env=False)
        with pytest.raises(TypeError, match="must return an Answer, not NoneType"):
            server.stop()

    def test_what_is_no_answer_is_refused_at_once(self) -> None:
        with pytest.raises(TypeError, match="not str"):
            WireServer(["data: {}"])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="not bytes"):
            WireServer().always(b"data")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"body": ["data: {}"]}, "Answer.body takes bytes and steps in a sequence, not str"),
            ({"body": [{"type": "message"}]}, "Answer.body takes bytes and steps in a sequence, not dict"),
            ({"body": None}, "Answer.body takes bytes and steps in a sequence, not NoneType"),
            ({"before": Stall()}, "Answer.before takes bytes and steps in a sequence, not Stall"),
        ],
    )
    def test_step_that_is_none_is_refused_rather_than_left_out(self, fields: dict[str, Any], told: str) -> None:
        with pytest.raises(TypeError, match=re.escape(told)):
            Answer(**fields)


class TestRecording:
    def test_requests_are_kept_whole(self) -> None:
        with WireServer(Answer()) as server:
            httpx2.post(server.url + "/v1?x=1", json={"a": [1]}, headers={"X-Api-Key": "k"}, trust_env=False)
            (request,) = server.requests
        assert (request.method, request.path, request.connection) == ("POST", "/v1?x=1", 0)
        assert (request.header("x-API-key"), request.header("none", "-")) == ("k", "-")
        assert request.json() == {"a": [1]}

    def test_repr_shows_neither_headers_nor_body(self) -> None:
        with WireServer(Answer()) as server:
            httpx2.post(server.url, content=b"prompt", headers={"x-api-key": "secret"}, trust_env=False)
            assert repr(server.requests) == "[RecordedRequest(method='POST', path='/', connection=0)]"

    def test_chunked_and_pipelined_requests_are_understood(self) -> None:
        chunked = b"POST /2 HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        with WireServer([Answer(), Answer(after="close")]) as server, dialled(server) as sock:
            sock.sendall(REQUEST + chunked)
            assert all_of(sock).count(b"HTTP/1.1 200") == 2
            assert [(request.path, request.body) for request in server.requests] == [("/v1/messages", b"{}"), ("/2", b"abc")]

    def test_expect_continue_is_answered(self) -> None:
        head = b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        with WireServer([Answer(after="close")]) as server, dialled(server) as sock:
            sock.sendall(head)
            assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(b"{}")
            assert all_of(sock).startswith(b"HTTP/1.1 200")

    def test_what_is_no_request_is_told_when_the_server_stops(self) -> None:
        server = WireServer().start()
        with dialled(server) as sock:
            sock.sendall(b"hello\r\n\r\n")
            assert all_of(sock) == b""
        with pytest.raises(Exception, match="illegal request line"):
            server.stop()

    def test_connections_tell_how_they_ended(self) -> None:
        with WireServer([Answer(after="close"), Answer(), Answer(body=[b"x", Stall()])]) as server:
            for reset in (None, False, True):
                with dialled(server) as sock:
                    sock.sendall(REQUEST)
                    sock.recv(1 if reset else 1000)
                    if reset:
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    elif reset is None:
                        all_of(sock)
                    server.wait_requests(len(server.connections))
            server.wait_closed()
            assert [connection.ended for connection in server.connections] == ["by server", "by client", "reset by client"]
            assert server.open_connections == []
            assert repr(server.connections[1]) == "<connection 1: requests 1, closed by client>"

    def test_waiting_for_what_does_not_come_says_what_it_was(self) -> None:
        with WireServer() as server:
            with pytest.raises(TimeoutError, match=r"request 1 did not come within 0\.01 s: requests 0, connections \[\]"):
                server.wait_requests(1, timeout=0.01)
            with pytest.raises(TimeoutError, match="the end of connection 0"):
                server.wait_closed(0, timeout=0.01)
            with pytest.raises(TimeoutError, match="the server did not reach the gate"):
                Gate().reached(timeout=0.01)


class TestAnswer:
    def test_whole_body_has_its_length(self) -> None:
        assert exchange(Answer(body="hällo", headers={"x-a": "b"}, after="close")) == (
            b"HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 6\r\nconnection: close\r\n\r\nh\xc3\xa4llo"
        )

    def test_sequence_is_chunked(self) -> None:
        assert exchange(Answer(body=[b"one", Send(b"2")], after="close_silently")) == (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n1\r\n2\r\n0\r\n\r\n"
        )

    def test_json_and_unknown_status(self) -> None:
        head, body = exchange(Answer(status=529, body={"a": "ö"}, after="close")).split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 529 \r\n")
        assert json.loads(body) == {"a": "ö"}

    def test_close_delimited(self) -> None:
        assert exchange(Answer(body=[b"one", b"two"], framing="close")) == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonetwo"

    @pytest.mark.parametrize("option", ["close", "Close", "x, close"])
    def test_connection_is_closed_when_the_client_says_so(self, option: str) -> None:
        request = f"GET / HTTP/1.1\r\nhost: x\r\nconnection: {option}\r\n\r\n".encode()
        assert exchange(Answer(body=b"one"), request) == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\none"
        assert exchange(Answer(body=[b"one"], after="drop_next"), request).endswith(b"\r\nconnection: close\r\n\r\n3\r\none\r\n0\r\n\r\n")
        assert b"connection" not in exchange(Answer(body=b"one", after="close_silently"), request)
        with pytest.raises(ConnectionResetError):
            exchange(Answer(after="reset"), request)

    def test_what_comes_after_a_last_request_is_not_looked_at(self) -> None:
        last = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        with WireServer([Answer(body=b"1"), Answer(body=b"2")]) as server, dialled(server) as sock:
            sock.sendall(last + REQUEST)
            assert all_of(sock).endswith(b"\r\n\r\n1")
            assert len(server.requests) == 1

    @pytest.mark.parametrize("option", [b"", b"connection: keep-alive\r\n"])
    def test_client_of_http_1_0_gets_no_chunks(self, option: bytes) -> None:
        request = b"GET / HTTP/1.0\r\n" + option + b"\r\n"
        assert exchange(Answer(body=[b"one", b"two"]), request) == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nonetwo"
        assert exchange(Answer(body=b"one"), request) == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\none"
        assert b"\r\n3\r\none" in exchange(Answer(body=[b"one"], framing="chunked"), request)  # told to be wrong

    def test_promised_length_may_be_a_lie(self) -> None:
        assert exchange(Answer(body=[b"one", Close()], framing="length", length=99)) == b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\none"

    def test_no_body_after_head_or_204(self) -> None:
        assert exchange(Answer(body=b"x", after="close"), b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n").endswith(b"\r\n\r\n")
        assert b"content-length" not in exchange(Answer(status=204, after="close"))

    def test_gzip_is_flushed_after_each_piece(self) -> None:
        gate = Gate()
        with WireServer([Answer(gzip=True, body=[b"one", Wait(gate), b"two"], framing="close")]) as server, dialled(server) as sock:
            sock.sendall(REQUEST)
            gate.reached()
            gate.open()
            head, body = all_of(sock).split(b"\r\n\r\n", 1)
        assert b"content-encoding: gzip" in head
        assert gzip.decompress(body) == b"onetwo"

    def test_gzip_of_a_whole_body_has_the_right_length(self) -> None:
        with WireServer([Answer(gzip=True, body=b"one" * 100)]) as server:
            assert httpx2.get(server.url, trust_env=False).content == b"one" * 100

    def test_raw_bytes_and_delays_stand_where_they_are_put(self) -> None:
        answer = Answer(before=[Raw(b"raw"), b"bare"], body=[b"x", Delay(0.01), Repeat(b"y", every=0.001, times=2), Raw(b"zz"), Close()])
        assert exchange(answer) == b"rawbareHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n1\r\ny\r\n1\r\ny\r\nzz"

    def test_reset_is_a_reset(self) -> None:
        with pytest.raises(ConnectionResetError):
            exchange(Answer(body=[b"x", Reset()]))
        with pytest.raises(ConnectionResetError):
            exchange(Answer(after="reset"))

    def test_stall_ends_when_the_client_goes(self) -> None:
        with WireServer([Answer(before=[Stall()])]) as server:
            with dialled(server) as sock:
                sock.sendall(REQUEST)
                server.wait_requests(1)
            server.wait_closed(0)

    def test_repeat_ends_when_the_client_goes(self) -> None:
        with WireServer([Answer(body=[Repeat(b"x", every=0.001)])]) as server:
            with dialled(server) as sock:
                sock.sendall(REQUEST)
                sock.recv(100)
            server.wait_closed(0)

    def test_gate_may_be_opened_late_or_never(self) -> None:
        gates = [Gate(), Gate()]
        with WireServer([Answer(body=[Wait(gate)]) for gate in gates]) as server:
            for gate in gates:
                with dialled(server) as sock:
                    sock.sendall(REQUEST)
                    gate.reached()
                server.wait_closed()
        gates[0].open()

    def test_promise_of_keep_alive_is_broken_at_the_next_request(self) -> None:
        with WireServer([Answer(after="drop_next"), Answer(body=b"2")]) as server, dialled(server) as sock:
            sock.sendall(REQUEST)
            assert sock.recv(1000).startswith(b"HTTP/1.1 200")
            sock.sendall(REQUEST)
            assert sock.recv(1000) == b""
            assert len(server.requests) == len(server.dropped) == 1
            assert httpx2.get(server.url, trust_env=False).text == "2"

    def test_client_that_does_not_read_slows_the_server_down(self) -> None:
        with WireServer([Answer(body=[b"x" * 65536] * 300 + [Close()])]) as server, dialled(server) as sock:
            sock.sendall(REQUEST)
            server.wait_requests(1)
            assert server.open_connections
            assert len(all_of(sock)) > 65536 * 300


class TestServer:
    def test_refuses(self) -> None:
        with WireServer(accept="refuse") as server, pytest.raises(ConnectionRefusedError), dialled(server):
            pass

    def test_has_a_full_backlog(self) -> None:
        with WireServer(accept="never") as server, pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", server.port), timeout=0.05)

    def test_speaks_tls(self) -> None:
        authority = Authority()
        with WireServer(Answer(body=b"x"), tls=authority.server_context()) as server:
            assert server.url.startswith("https://127.0.0.1:")
            assert httpx2.get(server.url, verify=authority.client_context(), trust_env=False).text == "x"

    @pytest.mark.parametrize(
        ("hosts", "expired", "reason"),
        [((), True, "certificate has expired"), (("other.example",), False, "IP address mismatch")],
    )
    def test_has_certificates_that_are_wrong(self, hosts: tuple[str, ...], expired: bool, reason: str) -> None:
        authority = Authority()
        with WireServer(tls=authority.server_context(*hosts, expired=expired)) as server:
            with pytest.raises(httpx2.ConnectError, match=reason):
                httpx2.get(server.url, verify=authority.client_context(), trust_env=False)

    def test_certificates_need_a_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "trustme", None)
        with pytest.raises(ImportError, match="pip install trustme"):
            Authority()

    def test_is_an_async_context_manager_for_asyncio_and_trio(self) -> None:
        async def main() -> None:
            async with WireServer(Answer(body=b"x")) as server, httpx2.AsyncClient(trust_env=False) as client:
                assert (await client.get(server.url)).text == "x"

        asyncio.run(main())
        trio.run(main)

    def test_starts_once_and_stops_any_number_of_times(self) -> None:
        server = WireServer().start()
        with pytest.raises(RuntimeError, match="running already"):
            server.start()
        server.stop()
        server.stop()
        assert repr(server) == "<WireServer stopped, requests: 0>"

    def test_can_take_a_given_port_and_reports_one_that_is_taken(self) -> None:
        with WireServer() as first, pytest.raises(OSError, match="in use"):
            WireServer(port=first.port).start()

    def test_stops_while_clients_wait(self) -> None:
        gate = Gate()
        with WireServer([Answer(before=[Wait(gate)])]) as server:
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            sock.sendall(REQUEST)
            gate.reached()
        with sock:
            assert sock.recv(1) == b""

    def test_serves_many_clients_at_once(self) -> None:
        with WireServer(lambda request: Answer(body=[request.body])) as server:
            results: dict[int, str] = {}

            def call(number: int) -> None:
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
                connection.request("POST", "/", str(number))
                results[number] = connection.getresponse().read().decode()
                connection.close()

            threads = [Thread(target=call, args=(number,)) for number in range(50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert results == {number: str(number) for number in range(50)}

    def test_fixture(self, wire_server: WireServer) -> None:
        wire_server.add(anthropic_message("hi"))
        assert httpx2.get(wire_server.url, trust_env=False).json()["content"] == [{"type": "text", "text": "hi"}]


class TestAnthropic:
    def data(self, *content: Any, **options: Any) -> list[dict[str, Any]]:
        return [json.loads(event.split(b"data: ")[1]) for event in anthropic_events(*content, **options)]

    def test_events_are_framed_as_the_service_frames_them(self) -> None:
        assert sse({"type": "ping"}) == b'event: ping\ndata: {"type": "ping"}\n\n'
        assert sse("[DONE]") == b"data: [DONE]\n\n"
        assert sse({"x": "ö"}, "named") == 'event: named\ndata: {"x": "ö"}\n\n'.encode()

    def test_text_comes_in_pieces(self) -> None:
        events = self.data("abcdef", pieces=2, ping=False)
        assert [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"] == ["abc", "def"]
        assert [event["type"] for event in events] == [
            *("message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"),
            *("message_delta", "message_stop"),
        ]

    def test_blocks_of_every_kind(self) -> None:
        blocks = [
            content_thinking("hm", "sig"),
            content_text("a"),
            content_tool_use("f", {"x": 1}, id="t1"),
            {"type": "redacted_thinking", "data": "d"},
        ]
        events = self.data(*blocks, pieces=1)
        assert [event["content_block"] for event in events if event["type"] == "content_block_start"] == [
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "text", "text": ""},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
            {"type": "redacted_thinking", "data": "d"},
        ]
        assert [event["delta"] for event in events if event["type"] == "content_block_delta"] == [
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "sig"},
            {"type": "text_delta", "text": "a"},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"x": 1}'},
        ]
        assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}

    def test_usage_and_stop_reason_can_be_given(self) -> None:
        events = self.data("a", usage={"input_tokens": 1, "output_tokens": 7}, stop_reason="max_tokens")
        assert events[0]["message"]["usage"] == {"input_tokens": 1, "output_tokens": 1}
        assert (events[-2]["delta"]["stop_reason"], events[-2]["usage"]) == ("max_tokens", {"output_tokens": 7})

    def test_answers_have_the_services_headers(self) -> None:
        assert anthropic_stream("a", headers=[("x", "1")]).header_list() == [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("request-id", "req_test_1"),
            ("x", "1"),
        ]
        error = anthropic_error(429, "rate_limit_error", headers=[("retry-after", "2")], details={"error_code": "c"})
        assert (error.status, error.header_list()[-1]) == (429, ("retry-after", "2"))
        assert error.body == {
            "type": "error",
            "error": {"type": "rate_limit_error", "message": "rate limit error", "details": {"error_code": "c"}},
            "request_id": "req_test_1",
        }


class TestServe:
    def test_plays_a_scenario_over_and_over(self) -> None:
        with open_scenario("rate-limited-once", cycle=True) as server:
            assert [httpx2.post(server.url, trust_env=False).status_code for _ in range(4)] == [429, 200, 429, 200]

    def test_ends_quietly_when_it_is_interrupted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Interrupted:
            def wait(self, timeout: float) -> None:
                raise KeyboardInterrupt

        ports: list[int] = []
        monkeypatch.setattr("dragoman.testing.scenarios.Event", Interrupted)
        serve("good", started=lambda server: ports.append(server.port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ports[0]), timeout=20)

    def test_runs_until_it_is_interrupted(self) -> None:
        def interrupt(server: WireServer) -> None:
            assert httpx2.post(server.url, trust_env=False).status_code == 200
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            serve("good", started=interrupt)


def test_importing_the_tools_loads_no_server() -> None:
    code = "import sys, dragoman.testing, dragoman.testing.pytest_plugin; print({'asyncio', 'h11', 'httpx2'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() in ("set()", "{'asyncio'}")  # pytest itself may load asyncio


def test_all_names_are_there() -> None:
    assert all(getattr(dragoman.testing, name) is not None for name in dragoman.testing.__all__)
    assert set(dragoman.testing.__all__) <= set(dir(dragoman.testing))
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        dragoman.testing.nope  # noqa: B018


@pytest.mark.parametrize("tls", [False, True])
def test_connections_that_come_as_it_stops_are_closed(tls: bool) -> None:
    context = Authority().server_context() if tls else None
    gc.collect()
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(10):
            server = WireServer(anthropic_stream("never"), tls=context).start()
            clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
            server.stop()
            for client in clients:
                client.close()
        gc.collect()
    assert [str(warning.message) for warning in left_open] == []
