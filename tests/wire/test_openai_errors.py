"""The errors of OpenAI's APIs and their many copies, by status, code and shape of envelope."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    AuthError,
    ConflictError,
    ContextOverflowError,
    Failed,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerError,
)
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_errors import decode_error, rate_limits, stream_error
from dragoman.wire.openai_responses import OpenAIResponsesWire


def error(status: int, body: Any, **headers: str) -> ProviderError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return decode_error(status, names, data, label="OpenAI", provider="openai")


def envelope(message: str = "m", *, type: str | None = None, code: str | int | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "cls"),
    [
        (400, envelope(type="invalid_request_error"), InvalidRequestError),
        (400, envelope(code="model_not_found"), ModelNotFoundError),
        (400, envelope(code="context_length_exceeded"), ContextOverflowError),
        (400, envelope("This model's maximum context length is 8191 tokens, however you requested 9000"), ContextOverflowError),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided: xai-…"}, AuthError),
        (401, envelope(code="invalid_api_key"), AuthError),
        (402, envelope(), QuotaExceededError),
        (403, envelope(code="unsupported_country_region_territory"), PermissionDeniedError),
        (404, envelope(), ModelNotFoundError),
        (408, b"", RequestTimeoutError),
        (409, envelope(), ConflictError),
        (413, envelope(), RequestTooLargeError),
        (422, {"detail": [{"msg": "field required"}]}, InvalidRequestError),
        (429, envelope(code="rate_limit_exceeded", type="tokens"), RateLimitedError),
        (429, envelope(code="insufficient_quota", type="insufficient_quota"), QuotaExceededError),
        (498, envelope(), OverloadedError),
        (500, envelope(type="server_error"), ServerError),
        (500, envelope(code="rate_limit_exceeded"), RateLimitedError),
        (502, b"<html>bad gateway</html>", ServerError),
        (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, OverloadedError),
        (504, b"", RequestTimeoutError),
        (529, b"", OverloadedError),
    ],
)
def test_the_status_decides_and_the_body_refines(status: int, body: Any, cls: type[ProviderError]) -> None:
    found = error(status, body)
    assert type(found) is cls
    assert (found.status, found.provider) == (status, "openai")


def test_the_text_says_where_what_and_which_call() -> None:
    found = error(400, envelope("Unsupported value", type="invalid_request_error", code="unsupported_value"), x_request_id="req_1")
    assert found.message == "OpenAI request failed with HTTP 400 (invalid_request_error): Unsupported value [req_1]"
    assert (found.type, found.code, found.request_id) == ("invalid_request_error", "unsupported_value", "req_1")


def test_a_key_is_neither_in_the_text_nor_in_the_body() -> None:
    found = error(401, envelope("Incorrect API key provided: sk-proj-abcdefghijklmnop."))
    assert "sk-proj" not in found.message + found.body


def test_when_to_come_back_is_read_from_the_headers() -> None:
    assert error(429, envelope(), retry_after_ms="1500").retry_after == 1.5
    assert error(503, b"", retry_after="7").retry_after == 7.0


@pytest.mark.parametrize(("wish", "retryable"), [("true", True), ("false", False)])
def test_the_server_may_say_whether_to_try_again(wish: str, retryable: bool) -> None:
    assert error(400, envelope(), x_should_retry=wish).retryable is retryable


def test_a_spent_quota_is_never_retried_whatever_the_server_says() -> None:
    assert not error(429, envelope(code="insufficient_quota"), x_should_retry="true").retryable


@pytest.mark.parametrize(
    ("value", "cls", "code"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "m"}, RateLimitedError, "rate_limit_exceeded"),
        ({"error": {"message": "m", "type": "server_error", "code": 502}}, ServerError, "502"),
        ({"error": {"message": "m", "code": "429"}}, RateLimitedError, "429"),
        ({"error": {"message": "m", "code": 400}}, InvalidRequestError, "400"),
        ({"error": "upstream gone"}, ServerError, ""),
        ({"code": "invalid_prompt", "message": "m"}, InvalidRequestError, "invalid_prompt"),
        ({"code": "image_too_large", "message": "m"}, InvalidRequestError, "image_too_large"),
        ({"code": "never_seen", "message": "m"}, ServerError, "never_seen"),
        ({"code": "request_timeout", "message": "m"}, RequestTimeoutError, "request_timeout"),
        ({"error": {"message": "maximum context length is 10 tokens", "type": "server_error"}}, ContextOverflowError, ""),
        ({"error": {"type": "overloaded_error", "message": "m"}}, OverloadedError, ""),
        ({}, ServerError, ""),
    ],
)
def test_in_a_stream_the_words_decide(value: dict[str, Any], cls: type[ProviderError], code: str) -> None:
    found = stream_error(value, label="OpenAI", provider="openai")
    assert (type(found), found.code) == (cls, code)


def test_a_status_that_a_stream_writes_as_its_code_is_the_status() -> None:
    assert stream_error({"error": {"code": 502, "message": "m"}}, label="OpenAI", provider="openai").status == 502


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"plain words", "plain words"),
        (b"<html>x</html>", "(an HTML page"),
        (b'[{"error": {"code": 400, "message": "listed"}}]', "listed"),
        (b'"a string"', "a string"),
        (b'{"object": "error", "message": "vllm", "type": "BadRequestError", "code": 400}', "vllm"),
        (b'{"detail": "fastapi"}', "fastapi"),
        (b"\xff\xfe", "HTTP 400"),
        (b"", "HTTP 400"),
        (b"5", "HTTP 400"),
    ],
)
def test_any_body_is_accepted(body: bytes, words: str) -> None:
    assert words in error(400, body).message


def test_limits_that_are_not_said_are_not_there() -> None:
    assert rate_limits({"x-request-id": "r"}) is None
    limits = rate_limits({"x-ratelimit-remaining-requests": "3", "x-ratelimit-limit-requests": "many"})
    assert limits is not None
    assert limits.requests is not None
    assert (limits.requests.limit, limits.requests.remaining, limits.tokens) == (None, 3, None)


@pytest.mark.parametrize(
    ("status", "body", "cls"),
    [
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided: xai-…"}, AuthError),
        (400, envelope("Insufficient Balance"), QuotaExceededError),
        (400, envelope("x/y is not a valid model ID", code=400), ModelNotFoundError),
        (413, envelope("tokens per minute", code="rate_limit_exceeded"), RequestTooLargeError),
        (413, envelope(code="insufficient_quota"), RequestTooLargeError),
        (422, {"detail": [{"msg": "field required"}]}, InvalidRequestError),
        (429, {"error": {"type": "requests", "code": "insufficient_quota"}}, QuotaExceededError),
        (498, envelope(type="flex_capacity"), OverloadedError),
        (500, envelope(type="invalid_request_error"), ServerError),
        (500, envelope(code="slow_down"), OverloadedError),
        (400, {"error": {"message": "Provider returned error", "metadata": {"raw": "maximum context length"}}}, ContextOverflowError),
    ],
)
def test_both_protocols_say_the_same_of_the_same_answer(status: int, body: Any, cls: type[ProviderError]) -> None:
    data, headers = json.dumps(body).encode(), {"request-id": "r1", "retry-after": "2"}
    chat = OpenAIChatWire("openai").decode_error(status, headers, data)
    responses = OpenAIResponsesWire().decode_error(status, headers, data)
    assert type(chat) is cls
    assert chat == responses
    assert chat.request_id == "r1"


def test_the_status_that_an_error_in_a_stream_names_wins_over_its_type() -> None:
    value = {"error": {"message": "m", "type": "server_error", "code": 429}}
    assert type(stream_error(value, label="OpenAI", provider="openai")) is RateLimitedError


BARE = {"object": "error", "message": "max_tokens is too large", "type": "BadRequestError", "param": None, "code": 400}
TYPED = {"type": "error", "message": "slow down", "code": "rate_limit_exceeded"}


@pytest.mark.parametrize("wire", [OpenAIChatWire("vllm"), OpenAIResponsesWire()])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(("value", "cls"), [(BARE, InvalidRequestError), (TYPED, RateLimitedError)])
def test_an_error_without_an_envelope_is_an_error_in_an_answer_of_status_200(
    wire: Any, streamed: bool, value: dict[str, Any], cls: type[ProviderError]
) -> None:
    data = json.dumps(value).encode()
    decoder = wire.decoder(headers={"content-type": "text/event-stream" if streamed else "application/json"})
    [failed] = [*decoder.feed(b"data: " + data + b"\n\n" if streamed else data), *decoder.close()]
    assert isinstance(failed, Failed)
    assert type(failed.error) is cls
    assert str(value["message"]) in failed.error.message
