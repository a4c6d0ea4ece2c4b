"""The error tree: its shape, its words, and that errors are values."""

from __future__ import annotations

import copy
import pickle
from typing import Any, get_args

import pytest

from dragoman import (
    AuthError,
    ConfigError,
    ConflictError,
    ConnectionFailedError,
    ContextOverflowError,
    DragomanError,
    IncompleteStreamError,
    InvalidInputError,
    InvalidRequestError,
    ModelNotFoundError,
    OutputParseError,
    OverloadedError,
    PermissionDeniedError,
    Problem,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerError,
    StorageError,
    UnsupportedStopError,
    Usage,
    assistant,
    is_retryable,
)
from dragoman.errors import KINDS, Phase

PROBLEM = Problem("messages[0]", "empty", "has no content", "add a block")
FULL: dict[str, Any] = {
    "provider": "anthropic",
    "model": "claude-test-1",
    "status": 429,
    "type": "rate_limit_error",
    "code": "c",
    "request_id": "req_1",
    "retry_after": 1.5,
    "body": "{}",
    "attempts": 3,
    "partial": assistant("half"),
    "usage": Usage(input=3),
    "retryable": True,
}


class _ThirdPartyError(RateLimitedError):
    """As a wire of somebody else may define it."""

    def __init__(self, message: str = "", *, window: str = "", **fields: Any) -> None:
        super().__init__(message, **fields)
        self.window = window


EXAMPLES: list[DragomanError] = [
    DragomanError("m"),
    ConfigError("m", "second"),
    InvalidInputError([PROBLEM]),
    InvalidInputError([PROBLEM], "Anthropic request requires a model"),
    StorageError("m", "$.content[0].text"),
    *(cls("m") for cls in KINDS.values() if cls is not RequestTimeoutError),
    RateLimitedError("m", **FULL),
    RequestTimeoutError("m", phase="idle", status=408),
    OutputParseError("m", text="{", partial=assistant("{")),
    UnsupportedStopError("m", raw="pause_turn", status=200),
    _ThirdPartyError("m", window="1h", status=429),
    ProviderError(),
]
IDS = [type(error).__name__ for error in EXAMPLES]


# ---- values


@pytest.mark.parametrize("error", EXAMPLES, ids=IDS)
def test_errors_copy_and_pickle_as_equals(error: DragomanError) -> None:
    twins = [copy.copy(error), copy.deepcopy(error), *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6))]
    for twin in twins:
        assert twin == error
        assert type(twin) is type(error)
        assert (str(twin), hash(twin), vars(twin)) == (str(error), hash(error), vars(error))


@pytest.mark.parametrize("error", EXAMPLES, ids=IDS)
def test_a_difference_in_any_field_is_a_difference(error: DragomanError) -> None:
    for name in vars(error):
        twin = copy.copy(error)
        setattr(twin, name, "something else")
        assert twin != error


def test_errors_of_other_types_or_texts_differ() -> None:
    assert AuthError("m") != PermissionDeniedError("m")
    assert AuthError("m") != AuthError("n")
    assert AuthError("m") != "m"


def test_errors_may_stand_in_sets() -> None:
    assert len({AuthError("m"), AuthError("m"), AuthError("n")}) == 2


def test_notes_and_causes_are_python_s() -> None:
    error = ConnectionFailedError("m")
    error.add_note("while dialing")
    with pytest.raises(ConnectionFailedError) as caught:
        raise error from OSError("refused")
    assert isinstance(caught.value.__cause__, OSError)
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while dialing"]


# ---- the tree

TREE: dict[type[DragomanError], type[Exception]] = {
    DragomanError: Exception,
    ConfigError: DragomanError,
    InvalidInputError: DragomanError,
    StorageError: DragomanError,
    ProviderError: DragomanError,
    AuthError: ProviderError,
    PermissionDeniedError: AuthError,
    InvalidRequestError: ProviderError,
    ModelNotFoundError: InvalidRequestError,
    RequestTooLargeError: InvalidRequestError,
    ContextOverflowError: ProviderError,
    RateLimitedError: ProviderError,
    QuotaExceededError: RateLimitedError,
    ConflictError: ProviderError,
    OverloadedError: ProviderError,
    ServerError: ProviderError,
    RequestTimeoutError: ProviderError,
    ConnectionFailedError: ProviderError,
    IncompleteStreamError: ProviderError,
    ProtocolError: ProviderError,
    OutputParseError: ProviderError,
    UnsupportedStopError: ProviderError,
}


