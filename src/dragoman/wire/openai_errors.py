"""The errors of OpenAI's two protocols and of the many hosts that speak them, as our classes: one table for both.

Strategy. An HTTP status decides; the body only refines it where the status is too general (a quota inside 429, a missing model, a wrong
key or a full context inside 400), since proxies write anything into bodies. In a stream there is no status, but most hosts write one into
the error (`code: 502`, `"429"`, `status_code: 400`); where none does, the code says what is meant, else the type. Every shape of
envelope that was seen is read by one function, `_fields`.

Sources: `ResponseError.code` of openai-python 3.57; the error bodies in the recordings of both protocols: `{"error": {…}}`,
`{"error": "text", "code": …}` (xAI, Venice), `{"detail": …}` (FastAPI: vLLM) and `{"message", "type", "code"}` at the top (Mistral,
doubleword), a list around it all (Google), and OpenRouter's `metadata.raw`, which holds the true cause as text.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

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
from dragoman.wire.json_values import as_object, as_string, is_list, is_object
from dragoman.wire.overflow import is_overflow

__all__ = ["BY_STATUS", "MEANINGS", "REFINED", "decode_error", "is_error", "rate_limits", "request_id_of", "stream_error"]

REQUEST_ID_HEADERS: Final = ("x-request-id", "request-id", "apim-request-id", "mistral-correlation-id", "x-generation-id")
"""Headers that may hold the call's id: OpenAI's and most hosts', Hugging Face's, Azure's, Mistral's, OpenRouter's."""

