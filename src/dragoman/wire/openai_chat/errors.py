"""Errors of chat hosts, by status, code and wording, as our classes.

Strategy. The HTTP status decides; codes and a few wordings refine it where a status is too general (quota inside 429, a missing model or a
full context inside 400). In a stream there is no status, but most hosts write one into the error (`code: 502`, `"429"`,
`status_code: 400`); where none does, the code or type decides. Shapes seen: `{"error": {…}}`, `{"error": "text", "code": …}` (xAI, Venice),
`{"detail": …}` and `{"message", "type", "code"}` at the top (Mistral, doubleword), a list around it all (Google), and OpenRouter's
`metadata.raw`, which holds the true cause as text.
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
from dragoman.wire.overflow import is_overflow

__all__ = ["REQUEST_ID_HEADERS", "decode_error", "rate_limits", "request_id_of", "stream_error"]

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
    503: OverloadedError,
    504: RequestTimeoutError,
    529: OverloadedError,
}
"""Statuses with a class of their own; any other 4xx is an InvalidRequestError, any other 5xx a ServerError."""

BY_CODE: Final[dict[str, type[ProviderError]]] = {
    "invalid_api_key": AuthError,
    "authentication_error": AuthError,
    "insufficient_quota": QuotaExceededError,
    "billing_hard_limit_reached": QuotaExceededError,
    "billing_not_active": QuotaExceededError,
    "insufficient_balance": QuotaExceededError,
    "permission_denied": PermissionDeniedError,
    "permission_error": PermissionDeniedError,
    "forbidden": PermissionDeniedError,
    "model_not_found": ModelNotFoundError,
    "model_decommissioned": ModelNotFoundError,
    "invalid_model": ModelNotFoundError,
    "DeploymentNotFound": ModelNotFoundError,
    "rate_limit_exceeded": RateLimitedError,
    "rate_limit_error": RateLimitedError,
    "RateLimitReached": RateLimitedError,
    "overloaded_error": OverloadedError,
    "engine_overloaded": OverloadedError,
    "engine_overloaded_error": OverloadedError,
    "service_unavailable": OverloadedError,
    "timeout": RequestTimeoutError,
    "request_timeout": RequestTimeoutError,
    "content_filter": InvalidRequestError,
    "tool_use_failed": InvalidRequestError,
    "invalid_request_error": InvalidRequestError,
    "server_error": ServerError,
    "internal_server_error": ServerError,
}
"""What a code or type means in a stream that names no status."""

_REFINED_BY_CODE: Final[dict[int, frozenset[type[ProviderError]]]] = {
    400: frozenset({ModelNotFoundError, QuotaExceededError, AuthError}),
    403: frozenset({QuotaExceededError}),
    404: frozenset(),
    422: frozenset({ModelNotFoundError}),
    429: frozenset({QuotaExceededError}),
    500: frozenset({OverloadedError, RateLimitedError}),
    502: frozenset({OverloadedError, RateLimitedError}),
}
"""Which classes a code may turn a status into; a status that is not here means what it says, whatever the body says (413!)."""

_MODEL_WORDS = re.compile(r"is not a valid model ID|^Invalid model: |^Model not found|supported API model names are", re.IGNORECASE)
"""Missing models without a code: OpenRouter, Mistral, DeepSeek."""

_QUOTA_WORDS = re.compile(
    r"insufficient (?:balance|credits?|funds)|(?:used|exhausted) all (?:of )?(?:your )?(?:available )?credits|out of credits"
    r"|requires more credits",
    re.IGNORECASE,
)
"""Money that ran out. Not "exceeded your current quota": Google says that of a limit per minute, too; OpenAI has a code for it."""

_OVERFLOW_STATUSES: Final = frozenset({400, 422, 500})  # 500: llama.cpp up to mid 2025


class Fields(NamedTuple):
    """What an error says, from any of its shapes."""

    type: str = ""
    code: str = ""
    message: str = ""
    status: int | None = None


def decode_error(status: int, headers: Headers, body: bytes, *, label: str, provider: str) -> ProviderError:
    """The error that an HTTP answer means. Any body is accepted: empty, HTML, JSON of any shape, bytes that are not UTF-8."""
    head = lower_headers(headers)
    text = body[:ERROR_BODY_LIMIT].decode("utf-8", "replace")
    fields = _parse(text)
    cls = _class_of(status, fields)
    request_id = request_id_of(head)
    error = _make(
        cls,
        error_text(label, status, fields.type or ("" if fields.code.isdecimal() else fields.code), fields.message, request_id),
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


def stream_error(value: Any, *, label: str, provider: str, request_id: str = "") -> ProviderError:
    """The error that an `error` inside an answer of status 200 means. `value` is what stands under that key, or the whole event."""
    fields = _fields({"error": value})
    if fields.status is not None:
        cls = _class_of(fields.status, fields)
    else:
        cls = BY_CODE.get(fields.code) or BY_CODE.get(fields.type) or ServerError
        cls = _refine(cls, fields)
    return _make(
        cls,
        error_text(label, fields.status, fields.type or ("" if fields.code.isdecimal() else fields.code), fields.message, request_id),
        provider=provider,
        status=fields.status,
        type=fields.type,
        code=fields.code,
        request_id=request_id,
        body=redact(_compact(value)),
    )


def request_id_of(headers: dict[str, str]) -> str:
    """The call's id from the headers (lower-case names), or `""`."""
    return next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), "")


