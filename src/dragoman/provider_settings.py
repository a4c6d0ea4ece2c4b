"""What an `HTTPProvider` is given when it is made: what it fills into requests, its address, transports, time-outs and retries.

Strategy. All of it is checked at once, so that a slip is a ConfigError where it was made and not a failed call later. No text of an error
quotes what may hold a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import force_setattr, replace

from dragoman.auth import concealed
from dragoman.errors import ConfigError
from dragoman.request import CacheMode, Request
from dragoman.retry import RetryPolicy
from dragoman.transport import AsyncTransport, Timeouts, Transport, TransportName
from dragoman.value import Value

__all__ = ["Defaults", "check_limits", "check_url", "transports_of"]


class Defaults(Value, frozen=True, kw_only=True):
    """What a provider fills in where a request says nothing. Betas, headers and extra_body are added to the request's own. The repr
    shows neither headers nor extra_body: a gateway's token may stand there.
    """

    model: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: Sequence[str] = ()
    cache: CacheMode | None = None
    betas: Sequence[str] = ()
    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "headers", concealed(self.headers))

    def __repr__(self) -> str:
        return f"Defaults(model={self.model!r}, headers={list(self.headers)}, extra_body={list(self.extra_body)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For `rich`, which goes round the repr of a Struct."""
        return [("model", self.model), ("headers", list(self.headers)), ("extra_body", list(self.extra_body))]

    def fill(self, request: Request) -> Request:
        """The request with these defaults. Fields of the request win."""
        changes: dict[str, Any] = {}
        if not request.model and self.model:
            changes["model"] = self.model
        for name in ("max_tokens", "temperature", "top_p", "top_k", "cache"):
            if getattr(request, name) is None and getattr(self, name) is not None:
                changes[name] = getattr(self, name)
        if self.stop_sequences and not request.stop_sequences:
            changes["stop_sequences"] = self.stop_sequences
        if self.betas:
            changes["betas"] = [*self.betas, *(beta for beta in request.betas if beta not in self.betas)]
        if self.headers:
            changes["extra_headers"] = {**self.headers, **request.extra_headers}
        if self.extra_body:
            changes["extra_body"] = {**self.extra_body, **request.extra_body}
        return replace(request, **changes) if changes else request


def transports_of(
    blocking: Transport | TransportName | None, looped: AsyncTransport | TransportName | None
) -> tuple[Transport | None, AsyncTransport | None]:
    """The transports that were given; those that were only named are made, without opening anything."""
    if looped is None and isinstance(blocking, str):
        looped = blocking
    for given in (blocking, looped):
        if given is not None and not isinstance(given, str) and not hasattr(given, "send"):
            raise ConfigError(f"a transport is 'auto', 'direct', 'httpx2' or an object with a method `send`, not {type(given).__name__}")
    if isinstance(blocking, str) or isinstance(looped, str):
        from dragoman.transport.choose import async_transport_named, transport_named

        blocking = transport_named(blocking) if isinstance(blocking, str) else blocking
        looped = async_transport_named(looped) if isinstance(looped, str) else looped
    return blocking, looped


def check_limits(timeouts: object, retry: object) -> None:
    if not isinstance(timeouts, Timeouts):
        raise ConfigError(f"timeouts must be a Timeouts(…), not {type(timeouts).__name__}")
    if not isinstance(retry, RetryPolicy):
        raise ConfigError(f"retry must be a RetryPolicy(…), not {type(retry).__name__}")


def check_url(url: str, *, allow_http: bool) -> None:
    if "?" in url or "#" in url:  # not quoted: a key may stand in it
        raise ConfigError("base_url must not contain a query or fragment; pass credentials as settings")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:  # a port that is no number, an unfinished IPv6 address
        raise ConfigError(f"base_url must be an http(s) URL with a host: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url must not contain a user name or password; pass credentials as settings")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"base_url must be an http(s) URL with a host, not {url!r}")
    if parts.scheme == "http" and not allow_http and not _is_loopback(host):
        raise ConfigError(f"base_url {url!r} is plain http: keys and prompts would travel unprotected; use https or allow_http=True")


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine for certain: by its name, or as an address. `127.example.com` is not."""
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
