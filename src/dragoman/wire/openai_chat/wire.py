"""`OpenAIChatWire`: the chat completions API of one host, both ways, as one value without state.

Everything is done by the files beside this one; here is only who does what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.errors import ProviderError
from dragoman.request import Request
from dragoman.response import Response
from dragoman.wire.base import Headers, HTTPRequest
from dragoman.wire.decoder import fold
from dragoman.wire.openai_chat.decode import OpenAIChatDecoder
from dragoman.wire.openai_chat.dialects import Dialect, dialect_of
from dragoman.wire.openai_chat.encode import encode
from dragoman.wire.openai_chat.names import WIRE
from dragoman.wire.openai_chat.request_decode import decode_request
from dragoman.wire.openai_errors import decode_error
from dragoman.wire.openai_models import encode_model, encode_models, read_model, read_models

if TYPE_CHECKING:
    from dragoman.catalog import ModelInfo

__all__ = ["OpenAIChatWire"]


class OpenAIChatWire:
    """The wire of OpenAI's Chat Completions API and of the hosts that speak it, for clients and, by `decode_request`, for servers.

    `dialect` is a name in `DIALECTS` or a row of your own. `provider` and `label` stand in for the row's: who is called, in events and
    telemetry, and in the words of errors. Raises ConfigError for an unknown name.
    """

    __slots__ = ("_dialect",)

    def __init__(self, dialect: str | Dialect = "openai", *, provider: str = "", label: str = "") -> None:
        row = dialect_of(dialect)
        if provider or label:
            from msgspec.structs import replace

            row = replace(row, provider=provider or row.provider, label=label or row.label)
        self._dialect = row

    def __repr__(self) -> str:
        return f"OpenAIChatWire({self._dialect.name!r})"

    @property
    def name(self) -> str:
        """`openai-chat`."""
        return WIRE

    @property
    def provider(self) -> str:
        """Who is called."""
        return self._dialect.provider

    @property
    def dialect(self) -> Dialect:
        """The row that says what the host takes."""
        return self._dialect

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        """The call for an answer; its path is relative to a base URL that ends in `/v1` or what the host has instead.

        Raises InvalidInputError for what cannot be written; does not validate otherwise.
        """
        return encode(request, self._dialect, stream=stream)

    def decoder(self, request: Request | None = None, *, status: int = 200, headers: Headers = ()) -> OpenAIChatDecoder:
        """A decoder for one answer, streamed or not, successful or not."""
        return OpenAIChatDecoder(self._dialect, request=request, status=status, headers=headers)

    def decode_response(self, status: int, headers: Headers, body: bytes, request: Request | None = None) -> Response:
        """A whole answer. Raises ProviderError."""
        return fold(self.decoder(request, status=status, headers=headers), body)

    def decode_request(self, body: bytes, headers: Headers = ()) -> Request:
        """The request that a client of this API sent. Raises InvalidInputError naming the paths of what is not the dialect."""
        del headers  # they carry nothing of the request
        return decode_request(body, self._dialect)

    def decode_error(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        """The error that an answer with this status means."""
        return decode_error(status, headers, body, label=self._dialect.label, provider=self._dialect.provider)

    # ---- the models of the host

    def encode_models(self, after: str = "") -> HTTPRequest:
        """The call for all models; there are no pages, so `after` is not looked at."""
        del after
        return encode_models()

    def read_models(self, value: Any) -> tuple[list[ModelInfo], str]:
        """The models, and `""`: no page follows. Raises ProtocolError."""
        return read_models(value, self._dialect.label), ""

    def encode_model(self, model: str) -> HTTPRequest:
        """The call for one model."""
        return encode_model(model)

    def read_model(self, value: Any) -> ModelInfo:
        """One model. Raises ProtocolError."""
        return read_model(value, self._dialect.label)
