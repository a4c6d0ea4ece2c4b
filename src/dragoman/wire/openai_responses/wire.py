"""`OpenAIResponsesWire`: the Responses API behind the seam of `wire/base.py`. Everything is done in the files beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.errors import ProviderError
from dragoman.request import Request
from dragoman.response import Response
from dragoman.wire.base import Headers, HTTPRequest
from dragoman.wire.decoder import fold
from dragoman.wire.openai_errors import decode_error
from dragoman.wire.openai_models import encode_model, encode_models, read_model, read_models
from dragoman.wire.openai_responses.decode import ResponsesDecoder
from dragoman.wire.openai_responses.decode_request import decode_request
from dragoman.wire.openai_responses.encode import encode_request
from dragoman.wire.openai_responses.kinds import WIRE

if TYPE_CHECKING:
    from dragoman.catalog import ModelInfo

__all__ = ["OpenAIResponsesWire"]

LABELS = {
    "openai": "OpenAI",
    "azure": "Azure OpenAI",
    "openrouter": "OpenRouter",
    "xai": "xAI",
    "groq": "Groq",
    "openai-compatible": "OpenAI-compatible server",
}
"""How a provider is called in error texts; any other is called by its name."""

SAYS_INCOMPLETE = frozenset({"openai", "azure", "xai", "openrouter"})
"""Providers that say `incomplete` when the limit cut an answer. llama.cpp says `completed`, so elsewhere the tokens are counted."""


class OpenAIResponsesWire:
    """The dialect of `POST /responses`: OpenAI, Azure, xAI, OpenRouter, llama.cpp, vLLM and others.

    `provider` is whose server this is: it becomes the origin of answers, decides what of a history may be replayed, and how error texts
    begin. `max_tokens` is sent as `max_output_tokens` where the request says nothing; None leaves the limit to the provider.
    """

    name = WIRE

    def __init__(self, *, provider: str = "openai", max_tokens: int | None = None) -> None:
        self.provider = provider
        self.label = LABELS.get(provider, provider)
        self._max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"OpenAIResponsesWire(provider={self.provider!r})"

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        """The HTTP request. Stateless unless `extra_body` says otherwise. Raises InvalidInputError only for what cannot be written."""
        return encode_request(request, stream=stream, provider=self.provider, max_tokens=self._max_tokens)

    def decoder(self, request: Request | None = None, *, status: int = 200, headers: Headers = ()) -> ResponsesDecoder:
        """A decoder for one answer, streamed or not, successful or not."""
        limit = None if self.provider in SAYS_INCOMPLETE else self._limit(request)
        return ResponsesDecoder(label=self.label, provider=self.provider, request=request, status=status, headers=headers, limit=limit)

    def _limit(self, request: Request | None) -> int | None:
        return self._max_tokens if request is None or request.max_tokens is None else request.max_tokens

    def decode_response(self, status: int, headers: Headers, body: bytes, request: Request | None = None) -> Response:
        """A whole answer. Raises ProviderError."""
        return fold(self.decoder(request, status=status, headers=headers), body)

    def decode_error(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        """The error that an answer with this status means."""
        return decode_error(status, headers, body, label=self.label, provider=self.provider)

    def decode_request(self, body: bytes, headers: Headers = ()) -> Request:
        """The request that a client of this dialect sent. Raises InvalidInputError naming the path of what is not the dialect."""
        return decode_request(body, headers)

    # ---- the models of the host

    def encode_models(self, after: str = "") -> HTTPRequest:
        """The call for all models; there are no pages, so `after` is not looked at."""
        del after
        return encode_models()

    def read_models(self, value: Any) -> tuple[list[ModelInfo], str]:
        """The models, and `""`: no page follows. Raises ProtocolError."""
        return read_models(value, self.label), ""

    def encode_model(self, model: str) -> HTTPRequest:
        """The call for one model."""
        return encode_model(model)

    def read_model(self, value: Any) -> ModelInfo:
        """One model. Raises ProtocolError."""
        return read_model(value, self.label)
