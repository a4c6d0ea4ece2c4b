"""Which transport a request takes: the same variables decide as for httpx2, and the choice can be seen."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.testing import Answer, WireServer
from dragoman.transport.choose import AsyncAutoTransport, AutoTransport
from tests.transport.calls import request_to, run, running, without_proxies

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxies(monkeypatch)


@pytest.mark.parametrize(
    ("environment", "url", "way"),
    [
        ({}, "https://api.example/v1", "direct"),
        ({"HTTPS_PROXY": "http://proxy:1"}, "https://api.example/v1", "httpx2"),
        ({"https_proxy": "http://proxy:1"}, "http://api.example/v1", "direct"),
        ({"ALL_PROXY": "socks5://proxy:1"}, "http://api.example/v1", "httpx2"),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "example"}, "https://api.example/v1", "direct"),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "*"}, "https://api.example/v1", "direct"),
    ],
)
def test_the_environment_decides(environment: dict[str, str], url: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (AutoTransport().way(url), AsyncAutoTransport().way(url)) == (way, way)
    assert AutoTransport(trust_env=False).way(url) == "direct"


def test_a_way_that_is_remembered_holds_for_its_own_url_and_kind_of_loop_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "near.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    transport = AsyncAutoTransport()

    async def ways() -> list[str]:
        return [transport.way(f"https://{host}/v1/{n}") for n in range(100) for host in ("near.example", "far.example")]

    for _ in range(2):
        assert run("asyncio", ways) == ["direct", "httpx2"] * 100
        assert run("trio", ways) == ["httpx2", "httpx2"] * 100


def test_blocking_calls_go_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = AutoTransport()
    assert repr(transport) == "AutoTransport(not used yet)"
    with WireServer(TEXT) as server:
        assert transport.send(request_to(server), running()).read() == b"whole"
        assert repr(transport) == "AutoTransport(direct)"
        monkeypatch.setenv("HTTP_PROXY", server.url)
        proxied = AutoTransport()
        assert proxied.send(request_to("http://api.example"), running()).read() == b"whole"
        assert repr(proxied) == "AutoTransport(httpx2)"
        assert [request.path for request in server.requests] == ["/v1/messages", "http://api.example/v1/messages"]
        transport.close()
        proxied.close()


@pytest.mark.parametrize(("library", "way"), [("asyncio", "direct"), ("uvloop", "direct"), ("trio", "httpx2")])
def test_calls_on_a_loop_go_their_way(library: str, way: str) -> None:
    async def main() -> str:
        transport = AsyncAutoTransport()
        await transport.sleep(0, running())
        response = await transport.send(request_to(server), running())
        assert await response.read() == b"whole"
        await transport.close()
        return repr(transport)

    with WireServer(TEXT) as server:
        assert run(library, main) == f"AsyncAutoTransport({way})"


def test_is_logged_once_per_host_without_secrets(caplog: Any) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    transport = AutoTransport()
    for _ in range(2):
        transport.way("https://user:hunter2@api.example/v1?key=secret")
    transport.way("https://other.example/v1")
    assert [record.getMessage() for record in caplog.records] == [
        "requests to api.example go by direct: no proxy",
        "requests to other.example go by direct: no proxy",
    ]
