"""The errors of OpenAI's APIs and of the many servers that copy their envelope, as our classes.

Strategy. An HTTP status decides; the body only refines it (a quota by its code, an overflow by code or wording, a missing model that
comes as a 400), since proxies write anything into bodies. In a stream there is no status: then the code decides, else the type, else
a code that is itself a status. Every shape of envelope that was seen is read by one function, `_fields`.

Sources: `ResponseError.code` of openai-python 3.57, the error bodies in the recordings of Responses and Chat Completions, xAI's flat
`{"code", "error"}`, OpenRouter's numeric codes, FastAPI's `detail` (vLLM), Gemini's one-element list.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import (
    ERROR_BODY_LIMIT,
    AuthError,
    ConflictError,
    ContextOverflowError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerError,
)
from dragoman.response import Limit, RateLimits
from dragoman.retry import retry_after, should_retry
from dragoman.wire.base import Headers, lower_headers
from dragoman.wire.decoder import load_json
from dragoman.wire.error_text import error_text, redact
from dragoman.wire.overflow import is_overflow

__all__ = ["BY_CODE", "BY_STATUS", "BY_TYPE", "decode_error", "rate_limits", "stream_error"]

BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthError,
    402: QuotaExceededError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    408: RequestTimeoutError,
    409: ConflictError,
    413: RequestTooLargeError,
    429: RateLimitedError,
    498: OverloadedError,  # Groq: flex capacity exceeded
    503: OverloadedError,
    504: RequestTimeoutError,
    529: OverloadedError,
}
"""Statuses with a class of their own; any other 4xx is an InvalidRequestError, any other 5xx a ServerError."""

BY_CODE: dict[str, type[ProviderError]] = {
    "rate_limit_exceeded": RateLimitedError,
    "rate_limit_error": RateLimitedError,
    "rate_limited": RateLimitedError,
    "too_many_requests": RateLimitedError,
    "insufficient_quota": QuotaExceededError,
    "billing_hard_limit_reached": QuotaExceededError,
    "billing_not_active": QuotaExceededError,
    "usage_limit_reached": QuotaExceededError,  # ChatGPT plans
    "insufficient_credits": QuotaExceededError,
    "model_not_found": ModelNotFoundError,
    "model_not_available": ModelNotFoundError,
    "invalid_api_key": AuthError,
    "invalid_authentication": AuthError,
    "unauthorized": AuthError,
    "permission_denied": PermissionDeniedError,
    "server_error": ServerError,
    "internal_error": ServerError,
    "internal_server_error": ServerError,
    "vector_store_timeout": ServerError,
    "server_is_overloaded": OverloadedError,
    "service_unavailable": OverloadedError,
    "engine_overloaded": OverloadedError,
    "overloaded": OverloadedError,
    "slow_down": OverloadedError,
    "timeout": RequestTimeoutError,
    "request_timeout": RequestTimeoutError,
    "invalid_prompt": InvalidRequestError,
    "invalid_value": InvalidRequestError,
    "data_residency_mismatch": InvalidRequestError,
    "bio_policy": InvalidRequestError,
    "cyber_policy": InvalidRequestError,
    "misalignment_policy_violation": InvalidRequestError,
    "content_policy_violation": InvalidRequestError,
    "content_filter": InvalidRequestError,
    "tool_use_failed": InvalidRequestError,  # Groq: the model's call did not fit the schema
    "json_validate_failed": InvalidRequestError,
    "failed_to_download_image": InvalidRequestError,
    "image_file_not_found": InvalidRequestError,
    "image_parse_error": InvalidRequestError,
    "empty_image_file": InvalidRequestError,
    "unsupported_image_media_type": InvalidRequestError,
    "previous_response_not_found": InvalidRequestError,
}
"""What a code means, in a stream and where the status says nothing particular. `invalid_image…`, `image_…` and `unsupported_…` codes are
InvalidRequestError too.
"""

BY_TYPE: dict[str, type[ProviderError]] = {
    "invalid_request_error": InvalidRequestError,
    "bad_request_error": InvalidRequestError,
    "authentication_error": AuthError,
    "permission_error": PermissionDeniedError,
    "permission_denied_error": PermissionDeniedError,
    "not_found_error": ModelNotFoundError,
    "insufficient_quota": QuotaExceededError,
    "rate_limit_error": RateLimitedError,
    "requests": RateLimitedError,  # the limit that was hit: per minute, in requests or tokens
    "tokens": RateLimitedError,
    "exceed_context_size_error": ContextOverflowError,  # llama.cpp
    "overloaded_error": OverloadedError,
    "service_unavailable_error": OverloadedError,
    "unavailable_error": OverloadedError,  # llama.cpp
    "timeout_error": RequestTimeoutError,
    "server_error": ServerError,
    "api_error": ServerError,
    "internal_server_error": ServerError,
}
"""What an error's type means where neither status nor code says more."""

_GENERAL = frozenset({500, 502, 520, 521, 522, 523, 524})
"""Statuses so general that a known code or type says more."""
_OVERFLOW_STATUSES = frozenset({400, 413, 422, 429, 500})
_BAD_REQUEST = re.compile(r"invalid_image|image_|unsupported_|unknown_parameter|missing_required|string_above|integer_|array_|invalid_type")
_BAD_KEY = re.compile(r"incorrect api key provided|invalid api key", re.IGNORECASE)  # xAI: status 400, code "invalid-argument"


