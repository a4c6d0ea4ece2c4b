"""What a foreign exception means: the one table from httpx2's and httpcore2's exceptions to ours.

The two packages name their exceptions alike, so the table goes by class name, along the class's bases. What the call knows comes
first: an abort and an expired clock are what they are, whatever exception they surfaced as. Texts begin with the cause's class and
say what happened in fixed words and the operating system's own reason; they never quote a header, a body, or a URL beyond its host,
because those hold keys and prompts.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from dragoman.errors import (
    ConfigError,
    ConnectionFailedError,
    DragomanError,
    IncompleteStreamError,
    Phase,
    ProtocolError,
    ProviderError,
)

if TYPE_CHECKING:
    from dragoman.transport import Clocks

__all__ = ["Progress", "aborted", "failure"]


@dataclass(slots=True)
class Progress:
    """How far a request has come when it fails."""

    proxy: str = ""
    """Host and port of the proxy that it goes through."""
    dialing: bool = False
    """It is connecting, to the proxy if there is one."""
    fresh: bool = False
    """It opened a connection of its own, rather than taking one from the pool."""
    sent: bool = False
    """It began to be sent."""
    answered: bool = False
    """A byte of the answer came."""
    ended: bool = False
    """The peer closed the connection."""
    expired: Phase | None = None
    """The clock that ran out."""


_Maker: TypeAlias = Callable[[BaseException, Progress, str], DragomanError]


def aborted() -> ConnectionFailedError:
    """The error of a wait that `Clocks.abort` ended."""
    return ConnectionFailedError("aborted by the caller", retryable=False)


def failure(error: BaseException, progress: Progress, clocks: Clocks, where: str) -> DragomanError:
    """Our error for a foreign one; `where` is the host and port. Raise it `from` the foreign one."""
    if clocks.aborted:
        return aborted()
    if progress.expired is not None:
        return clocks.expired(progress.expired)
    if progress.proxy and progress.dialing:
        where = f"the proxy {progress.proxy} (for {where})"
    for base in type(error).__mro__:
        if base.__name__ in _MEANING:
            return _MEANING[base.__name__](error, progress, where)
    return ConnectionFailedError(f"{type(error).__name__}: no usable connection to {where}{_reason(error)}")


def _connection(words: str) -> _Maker:
    def make(error: BaseException, progress: Progress, where: str) -> DragomanError:
        del progress
        return ConnectionFailedError(f"{type(error).__name__}: {words} {where}{_reason(error)}")

    return make


def _protocol(words: str) -> _Maker:
    def make(error: BaseException, progress: Progress, where: str) -> DragomanError:
        del progress
        return ProtocolError(f"{type(error).__name__}: {words} {where}")

    return make


def _cut(error: BaseException, progress: Progress, where: str) -> ProviderError:
    """The peer broke the protocol, mostly by closing the connection where it may not."""
    name = type(error).__name__
    if not progress.answered:
        return ConnectionFailedError(f"{name}: {where} closed the connection without an answer")
    if progress.ended:
        return IncompleteStreamError(f"{name}: {where} closed the connection before the end of its answer")
    return ProtocolError(f"{name}: what {where} sent is not HTTP")


def _proxy(error: BaseException, progress: Progress, where: str) -> ProviderError:
    """httpcore2's text is the proxy's status line, of which only the number is repeated."""
    del progress
    status = str(error)[:3]
    refused = f"the proxy refused to connect to {where}" + (f" (HTTP {status})" if status.isdigit() else "")
    return ConnectionFailedError(f"{type(error).__name__}: {refused}", retryable=not status.isdigit() or status >= "500")


def _unusable(error: BaseException, progress: Progress, where: str) -> ConfigError:
    del progress
    return ConfigError(f"{type(error).__name__}: the URL of {where} cannot be used: it must be http:// or https:// with a host")


_MEANING: dict[str, _Maker] = {
    "ConnectTimeout": _connection("no connection in time to"),
    "PoolTimeout": _connection("no free connection in time to"),
    "TimeoutException": _connection("no answer in time from"),
    "ConnectError": _connection("cannot connect to"),
    "ReadError": _connection("connection broken by"),
    "WriteError": _connection("connection broken by"),
    "CloseError": _connection("connection broken by"),
    "NetworkError": _connection("connection broken by"),
    "ProxyError": _proxy,
    "RemoteProtocolError": _cut,
    "LocalProtocolError": _protocol("the request cannot be written for"),
    "DecodingError": _protocol("the content encoding does not fit the bytes of"),
    "UnsupportedProtocol": _unusable,
    "InvalidURL": _unusable,
    "UnicodeError": _unusable,
}


_PARAPHRASED = ("Connect call failed", "Error connecting to")
"""How the words begin that asyncio and trio put in the place of the system's."""


def _reason(error: BaseException) -> str:
    """The operating system's or TLS's own words, from wherever in the chain of causes they are."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f": certificate verify failed: {seen.verify_message}"
        if isinstance(seen, ssl.SSLError):
            return f": TLS failed ({getattr(seen, 'reason', None) or 'handshake'})"
        if isinstance(seen, OSError) and seen.strerror:
            return f": {os.strerror(seen.errno or 0) if seen.strerror.startswith(_PARAPHRASED) else seen.strerror}"
        seen = _origin(seen)
    return ""


def _origin(error: BaseException) -> BaseException | None:
    """What an error came from; of a group (one connect per address), its first."""
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error.__cause__ or error.__context__
