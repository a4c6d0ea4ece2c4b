"""Certificates for TLS tests, made when they are asked for: an authority that nobody trusts unless told to.

Needs the package `trustme` (in the development dependencies); no key is kept in the repository or on disk.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

__all__ = ["Authority"]


class Authority:
    """A certificate authority that lives as long as the object. Raises ImportError, saying what to install, without trustme."""

    def __init__(self) -> None:
        try:
            import trustme
        except ImportError as error:
            raise ImportError("test certificates need trustme: pip install trustme") from error
        self._ca = trustme.CA()

    def server_context(self, *hosts: str, expired: bool = False) -> ssl.SSLContext:
        """For `WireServer(tls=…)`: a certificate for these hosts (default: the loopback names), perhaps one that ended yesterday."""
        end = datetime.now(UTC) - timedelta(days=1) if expired else None
        certificate = self._ca.issue_cert(*(hosts or ("127.0.0.1", "localhost", "::1")), not_after=end)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _configure(certificate, "configure_cert", context)
        return context

    def client_context(self) -> ssl.SSLContext:
        """For `HTTPX2Transport(verify=…)`: trusts this authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _configure(self._ca, "configure_trust", context)
        return context


def _configure(item: object, method: str, context: ssl.SSLContext) -> None:
    getattr(item, method)(context)  # trustme's own annotations need pyOpenSSL, which is not there
