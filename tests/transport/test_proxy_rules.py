"""Which proxy the environment names for a URL: as httpx2 does it."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.transport.proxy import ProxyRules

NAMES = [f"{name}_proxy" for name in ("http", "https", "all", "no")]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def set_environment(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"{name}_proxy", value)


def test_without_variables_everything_is_reached_directly() -> None:
    assert ProxyRules.from_environment().proxy_for("https://api.anthropic.com/v1") is None


def test_scheme_decides_and_all_is_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, http="http://one:1", https="http://two:2", all="socks5://three:3")
    rules = ProxyRules.from_environment()
    assert rules.proxy_for("http://host/") == "http://one:1"
    assert rules.proxy_for("https://host/") == "http://two:2"
    monkeypatch.delenv("https_proxy")
    assert ProxyRules.from_environment().proxy_for("https://host/") == "socks5://three:3"


def test_proxy_without_scheme_is_http(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, https="proxy:8080")
    assert ProxyRules.from_environment().proxy_for("https://host/") == "http://proxy:8080"


@pytest.mark.parametrize(
    ("no_proxy", "host", "direct"),
    [
        ("example.com", "example.com", True),
        ("example.com", "api.example.com", True),
        ("example.com", "notexample.com", False),
        (".example.com", "api.example.com", True),
        (".example.com", "example.com", False),
        ("*.example.com", "api.example.com", True),
        ("localhost,127.0.0.1", "127.0.0.1", True),
        ("localhost", "sub.localhost", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("::1", "[::1]", True),
        ("other.com, example.com", "example.com", True),
        ("EXAMPLE.com", "example.COM", True),
        ("*", "example.com", True),
        ("other.com,*", "example.com", True),
        ("10.0.0.0/99,[", "example.com", False),
        ("", "example.com", False),
    ],
)
def test_no_proxy(monkeypatch: pytest.MonkeyPatch, no_proxy: str, host: str, direct: bool) -> None:
    set_environment(monkeypatch, all="http://proxy:1", no=no_proxy)
    assert (ProxyRules.from_environment().proxy_for(f"https://{host}/v1") is None) is direct


def test_repr_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, all="http://user:hunter2@proxy:1")
    assert "hunter2" not in repr(ProxyRules.from_environment())


HOSTS = st.sampled_from(
    ["example.com", "api.example.com", "a.b.example.com", "localhost", "127.0.0.1", "10.1.2.3", "[::1]", "[fd00::1]", "x"]
)
PORTS = st.sampled_from(["", ":80", ":443", ":81"])
URLS = st.builds(lambda scheme, host, port: f"{scheme}://{host}{port}/v1", st.sampled_from(["http", "https"]), HOSTS, PORTS)
ENTRIES = st.sampled_from(
    [
        *("example.com", ".example.com", "*.example.com", "EXAMPLE.COM", "localhost", "127.0.0.1", "10.0.0.0/8", "10.1.2.3/32"),
        *("10.1.2.3/33", "::1", "[::1]", "fd00::/8", "fd00::1/x", "http://example.com", "https://api.example.com:81", "all://x"),
        *("x/y", "", " ", "*com", "a b"),
    ]
)
PROXIES = st.sampled_from(["", "http://p:1", "p:2", "https://p:3", "socks5://p:4"])


@given(http=PROXIES, https=PROXIES, every=PROXIES, entries=st.lists(ENTRIES, max_size=5), url=URLS)
def test_agrees_with_httpx2(http: str, https: str, every: str, entries: list[str], url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch, http=http, https=https, all=every, no=",".join(entries))
        ours = ProxyRules.from_environment().proxy_for(url)
        assert ours == _httpx2_proxy(url)


def _httpx2_proxy(url: str) -> str | None:
    """What httpx2's client would use, from its internals: they are the specification here."""
    from httpx2 import _utils

    mounts = sorted((_utils.URLPattern(key), proxy) for key, proxy in _utils.get_environment_proxies().items())
    return next((proxy for pattern, proxy in mounts if pattern.matches(httpx2.URL(url))), None)
