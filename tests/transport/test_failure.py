"""The table from foreign exceptions to ours."""

from __future__ import annotations

import socket
import ssl

import httpcore2
import httpx2
import pytest

from dragoman.errors import ConfigError, ConnectionFailedError, DragomanError, IncompleteStreamError, ProtocolError, RequestTimeoutError
from dragoman.transport import Clocks, Timeouts
from dragoman.transport.failure import Progress, failure

SECRET = "sk-secret"


def meaning(error: BaseException, progress: Progress | None = None) -> DragomanError:
    return failure(error, progress or Progress(fresh=True, sent=True), Clocks(Timeouts()), "host:443")


@pytest.mark.parametrize(
    ("error", "expected", "text"),
    [
        (httpx2.ConnectError(SECRET), ConnectionFailedError, "ConnectError: cannot connect to host:443"),
        (httpcore2.ConnectError(SECRET), ConnectionFailedError, "ConnectError: cannot connect to host:443"),
        (httpcore2.ReadError(SECRET), ConnectionFailedError, "ReadError: connection broken by host:443"),
        (httpx2.WriteError(SECRET), ConnectionFailedError, "WriteError: connection broken by host:443"),
        (httpx2.CloseError(SECRET), ConnectionFailedError, "CloseError: connection broken by host:443"),
        (httpx2.PoolTimeout(SECRET), ConnectionFailedError, "PoolTimeout: no free connection in time to host:443"),
        (httpx2.ReadTimeout(SECRET), ConnectionFailedError, "ReadTimeout: no answer in time from host:443"),
        (httpcore2.ProxyError("502 " + SECRET), ConnectionFailedError, "ProxyError: the proxy refused to connect to host:443 (HTTP 502)"),
        (httpcore2.ProxyError(SECRET), ConnectionFailedError, "ProxyError: the proxy refused to connect to host:443"),
        (httpcore2.LocalProtocolError(SECRET), ProtocolError, "LocalProtocolError: the request cannot be written for host:443"),
        (httpx2.DecodingError(SECRET), ProtocolError, "DecodingError: the content encoding does not fit the bytes of host:443"),
        (httpcore2.UnsupportedProtocol(SECRET), ConfigError, "UnsupportedProtocol: the URL of host:443 cannot be used"),
        (UnicodeError(SECRET), ConfigError, "UnicodeError: the URL of host:443 cannot be used"),
        (OSError(SECRET), ConnectionFailedError, "OSError: no usable connection to host:443"),
    ],
)
def test_each_has_a_meaning_and_fixed_words(error: BaseException, expected: type[DragomanError], text: str) -> None:
    ours = meaning(error)
    assert type(ours) is expected
    assert str(ours).startswith(text)
    assert SECRET not in str(ours)


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (Progress(sent=True), ConnectionFailedError),
        (Progress(sent=True, answered=True, ended=True), IncompleteStreamError),
        (Progress(sent=True, answered=True), ProtocolError),
    ],
    ids=["before the answer", "cut within it", "not HTTP"],
)
def test_a_broken_protocol_means_what_the_progress_says(progress: Progress, expected: type[DragomanError]) -> None:
    assert type(meaning(httpcore2.RemoteProtocolError(SECRET), progress)) is expected


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), ": Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), ": Name or service not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"), ": TLS failed (handshake)"),
    ],
)
def test_the_systems_own_reason_is_found_in_the_causes(cause: BaseException, reason: str) -> None:
    error = httpx2.ConnectError("x")
    error.__cause__ = httpcore2.ConnectError("x")
    error.__cause__.__cause__ = cause
    assert str(meaning(error)) == f"ConnectError: cannot connect to host:443{reason}"


def test_an_expired_clock_comes_before_the_exception() -> None:
    ours = meaning(httpcore2.ReadError("x"), Progress(expired="idle"))
    assert isinstance(ours, RequestTimeoutError)
    assert ours.phase == "idle"


def test_an_abort_comes_before_everything() -> None:
    clocks = Clocks(Timeouts())
    clocks.abort()
    ours = failure(httpcore2.ReadError("x"), Progress(expired="idle"), clocks, "host:443")
    assert isinstance(ours, ConnectionFailedError)
    assert (str(ours), ours.retryable) == ("aborted by the caller", False)
