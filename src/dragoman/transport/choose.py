"""The transports that choose: direct where nothing stands between us and the server, httpx2 for everything else.

Strategy. A provider has these unless it is given others. The choice is made for each host by rules that do not depend on what happened
before: by httpx2 if the environment names a proxy for the host (its variables are read at the first call, by httpx2's rules) or if the
event loop is not asyncio's; else directly. It is logged once per host, and `way` tells it. To force it, name it: a provider takes
`transport="direct"` or `"httpx2"`. Neither transport is imported, nor made, before a call needs it.
"""

from __future__ import annotations

import logging
import os
import ssl
import sys
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

from dragoman.errors import ConfigError
from dragoman.transport import AsyncHTTPResponse, AsyncTransport, Clocks, HTTPResponse, Transport
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    from dragoman.transport.proxy import ProxyRules

__all__ = ["AsyncAutoTransport", "AutoTransport", "Way", "async_transport_named", "transport_named"]

Way: TypeAlias = Literal["direct", "httpx2"]

log = logging.getLogger("dragoman")

_KNOWN_URLS = 64
"""URLs whose way is remembered: a provider calls few, again and again."""


class _Chooser:
    """The rules."""

    def __init__(self, trust_env: bool) -> None:
        self._read = not trust_env
        self._rules: ProxyRules | None = None
        self._told: set[tuple[str, Way]] = set()
        self._known: dict[str, Way] = {}

    def way(self, url: str, *, on_asyncio: bool = True) -> Way:
        """How a request to `url` goes."""
        known = self._known.get(url) if on_asyncio else None
        if known is not None:
            return known
        way = self._choose(url, on_asyncio=on_asyncio)
        if on_asyncio and len(self._known) < _KNOWN_URLS:
            self._known[url] = way
        return way

    def _choose(self, url: str, *, on_asyncio: bool) -> Way:
        if not on_asyncio:
            return self._tell(url, "httpx2", "the event loop is not asyncio's")
        if not self._read:
            self._rules, self._read = _rules(), True
        if self._rules is not None and self._rules.proxy_for(url) is not None:
            return self._tell(url, "httpx2", "the environment names a proxy")
        return self._tell(url, "direct", "no proxy")

    def _tell(self, url: str, way: Way, why: str) -> Way:
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        if (host, way) not in self._told:
            self._told.add((host, way))
            log.debug("requests to %s go by %s: %s", host, way, why)
        return way


def _rules() -> ProxyRules | None:
    """The environment's proxies. None if the variables' names say that there are none: reading them costs more than a call."""
    if sys.platform not in ("darwin", "win32") and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from dragoman.transport.proxy import ProxyRules

    return ProxyRules.from_environment()


def transport_named(name: str, *, verify: bool | ssl.SSLContext = True, trust_env: bool = True) -> Transport:
    """The blocking transport of this name: `auto`, `direct` or `httpx2`. Raises ConfigError for another."""
    _check_name(name)
    if name == "auto":
        return AutoTransport(verify=verify, trust_env=trust_env)
    if name == "direct":
        from dragoman.transport.direct import DirectTransport

        return DirectTransport(verify=verify, trust_env=trust_env)
    from dragoman.transport.httpx2 import HTTPX2Transport

    return HTTPX2Transport(verify=verify, trust_env=trust_env)


def async_transport_named(name: str, *, verify: bool | ssl.SSLContext = True, trust_env: bool = True) -> AsyncTransport:
    """The transport of this name for event loops: see `transport_named`."""
    _check_name(name)
    if name == "auto":
        return AsyncAutoTransport(verify=verify, trust_env=trust_env)
    if name == "direct":
        from dragoman.transport.direct import AsyncDirectTransport

        return AsyncDirectTransport(verify=verify, trust_env=trust_env)
    from dragoman.transport.httpx2 import AsyncHTTPX2Transport

    return AsyncHTTPX2Transport(verify=verify, trust_env=trust_env)


def _check_name(name: str) -> None:
    if name not in ("auto", "direct", "httpx2"):
        raise ConfigError(f"a transport is 'auto', 'direct', 'httpx2' or an object with a method `send`, not {name!r}")


class AutoTransport:
    """Blocking calls, each by the direct transport or by httpx2. `verify`, `trust_env`: as for both of them; `trust_env=False` also means
    that no proxy is used.
    """

    def __init__(self, *, verify: bool | ssl.SSLContext = True, trust_env: bool = True) -> None:
        self._verify = verify
        self._trust_env = trust_env
        self._chooser = _Chooser(trust_env)
        self._lock = Lock()
        self._made: dict[Way, Transport] = {}

    def way(self, url: str) -> Way:
        """How a request to `url` goes."""
        return self._chooser.way(url)

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        way = self.way(request.url)
        return (self._made.get(way) or self._make(way)).send(request, timeouts)

    def close(self) -> None:
        """Close all connections. The transport may be used again."""
        for transport in list(self._made.values()):
            transport.close()

    def _make(self, way: Way) -> Transport:
        transport = transport_named(way, verify=self._verify, trust_env=self._trust_env)
        with self._lock:
            return self._made.setdefault(way, transport)

    def __repr__(self) -> str:
        return f"AutoTransport({', '.join(sorted(self._made)) or 'not used yet'})"


class AsyncAutoTransport:
    """Calls on an event loop, each by the direct transport or by httpx2. Options as for `AutoTransport`."""

    def __init__(self, *, verify: bool | ssl.SSLContext = True, trust_env: bool = True) -> None:
        self._verify = verify
        self._trust_env = trust_env
        self._chooser = _Chooser(trust_env)
        self._lock = Lock()
        self._made: dict[Way, AsyncTransport] = {}

    def way(self, url: str) -> Way:
        """How a request to `url` goes from where this is called: inside trio by httpx2."""
        return self._chooser.way(url, on_asyncio=not _in_trio())

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        way = self.way(request.url)
        return await (self._made.get(way) or self._make(way)).send(request, timeouts)

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait so many seconds, at most until `clocks.abort()`."""
        way: Way = "httpx2" if _in_trio() else "direct"
        await (self._made.get(way) or self._make(way)).sleep(seconds, clocks)

    async def close(self) -> None:
        """Close the connections of the running loop; other loops close theirs at their end. The transport may be used again."""
        for way, transport in list(self._made.items()):
            if way == "httpx2" or not _in_trio():
                await transport.close()

    def _make(self, way: Way) -> AsyncTransport:
        transport = async_transport_named(way, verify=self._verify, trust_env=self._trust_env)
        with self._lock:
            return self._made.setdefault(way, transport)

    def __repr__(self) -> str:
        return f"AsyncAutoTransport({', '.join(sorted(self._made)) or 'not used yet'})"


def _in_trio() -> bool:
    if "trio" not in sys.modules:
        return False
    from trio.lowlevel import in_trio_task

    return in_trio_task()