BY_STATUS: Final[dict[int, type[ProviderError]]] = {
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

MEANINGS: Final[dict[str, type[ProviderError]]] = {
    # ---- limits
    "rate_limit_exceeded": RateLimitedError,
    "rate_limit_error": RateLimitedError,
    "rate_limited": RateLimitedError,
    "too_many_requests": RateLimitedError,
    "RateLimitReached": RateLimitedError,  # Azure
    "requests": RateLimitedError,  # the type is the limit that was hit: per minute, in requests or tokens
    "tokens": RateLimitedError,
    "insufficient_quota": QuotaExceededError,
    "billing_hard_limit_reached": QuotaExceededError,
    "billing_not_active": QuotaExceededError,
    "insufficient_balance": QuotaExceededError,
    "insufficient_credits": QuotaExceededError,
    "usage_limit_reached": QuotaExceededError,  # ChatGPT plans
    # ---- who asks
    "invalid_api_key": AuthError,
    "invalid_authentication": AuthError,
    "authentication_error": AuthError,
    "unauthorized": AuthError,
    "permission_denied": PermissionDeniedError,
    "permission_denied_error": PermissionDeniedError,
    "permission_error": PermissionDeniedError,
    "forbidden": PermissionDeniedError,
    # ---- what is asked
    "model_not_found": ModelNotFoundError,
    "model_not_available": ModelNotFoundError,
    "model_decommissioned": ModelNotFoundError,
    "invalid_model": ModelNotFoundError,
    "not_found_error": ModelNotFoundError,
    "DeploymentNotFound": ModelNotFoundError,  # Azure
    "exceed_context_size_error": ContextOverflowError,  # llama.cpp
    "invalid_request_error": InvalidRequestError,
    "bad_request_error": InvalidRequestError,
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
    "empty_image_file": InvalidRequestError,
    "previous_response_not_found": InvalidRequestError,
    # ---- the provider's own trouble
    "overloaded": OverloadedError,
    "overloaded_error": OverloadedError,
    "engine_overloaded": OverloadedError,
    "engine_overloaded_error": OverloadedError,
    "server_is_overloaded": OverloadedError,
    "service_unavailable": OverloadedError,
    "service_unavailable_error": OverloadedError,
    "unavailable_error": OverloadedError,  # llama.cpp
    "slow_down": OverloadedError,
    "timeout": RequestTimeoutError,
    "timeout_error": RequestTimeoutError,
    "request_timeout": RequestTimeoutError,
    "server_error": ServerError,
    "api_error": ServerError,
    "internal_error": ServerError,
    "internal_server_error": ServerError,
    "vector_store_timeout": ServerError,
}
"""What a code or a type means: in a stream that names no status, and where `REFINED` allows it."""

_BAD_REQUEST = re.compile(r"invalid_image|image_|unsupported_|unknown_parameter|missing_required|string_above|integer_|array_|invalid_type")
"""Beginnings of codes that all mean InvalidRequestError."""

REFINED: Final[dict[int, frozenset[type[ProviderError]]]] = {
    400: frozenset({AuthError, ModelNotFoundError, QuotaExceededError}),
    403: frozenset({QuotaExceededError}),
    422: frozenset({AuthError, ModelNotFoundError, QuotaExceededError}),
    429: frozenset({QuotaExceededError}),
    **dict.fromkeys((500, 502, 520, 521, 522, 523, 524), frozenset({OverloadedError, QuotaExceededError, RateLimitedError})),
}
"""The classes that the words of a body may turn a status into. A status that is not here means what it says: a 413 that talks of rate
limits is still a 413.
"""

_OVERFLOW_STATUSES: Final = frozenset({400, 413, 422, 500})  # 500: llama.cpp up to mid 2025

_KEY_WORDS = re.compile(r"incorrect api key provided|invalid api key", re.IGNORECASE)
"""A wrong key without a code that says so: xAI (status 400, code `invalid-argument`)."""

_MODEL_WORDS = re.compile(r"is not a valid model ID|^Invalid model: |^Model not found|supported API model names are", re.IGNORECASE)
"""Missing models without a code: OpenRouter, Mistral, DeepSeek."""

_QUOTA_WORDS = re.compile(
    r"insufficient (?:balance|credits?|funds)|(?:used|exhausted) all (?:of )?(?:your )?(?:available )?credits|out of credits"
    r"|requires more credits",
    re.IGNORECASE,
)
"""Money that ran out. Not "exceeded your current quota": Google says that of a limit per minute, too; OpenAI has a code for it."""

_WORDS: Final[tuple[tuple[re.Pattern[str], type[ProviderError]], ...]] = (
    (_KEY_WORDS, AuthError),
    (_QUOTA_WORDS, QuotaExceededError),
    (_MODEL_WORDS, ModelNotFoundError),
)
"""What messages say where no code does."""


class _Fields(NamedTuple):
    """What an error says, from any of its shapes."""

    type: str = ""
    code: str = ""
    message: str = ""
    request_id: str = ""
    status: int | None = None


def decode_error(status: int, headers: Headers, body: bytes, *, label: str, provider: str) -> ProviderError:
    """The error that an HTTP answer means. Any body is accepted: empty, HTML, JSON of any shape, bytes that are not UTF-8."""
    head = lower_headers(headers)
    text = body[:ERROR_BODY_LIMIT].decode("utf-8", "replace")
    fields = _parse(text)
    cls = _of_status(status, fields)
    request_id = request_id_of(head) or fields.request_id
    error = _make(cls, fields, status=status, label=label, provider=provider, request_id=request_id, body=text)
    error.retry_after = retry_after(status, head)
    wish = should_retry(head)
    if wish is not None and cls is not QuotaExceededError:
        error.retryable = wish
    return error


def stream_error(value: Any, *, label: str, provider: str, request_id: str = "") -> ProviderError:
    """The error that an error inside an answer of status 200 means: an `error` event or chunk, what stands under its key `error`, or the
    `error` of a failed response; an object of any shape, or just a text.
    """
    fields = _fields(value) if is_object(value) else _Fields(message=as_string(value))
    cls = _of_words(fields) if fields.status is None else _of_status(fields.status, fields)
    request_id = request_id or fields.request_id
    return _make(cls, fields, status=fields.status, label=label, provider=provider, request_id=request_id, body=_compact(value))


def is_error(value: dict[str, Any]) -> bool:
    """Whether an object of an answer is an error and nothing else: one that says so of itself, without a key `error` (vLLM, Mistral)."""
    return value.get("object") == "error" or value.get("type") == "error"


def request_id_of(headers: dict[str, str]) -> str:
    """The call's id from the headers (lower-case names), or `""`."""
    return next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), "")


def rate_limits(headers: dict[str, str]) -> RateLimits | None:
    """The `x-ratelimit-*-requests` and `-tokens` headers (lower-case names), or None if there are none."""

    def limit(name: str) -> Limit | None:
        parts = [headers.get(f"x-ratelimit-{part}-{name}") for part in ("limit", "remaining", "reset")]
        return Limit(_number(parts[0]), _number(parts[1]), parts[2] or "") if any(parts) else None

    limits = RateLimits(requests=limit("requests"), tokens=limit("tokens"))
    return None if limits == RateLimits() else limits


# ---- the class


