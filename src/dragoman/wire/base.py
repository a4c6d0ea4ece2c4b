"""What a wire is: the one seam between our model and a provider's dialect.

A wire is pure, stateless and shareable. It turns a `Request` into an `HTTPRequest` (no auth, no host), and bytes into events through a
`Decoder`, which holds the state of one answer. `decode_response` must equal the fold of the stream with the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

import msgspec

from dragoman.errors import ProviderError
from dragoman.event import Event, Notice
from dragoman.request import Request
from dragoman.response import RateLimits, Response

if TYPE_CHECKING:
    from dragoman.catalog import ModelInfo

__all__ = ["Auth", "CountingWire", "Decoder", "HTTPRequest", "Headers", "ModelsWire", "ServerWire", "Wire", "lower_headers"]

Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
"""Response headers in any of the forms that HTTP clients give."""


class HTTPRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request. A wire fills in method, path, headers (lower-case names), body, notices and settled; the provider adds
    `base_url` and auth. The repr shows neither headers nor body: they hold keys and prompts. One with credentials is not pickled or stored.

    `settled` are fields of the Request with the values that are in the body, where the wire or `extra_body` decides them: for telemetry.
    """

    method: str = "POST"
    path: str
    headers: dict[str, str] = {}
    body: bytes = b""
    notices: Sequence[Notice] = ()
    settled: dict[str, Any] = {}
    base_url: str = ""

    @property
    def url(self) -> str:
        """Where it goes."""
        return self.base_url + self.path

    def __repr__(self) -> str:
        return f"HTTPRequest({self.method} {self.url}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For `rich`, which goes round the repr of a Struct."""
        return [("method", self.method), ("url", self.url), ("bytes", len(self.body))]


class Decoder(Protocol):
    """The state of one answer. Never raises for what the peer sent: a failure is the last event."""

    @property
    def request_id(self) -> str:
        """The provider's id of the call, from the headers or the body, or `""`."""
        ...

    @property
    def rate_limits(self) -> RateLimits | None:
        """What the headers said about limits."""
        ...

    def feed(self, data: bytes) -> list[Event]:
        """Events that these bytes complete. No event depends on how the bytes were cut."""
        ...

    def close(self, error: ProviderError | None = None) -> list[Event]:
        """The remaining events, the last of them MessageStop or Failed, unless one was given before. `error` is how the transport
        ended, None if cleanly.
        """
        ...


class Wire(Protocol):
    """One dialect."""

    @property
    def name(self) -> str:
        """`anthropic`, `openai-chat` …: the key in `extra`, and `replay --wire`."""
        ...

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        """The HTTP request. Does not validate; raises InvalidInputError only for what cannot be written."""
        ...

    def decoder(self, request: Request | None = None, *, status: int = 200, headers: Headers = ()) -> Decoder:
        """A decoder for one answer, streamed or not, successful or not."""
        ...

    def decode_response(self, status: int, headers: Headers, body: bytes, request: Request | None = None) -> Response:
        """A whole answer. Raises ProviderError."""
        ...

    def decode_error(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        """The error that an answer with this status means."""
        ...


class ServerWire(Wire, Protocol):
    """A wire that also works the other way round, for gateways and tests."""

    def decode_request(self, body: bytes, headers: Headers = ()) -> Request:
        """The request that a client of this dialect sent. Raises InvalidInputError naming the path of what is not the dialect."""
        ...


@runtime_checkable
class CountingWire(Protocol):
    """What a wire may also offer: to count tokens beforehand. Values are the answer's JSON; reading raises ProtocolError."""

    def encode_count(self, request: Request) -> HTTPRequest:
        """The call that counts a request's input tokens."""
        ...

    def read_count(self, value: Any) -> int:
        """The tokens counted."""
        ...


@runtime_checkable
class ModelsWire(Protocol):
    """What a wire may also offer: the provider's models. Values are the answers' JSON; reading raises ProtocolError."""

    def encode_models(self, after: str = "") -> HTTPRequest:
        """The call for a page of models, from the one after `after`."""
        ...

    def read_models(self, value: Any) -> tuple[list[ModelInfo], str]:
        """The models of a page, and after which id the next begins, `""` if none."""
        ...

    def encode_model(self, model: str) -> HTTPRequest:
        """The call for one model."""
        ...

    def read_model(self, value: Any) -> ModelInfo:
        """One model."""
        ...


@runtime_checkable
class Auth(Protocol):
    """Puts credentials on a request."""

    def apply(self, request: HTTPRequest) -> HTTPRequest:
        """The request with credentials. Raises ConfigError if there are none."""
        ...

    def refresh(self, error: ProviderError) -> bool:
        """Asked once on a 401: whether there are new credentials to try with."""
        ...


def lower_headers(headers: Headers) -> dict[str, str]:
    """Headers as a dict with lower-case names; the first value of a repeated name wins."""
    result: dict[str, str] = {}
    for name, value in _pairs(headers):
        result.setdefault(name.lower(), value)
    return result


def _is_mapping(headers: Headers) -> TypeGuard[Mapping[str, str]]:
    return isinstance(headers, Mapping)


def _pairs(headers: Headers) -> Iterable[tuple[str, str]]:
    return headers.items() if _is_mapping(headers) else headers  # type: ignore[return-value]
