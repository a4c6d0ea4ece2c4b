"""The endpoints beside messages: counting tokens, and the models (spec: anthropic.md §2, §14)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from dragoman.catalog import ModelInfo, model_info
from dragoman.errors import ProtocolError
from dragoman.wire.base import HTTPRequest
from dragoman.wire.json_values import as_object, as_string, is_list

__all__ = ["encode_model", "encode_models", "read_count", "read_model", "read_models"]

PAGE = 1000
"""Models asked for per page; the API's own maximum."""


def encode_models(api_version: str, after: str = "") -> HTTPRequest:
    """The call for a page of models, from the one after `after`."""
    query = {"limit": str(PAGE), **({"after_id": after} if after else {})}
    return HTTPRequest(method="GET", path=f"/v1/models?{urlencode(query)}", headers=_headers(api_version))


def encode_model(api_version: str, model: str) -> HTTPRequest:
    """The call for one model."""
    return HTTPRequest(method="GET", path=f"/v1/models/{quote(model, safe='')}", headers=_headers(api_version))


def _headers(api_version: str) -> dict[str, str]:
    return {"accept": "application/json", "anthropic-version": api_version}


def read_count(value: Any, label: str) -> int:
    """The input tokens counted. Raises ProtocolError if there is no number."""
    tokens = as_object(value).get("input_tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise ProtocolError(f"{label} request failed: protocol error: the answer has no number `input_tokens`")
    return tokens


def read_models(value: Any, label: str) -> tuple[list[ModelInfo], str]:
    """The models of a page, and the id after which the next begins, `""` if this is the last. Raises ProtocolError."""
    page = as_object(value)
    data = page.get("data")
    if not is_list(data):
        raise ProtocolError(f"{label} request failed: protocol error: the answer has no list `data`")
    return [read_model(item, label) for item in data], as_string(page.get("last_id")) if page.get("has_more") is True else ""


def read_model(value: Any, label: str) -> ModelInfo:
    """One model. Raises ProtocolError."""
    return model_info(as_object(value), label=label)
