"""How connections are made: the options of a transport in httpcore2's terms, and a request in its own form.

Both transports share this, and it holds all that must be decided before a socket opens: certificates, proxies, limits, headers. TLS
contexts are built once per process, because loading the system's certificates takes longer than a call.

HTTP/2 is spoken with one call per connection at a time: httpcore2 does not reset a stream that is left early, so on a shared
connection the server would go on writing (and billing) for a reader who has gone.
"""

from __future__ import annotations

import base64
import logging
import re
import socket
import ssl
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

import httpcore2
import httpx2

from dragoman.errors import ConfigError
from dragoman.transport.idle import Key
from dragoman.transport.options import Options
from dragoman.transport.proxy import ProxyRules
from dragoman.wire.base import HTTPRequest

__all__ = ["Target", "Ways", "checked_headers", "pool_request"]

_ENCODINGS = "gzip, deflate"

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")

_KEEPALIVE_SECONDS = 60
"""TCP keep-alive probes: an answer that is minutes in the making must not be forgotten by a NAT on the way."""


_parsed = lru_cache(maxsize=256)(httpx2.URL)
"""A provider asks a few addresses, again and again; an httpx2.URL does not change."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in the parts that httpcore2 takes."""

    url: httpx2.URL

    @classmethod
    def of(cls, url: str) -> Target:
        """Raises ConfigError for what is no http URL."""
        try:
            parsed = _parsed(url)
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise ConfigError("base_url is not a URL: give one like https://host") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ConfigError(f"base_url must be http:// or https:// with a host, not {parsed.scheme or 'nothing'}://")
        return cls(parsed)

    @property
    def where(self) -> str:
        """Host and port, for error texts."""
        return _where(self.url.host, self.url.port or (443 if self.url.scheme == "https" else 80))


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def checked_headers(request: HTTPRequest) -> dict[str, str]:
    """The request's headers. Raises ConfigError, which names the header but not its value, for what HTTP cannot carry: further down,
    h11 would quote the key.
    """
    for name, value in request.headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(f"the header {name!r} cannot be sent: it has a line break, an outer space or a character beyond ASCII")
    return request.headers


def pool_request(request: HTTPRequest, target: Target, extensions: dict[str, Any]) -> httpcore2.Request:
    """The request as httpcore2 takes it.

    Adds `host`, `content-length`, `accept-encoding`, and `authorization` for a user and password in the URL, where they are missing.
    A stream is asked for uncompressed, since whatever compresses one tends to hold its events back; what comes compressed is decoded
    all the same.
    """
    url = target.url
    names = {name.lower(): value for name, value in request.headers.items()}
    headers = [(b"Host", url.netloc)] if "host" not in names else []
    headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in checked_headers(request).items()]
    if "content-length" not in names and (request.body or request.method in ("POST", "PUT", "PATCH")):
        headers.append((b"content-length", b"%d" % len(request.body)))
    if "accept-encoding" not in names:
        streams = names.get("accept", "").startswith("text/event-stream")
        headers.append((b"accept-encoding", b"identity" if streams else _ENCODINGS.encode()))
    if url.userinfo and "authorization" not in names:
        headers.append((b"authorization", b"Basic " + base64.b64encode(f"{url.username}:{url.password}".encode())))
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=headers,
        content=request.body,
        extensions=extensions,
    )


def _no_headers(record: logging.LogRecord) -> bool:
    """hpack writes every header it sends to its log at DEBUG, keys too."""
    return record.levelno > logging.DEBUG


class Ways:
    """Which way a request goes: directly, or through a proxy that the options or the environment name. Read once."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._rules = ProxyRules.from_environment() if options.trust_env and options.proxy is None else ProxyRules({})
        self._proxies: dict[str, httpcore2.Proxy] = {}
        self._fixed = None if options.proxy is None else _proxy(options.proxy, options)
        if options.http2 and find_spec("h2") is None:
            raise ConfigError("http2=True needs the package h2: pip install 'httpx2[http2]'")
        if options.http2:
            logging.getLogger("hpack.hpack").addFilter(_no_headers)

    def key(self, url: httpx2.URL) -> Key:
        """What a connection for `url` must be good for."""
        return self._rules.proxy_for(str(url)), url.raw_scheme, url.raw_host, url.port

    def proxy(self, key: Key) -> str:
        """Host and port of the proxy that such a connection goes through, for error texts; empty: none. Raises ConfigError."""
        proxy = self._through(key)
        if proxy is None:
            return ""
        origin = proxy.url.origin
        return _where(origin.host.decode("ascii"), origin.port)

    def _through(self, key: Key) -> httpcore2.Proxy | None:
        if key[0] is None:
            return self._fixed
        proxy = self._proxies.get(key[0])
        if proxy is None:
            proxy = self._proxies[key[0]] = _proxy(key[0], self._options)
        return proxy

    def pool_options(self, key: Key) -> dict[str, Any]:
        """The arguments of a pool of one connection."""
        options = self._options
        proxy = self._through(key)
        socks = proxy is not None and proxy.url.scheme.startswith(b"socks")
        return {
            "ssl_context": options.verify if isinstance(options.verify, ssl.SSLContext) else _context(options),
            "proxy": proxy,
            "max_connections": 1,
            "http2": options.http2,
            "socket_options": None if socks else _socket_options(),
        }


def _proxy(given: str | httpx2.Proxy, options: Options) -> httpcore2.Proxy:
    try:
        proxy = given if isinstance(given, httpx2.Proxy) else httpx2.Proxy(given)
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError("the proxy is not a URL with http, https, socks5 or socks5h: check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY") from error
    url = proxy.url
    if url.scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigError("a SOCKS proxy needs the package socksio: pip install 'httpx2[socks]'")
    secure = url.scheme == "https"
    return httpcore2.Proxy(
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        auth=proxy.raw_auth,
        headers=proxy.headers.raw,
        ssl_context=(proxy.ssl_context or _context(Options(trust_env=options.trust_env))) if secure else None,
    )


def _socket_options() -> list[httpcore2.SOCKET_OPTION]:
    known = [name for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL") if hasattr(socket, name)]
    return [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *((socket.IPPROTO_TCP, getattr(socket, name), _KEEPALIVE_SECONDS) for name in known),
    ]


_contexts: dict[tuple[bool, bool, bool], ssl.SSLContext] = {}
_contexts_lock = Lock()


def _context(options: Options) -> ssl.SSLContext:
    """The process's TLS context for these options. HTTP/2 has its own: httpcore2 sets the protocols it offers on the context."""
    key = (options.verify is True, options.trust_env, options.http2)
    with _contexts_lock:
        context = _contexts.get(key)
        if context is None:
            try:
                context = _contexts[key] = httpx2.create_ssl_context(verify=bool(options.verify), trust_env=options.trust_env)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError("the trusted certificates cannot be loaded: check SSL_CERT_FILE and SSL_CERT_DIR") from error
        return context