def _of_status(status: int, fields: _Fields) -> type[ProviderError]:
    """What a status means, refined by the words beside it."""
    cls = BY_STATUS.get(status)
    if cls is None:
        cls = ServerError if status >= 500 else InvalidRequestError if status >= 400 else ProtocolError
    allowed = REFINED.get(status, frozenset())
    meant = next((meaning for meaning in (*_named(fields), *_said(fields)) if meaning in allowed), None)
    if meant is not None:
        return meant
    return _refined(cls, fields) if status in _OVERFLOW_STATUSES else cls


def _of_words(fields: _Fields) -> type[ProviderError]:
    """What an error means that names no status."""
    said, named = _said(fields), _named(fields)
    cls = said[0] if said else named[0] if named else ServerError
    return _refined(cls, fields)


def _named(fields: _Fields) -> list[type[ProviderError]]:
    """What the code and the type mean, the code first."""
    found = [MEANINGS[word] for word in (fields.code, fields.type) if word in MEANINGS]
    return [InvalidRequestError, *found] if fields.code not in MEANINGS and _BAD_REQUEST.match(fields.code) else found


def _said(fields: _Fields) -> list[type[ProviderError]]:
    """What the message says in so many words."""
    return [meaning for words, meaning in _WORDS if words.search(fields.message)]


def _refined(cls: type[ProviderError], fields: _Fields) -> type[ProviderError]:
    overflow = issubclass(cls, InvalidRequestError | ServerError) and is_overflow(fields.message, fields.code, fields.type)
    return ContextOverflowError if overflow else cls


# ---- the error


def _make(
    cls: type[ProviderError], fields: _Fields, *, status: int | None, label: str, provider: str, request_id: str, body: str
) -> ProviderError:
    word = fields.type or ("" if fields.code.isdecimal() else fields.code)
    more: dict[str, Any] = {"phase": "server"} if issubclass(cls, RequestTimeoutError) else {}
    return cls(
        error_text(label, status, word, fields.message, request_id),
        provider=provider,
        status=status,
        type=fields.type,
        code=fields.code,
        request_id=request_id,
        body=redact(body),
        **more,
    )


def _parse(text: str) -> _Fields:
    """The fields of an error body; a body that is not JSON is its own message, a page only says that it is one."""
    try:
        value = load_json(text)
    except ValueError:
        stripped = text.strip()
        return _Fields(message="(an HTML page, not an answer of the API)" if stripped.startswith("<") else stripped)
    if is_list(value) and value:  # Google
        value = value[0]
    return _fields(value) if is_object(value) else _Fields(message=as_string(value))


def _fields(value: dict[str, Any]) -> _Fields:
    """Type, code, message and the rest from any of the shapes seen: the error stands under `error`, or is the value itself."""
    inner: Any = value.get("error")
    error = inner if is_object(inner) else value
    kind, code = _word(error.get("type")), _word(error.get("code"))
    message = as_string(inner) or _text(error.get("message")) or _text(value.get("detail")) or _text(value.get("message"))
    return _Fields(
        type="" if error is value and kind in ("error", "response.failed") else kind,
        code=code,
        message=_with_cause(message, as_object(error.get("metadata"))),
        request_id=as_string(value.get("request_id")),
        status=_status(error.get("status_code"), error.get("status"), code, kind),
    )


def _with_cause(message: str, metadata: dict[str, Any]) -> str:
    """OpenRouter's "Provider returned error" with the provider's own words behind it."""
    raw = as_string(metadata.get("raw"))
    if not raw:
        return message
    try:
        inner = load_json(raw)
    except ValueError:
        return f"{message}: {raw}"
    cause = _fields(inner).message if is_object(inner) else raw
    return f"{message}: {cause}" if cause else message


def _status(*candidates: Any) -> int | None:
    """The first that is an HTTP error status, as a number or as text."""
    for candidate in candidates:
        number = _number(candidate) if isinstance(candidate, str) else candidate
        if isinstance(number, int) and 400 <= number <= 599:
            return number
    return None


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _text(value: Any) -> str:
    """A message: text as it is, anything else (a validation list of FastAPI) as JSON."""
    if isinstance(value, str):
        return value
    return _compact(value) if isinstance(value, list | dict) and value else ""


def _compact(value: Any) -> str:
    try:
        return msgspec.json.encode(value)[:ERROR_BODY_LIMIT].decode("utf-8", "ignore")
    except UnicodeEncodeError:  # a lone surrogate in the server's words
        return ""


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
