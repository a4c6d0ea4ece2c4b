"""Anthropic's errors, by status and type, as our classes (spec: anthropic.md §11).

The HTTP status decides; the body only refines it (overflow by wording, spend limits by code), since a proxy may write anything into
a body: a 413 that talks of rate limits is still a 413. In a stream there is no status, so the type decides.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

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
from dragoman.wire.json_values import as_object, as_string, is_object
from dragoman.wire.overflow import is_overflow

__all__ = ["decode_error", "rate_limits", "stream_error"]

BY_STATUS: dict[int, type[ProviderError]] = {
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

BY_TYPE: dict[str, type[ProviderError]] = {
    "invalid_request_error": InvalidRequestError,
    "authentication_error": AuthError,
    "billing_error": QuotaExceededError,
    "permission_error": PermissionDeniedError,
    "not_found_error": ModelNotFoundError,
    "request_too_large": RequestTooLargeError,
    "rate_limit_error": RateLimitedError,
    "timeout_error": RequestTimeoutError,
    "api_error": ServerError,
    "overloaded_error": OverloadedError,
    "conflict_error": ConflictError,
    "memory_precondition_failed_error": InvalidRequestError,
    "memory_path_conflict_error": ConflictError,
}
"""What an error event in a stream means; an unknown type is a ServerError."""

REFINED_BY_TYPE = frozenset({500, 502, 520, 521, 522, 523, 524})
"""Statuses so general that a known type in the body says more."""

QUOTA_CODES = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
    }
)
_QUOTA_WORDS = re.compile(r"credit balance is too low|reached your specified (?:API|workspace) usage limits", re.IGNORECASE)
_OVERFLOW_STATUSES = frozenset({400, 413, 422, 500})  # 500: llama.cpp up to mid 2025
_MEANT_BY_CODE = {401: AuthError, 403: PermissionDeniedError, 404: ModelNotFoundError, 429: RateLimitedError, 503: OverloadedError}


class _Fields(NamedTuple):
    type: str = ""
    code: str = ""
    message: str = ""
    request_id: str = ""


def decode_error(status: int, headers: Headers, body: bytes, *, label: str = "Anthropic", provider: str = "anthropic") -> ProviderError:
    """The error that an HTTP answer means. Any body is accepted: empty, HTML, JSON of any shape, bytes that are not UTF-8."""
    head = lower_headers(headers)
    text = body[:ERROR_BODY_LIMIT].decode("utf-8", "replace")
    fields = _parse(text)
    request_id = fields.request_id or head.get("request-id", "")
    cls = _class_of(status, fields)
    error = _make(
        cls,
        error_text(label, status, fields.type, fields.message, request_id),
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
    """The error that an `error` event in a stream means; also llama.cpp's, which has no inner `error` object."""
    fields = _fields(value)
    request_id = fields.request_id or request_id
    cls = BY_TYPE.get(fields.type)
    if cls is None:
        cls = _MEANT_BY_CODE.get(int(fields.code), ServerError) if fields.code.isdecimal() else ServerError
    cls = _refine(cls, fields)
    return _make(
        cls,
        error_text(label, None, fields.type, fields.message, request_id),
        provider=provider,
        type=fields.type,
        code=fields.code,
        request_id=request_id,
        body=redact(_compact(value)),
    )


def _class_of(status: int, fields: _Fields) -> type[ProviderError]:
    cls = BY_STATUS.get(status)
    if cls is None:
        cls = ServerError if status >= 500 else InvalidRequestError if status >= 400 else ProtocolError
    if status in REFINED_BY_TYPE:
        cls = BY_TYPE.get(fields.type, cls)
    if status == 400 and fields.type == "billing_error":
        return QuotaExceededError
    return _refine(cls, fields) if status in _OVERFLOW_STATUSES or status == 429 else cls


def _refine(cls: type[ProviderError], fields: _Fields) -> type[ProviderError]:
    if fields.code in QUOTA_CODES or _QUOTA_WORDS.search(fields.message):
        return QuotaExceededError
    if not issubclass(cls, RateLimitedError | OverloadedError) and is_overflow(fields.message, fields.type, fields.code):
        return ContextOverflowError
    return cls


def _make(cls: type[ProviderError], text: str, **fields: Any) -> ProviderError:
    if issubclass(cls, RequestTimeoutError):
        return cls(text, phase="server", **fields)
    return cls(text, **fields)


def _parse(text: str) -> _Fields:
    """The fields of an error body; a body that is not JSON is its own message, a page only says that it is one."""
    try:
        value = load_json(text)
    except ValueError:
        stripped = text.strip()
        return _Fields(message="(an HTML page, not an answer of the API)" if stripped.startswith("<") else stripped)
    if is_object(value):
        return _fields(value)
    return _Fields(message=value if isinstance(value, str) else "")


def _fields(value: dict[str, Any]) -> _Fields:
    """Type, code, message and request id from any of the shapes seen: Anthropic's, llama.cpp's, FastAPI's `detail`, plain text."""
    inner: Any = value.get("error")
    if isinstance(inner, str):
        return _Fields(message=inner, request_id=as_string(value.get("request_id")))
    error = inner if is_object(inner) else value
    code: Any = as_object(error.get("details")).get("error_code")
    code = error.get("code") if code is None else code
    kind = as_string(error.get("type"))
    return _Fields(
        type="" if error is value and kind == "error" else kind,
        code=str(code) if isinstance(code, str | int) else "",
        message=as_string(error.get("message")) or as_string(value.get("detail")) or as_string(value.get("message")),
        request_id=as_string(value.get("request_id")),
    )


def _compact(value: dict[str, Any]) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:ERROR_BODY_LIMIT]


_RATE_LIMIT = "anthropic-ratelimit-"


def rate_limits(headers: dict[str, str]) -> RateLimits | None:
    """The `anthropic-ratelimit-*` headers (lower-case names), or None if there are none."""
    given = {name: value for name, value in headers.items() if name.startswith(_RATE_LIMIT)}
    if not given:
        return None

    def limit(name: str) -> Limit | None:
        count, left, reset = (given.get(f"{_RATE_LIMIT}{name}-{key}") for key in ("limit", "remaining", "reset"))
        return Limit(_count(count), _count(left), reset or "") if count or left or reset else None

    limits = RateLimits(
        requests=limit("requests"), tokens=limit("tokens"), input_tokens=limit("input-tokens"), output_tokens=limit("output-tokens")
    )
    return None if limits == RateLimits() else limits


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else None
