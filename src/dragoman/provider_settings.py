"""What an `HTTPProvider` is given when it is made: what it fills into requests, its address, transports, time-outs and retries.

Strategy. All of it is checked at once, so that a slip is a ConfigError where it was made and not a failed call later. No text of an error
quotes what may hold a key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from msgspec.structs import force_setattr

from dragoman.auth import concealed
from dragoman.errors import ConfigError
from dragoman.request import CacheMode, Request
from dragoman.retry import RetryPolicy
from dragoman.transport import AsyncTransport, Timeouts, Transport, TransportName
from dragoman.value import Value

__all__ = ["Defaults", "check_limits", "check_settings", "check_url", "transports_of"]


class Defaults(Value, frozen=True, kw_only=True):
    """What a provider fills in where a request says nothing. Betas, headers and extra_body are added to the request's own. The repr
    shows neither headers nor extra_body: a gateway's token may stand there. Raises ConfigError for a value of another type.
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
        check_settings(headers=self.headers)
        force_setattr(self, "headers", concealed(self.headers))
        check_settings(**{name: getattr(self, name) for name in self.__struct_fields__})

    def __repr__(self) -> str:
        return f"Defaults(model={self.model!r}, headers={list(self.headers)}, extra_body={list(self.extra_body)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For `rich`, which goes round the repr of a Struct."""
        return [("model", self.model), ("headers", list(self.headers)), ("extra_body", list(self.extra_body))]

    def fill(self, request: Request) -> Request:
        """The request with these defaults. Fields of the request win."""
        simple = (
            ("max_tokens", self.max_tokens, request.max_tokens),
            ("temperature", self.temperature, request.temperature),
            ("top_p", self.top_p, request.top_p),
            ("top_k", self.top_k, request.top_k),
            ("cache", self.cache, request.cache),
        )
        changes: dict[str, Any] = {name: ours for name, ours, given in simple if ours is not None and given is None}
        if not request.model and self.model:
            changes["model"] = self.model
        if self.stop_sequences and not request.stop_sequences:
            changes["stop_sequences"] = list(self.stop_sequences)
        if self.betas and not isinstance(request.betas, str):  # which validation names
            changes["betas"] = [*self.betas, *(beta for beta in request.betas if beta not in self.betas)]
        if self.headers:
            changes["extra_headers"] = {**self.headers, **request.extra_headers}
        if self.extra_body:
            changes["extra_body"] = {**self.extra_body, **request.extra_body}
        if not changes:
            return request
        filled = copy(request)  # `replace` would copy every list and dict once more
        for name, value in changes.items():
            force_setattr(filled, name, value)
        return filled


_Test: TypeAlias = Callable[[Any], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    """Whether it is a list of strings. A string is none, although its characters are strings."""
    return all(map(_is_text, _items(value))) and isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _are_headers(value: object) -> bool:
    return all(map(_is_text, _items(value))) and isinstance(value, Mapping)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, cast("Mapping[object, object]", value)))


def _items(value: object) -> list[object]:
    """What a list holds, and a dict as keys and as values; nothing of anything else."""
    if isinstance(value, Mapping):
        given = cast("Mapping[object, object]", value)
        return [*given, *given.values()]
    return [*cast("Sequence[object]", value)] if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else []


def _kind(value: object) -> str:
    """The type of a wrong value; of a list or dict also what it holds that is no string. No value is quoted."""
    wrong = sorted({type(item).__name__ for item in _items(value) if not isinstance(item, str)})
    return type(value).__name__ + (f" of {', '.join(wrong)}" if wrong else "")


_SETTINGS: dict[str, tuple[_Test, str]] = {
    **dict.fromkeys(("api_key", "base_url", "api_version", "model", "name", "provider", "system"), (_is_text, "a string")),
    "max_tokens": (_is_whole, "a whole number of tokens"),
    **dict.fromkeys(("top_k", "threads"), (_is_whole, "a whole number")),
    **dict.fromkeys(("temperature", "top_p"), (_is_number, "a number")),
    **dict.fromkeys(("stop_sequences", "betas"), (_are_texts, "a list of strings")),
    "headers": (_are_headers, "a dict of strings"),
    "extra_body": (_is_object, "a dict with strings as keys"),
    "cache": (get_args(CacheMode).__contains__, f"one of {', '.join(get_args(CacheMode))}"),
    "credentials": (callable, "a function that gives a key or Credentials when it is called"),
    **dict.fromkeys(("allow_http", "fetch"), (_is_flag, "True or False")),
}
"""What a setting's value has to be, and how to say so."""

_NEVER_NONE = frozenset({"api_version", "extra_body", "headers", "name", "system", "threads"})
"""Settings that have a value of their own where they are left out, which None is not."""


def check_settings(**settings: object) -> None:
    """Raises ConfigError naming the first of these settings whose value is of another type than its constructor says, or a negative number
    of tokens.
    """
    for name, value in settings.items():
        fits, words = _SETTINGS[name]
        if not fits(value) and (value is not None or name in _NEVER_NONE):
            raise ConfigError(f"{name} must be {words}, not {_kind(value)}")
    limit = settings.get("max_tokens")
    if isinstance(limit, int) and limit < 0:
        raise ConfigError(f"max_tokens must be 1 or more (0 only fills the prompt cache), not {limit}")


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


def check_url(url: str, *, allow_http: bool, name: str = "base_url") -> None:
    """Raises ConfigError for what is no base URL. `name` says where it comes from: the setting, or the variable."""
    if "?" in url or "#" in url:  # not quoted: a key may stand in it
        raise ConfigError(f"{name} must not contain a query or fragment; pass credentials as settings")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:  # a port that is no number, an unfinished IPv6 address
        raise ConfigError(f"{name} must be an http(s) URL with a host: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{name} must not contain a user name or password; pass credentials as settings")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{name} must be an http(s) URL with a host, not {url!r}")
    if parts.scheme == "http" and not allow_http and not _is_loopback(host):
        raise ConfigError(f"{name} {url!r} is plain http: keys and prompts would travel unprotected; use https or allow_http=True")


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine for certain: by its name, or as an address. `127.example.com` is not."""
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
