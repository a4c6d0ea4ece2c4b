"""A request as bytes, and where they go: all that must be decided before a socket opens.

The headers are those that httpx2 would send: `host`, `content-length`, `accept-encoding`, and `authorization` for a user and password
in the URL, where they are missing. A stream is asked for uncompressed, since whatever compresses one tends to hold its events back.
Everything that could break out of its line is refused here, so that no header can smuggle another one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from dragoman.errors import ConfigError
from dragoman.value import Secret
from dragoman.wire.base import HTTPRequest

__all__ = ["Key", "Outgoing"]

Key: TypeAlias = tuple[bool, str, int]
"""What a connection is good for: TLS or not, host, port."""

_METHOD = re.compile(r"[A-Z]+")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: (?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?\r\n")
_HEADERS = re.compile(rf"(?:{_HEADER.pattern})*")
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE = _PATH_SAFE + "?[]"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ENCODINGS = "gzip, deflate"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request that can be sent. The repr shows neither head nor body: they hold keys and prompts."""

    key: Key
    where: str
    """Host and port, for error texts."""
    head: bytes
    body: bytes
    bodiless: bool
    """Whether the answer has no body, whatever its head says: HEAD."""

    @classmethod
    def of(cls, request: HTTPRequest) -> Outgoing:
        """Raises ConfigError for a URL, method or header that cannot be sent; it names a header but never its value."""
        if not _METHOD.fullmatch(request.method) or request.method == "CONNECT":
            raise ConfigError(f"the method {request.method!r} cannot be sent: it must be upper-case letters, and not CONNECT")
        to = _destination(request.url)
        head = f"{request.method} {to.target} HTTP/1.1\r\n{_headers(request, to)}\r\n".encode("ascii")
        return cls(to.key, to.where, head, request.body, request.method == "HEAD")

    def __repr__(self) -> str:
        return f"Outgoing({self.where}, {len(self.body)} bytes)"


class _Destination(NamedTuple):
    """What a URL says."""

    key: Key
    where: str
    authority: str
    target: str
    login: Secret


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


def _headers(request: HTTPRequest, to: _Destination) -> str:
    """The lines of the head, each with its end. Raises ConfigError, from where no local variable shows a key."""
    given = {name.lower(): value for name, value in request.headers.items()}
    length = str(len(request.body))
    if (unsendable := _unsendable(request.headers)) is not None:
        raise ConfigError(f"the header {unsendable!r} cannot be sent: it has a line break, an outer space or a character beyond ASCII")
    if "transfer-encoding" in given:
        raise ConfigError("the header 'transfer-encoding' cannot be sent: the body goes out whole, with its length")
    if given.get("content-length", length) != length:
        raise ConfigError(f"the header 'content-length' does not fit the body of {length} bytes: leave it out")
    text = _lines(request.headers)
    if "host" not in given:
        text = f"host: {to.authority}\r\n{text}"
    if "content-length" not in given and (request.body or request.method in ("POST", "PUT", "PATCH")):
        text += f"content-length: {length}\r\n"
    if "accept-encoding" not in given:
        streams = given.get("accept", "").startswith("text/event-stream")
        text += f"accept-encoding: {'identity' if streams else _ENCODINGS}\r\n"
    if to.login and "authorization" not in given:
        text += f"authorization: Basic {to.login}\r\n"
    return text


def _lines(headers: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()])


def _unsendable(headers: Mapping[str, str]) -> str | None:
    """The name of the first header that could break out of its line, or that not everybody reads alike; None if there is none.

    All are looked at at once: text of this form, with so many line ends and no colon in a name, can be read in one way only.
    """
    lines = _lines(headers)
    if _HEADERS.fullmatch(lines) and lines.count("\n") == len(headers) and ":" not in "".join(headers):
        return None
    return next(name for name, value in headers.items() if ":" in name or not _HEADER.fullmatch(_lines({name: value})))


def _ascii_host(host: str) -> str:
    """The host as it goes on the wire. Raises UnicodeError (idna's own errors are such) for a name that no domain can have."""
    if host.isascii():
        if re.search(r"[\x00-\x20\x7f/\\<>\"^`{|}%]", host.partition("%")[0]):
            raise ValueError("not a host")
        return host
    import idna

    return idna.encode(host).decode("ascii")
