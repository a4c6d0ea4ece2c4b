"""`GET /models` as OpenAI's two protocols and the hosts that speak them have it (OpenAI's API reference, "models").

Strategy. All hosts send a list of objects with an `id`; what else they say, and under which names, differs. A table maps the names that
were seen to our fields, the first that is there wins; everything else stays in `ModelInfo.extra`. There are no pages.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from dragoman.catalog import ModelInfo, model_info
from dragoman.errors import ProtocolError
from dragoman.wire.base import HTTPRequest
from dragoman.wire.json_values import as_object, is_list, is_object

__all__ = ["encode_model", "encode_models", "read_model", "read_models"]

CONTEXT: Final = ("context_length", "context_window", "max_context_length", "max_model_len")
"""The context window, by OpenRouter and Together, Groq, Mistral and LM Studio, vLLM."""

OUTPUT: Final = ("max_completion_tokens", "max_output_tokens")
"""The longest answer: Groq, Vercel."""


def encode_models() -> HTTPRequest:
    """The call for all models."""
    return HTTPRequest(method="GET", path="/models", headers={"accept": "application/json"})


def encode_model(model: str) -> HTTPRequest:
    """The call for one model."""
    return HTTPRequest(method="GET", path=f"/models/{quote(model, safe='')}", headers={"accept": "application/json"})


def read_models(value: Any, label: str) -> list[ModelInfo]:
    """The models of an answer. Raises ProtocolError if it is no list of them. Together sends the bare list."""
    data = value if is_list(value) else as_object(value).get("data")
    if not is_list(data):
        raise ProtocolError(f"{label} request failed: protocol error: the answer has no list `data`")
    return [read_model(item, label) for item in data]


def read_model(value: Any, label: str) -> ModelInfo:
    """One model. Raises ProtocolError if it has no id."""
    told = as_object(value)
    named: dict[str, Any] = {"max_input_tokens": _first(told, CONTEXT), "max_tokens": _first(told, OUTPUT)}
    top = told.get("top_provider")  # OpenRouter: the host that it would choose
    if named["max_tokens"] is None and is_object(top):
        named["max_tokens"] = _first(top, OUTPUT)
    meta = told.get("meta")  # llama.cpp: of the model's file
    if named["max_input_tokens"] is None and is_object(meta):
        named["max_input_tokens"] = _first(meta, ("n_ctx", "n_ctx_train"))
    created = told.get("created")
    if isinstance(created, int) and 0 < created < 1 << 33:
        named["created_at"] = _moment(created)
    if isinstance(told.get("name"), str):
        named["display_name"] = told["name"]
    named = {key: value for key, value in named.items() if value is not None}
    kept = {key: value for key, value in told.items() if key not in ("object", "created", "name", *CONTEXT, *OUTPUT)}
    return model_info({**kept, **named}, label=label)


def _first(told: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _moment(seconds: int) -> str:
    """Seconds since 1970 as RFC 3339 text."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
