"""The exceptions that may come out of httpx2, httpcore2 and anyio: what a transport catches, so that nothing foreign leaks."""

from __future__ import annotations

import anyio
import h11
import httpcore2
import httpx2

from dragoman.transport.failure import Progress

__all__ = ["FOREIGN", "connection_died"]

FOREIGN: tuple[type[Exception], ...] = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    httpcore2.ConnectionNotAvailable,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
    h11.ProtocolError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
    UnicodeError,
)

_BROKEN: tuple[type[Exception], ...] = (
    httpx2.NetworkError,
    httpx2.RemoteProtocolError,
    httpcore2.NetworkError,
    httpcore2.RemoteProtocolError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
)


def connection_died(error: BaseException, progress: Progress) -> bool:
    """Whether a connection from the pool broke after the request was sent and before any byte of an answer: the server had closed it
    while it was idle, and the request was not seen.
    """
    return isinstance(error, _BROKEN) and progress.sent and not progress.fresh and not progress.answered and progress.expired is None
