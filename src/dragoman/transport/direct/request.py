"""A request as bytes, and where they go: all that must be decided before a socket opens.

The headers are those that httpx2 would send: `host`, `content-length`, `accept-encoding`, and `authorization` for a user and password
in the URL, where they are missing. A stream is asked for uncompressed, since whatever compresses one tends to hold its events back.
Everything that could break out of its line is refused here, so that no header can smuggle another one.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from dragoman.errors import ConfigError
from dragoman.value import Secret
from dragoman.wire.base import HTTPRequest

__all__ = ["Heads", "Key", "Outgoing"]

Key: TypeAlias = tuple[bool, str, int]
"""What a connection is good for: TLS or not, host, port."""

_METHOD = re.compile(r"[A-Z]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE = _PATH_SAFE + "?[]"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ENCODINGS = "gzip, deflate"


class Outgoing:
    """A request that can be sent. The repr shows neither head nor body: they hold keys and prompts.

    `where`: host and port, for error texts. `bodiless`: the answer has no body, whatever its head says: HEAD.
    """

    __slots__ = ("bodiless", "body", "head", "key", "where")

    def __init__(self, key: Key, where: str, head: bytes, body: bytes, bodiless: bool) -> None:
        self.key = key
        self.where = where
        self.head = head
        self.body = body
        self.bodiless = bodiless

    def __repr__(self) -> str:
        return f"Outgoing({self.where}, {len(self.body)} bytes)"


class Heads:
    """Makes requests ready to be sent. Any thread. The latest head is remembered: the calls of a program mostly differ in their bodies
    alone. It is compared with method, URL and all headers, so nothing of it goes to another host or out with another key.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: _Head | None = None

    def of(self, request: HTTPRequest) -> Outgoing:
        """Raises ConfigError for a URL, method or header that cannot be sent; it names a header but never its value."""
        head, method, body = self._latest, request.method, request.body
        if head is None or head.url != request.url or head.method != method or head.headers != request.headers or head.has_length:
            self._latest = head = _head(request)
        with_length = not head.has_length and (body or method in ("POST", "PUT", "PATCH"))
        end = f"content-length: {len(body)}\r\n\r\n" if with_length else "\r\n"
        return Outgoing(head.to.key, head.to.where, (head.lines + end).encode("ascii"), body, method == "HEAD")


class _Destination(NamedTuple):
    """What a URL says."""

    key: Key
    where: str
    authority: str
    target: str
    login: Secret


class _Head(NamedTuple):
    """The lines of a head, and what they were made of. `has_length`: one of them is the caller's `content-length`; else it is missing."""

    url: str
    method: str
    headers: dict[str, str]
    to: _Destination
    has_length: bool
    lines: Secret


@lru_cache(maxsize=64)  # a provider calls few, again and again
def _destination(url: str) -> _Destination:
    """Raises ConfigError for a URL that nothing can be sent to."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _ascii_host(parts.hostname or "")
    except ValueError as error:  # UnicodeError is one
        raise ConfigError("base_url is not a URL: give one like https://host") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise ConfigError(f"base_url must be http:// or https:// with a host, not {parts.scheme or 'nothing'}://")
    bracketed = f"[{host}]" if ":" in host else host
    if port is None:
        port = _DEFAULT_PORTS[parts.scheme]
    authority = bracketed if port == _DEFAULT_PORTS[parts.scheme] else f"{bracketed}:{port}"
    target = quote(parts.path, safe=_PATH_SAFE) or "/"
    if parts.query:
        target += "?" + quote(parts.query, safe=_QUERY_SAFE)
    login = Secret()
    if parts.username is not None:
        login = Secret(base64.b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode())
    return _Destination((parts.scheme == "https", host, port), f"{bracketed}:{port}", authority, target, login)


def _head(request: HTTPRequest) -> _Head:
    """Raises ConfigError, from where no local variable shows a key."""
    method, headers = request.method, request.headers
    if not _METHOD.fullmatch(method) or method == "CONNECT":
        raise ConfigError(f"the method {method!r} cannot be sent: it must be upper-case letters, and not CONNECT")
    to = _destination(request.url)
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ConfigError(f"the header {name!r} cannot be sent: it has a line break, an outer space or a character beyond ASCII")
    given = {name.lower(): value for name, value in headers.items()}
    if "transfer-encoding" in given:
        raise ConfigError("the header 'transfer-encoding' cannot be sent: the body goes out whole, with its length")
    if given.get("content-length", str(len(request.body))) != str(len(request.body)):
        raise ConfigError(f"the header 'content-length' does not fit the body of {len(request.body)} bytes: leave it out")
    lines = [f"{method} {to.target} HTTP/1.1"]
    if "host" not in given:
        lines.append(f"host: {to.authority}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if "accept-encoding" not in given:
        streams = given.get("accept", "").startswith("text/event-stream")
        lines.append(f"accept-encoding: {'identity' if streams else _ENCODINGS}")
    if to.login and "authorization" not in given:
        lines.append(f"authorization: Basic {to.login}")
    return _Head(request.url, method, dict(headers), to, "content-length" in given, Secret("\r\n".join([*lines, ""])))


def _ascii_host(host: str) -> str:
    """The host as it goes on the wire. Raises UnicodeError (idna's own errors are such) for a name that no domain can have."""
    if host.isascii():
        if re.search(r"[\x00-\x20\x7f/\\<>\"^`{|}%]", host.partition("%")[0]):
            raise ValueError("not a host")
        return host
    import idna

    return idna.encode(host).decode("ascii")
