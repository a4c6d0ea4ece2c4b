"""TLS of the direct transports: who is trusted, what is said in the handshake, and how it may end."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import trustme
import truststore

from dragoman.errors import ConfigError, ConnectionFailedError, IncompleteStreamError, RequestTimeoutError
from dragoman.testing import Answer, Stall, WireServer
from dragoman.testing.certificate import Authority
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.transport.direct import tls as module
from dragoman.transport.direct.options import Options
from tests.transport.calls import request_to, running
from tests.transport.peers import listening

from .drive import BOTH, fetching

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")


def localhost(server: WireServer) -> str:
    return server.url.replace("127.0.0.1", "localhost")


@BOTH
class TestHandshake:
    def test_says_the_name_and_the_protocol(self, library: str) -> None:
        authority = Authority()
        context = authority.server_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        names: list[str | None] = []

        def said(sock: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            names.append(name)

        context.sni_callback = said  # type: ignore[assignment]
        client = authority.client_context()
        client.set_alpn_protocols(["http/1.1"])
        with WireServer(TEXT, tls=context) as server, fetching(library, verify=client) as fetch:
            assert fetch(request_to(localhost(server)))[2] == b"whole"
        assert names == ["localhost"]

    def test_offers_http_1_1_only_with_a_context_of_our_own(self, library: str) -> None:
        chosen: list[str | None] = []

        def answer(secure: ssl.SSLSocket) -> None:
            chosen.append(secure.selected_alpn_protocol())
            secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole")

        with tls_peer(Authority(), answer) as url, fetching(library, verify=False) as fetch:
            assert fetch(request_to(url))[2] == b"whole"
        assert chosen == ["http/1.1"]

    @pytest.mark.parametrize(
        ("served", "reason"),
        [
            (lambda authority: authority.server_context("other.example"), "Hostname mismatch"),
            (lambda authority: authority.server_context(expired=True), "certificate has expired"),
            (lambda authority: Authority().server_context(), "unable to get local issuer certificate"),
        ],
        ids=["another host", "expired", "another authority"],
    )
    def test_of_a_wrong_certificate_ends_before_anything_is_sent(
        self, library: str, served: Callable[[Authority], ssl.SSLContext], reason: str
    ) -> None:
        authority = Authority()
        with WireServer(TEXT, tls=served(authority)) as server, fetching(library, verify=authority.client_context()) as fetch:
            where = re.escape(f"ConnectError: cannot connect to localhost:{server.port}: certificate verify failed: ")
            with pytest.raises(ConnectionFailedError, match=where + f".*{reason}"):
                fetch(request_to(localhost(server), **{"x-api-key": "secret"}))
            assert server.requests == []

    def test_with_a_client_certificate(self, library: str) -> None:
        authority, clients = trustme.CA(), trustme.CA()
        server_side, client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.issue_cert("127.0.0.1").configure_cert(server_side)
        clients.configure_trust(server_side)
        server_side.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(client_side)
        with WireServer(TEXT, tls=server_side) as server:
            with fetching(library, verify=client_side) as fetch, pytest.raises(ConnectionFailedError):
                fetch(request_to(server))
            assert server.requests == []
            clients.issue_cert("client@example.org").configure_cert(client_side)
            with fetching(library, verify=client_side) as fetch:
                assert fetch(request_to(server))[2] == b"whole"

    def test_of_a_context_that_wants_another_protocol_says_so(self, library: str) -> None:
        authority = Authority()
        server_side, client_side = authority.server_context(), authority.client_context()
        server_side.set_alpn_protocols(["h2"])
        client_side.set_alpn_protocols(["h2", "http/1.1"])
        with WireServer(TEXT, tls=server_side) as server, fetching(library, verify=client_side) as fetch:
            with pytest.raises(ConfigError, match="offers h2, and the server took it"):
                fetch(request_to(server))
            assert server.requests == []

    def test_with_what_does_not_speak_tls(self, library: str) -> None:
        def serve(peer: socket.socket) -> None:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        with listening(serve) as port, fetching(library) as fetch:
            with pytest.raises(ConnectionFailedError, match=f"ConnectError: cannot connect to 127.0.0.1:{port}: TLS failed"):
                fetch(request_to(f"https://127.0.0.1:{port}"))

    def test_that_the_server_breaks_off(self, library: str) -> None:
        def serve(peer: socket.socket) -> None:
            peer.recv(65536)

        with listening(serve) as port, fetching(library) as fetch:
            with pytest.raises(ConnectionFailedError, match=f"ConnectError: cannot connect to 127.0.0.1:{port}"):
                fetch(request_to(f"https://127.0.0.1:{port}"))


@contextmanager
def tls_peer(authority: Authority, answer: Callable[[Any], None]) -> Iterator[str]:
    """A blocking TLS server that reads one request and leaves the rest, the end of TLS too, to `answer`."""
    context = authority.server_context()
    context.set_alpn_protocols(["h2", "http/1.1"])

    def serve(peer: socket.socket) -> None:
        with context.wrap_socket(peer, server_side=True, suppress_ragged_eofs=True) as secure:
            secure.recv(65536)
            answer(secure)

    with listening(serve) as port:
        yield f"https://127.0.0.1:{port}"


HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"


@BOTH
class TestEnd:
    """A body without a length ends where the connection does. Anyone on the way can end TCP; only the server can end TLS."""

    def test_of_tls_ends_a_body(self, library: str) -> None:
        authority = Authority()

        def answer(secure: ssl.SSLSocket) -> None:
            secure.sendall(HEAD + b"whole")
            secure.unwrap()

        with tls_peer(authority, answer) as url, fetching(library, verify=authority.client_context()) as fetch:
            assert fetch(request_to(url))[2] == b"whole"

    def test_of_tcp_alone_cuts_it(self, library: str) -> None:
        authority = Authority()

        def answer(secure: ssl.SSLSocket) -> None:
            secure.sendall(HEAD + b"who")

        with tls_peer(authority, answer) as url, fetching(library, verify=authority.client_context()) as fetch:
            with pytest.raises(IncompleteStreamError, match="before the end of its answer"):
                fetch(request_to(url))

    def test_of_tcp_after_a_whole_body_does_no_harm(self, library: str) -> None:
        authority = Authority()

        def answer(secure: ssl.SSLSocket) -> None:
            secure.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwhole")

        with tls_peer(authority, answer) as url, fetching(library, verify=authority.client_context()) as fetch:
            assert [fetch(request_to(url))[2] for _ in range(3)] == [b"whole"] * 3


@BOTH
def test_what_came_before_damaged_tls_is_handed_out_first(library: str) -> None:
    authority = Authority()
    context = authority.server_context()

    def serve(peer: socket.socket) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = context.wrap_bio(incoming, outgoing, server_side=True)
        request = b""
        while not request:
            incoming.write(peer.recv(65536))
            with suppress(ssl.SSLWantReadError):
                server.do_handshake()
                request = server.read()
            peer.sendall(outgoing.read())
        server.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwho")
        peer.sendall(outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
        peer.recv(65536)

    with listening(serve) as port:
        request = request_to(f"https://127.0.0.1:{port}")
        got: list[bytes] = []
        if library == "threads":
            transport = DirectTransport(verify=authority.client_context())
            with pytest.raises(ConnectionFailedError, match=r"ReadError: connection broken by 127.0.0.1:\d+: TLS failed \(DECRYPTION"):
                got.extend(transport.send(request, running()))
        else:

            async def main() -> None:
                async for data in await AsyncDirectTransport(verify=authority.client_context()).send(request, running()):
                    got.append(data)  # noqa: PERF401  # kept when the next one fails

            with pytest.raises(ConnectionFailedError, match=r"ReadError: connection broken by 127.0.0.1:\d+: TLS failed \(DECRYPTION"):
                asyncio.run(main())
    assert got == [b"who"]


@BOTH
def test_large_bodies_both_ways(library: str) -> None:
    authority = Authority()
    body = bytes(range(256)) * 20_000
    with WireServer(lambda request: Answer(body=request.body), tls=authority.server_context()) as server:
        with fetching(library, verify=authority.client_context()) as fetch:
            assert [fetch(request_to(server, body))[2] == body for _ in range(2)] == [True, True]
        assert [request.connection for request in server.requests] == [0, 0]


@BOTH
def test_idle_timeout_over_tls(library: str) -> None:
    authority = Authority()
    with WireServer(Answer(body=[b"x", Stall()]), tls=authority.server_context()) as server:
        with fetching(library, verify=authority.client_context()) as fetch, pytest.raises(RequestTimeoutError) as caught:
            fetch(request_to(server), running(idle=0.05))
        assert caught.value.phase == "idle"
        server.wait_closed(0)


def test_our_own_context_verifies_and_is_made_once() -> None:
    context = module.context_for(Options())
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context is module.context_for(Options())


def test_certificates_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_contexts", {})
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    with pytest.raises(ConfigError, match="check SSL_CERT_FILE"):
        module.context_for(Options())
    assert module.context_for(Options(trust_env=False))


def test_certificates_of_the_environment_are_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setattr(module, "_contexts", {})
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server_side)
    with WireServer(TEXT, tls=server_side) as server, fetching("threads") as fetch:
        assert fetch(request_to(server))[2] == b"whole"


def test_where_openssl_has_no_files_truststore_looks_for_the_systems(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """As with a Python that was built on another system: OpenSSL's own paths are not there, the system's bundle is elsewhere."""
    nowhere = ssl.DefaultVerifyPaths("", "", "SSL_CERT_FILE", str(tmp_path / "cert.pem"), "SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_contexts", {})
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    context = module.context_for(Options())
    assert isinstance(context, truststore.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    authority = Authority()
    with WireServer(TEXT, tls=authority.server_context()) as server, fetching("threads", verify=context) as fetch:
        with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
            fetch(request_to(server))
