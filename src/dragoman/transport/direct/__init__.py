"""The direct transports: HTTP/1.1 straight on blocking sockets and on asyncio, with llhttp (the package httptools) as the parser.

Strategy. One answer is one sans-I/O object (`answer.py`: llhttp and what we refuse on top of it), one connection's TLS another
(`tls.py`); `content.py` unpacks gzip, `request.py` writes a request, `pool.py` knows which connections are idle. On them stand two thin
pairs: `socket_connection.py` and `thread_exchange.py` for threads, `loop_connection.py` and `loop_exchange.py` for asyncio.

They do less than the httpx2 transports, at a fraction of the cost: no proxies, no HTTP/2, no SOCKS, no trio. What they do, they do as
those do: the same errors in the same words, the same clocks, the same rules for connections. `docs/explanation/transport.md` has the
threat and failure model. Everything heavy is imported by the first call.
"""

from __future__ import annotations

import os
import ssl
from threading import Lock
from typing import TYPE_CHECKING
from weakref import finalize

from dragoman.transport import AsyncHTTPResponse, Clocks, HTTPResponse
from dragoman.transport.direct.options import Options
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    from dragoman.transport.direct.loop_exchanges import LoopExchanges
    from dragoman.transport.direct.thread_exchange import ThreadExchanges

__all__ = ["AsyncDirectTransport", "DirectTransport"]

_of_the_parent: list[object] = []
"""In a forked child: connections of the parent's event loops. Freeing them here would only warn of connections that are not ours."""


def _forsaken(exchanges: ThreadExchanges, pid: int) -> None:
    """Nobody has the transport any more: close what is idle. Its sockets hang on this call alone, so even in a cycle they are closed
    before Python can find them open. In a forked child they are the parent's, and their lock may be held for ever.
    """
    if pid == os.getpid():
        exchanges.forsake()


class DirectTransport:
    """Blocking calls. One pool of connections per process, for any number of threads; a forked child opens its own.

    `verify`: True for the system's certificates (with `trust_env`, `SSL_CERT_FILE` and `SSL_CERT_DIR` count), False for none, or an
    `ssl.SSLContext`, which is used as it is: client certificates, private authorities. `max_connections`: None is no limit; a call
    beyond it fails at once with ConnectionFailedError, which may be retried. `max_keepalive_connections` and `keepalive_expiry`
    (seconds; None: no limit) bound the idle ones. `max_header_bytes` bounds the head of an answer with all interim heads before it,
    and its trailers. The fixed limits are in `dragoman.transport.direct.options`.

    Proxies of the environment are not looked at: this transport always goes directly. Errors: see `Transport`; ConfigError also for
    options out of range, for certificates that cannot be loaded and for a context that makes the server speak something other than
    HTTP/1.1.
    """

    def __init__(
        self,
        *,
        verify: bool | ssl.SSLContext = True,
        trust_env: bool = True,
        max_connections: int | None = None,
        max_keepalive_connections: int | None = 1000,
        keepalive_expiry: float | None = 60.0,
        max_header_bytes: int = 64 * 1024,
    ) -> None:
        self._options = Options(
            verify=verify,
            trust_env=trust_env,
            max_connections=max_connections,
            max_keepalive_connections=max_keepalive_connections,
            keepalive_expiry=keepalive_expiry,
            max_header_bytes=max_header_bytes,
        )
        self._lock = Lock()
        self._exchanges: ThreadExchanges | None = None
        self._finalizer: finalize[..., DirectTransport] | None = None
        self._pid = 0

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        return self._current().send(request, timeouts)

    def close(self) -> None:
        """Close all connections, also those of answers that are being read. The transport may be used again."""
        exchanges, self._exchanges = self._exchanges, None
        if exchanges is not None and self._pid == os.getpid():
            if self._finalizer is not None:
                self._finalizer.detach()
            exchanges.close()

    def _current(self) -> ThreadExchanges:
        exchanges = self._exchanges
        if exchanges is not None and self._pid == os.getpid():
            return exchanges
        from dragoman.transport.direct.thread_exchange import ThreadExchanges

        if self._pid != os.getpid():  # a forked child: a thread of the parent may hold the lock that we have inherited
            self._lock, self._exchanges, self._pid = Lock(), None, os.getpid()
        with self._lock:
            if self._exchanges is None:
                self._exchanges = exchanges = ThreadExchanges(self._options)
                self._finalizer = finalize(self, _forsaken, exchanges, self._pid)
            return self._exchanges

    def __repr__(self) -> str:
        return "DirectTransport()"


class AsyncDirectTransport:
    """Calls on an asyncio event loop (uvloop's, too). Each loop has its own connections, closed when the loop ends.

    Options and errors as for `DirectTransport`; the limits hold for each loop on its own.
    """

    def __init__(
        self,
        *,
        verify: bool | ssl.SSLContext = True,
        trust_env: bool = True,
        max_connections: int | None = None,
        max_keepalive_connections: int | None = 1000,
        keepalive_expiry: float | None = 60.0,
        max_header_bytes: int = 64 * 1024,
    ) -> None:
        self._options = Options(
            verify=verify,
            trust_env=trust_env,
            max_connections=max_connections,
            max_keepalive_connections=max_keepalive_connections,
            keepalive_expiry=keepalive_expiry,
            max_header_bytes=max_header_bytes,
        )
        self._lock = Lock()
        self._exchanges: LoopExchanges | None = None
        self._pid = 0

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        """Send and wait for the answer's head: see `Transport.send`."""
        return await self._current().send(request, timeouts)

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait so many seconds, at most until `clocks.abort()`."""
        from dragoman.transport.direct.loop_pool import sleep

        await sleep(seconds, clocks)

    async def close(self) -> None:
        """Close the connections of the running loop; other loops close theirs at their end. The transport may be used again."""
        exchanges = self._exchanges
        if exchanges is not None and self._pid == os.getpid():
            await exchanges.close()

    def _current(self) -> LoopExchanges:
        exchanges = self._exchanges
        if exchanges is not None and self._pid == os.getpid():
            return exchanges
        from dragoman.transport.direct.loop_exchanges import LoopExchanges

        if self._pid != os.getpid():
            _of_the_parent.append(exchanges)
            self._lock, self._exchanges, self._pid = Lock(), None, os.getpid()
        with self._lock:
            if self._exchanges is None:
                self._exchanges = LoopExchanges(self._options)
            return self._exchanges

    def __repr__(self) -> str:
        return "AsyncDirectTransport()"
