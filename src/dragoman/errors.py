"""The error tree: what went wrong, typed, with everything that is known about it.

Local errors (`ConfigError`, `InvalidInputError`, `StorageError`) are raised before any byte is sent and name paths, never content.
A `ProviderError` carries status, codes, ids, what had arrived (`partial`, `usage`) and whether trying again can help. Its text begins
with fixed words and may quote the server's own message, so logs and telemetry use `kind`, never `str(error)`.

Errors compare by value, copy and pickle. They are made once and completed once, by the driver, with `attempts`, `partial`, `usage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

if TYPE_CHECKING:
    from dragoman.message import Message
    from dragoman.response import Usage

__all__ = [
    "ERROR_BODY_LIMIT",
    "KINDS",
    "AuthError",
    "ConfigError",
    "ConflictError",
    "ConnectionFailedError",
    "ContextOverflowError",
    "DragomanError",
    "IncompleteStreamError",
    "InvalidInputError",
    "InvalidRequestError",
    "ModelNotFoundError",
    "OutputParseError",
    "OverloadedError",
    "PermissionDeniedError",
    "Phase",
    "Problem",
    "ProtocolError",
    "ProviderError",
    "QuotaExceededError",
    "RateLimitedError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "ServerError",
    "StorageError",
    "UnsupportedStopError",
    "is_retryable",
]

ERROR_BODY_LIMIT = 64 * 1024
"""Bytes of an error's body that are read and kept."""

Phase = Literal["connect", "first_byte", "idle", "content_idle", "total", "server"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that keeps a request from being sent: where (`messages[2].content[0]`), which rule, what is wrong, what to do."""

    path: str
    rule: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" ({self.fix})" if self.fix else "")


def _restore(cls: type[DragomanError], args: tuple[Any, ...], state: dict[str, Any]) -> DragomanError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class DragomanError(Exception):
    """Base of every error of this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, dict(self.__dict__))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.args == other.args and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), str(self)))


class ConfigError(DragomanError):
    """A missing key, an unknown provider, a bad setting. Raised before any I/O."""


class InvalidInputError(DragomanError):
    """The request cannot be sent as it is. `problems` holds all that was found, at once."""

    def __init__(self, problems: Sequence[Problem], text: str = "") -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__(text or "; ".join(str(problem) for problem in self.problems))


class StorageError(DragomanError):
    """Stored data that cannot be read, or a value that cannot be stored. `path` says where, as `$.content[0].text`."""

    def __init__(self, message: str, path: str = "$") -> None:
        self.path = path
        super().__init__(message)


class ProviderError(DragomanError):
    """A call that failed.

    `message` is the error's text. `status` is the HTTP status or None; `type` and `code` are the provider's own words; `body` is the
    answer's text, at most 64 KiB; `retry_after` is in seconds; `attempts` counts from 1; `partial` is what had arrived of the answer.
    """

    kind: ClassVar[str] = "server_error"
    """The closed set of telemetry's `error.type`."""
    _retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str = "",
        *,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        type: str = "",
        code: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        body: str = "",
        attempts: int = 1,
        partial: Message | None = None,
        usage: Usage | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.status = status
        self.type = type
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body
        self.attempts = attempts
        self.partial = partial
        self.usage = usage
        self.retryable = self._retryable if retryable is None else retryable

    @property
    def message(self) -> str:
        """The error's text, as `str(error)`."""
        return str(self.args[0]) if self.args else ""


class AuthError(ProviderError):
    """401: the key or token was not accepted."""

    kind = "auth"


class PermissionDeniedError(AuthError):
    """403: the key may not do this."""

    kind = "permission_denied"


class InvalidRequestError(ProviderError):
    """400, 405, 412, 422, 431 …: the provider refused the request; sending it again cannot help."""

    kind = "invalid_request"


class ModelNotFoundError(InvalidRequestError):
    """404: no such model, or no such endpoint at this base URL."""

    kind = "model_not_found"


class RequestTooLargeError(InvalidRequestError):
    """413: the body is larger than the provider takes."""

    kind = "request_too_large"


class ContextOverflowError(ProviderError):
    """The conversation does not fit the model's context window: shorten it."""

    kind = "context_overflow"


class RateLimitedError(ProviderError):
    """429: too many requests or tokens; wait `retry_after` seconds if it is given."""

    kind = "rate_limited"
    _retryable = True


class QuotaExceededError(RateLimitedError):
    """402, or a spend limit by its code: waiting does not help. Never retried."""

    kind = "quota"
    _retryable = False


class ConflictError(ProviderError):
    """409."""

    kind = "conflict"
    _retryable = True


class OverloadedError(ProviderError):
    """529, 503, or an overload reported in a stream."""

    kind = "overloaded"
    _retryable = True


class ServerError(ProviderError):
    """Any other 5xx, or an api_error in a stream."""

    kind = "server_error"
    _retryable = True


class RequestTimeoutError(ProviderError):
    """A clock ran out. `phase` says which: connect, first_byte, idle, content_idle, total, or server (408, 504)."""

    kind = "timeout"
    _retryable = True

    def __init__(self, message: str = "", *, phase: Phase, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.phase: Phase = phase
        if phase == "total":
            self.retryable = False


class ConnectionFailedError(ProviderError):
    """DNS, TCP, TLS, a reset: no usable connection."""

    kind = "connection"
    _retryable = True


class IncompleteStreamError(ProviderError):
    """The answer ended too early: no stop reason came."""

    kind = "incomplete_stream"
    _retryable = True


class ProtocolError(ProviderError):
    """Bytes that are not the protocol: HTML from a proxy, a wrong content type, events that contradict each other."""

    kind = "protocol"


class OutputParseError(ProviderError):
    """`response.parse` failed. `text` is the whole text of the answer."""

    kind = "protocol"

    def __init__(self, message: str = "", *, text: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.text = text


class UnsupportedStopError(ProviderError):
    """The answer stopped for a reason that this request cannot continue from. `raw` is the wire's word."""

    kind = "unsupported_stop"

    def __init__(self, message: str = "", *, raw: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.raw = raw


KINDS: dict[str, type[ProviderError]] = {
    cls.kind: cls
    for cls in (
        AuthError,
        PermissionDeniedError,
        InvalidRequestError,
        ModelNotFoundError,
        RequestTooLargeError,
        ContextOverflowError,
        RateLimitedError,
        QuotaExceededError,
        ConflictError,
        OverloadedError,
        ServerError,
        RequestTimeoutError,
        ConnectionFailedError,
        IncompleteStreamError,
        ProtocolError,
        UnsupportedStopError,
    )
}
"""Each error class by its `kind`: how a stored error finds its class again."""


def is_retryable(error: BaseException) -> bool:
    """Whether the same call, sent again, may succeed. The same as `error.retryable` for a ProviderError, False for all else."""
    return isinstance(error, ProviderError) and error.retryable