def rate_limits(headers: dict[str, str]) -> RateLimits | None:
    """The `x-ratelimit-*-requests` and `-tokens` headers (lower-case names), or None if there are none."""

    def limit(name: str) -> Limit | None:
        parts = {key: headers.get(f"x-ratelimit-{key}-{name}") for key in ("limit", "remaining", "reset")}
        if not any(parts.values()):
            return None
        return Limit(_number(parts["limit"]), _number(parts["remaining"]), parts["reset"] or "")

    limits = RateLimits(requests=limit("requests"), tokens=limit("tokens"))
    return None if limits == RateLimits() else limits


def _class_of(status: int, fields: Fields) -> type[ProviderError]:
    cls = BY_STATUS.get(status)
    if cls is None:
        cls = ServerError if status >= 500 else InvalidRequestError if status >= 400 else ProtocolError
    allowed = _REFINED_BY_CODE.get(status)
    if allowed is None:
        return cls
    for word in (fields.code, fields.type):
        meant = BY_CODE.get(word)
        if meant is not None and meant in allowed:
            return meant
    if QuotaExceededError in allowed and _QUOTA_WORDS.search(fields.message):
        return QuotaExceededError
    if ModelNotFoundError in allowed and _MODEL_WORDS.search(fields.message):
        return ModelNotFoundError
    return _refine(cls, fields) if status in _OVERFLOW_STATUSES else cls


def _refine(cls: type[ProviderError], fields: Fields) -> type[ProviderError]:
    overflow = issubclass(cls, InvalidRequestError | ServerError) and is_overflow(fields.message, fields.type, fields.code)
    return ContextOverflowError if overflow else cls


def _make(cls: type[ProviderError], text: str, **fields: Any) -> ProviderError:
    if issubclass(cls, RequestTimeoutError):
        return cls(text, phase="server", **fields)
    return cls(text, **fields)


def _parse(text: str) -> Fields:
    """The fields of an error body; a body that is not JSON is its own message, a page only says that it is one."""
    try:
        value = load_json(text)
    except ValueError:
        stripped = text.strip()
        return Fields(message="(an HTML page, not an answer of the API)" if stripped.startswith("<") else stripped)
    if isinstance(value, list) and value:  # Google
        value = value[0]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return _fields(value)  # pyright: ignore[reportUnknownArgumentType]
    return Fields(message=value if isinstance(value, str) else "")


def _fields(value: dict[str, Any]) -> Fields:
    inner: Any = value.get("error")
    if isinstance(inner, str):
        return Fields(code=_word(value.get("code")), message=inner)
    error: dict[str, Any] = inner if isinstance(inner, dict) else value  # pyright: ignore[reportUnknownVariableType]
    code = _word(error.get("code"))
    message = _text(error.get("message")) or _text(value.get("detail")) or _text(value.get("message"))
    return Fields(
        type=_word(error.get("type")),
        code=code,
        message=_with_cause(message, error.get("metadata")),
        status=_status(error.get("status_code"), error.get("status"), code, error.get("type")),
    )


def _with_cause(message: str, metadata: Any) -> str:
    """OpenRouter's "Provider returned error" with the provider's own words behind it."""
    if not isinstance(metadata, dict):
        return message
    raw: Any = metadata.get("raw")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(raw, str) or not raw:
        return message
    try:
        inner = load_json(raw)
    except ValueError:
        return f"{message}: {raw}"
    cause = _fields(inner).message if isinstance(inner, dict) else raw  # pyright: ignore[reportUnknownArgumentType]
    return f"{message}: {cause}" if cause else message


def _status(*candidates: Any) -> int | None:
    """The first that is an HTTP error status, as a number or as text."""
    for candidate in candidates:
        number = _number(candidate) if isinstance(candidate, str) else candidate
        if isinstance(number, int) and 400 <= number <= 599:
            return number
    return None


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


def _text(value: Any) -> str:
    """A message: text as it is, anything else (a validation list of FastAPI) as JSON."""
    if isinstance(value, str):
        return value
    return _compact(value) if isinstance(value, list | dict) and value else ""


def _compact(value: Any) -> str:
    try:
        return msgspec.json.encode(value)[:ERROR_BODY_LIMIT].decode("utf-8", "ignore")
    except UnicodeEncodeError:
        return ""


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