class _Fields(NamedTuple):
    type: str = ""
    code: str = ""
    message: str = ""
    request_id: str = ""


def decode_error(status: int, headers: Headers, body: bytes, *, label: str, provider: str) -> ProviderError:
    """The error that an HTTP answer means. Any body is accepted: empty, HTML, JSON of any shape, bytes that are not UTF-8."""
    head = lower_headers(headers)
    text = body[:ERROR_BODY_LIMIT].decode("utf-8", "replace")
    fields = _parse(text)
    request_id = head.get("x-request-id") or head.get("apim-request-id") or fields.request_id
    cls = _of_status(status, fields)
    error = _make(
        cls,
        error_text(label, status, _shown(fields), fields.message, request_id),
        provider=provider,
        status=status,
        type=fields.type,
        code=fields.code,
        request_id=request_id,
        body=redact(text),
        retry_after=retry_after(status, head),
    )
    wish = should_retry(head)
    if wish is not None and cls is not QuotaExceededError:
        error.retryable = wish
    return error


def stream_error(value: dict[str, Any], *, label: str, provider: str, request_id: str = "") -> ProviderError:
    """The error that an error object in a 200 answer means: an `error` event, a chunk with `error`, the `error` of a failed response."""
    fields = _fields(value)
    status = int(fields.code) if fields.code.isdecimal() and 400 <= int(fields.code[:4]) < 600 else None
    cls = _refined(_of_words(fields) or (_of_status(status, fields) if status else ServerError), fields)
    return _make(
        cls,
        error_text(label, None, _shown(fields), fields.message, request_id or fields.request_id),
        provider=provider,
        status=status,
        type=fields.type,
        code=fields.code,
        request_id=request_id or fields.request_id,
        body=redact(_compact(value)),
    )


def rate_limits(headers: dict[str, str]) -> RateLimits | None:
    """The `x-ratelimit-*` headers (lower-case names) for requests and tokens, or None if there are none."""

    def limit(name: str) -> Limit | None:
        parts = [headers.get(f"x-ratelimit-{part}-{name}") for part in ("limit", "remaining", "reset")]
        return Limit(_count(parts[0]), _count(parts[1]), parts[2] or "") if any(parts) else None

    limits = RateLimits(requests=limit("requests"), tokens=limit("tokens"))
    return None if limits == RateLimits() else limits


# ---- the class


def _of_status(status: int, fields: _Fields) -> type[ProviderError]:
    cls = BY_STATUS.get(status)
    if cls is None:
        cls = ServerError if status >= 500 else InvalidRequestError if status >= 400 else ProtocolError
    words = _of_words(fields)
    if status in _GENERAL or (words is not None and issubclass(words, QuotaExceededError) and status < 500):
        cls = words or cls
    elif status in (400, 422) and (words is ModelNotFoundError or words is AuthError):
        cls = words
    return _refined(cls, fields) if status in _OVERFLOW_STATUSES else cls


def _of_words(fields: _Fields) -> type[ProviderError] | None:
    """What code, type and message say without a status; None if they say nothing known."""
    if _BAD_KEY.search(fields.message):
        return AuthError
    for word in (fields.code, fields.type):
        if word in BY_CODE:
            return BY_CODE[word]
    if _BAD_REQUEST.match(fields.code):
        return InvalidRequestError
    return BY_TYPE.get(fields.type)


def _refined(cls: type[ProviderError], fields: _Fields) -> type[ProviderError]:
    if not issubclass(cls, RateLimitedError | OverloadedError | AuthError) and is_overflow(fields.message, fields.code, fields.type):
        return ContextOverflowError
    return cls


def _make(cls: type[ProviderError], text: str, **fields: Any) -> ProviderError:
    if issubclass(cls, RequestTimeoutError):
        return cls(text, phase="server", **fields)
    return cls(text, **fields)


def _shown(fields: _Fields) -> str:
    """The word that stands in the text: the code, which says more than OpenAI's few types."""
    return fields.code if fields.code and not fields.code.isdecimal() else fields.type


# ---- the envelope


def _parse(text: str) -> _Fields:
    """The fields of an error body; a body that is not JSON is its own message, a page only says that it is one."""
    try:
        value = load_json(text)
    except ValueError:
        stripped = text.strip()
        return _Fields(message="(an HTML page, not an answer of the API)" if stripped.startswith("<") else stripped)
    if isinstance(value, list) and value:
        value = value[0]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return _fields(value)  # pyright: ignore[reportUnknownArgumentType]
    return _Fields(message=value if isinstance(value, str) else "")


def _fields(value: dict[str, Any]) -> _Fields:
    """Type, code, message and request id from any of the shapes seen."""
    inner: Any = value.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else value  # pyright: ignore[reportUnknownVariableType]
    kind = _string(error, "type")
    code = error.get("code")
    message = inner if isinstance(inner, str) else _string(error, "message") or _string(value, "detail") or _string(value, "message")
    return _Fields(
        type="" if error is value and kind in ("error", "response.failed") else kind,
        code=str(code) if isinstance(code, str | int) and not isinstance(code, bool) else "",
        message=message,
        request_id=_string(value, "request_id"),
    )


def _string(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _compact(value: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(value)[:ERROR_BODY_LIMIT].decode("utf-8", "ignore")
    except UnicodeEncodeError:  # a lone surrogate in the server's words
        return ""


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
