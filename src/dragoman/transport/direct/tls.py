"""TLS without a socket: bytes in, bytes out, the same for both transports.

`ssl.MemoryBIO` keeps only what has not been decrypted yet (asyncio's own TLS keeps a buffer of 256 KiB per connection), and a
blocking socket without TLS inside can be shut from another thread at any moment, also within a handshake.

Contexts that we make trust what the system trusts, verify chain and host name, and offer
http/1.1 by ALPN. A context of the caller's is used exactly as it is.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from dragoman.errors import ConfigError
from dragoman.transport.direct.options import READ_SIZE, Options

__all__ = ["TLS", "context_for", "plain_buffer"]

_RECORD = 16 * 1024
"""Bytes of plain text in a TLS record, at most."""


def plain_buffer() -> memoryview:
    """Room for what is decrypted at once: one per event loop or thread."""
    return memoryview(bytearray(max(_RECORD, READ_SIZE)))


class TLS:
    """One connection's TLS."""

    __slots__ = ("_incoming", "_object", "_outgoing", "_plain")

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def handshake(self, data: memoryview | bytes = b"") -> bool:
        """One step, with what came from the server. True once it is done; `outgoing` must be sent in any case. Raises ssl.SSLError."""
        self._incoming.write(data)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        protocol = self._object.selected_alpn_protocol()
        if protocol not in (None, "http/1.1"):
            raise ConfigError(f"the ssl.SSLContext offers {protocol}, and the server took it: the direct transport speaks HTTP/1.1 only")
        return True

    def handshake_eof(self) -> None:
        """The server has closed the connection within the handshake. Raises ssl.SSLError."""
        self._incoming.write_eof()
        self._object.do_handshake()

    def outgoing(self) -> bytes:
        """What must be sent to the server now."""
        return self._outgoing.read()

    @property
    def has_outgoing(self) -> bool:
        """Whether `outgoing` is not empty: after a `decrypt`, that is an answer to a key update."""
        return self._outgoing.pending > 0

    def encrypt(self, data: memoryview | bytes) -> bytes:
        """These bytes as they go to the server."""
        self._object.write(data)
        return self._outgoing.read()

    def decrypt(self, data: memoryview | bytes, plain: memoryview, take: Callable[[memoryview], object]) -> bool:
        """Give what `data` brings to `take`, part by part, by way of `plain`. True if the server has ended TLS. Raises ssl.SSLError."""
        incoming = self._incoming
        read: Callable[[int, Any], int] = self._object.read  # type: ignore[assignment]  # typeshed: a bytearray; any buffer will do
        incoming.write(data)
        try:
            while True:
                count = read(_RECORD, plain)
                if not count:
                    return True
                take(plain[:count])
                if not incoming.pending and not self._object.pending():
                    return False
        except ssl.SSLWantReadError:
            return False


_contexts: dict[tuple[bool, bool], ssl.SSLContext] = {}
_lock = Lock()


def context_for(options: Options) -> ssl.SSLContext:
    """The context to use: the caller's, or the process's one for these options. Raises ConfigError if certificates cannot be loaded."""
    if isinstance(options.verify, ssl.SSLContext):
        return options.verify
    key = (options.verify, options.trust_env)
    with _lock:
        context = _contexts.get(key)
        if context is None:
            try:
                context = _contexts[key] = _made(*key)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError("the trusted certificates cannot be loaded: check SSL_CERT_FILE and SSL_CERT_DIR") from error
        return context


def _made(verify: bool, trust_env: bool) -> ssl.SSLContext:
    if not verify:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = _trusting(trust_env)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trusting(trust_env: bool) -> ssl.SSLContext:
    """The rules of httpx2: SSL_CERT_FILE, else SSL_CERT_DIR, else the system's store. truststore reads the store of Windows and macOS,
    and finds that of a Linux whose OpenSSL was built elsewhere (a Python that was only unpacked). Where OpenSSL's own files are in place
    they are loaded once: truststore would load them anew, on top of the old ones, at every handshake.
    """
    if trust_env and (file := os.environ.get("SSL_CERT_FILE")):
        return ssl.create_default_context(cafile=file)
    if trust_env and (folder := os.environ.get("SSL_CERT_DIR")):
        return ssl.create_default_context(capath=folder)
    paths = ssl.get_default_verify_paths()  # those compiled in: the others follow the environment, which may not be trusted
    bundle, hashed = Path(paths.openssl_cafile), Path(paths.openssl_capath)
    has_bundle, has_hashed = bundle.is_file(), hashed.is_dir() and any(hashed.iterdir())
    if sys.platform in ("win32", "darwin") or not (has_bundle or has_hashed):
        import truststore  # httpx2 needs it

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context(cafile=bundle if has_bundle else None, capath=hashed if has_hashed else None)
