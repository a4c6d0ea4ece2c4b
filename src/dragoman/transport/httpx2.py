"""The httpx2 transports: HTTP/1.1 and HTTP/2, proxies, SOCKS, asyncio and trio, and clients that a user brings.

Strategy. The connections come from httpcore2, the engine of httpx2, by its public interfaces only; certificates, content decoding
and the rules for proxies are httpx2's. httpcore2 gets a network backend of ours, through which every wait obeys the call's
`Clocks` and an abort from any thread reaches the socket (`network.py`, `async_network.py`). A user's own `httpx2.Client` is used as
it is (`client_exchange.py`).

A connection from the pool that turns out to be dead before any byte of an answer is replaced here, at once and unseen: the request
is sent again. Everything heavy is imported by the first call.
"""

from __future__ import annotations

import os
import ssl
from threading import Lock
from typing import TYPE_CHECKING

from dragoman.transport import AsyncHTTPResponse, Clocks, HTTPResponse
from dragoman.transport.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpx2

    from dragoman.transport.loops import LoopConnections
    from dragoman.transport.threads import ThreadConnections

__all__ = ["AsyncHTTPX2Transport", "HTTPX2Transport"]

_of_the_parent: list[object] = []
"""In a forked child: what belongs to the parent's event loops. Freeing them here would only warn of connections that are not ours."""


class HTTPX2Transport:
    """Blocking calls. Any number of threads share the connections of a process; a forked child opens its own.

    `verify`: True for the system's certificates as httpx2 finds them (`SSL_CERT_FILE` and `SSL_CERT_DIR` count), False for none, or an
    `ssl.SSLContext`. `proxy`: a URL with http, https, socks5 or socks5h, or an `httpx2.Proxy`; without it `HTTP_PROXY`, `HTTPS_PROXY`,
    `ALL_PROXY` and `NO_PROXY` are read at the first call, unless `trust_env` is False. `http2` needs the package h2; calls do
    not share a connection, with HTTP/2 neither. `max_connections`: how many calls run at once, None for no limit; further ones wait
    their turn, as part of connecting. `max_keepalive_connections` and `keepalive_expiry` (seconds) bound the idle ones.

    `client`: a client of your own, used as it is and never closed; the other options must then be left alone. Its waits know our
    clocks only as far as httpx2's timeouts go: see `dragoman.transport.client_exchange`.

    Errors: see `Transport`; ConfigError also for certificates and proxies that cannot be used.
    """

    def __init__(
        self,
        *,
        verify: bool | ssl.SSLContext = True,
        proxy: str | httpx2.Proxy | None = None,
        trust_env: bool = True,
        http2: bool = False,
        max_connections: int | None = None,
        max_keepalive_connections: int | None = 100,
        keepalive_expiry: float | None = 60.0,
        client: httpx2.Client | None = None,
    ) -> None:
        self._options = Options(
            verify=verify,
            proxy=proxy,
            trust_env=trust_env,
            http2=http2,
            max_connections=max_connections,
            max_keepalive_connections=max_keepalive_connections,
            keepalive_expiry=keepalive_expiry,
        ).checked(client is not None)
        self._client = client
        self._lock = Lock()
        self._connections: ThreadConnections | None = None
        self._pid = 0

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        return self._current().send(request, timeouts)

    def close(self) -> None:
        """Close all connections, also those of answers that are being read. The transport may be used again."""
        connections, self._connections = self._connections, None
        if connections is not None and self._pid == os.getpid():
            connections.close()

    def _current(self) -> ThreadConnections:
        connections = self._connections
        if connections is not None and self._pid == os.getpid():
            return connections
        from dragoman.transport.threads import ThreadConnections

        if self._pid != os.getpid():  # a forked child: a thread of the parent may hold the lock that we have inherited
            self._lock, self._connections, self._pid = Lock(), None, os.getpid()
        with self._lock:
            if self._connections is None:
                self._connections = ThreadConnections(self._options, self._client)
            return self._connections

    def __repr__(self) -> str:
        return "HTTPX2Transport(client=…)" if self._client is not None else "HTTPX2Transport()"


class AsyncHTTPX2Transport:
    """Calls on an event loop, asyncio or trio. Each loop has its own connections, closed when the loop ends.

    Options as for `HTTPX2Transport`; `client` is an `httpx2.AsyncClient`, which belongs to the one loop it was used on first. Here a
    client of your own obeys all clocks and aborts as our connections do.
    """

    def __init__(
        self,
        *,
        verify: bool | ssl.SSLContext = True,
        proxy: str | httpx2.Proxy | None = None,
        trust_env: bool = True,
        http2: bool = False,
        max_connections: int | None = None,
        max_keepalive_connections: int | None = 100,
        keepalive_expiry: float | None = 60.0,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        self._options = Options(
            verify=verify,
            proxy=proxy,
            trust_env=trust_env,
            http2=http2,
            max_connections=max_connections,
            max_keepalive_connections=max_keepalive_connections,
            keepalive_expiry=keepalive_expiry,
        ).checked(client is not None)
        self._client = client
        self._lock = Lock()
        self._connections: LoopConnections | None = None
        self._pid = 0

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        return await self._current().send(request, timeouts)

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait so many seconds, at most until `clocks.abort()`."""
        from dragoman.transport.loops import sleep

        await sleep(seconds, clocks)

    async def close(self) -> None:
        """Close the connections of the running loop; other loops close theirs at their end. The transport may be used again."""
        connections = self._connections
        if connections is not None and self._pid == os.getpid():
            await connections.close()

    def _current(self) -> LoopConnections:
        connections = self._connections
        if connections is not None and self._pid == os.getpid():
            return connections
        from dragoman.transport.loops import LoopConnections

        if self._pid != os.getpid():
            _of_the_parent.append(connections)
            self._lock, self._connections, self._pid = Lock(), None, os.getpid()
        with self._lock:
            if self._connections is None:
                self._connections = LoopConnections(self._options, self._client)
            return self._connections

    def __repr__(self) -> str:
        return "AsyncHTTPX2Transport(client=…)" if self._client is not None else "AsyncHTTPX2Transport()"
