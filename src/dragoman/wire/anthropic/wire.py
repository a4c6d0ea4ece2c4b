"""`AnthropicWire`: the Messages API both ways, as one value without state (spec: anthropic.md).

Everything is done by the files beside this one; here is only who does what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dragoman.catalog import ModelInfo
from dragoman.errors import ProviderError
from dragoman.request import Request
from dragoman.response import Response
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.decode import AnthropicDecoder
from dragoman.wire.anthropic.encode import encode, encode_count
from dragoman.wire.anthropic.endpoints import encode_model, encode_models, read_count, read_model, read_models
from dragoman.wire.anthropic.errors import decode_error
from dragoman.wire.anthropic.request_decode import decode_request
from dragoman.wire.anthropic.suffixes import cut_suffixes
from dragoman.wire.base import Headers, HTTPRequest, lower_headers
from dragoman.wire.decoder import fold

__all__ = ["API_VERSION", "AnthropicWire"]

API_VERSION = "2023-06-01"
"""What most clients and every compatible server speak (anthropic.md §18)."""


class AnthropicWire:
    """The wire of Anthropic's Messages API, for clients and, by `decode_request`, for servers.

    `provider` names who is called (in events and on errors), `label` is that name in the words of errors; `betas` go with every request;
    `max_tokens` stands in where a request has none.
    """

    __slots__ = ("_api_version", "_betas", "_label", "_max_tokens", "_provider")

    def __init__(
        self,
        *,
        provider: str = "anthropic",
        label: str = "",
        api_version: str = API_VERSION,
        betas: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> None:
        self._provider = provider
        self._label = label or provider.capitalize()
        self._api_version = api_version
        self._betas = tuple(betas)
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"AnthropicWire(provider={self._provider!r}, api_version={self._api_version!r})"

    tells_json: ClassVar[bool] = True
    """`encode` itself says which input of a call and which schema of a tool JSON has no form for, in the words of `problems`."""

    @property
    def name(self) -> str:
        """`anthropic`."""
        return WIRE

    @property
    def provider(self) -> str:
        """Who is called."""
        return self._provider

    @property
    def api_version(self) -> str:
        """The `anthropic-version` that is sent; `problems` knows what each refuses."""
        return self._api_version

    @property
    def betas(self) -> tuple[str, ...]:
        """The betas that go with every request."""
        return self._betas

    @property
    def max_tokens(self) -> int | None:
        """What stands in for a request's `max_tokens`."""
        return self._max_tokens

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        """The call for an answer. Raises InvalidInputError for what cannot be written; does not validate otherwise."""
        return encode(
            cut_suffixes(request),
            stream=stream,
            label=self._label,
            api_version=self._api_version,
            betas=self._betas,
            max_tokens=self._max_tokens,
        )

    def encode_count(self, request: Request) -> HTTPRequest:
        """The call that counts the request's input tokens. Raises as `encode` does."""
        return encode_count(
            cut_suffixes(request), label=self._label, api_version=self._api_version, betas=self._betas, max_tokens=self._max_tokens
        )

    def read_count(self, value: Any) -> int:
        """The tokens that an answer to `encode_count` says. Raises ProtocolError."""
        return read_count(value, self._label)

    def encode_models(self, after: str = "") -> HTTPRequest:
        """The call for a page of models, from the one after `after`."""
        return encode_models(self._api_version, after)

    def read_models(self, value: Any) -> tuple[list[ModelInfo], str]:
        """The models of a page, and after which id the next begins, `""` if none. Raises ProtocolError."""
        return read_models(value, self._label)

    def encode_model(self, model: str) -> HTTPRequest:
        """The call for one model."""
        return encode_model(self._api_version, model)

    def read_model(self, value: Any) -> ModelInfo:
        """The model that an answer to `encode_model` describes. Raises ProtocolError."""
        return read_model(value, self._label)

    def decoder(self, request: Request | None = None, *, status: int = 200, headers: Headers = ()) -> AnthropicDecoder:
        """A decoder for one answer, streamed or not, successful or not."""
        return AnthropicDecoder(request=request, status=status, headers=headers, label=self._label, provider=self._provider)

    def decode_response(self, status: int, headers: Headers, body: bytes, request: Request | None = None) -> Response:
        """A whole answer. Raises ProviderError."""
        return fold(self.decoder(request, status=status, headers=headers), body)

    def decode_request(self, body: bytes, headers: Headers = ()) -> Request:
        """The request that a client of this API sent. Raises InvalidInputError naming the paths of what is not the dialect."""
        return decode_request(body, headers, api_version=self._api_version)

    def decode_error(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        """The error that an answer with this status means."""
        return decode_error(status, lower_headers(headers), body, label=self._label, provider=self._provider)
