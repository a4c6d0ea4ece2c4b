"""The options and limits of the direct transports, as values. Nothing heavy is imported for them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from dragoman.errors import ConfigError

__all__ = ["BODY_LIMIT", "DRAIN_LIMIT", "FAREWELL", "HAPPY_EYEBALLS_DELAY", "KEEPALIVE_SECONDS", "READ_SIZE", "WRITE_SIZE", "Options"]

READ_SIZE = 64 * 1024
"""Bytes read at once. One buffer per event loop or thread, not per connection."""

BODY_LIMIT = 256 * 1024
"""Bytes of a body that may wait for a slow consumer on an event loop; then reading pauses and TCP holds the server back. At most one
`READ_SIZE` more can be there already. A blocking call reads only what its consumer asks for."""

WRITE_SIZE = 256 * 1024
"""Bytes of a request written per wait: the clock is looked at again between them."""

FAREWELL = 0.05
"""Seconds that `close` waits for the end of a body whose message is complete, so that its connection can be used again."""

DRAIN_LIMIT = 64 * 1024
"""Bytes of a body that `close` takes at most in that time."""

HAPPY_EYEBALLS_DELAY = 0.25
"""Seconds after which the next address of a host is tried beside the one that has not answered (RFC 8305)."""

KEEPALIVE_SECONDS = 60
"""TCP keep-alive probes: an answer that is minutes in the making must not be forgotten by a NAT on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See `DirectTransport`."""

    verify: bool | ssl.SSLContext = True
    trust_env: bool = True
    max_connections: int | None = None
    max_keepalive_connections: int | None = 1000
    keepalive_expiry: float | None = 60.0
    max_header_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        for name, lowest in (("max_connections", 1), ("max_keepalive_connections", 0), ("keepalive_expiry", 0), ("max_header_bytes", 1)):
            value = getattr(self, name)
            if value is not None and value < lowest:
                raise ConfigError(f"{name} must be {lowest} or more, not {value}")
