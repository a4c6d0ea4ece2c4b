"""Which transport a provider uses: chosen host by host, or named."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from dragoman import Anthropic, ConfigError, Request
from dragoman.testing import Answer, WireServer, anthropic_events
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.transport.choose import AsyncAutoTransport, AutoTransport
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport
from tests.transport.calls import without_proxies

ASK = Request("hi", model="claude-test-1", max_tokens=16)
HELLO = Answer(headers=SSE_HEADERS, body=anthropic_events("Hello"))


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    without_proxies(monkeypatch)


@pytest.mark.parametrize(
    ("given", "blocking", "looped"),
    [
        ({}, AutoTransport, AsyncAutoTransport),
        ({"transport": "auto"}, AutoTransport, AsyncAutoTransport),
        ({"transport": "direct"}, DirectTransport, AsyncDirectTransport),
        ({"transport": "httpx2"}, HTTPX2Transport, AsyncHTTPX2Transport),
        ({"async_transport": "httpx2"}, AutoTransport, AsyncHTTPX2Transport),
        ({"transport": "direct", "async_transport": "httpx2"}, DirectTransport, AsyncHTTPX2Transport),
    ],
)
def test_a_transport_is_chosen_or_named(given: dict[str, Any], blocking: type, looped: type) -> None:
    provider = Anthropic("k", **given)
    assert (type(provider.transport), type(provider.async_transport)) == (blocking, looped)


@pytest.mark.parametrize("given", [{"transport": "curl"}, {"async_transport": "curl"}, {"transport": 5}, {"async_transport": object()}])
def test_another_name_or_thing_is_refused_at_once(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a transport is 'auto', 'direct', 'httpx2' or an object with a method `send`, not"):
        Anthropic("k", **given)


def test_calls_go_directly_unless_a_proxy_stands_between_which_can_be_seen(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    with WireServer([HELLO] * 4) as server:
        with Anthropic("k", base_url=server.url) as provider:
            provider.complete(ASK)
            asyncio.run(provider.acomplete(ASK))
            assert (repr(provider.transport), repr(provider.async_transport)) == ("AutoTransport(direct)", "AsyncAutoTransport(direct)")
        monkeypatch.setenv("HTTP_PROXY", server.url)
        with Anthropic("k", base_url="http://localhost:1") as provider:
            provider.complete(ASK)
            asyncio.run(provider.acomplete(ASK))
            assert (repr(provider.transport), repr(provider.async_transport)) == ("AutoTransport(httpx2)", "AsyncAutoTransport(httpx2)")
        paths = [request.path for request in server.requests]
    assert paths == ["/v1/messages"] * 2 + ["http://localhost:1/v1/messages"] * 2
    told = [record.getMessage() for record in caplog.records if "go by" in record.getMessage()]
    address = server.url.removeprefix("http://")
    assert (
        told
        == [f"requests to {address} go by direct: no proxy"] * 2
        + ["requests to localhost:1 go by httpx2: the environment names a proxy"] * 2
    )


def test_a_named_transport_is_used_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with WireServer(HELLO) as server, Anthropic("k", base_url=server.url, transport="direct") as provider:
        assert provider.complete(ASK).text == "Hello"
