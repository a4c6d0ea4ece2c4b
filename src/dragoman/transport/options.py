"""The options of the httpx2 transports, as one value. Nothing is imported for them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError

if TYPE_CHECKING:
    import httpx2

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """See `HTTPX2Transport`. The repr shows no proxy: its URL may hold a password."""

    verify: bool | ssl.SSLContext = True
    proxy: str | httpx2.Proxy | None = field(default=None, repr=False)
    trust_env: bool = True
    http2: bool = False
    max_connections: int | None = None
    max_keepalive_connections: int | None = 100
    keepalive_expiry: float | None = 60.0

    def checked(self, with_client: bool) -> Options:
        """These options. Raises ConfigError if a client was given and options besides it, which would do nothing."""
        if with_client and self != Options():
            raise ConfigError("client= comes with its own connections: set verify, proxy, http2 and limits on it, not here")
        return self
