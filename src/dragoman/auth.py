"""Credentials on requests: a key, a token, or a callable that is asked for each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, Self, SupportsIndex, TypeAlias

from msgspec.structs import force_setattr, replace

from dragoman.errors import ConfigError, ProviderError
from dragoman.value import NOT_PICKLED, Secret, Value
from dragoman.wire.base import HTTPRequest

__all__ = ["Credentials", "CredentialsSource", "HeaderAuth", "NoAuth", "concealed", "names_a_secret"]

_SECRET_NAMES = ("auth", "key", "token", "secret", "cookie", "password")


def names_a_secret(header: str) -> bool:
    """Whether a header's name says that its value is not for other eyes."""
    header = header.lower()
    return any(word in header for word in _SECRET_NAMES)


def concealed(headers: Mapping[str, str]) -> dict[str, str]:
    """The same headers, those that name a secret as a `Secret`."""
    return {
        name: Secret(value) if names_a_secret(name) and isinstance(value, str) else value  # pyright: ignore[reportUnnecessaryIsInstance]
        for name, value in headers.items()
    }


class Credentials(Value, frozen=True, kw_only=True):
    """An API key or a bearer token; if both are given, the key is used. No repr shows either, nothing stores or pickles them."""

    api_key: str = ""
    auth_token: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "api_key", Secret(self.api_key))
        force_setattr(self, "auth_token", Secret(self.auth_token))

    def __repr__(self) -> str:
        return f"Credentials({'api_key' if self.api_key else 'auth_token' if self.auth_token else 'none'})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(NOT_PICKLED)


CredentialsSource: TypeAlias = Callable[[], "Credentials | str"]
"""Asked at each call; a string is an API key."""


class HeaderAuth:
    """A key in a header of its own, or a token as `Authorization: Bearer`.

    `missing` is the text of the ConfigError when there is neither. With `source` the credentials are asked for at each call, and once
    more after a 401, when the call is sent again.
    """

    def __init__(
        self, credentials: Credentials, *, source: CredentialsSource | None = None, key_header: str = "x-api-key", missing: str = ""
    ) -> None:
        self._credentials = credentials
        self._source = source
        self._key_header = key_header
        self._missing = missing

    def apply(self, request: HTTPRequest) -> HTTPRequest:
        """The request with the credentials of this moment. Raises ConfigError if there are none."""
        credentials = self._current()
        if credentials.api_key:
            name, value = self._key_header, credentials.api_key
            if name == "authorization":
                value = Secret(f"Bearer {value}")
        elif credentials.auth_token:
            name, value = "authorization", Secret(f"Bearer {credentials.auth_token}")
        else:
            raise ConfigError(self._missing)
        if not (value.isascii() and value.isprintable()):
            raise ConfigError("the API key or token contains a line break or a character that no header can carry")
        return replace(request, headers={**request.headers, name: value})

    def refresh(self, error: ProviderError) -> bool:
        """Whether asking again may help: only a source can give other credentials than those that were refused."""
        del error
        return self._source is not None

    def _current(self) -> Credentials:
        if self._source is None:
            return self._credentials
        given = self._source()
        if isinstance(given, str):
            return Credentials(api_key=given)
        if not isinstance(given, Credentials):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"credentials= must give a string or Credentials when it is called, not {type(given).__name__}")
        return given

    def __repr__(self) -> str:
        return f"HeaderAuth({self._credentials!r})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(NOT_PICKLED)


class NoAuth:
    """For servers that want no credentials."""

    def apply(self, request: HTTPRequest) -> HTTPRequest:
        """The request as it is."""
        return request

    def refresh(self, error: ProviderError) -> bool:
        """There is nothing to renew."""
        del error
        return False
