"""The ways a request can take: proxies of every kind, and HTTP/2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from dragoman.errors import ConfigError, ConnectionFailedError, RequestTimeoutError
from dragoman.testing import Answer, Stall, WireServer
from dragoman.testing.certificate import Authority
from dragoman.transport import Clocks
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

from .calls import PATIENCE, request_to, run, running
from .peers import connect_proxy, http2_server, socks_proxy

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")
EVERYWHERE = pytest.mark.parametrize("library", ["threads", "asyncio", "trio"])


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def fetch(library: str, *urls: str, clocks: Clocks | None = None, left_early: bool = False, **options: Any) -> list[bytes]:
    """The bodies of requests to these URLs, one after the other, over one transport."""
    if library == "threads":
        transport = HTTPX2Transport(**options)
        try:
            bodies = []
            for url in urls:
                response = transport.send(request_to(url, **{"x-api-key": "secret"}), clocks or running())
                bodies.append(next(iter(response)) if left_early else response.read())
                response.close()
            return bodies
        finally:
            transport.close()

    async def main() -> list[bytes]:
        transport = AsyncHTTPX2Transport(**options)
        bodies = []
        for url in urls:
            response = await transport.send(request_to(url, **{"x-api-key": "secret"}), clocks or running())
            bodies.append(await anext(aiter(response)) if left_early else await response.read())
            await response.close()
        with anyio.CancelScope(shield=True):
            await transport.close()
        return bodies

    return run(library, main)


def refuses_again_and_again(library: str, url: str, text: str) -> None:
    """A transport of one connection says so at each call: none waits for what the one before has kept."""
    if library == "threads":
        transport = HTTPX2Transport(max_connections=1)
        for _ in range(3):
            with pytest.raises(ConfigError, match=text):
                transport.send(request_to(url), running(connect=PATIENCE))
        transport.close()
        return

    async def main() -> None:
        transport = AsyncHTTPX2Transport(max_connections=1)
        for _ in range(3):
            with pytest.raises(ConfigError, match=text):
                await transport.send(request_to(url), running(connect=PATIENCE))
        await transport.close()

    run(library, main)


@EVERYWHERE
class TestProxy:
    def test_of_the_environment_gets_plain_requests_whole(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(TEXT) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("http://", "http://user:hunter2@"))
            assert fetch(library, "http://api.example/x", "http://api.example") == [b"whole", b"whole"]
            request = proxy.requests[0]
        assert request.path == "http://api.example/x/v1/messages"
        assert request.header("proxy-authorization") == "Basic dXNlcjpodW50ZXIy"
        assert [request.connection for request in proxy.requests] == [0, 0]

    def test_of_the_environment_is_passed_by_for_no_proxy_hosts(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(accept="refuse") as proxy, WireServer(TEXT) as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
            assert fetch(library, server.url) == [b"whole"]

    def test_of_the_environment_is_ignored_on_demand(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(accept="refuse") as proxy, WireServer(TEXT) as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            assert fetch(library, server.url, trust_env=False) == [b"whole"]

    def test_tunnels_https_and_does_not_see_the_key(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        authority = Authority()
        with connect_proxy() as (port, heads), WireServer(TEXT, tls=authority.server_context()) as server:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
            assert fetch(library, server.url, server.url, verify=authority.client_context()) == [b"whole", b"whole"]
            assert server.requests[0].header("x-api-key") == "secret"
        assert len(heads) == 1
        assert heads[0].startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n".encode())
        assert b"secret" not in heads[0]

    def test_may_itself_be_reached_by_tls(self, library: str) -> None:
        authority, of_proxy = Authority(), Authority()
        with connect_proxy(of_proxy.server_context()) as (port, heads), WireServer(TEXT, tls=authority.server_context()) as server:
            proxy = httpx2.Proxy(f"https://127.0.0.1:{port}", ssl_context=of_proxy.client_context())
            assert fetch(library, server.url, proxy=proxy, verify=authority.client_context()) == [b"whole"]
            with pytest.raises(ConnectionFailedError, match="certificate verify failed"):
                fetch(library, server.url, proxy=f"https://127.0.0.1:{port}", verify=authority.client_context())
        assert len(heads) == 1

    def test_first_byte_through_a_tunnel_is_the_servers(self, library: str) -> None:
        authority = Authority()
        with connect_proxy() as (port, _), WireServer(Answer(before=[Stall()]), tls=authority.server_context()) as server:
            options = {"proxy": f"http://127.0.0.1:{port}", "verify": authority.client_context()}
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(library, server.url, clocks=running(first_byte=0.1), **options)
            assert caught.value.phase == "first_byte"

    @pytest.mark.parametrize(("status", "retryable"), [(407, False), (403, False), (502, True)])
    def test_refusal_names_the_status(self, library: str, status: int, retryable: bool) -> None:
        with WireServer(Answer(status=status, reason="sk-secret")) as proxy:
            with pytest.raises(ConnectionFailedError) as caught:
                fetch(library, "https://api.example", proxy=proxy.url)
            assert caught.value.message == f"ProxyError: the proxy refused to connect to api.example:443 (HTTP {status})"
            assert caught.value.retryable is retryable

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5"])
    @pytest.mark.parametrize("url", ["http://api.example", "https://api.example"])
    def test_that_cannot_be_reached_is_named(self, library: str, scheme: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with WireServer(accept="refuse") as proxy:
            monkeypatch.setenv("ALL_PROXY", f"{scheme}://user:hunter2@127.0.0.1:{proxy.port}")
            with pytest.raises(ConnectionFailedError) as caught:
                fetch(library, url)
        where = f"the proxy 127.0.0.1:{proxy.port} (for api.example:{443 if url.startswith('https') else 80})"
        assert caught.value.message == f"ConnectError: cannot connect to {where}: Connection refused"

    def test_server_behind_it_is_named_for_what_is_its_own(self, library: str) -> None:
        with connect_proxy() as (port, _), WireServer(TEXT, tls=Authority().server_context()) as server:
            with pytest.raises(ConnectionFailedError, match=f"cannot connect to 127.0.0.1:{server.port}: certificate verify failed"):
                fetch(library, server.url, proxy=f"http://127.0.0.1:{port}")

    def test_that_is_no_url_takes_no_slot(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.example")
        refuses_again_and_again(library, "http://api.example", "the proxy is not a URL")

    def test_certificates_that_cannot_be_loaded_take_no_slot(self, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dragoman.transport.connecting._contexts", {})
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
        refuses_again_and_again(library, "https://127.0.0.1:1", "the trusted certificates cannot be loaded")

    def test_that_stalls_is_a_connect_timeout(self, library: str) -> None:
        with WireServer(Answer(before=[Stall()])) as proxy:
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(library, "https://api.example", proxy=proxy.url, clocks=running(connect=0.1))
            assert caught.value.phase == "connect"
            proxy.wait_closed(0)

    def test_socks(self, library: str) -> None:
        with socks_proxy() as (port, asked), WireServer(TEXT) as server:
            assert fetch(library, f"http://api.example:{server.port}", proxy=f"socks5h://127.0.0.1:{port}") == [b"whole"]
            assert asked == [("api.example", server.port)]

    def test_socks_without_its_package(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dragoman.transport.connecting.find_spec", lambda name: None)
        with pytest.raises(ConfigError, match="a SOCKS proxy needs the package socksio"):
            fetch(library, "http://api.example", proxy="socks5://127.0.0.1:1")

    def test_with_a_scheme_that_is_none(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ALL_PROXY", "gopher://user:hunter2@proxy:1")
        with pytest.raises(ConfigError, match="the proxy is not a URL") as caught:
            fetch(library, "http://api.example")
        assert "hunter2" not in str(caught.value)


@EVERYWHERE
class TestHTTP2:
    def test_connection_is_used_again(self, library: str) -> None:
        authority = Authority()
        with http2_server(authority.server_context()) as (port, streams):
            url = f"https://127.0.0.1:{port}"
            assert fetch(library, url, url, url, http2=True, verify=authority.client_context()) == [b"x"] * 3
        assert streams == [3]

    def test_connection_is_shut_when_the_answer_is_left_early(self, library: str) -> None:
        authority = Authority()
        with http2_server(authority.server_context(), finish=False) as (port, streams):
            url = f"https://127.0.0.1:{port}"
            options = {"http2": True, "verify": authority.client_context(), "left_early": True}
            assert fetch(library, url, url, **options) == [b"x"] * 2
        assert streams == [1, 1]

    def test_without_its_package(self, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dragoman.transport.connecting.find_spec", lambda name: None)
        with pytest.raises(ConfigError, match="http2=True needs the package h2"):
            fetch(library, "https://api.example", http2=True)

    def test_idle_timeout(self, library: str) -> None:
        authority = Authority()
        with http2_server(authority.server_context(), finish=False) as (port, _):
            with pytest.raises(RequestTimeoutError) as caught:
                fetch(library, f"https://127.0.0.1:{port}", http2=True, verify=authority.client_context(), clocks=running(idle=0.1))
            assert caught.value.phase == "idle"


@EVERYWHERE
def test_certificates_that_cannot_be_loaded(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    monkeypatch.setattr("dragoman.transport.connecting._contexts", {})
    with pytest.raises(ConfigError, match="check SSL_CERT_FILE and SSL_CERT_DIR"):
        fetch(library, "https://api.example")


@EVERYWHERE
def test_host_and_length_of_the_callers_own_are_kept(library: str) -> None:
    async def main() -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)
        await (await transport.send(request, running())).read()
        await transport.close()

    with WireServer(TEXT) as server:
        request = request_to(server, host="api.example", **{"accept-encoding": "br", "content-length": "2"})
        if library == "threads":
            transport = HTTPX2Transport(trust_env=False)
            transport.send(request, running()).read()
            transport.close()
        else:
            run(library, main)
        headers = server.requests[0].headers
    assert sorted(name for name, _ in headers) == ["accept", "accept-encoding", "content-length", "host"]
    assert server.requests[0].header("host") == "api.example"
