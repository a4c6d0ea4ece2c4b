"""What goes wrong below an answer, by the names that the one table of failures knows (`dragoman.transport.failure`).

Both transports fail in the same words that way. A fault's `__cause__` is the operating system's, TLS's or the parser's own exception.
"""

from __future__ import annotations

__all__ = ["ClosedHere", "ConnectError", "DecodingError", "Fault", "ReadError", "RemoteProtocolError", "WriteError"]


class Fault(Exception):
    """Base of the faults. None of them leaves this package."""


class ConnectError(Fault):
    """No connection: name look-up, TCP or TLS."""


class ReadError(Fault):
    """The connection broke while we waited for bytes."""


class ClosedHere(ReadError):
    """We have closed the connection ourselves: the transport was closed, or the call aborted."""


class WriteError(Fault):
    """The connection broke while we sent the request."""


class RemoteProtocolError(Fault):
    """The peer broke HTTP, mostly by closing where it may not."""


class DecodingError(Fault):
    """The body is not what its content-encoding says."""