@pytest.mark.parametrize("cls", TREE, ids=lambda cls: cls.__name__)
def test_every_error_has_its_place_in_the_tree(cls: type[DragomanError]) -> None:
    assert cls.__bases__ == (TREE[cls],)


KIND_NAMES = {
    AuthError: "auth",
    PermissionDeniedError: "permission_denied",
    InvalidRequestError: "invalid_request",
    ModelNotFoundError: "model_not_found",
    RequestTooLargeError: "request_too_large",
    ContextOverflowError: "context_overflow",
    RateLimitedError: "rate_limited",
    QuotaExceededError: "quota",
    ConflictError: "conflict",
    OverloadedError: "overloaded",
    ServerError: "server_error",
    RequestTimeoutError: "timeout",
    ConnectionFailedError: "connection",
    IncompleteStreamError: "incomplete_stream",
    ProtocolError: "protocol",
    UnsupportedStopError: "unsupported_stop",
}


def test_the_kinds_are_telemetrys_closed_list() -> None:
    assert {name: cls for cls, name in KIND_NAMES.items()} == KINDS


@pytest.mark.parametrize("cls", [cls for cls in KINDS.values() if cls is not RequestTimeoutError], ids=lambda cls: cls.__name__)
def test_what_may_be_tried_again_is_told_by_the_class(cls: type[ProviderError]) -> None:
    may = {RateLimitedError, ConflictError, OverloadedError, ServerError, ConnectionFailedError, IncompleteStreamError}
    assert cls("m").retryable is is_retryable(cls("m")) is (cls in may)


@pytest.mark.parametrize("phase", get_args(Phase))
def test_every_timeout_but_the_total_may_be_tried_again(phase: Phase) -> None:
    error = RequestTimeoutError("m", phase=phase)
    assert (error.phase, error.retryable) == (phase, phase != "total")


def test_the_caller_may_know_better() -> None:
    assert not is_retryable(ServerError("m", retryable=False))
    assert is_retryable(AuthError("m", retryable=True))


def test_errors_that_are_none_of_a_provider_are_never_retryable() -> None:
    assert not is_retryable(ConfigError("m"))
    assert not is_retryable(OSError("reset"))


# ---- fields


def test_a_provider_error_knows_what_it_was_told() -> None:
    error = RateLimitedError("slow down", **FULL)
    assert {name: getattr(error, name) for name in FULL} == FULL
    assert error.message == str(error) == "slow down"


def test_a_provider_error_that_was_told_nothing() -> None:
    error = ProviderError()
    assert (error.message, str(error)) == ("", "")
    assert vars(error) == {
        **dict.fromkeys(["provider", "model", "type", "code", "request_id", "body"], ""),
        **dict.fromkeys(["status", "retry_after", "partial", "usage"]),
        "attempts": 1,
        "retryable": False,
    }


def test_a_message_that_was_replaced_by_none_is_empty() -> None:
    error = ProviderError("m")
    error.args = ()
    assert error.message == ""


def test_problems_are_all_told_at_once() -> None:
    problems = [PROBLEM, Problem("max_tokens", "range", "is negative")]
    error = InvalidInputError(problems)
    problems.clear()
    assert error.problems == [PROBLEM, Problem("max_tokens", "range", "is negative")]
    assert str(error) == "messages[0]: has no content (add a block); max_tokens: is negative"


def test_an_input_error_may_have_its_own_words() -> None:
    assert str(InvalidInputError([PROBLEM], "Anthropic request requires a model")) == "Anthropic request requires a model"


def test_a_storage_error_has_a_path() -> None:
    assert (str(StorageError("m", "$.role")), StorageError("m", "$.role").path, StorageError("m").path) == ("m", "$.role", "$")


def test_the_repr_shows_the_text_only() -> None:
    assert repr(AuthError("no", body="secret body")) == "AuthError('no')"
