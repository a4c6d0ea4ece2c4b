"""Errors of chat hosts: the class, what is kept, and the wordings that must not be taken for something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
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
from dragoman.wire.openai_chat import OpenAIChatWire
from tests.shared import case


def error(status: int, body: Any, headers: dict[str, str] | None = None, dialect: str = "openai") -> ProviderError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return OpenAIChatWire(dialect).decode_error(status, headers or {}, data)


def openai(message: str = "m", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "cls", "retryable"),
    [
        (400, InvalidRequestError, False),
        (401, AuthError, False),
        (402, QuotaExceededError, False),
        (403, PermissionDeniedError, False),
        (404, ModelNotFoundError, False),
        (405, InvalidRequestError, False),
        (408, RequestTimeoutError, True),
        (409, ConflictError, True),
        (413, RequestTooLargeError, False),
        (422, InvalidRequestError, False),
        (429, RateLimitedError, True),
        (500, ServerError, True),
        (502, ServerError, True),
        (503, OverloadedError, True),
        (504, RequestTimeoutError, True),
        (529, OverloadedError, True),
        (302, ProtocolError, False),
    ],
)
def test_the_status_decides(status: int, cls: type[ProviderError], retryable: bool) -> None:
    found = error(status, openai())
    assert (type(found), found.retryable, found.status) == (cls, retryable, status)


@pytest.mark.parametrize(
    ("status", "body", "cls"),
    [
        (429, openai(code="insufficient_quota", type="insufficient_quota"), QuotaExceededError),
        (429, openai(type="insufficient_quota"), QuotaExceededError),
        (403, openai("Your team has used all available credits"), QuotaExceededError),
        (400, openai("Insufficient Balance"), QuotaExceededError),
        (429, openai("You exceeded your current quota, please check your plan and billing details."), RateLimitedError),
        (429, openai("Rate limit reached for tokens per min", code="rate_limit_exceeded"), RateLimitedError),
        (400, openai(code="model_not_found"), ModelNotFoundError),
        (400, openai(code="model_decommissioned"), ModelNotFoundError),
        (400, openai("x/y is not a valid model ID", code=400), ModelNotFoundError),
        (400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}, ModelNotFoundError),
        (400, openai(code="invalid_api_key"), AuthError),
        (403, openai(code="invalid_api_key"), PermissionDeniedError),
        (413, openai("Request too large: rate limit, tokens per minute", code="rate_limit_exceeded"), RequestTooLargeError),
        (413, openai("maximum context length", code="context_length_exceeded"), ContextOverflowError),
        (500, openai(type="overloaded_error"), OverloadedError),
    ],
)
def test_codes_and_wordings_refine_it_only_where_it_is_too_general(status: int, body: Any, cls: type[ProviderError]) -> None:
    assert type(error(status, body)) is cls


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8191 tokens, however you requested 9000 tokens",
        "Requested token count exceeds the model's maximum context length of 1000 tokens. You requested a total of 1200 tokens",
        "This endpoint's maximum context length is 16000 tokens. However, you requested about 17000 tokens",
        "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
        "prompt too long; exceeded max context length by 1119046 tokens",
    ],
)
def test_a_full_context_is_recognised_by_its_words(message: str) -> None:
    assert type(error(400, openai(message, type="invalid_request_error"))) is ContextOverflowError


def test_the_reported_wordings_of_a_full_context() -> None:
    """anomalyco/opencode#25231: the lines of this protocol's hosts."""
    lines = [line for line in case("anomalyco/opencode#25231")["input"].split("\n") if line.startswith(("sglang", "openai", "openrouter"))]
    assert len(lines) == 3
    for line in lines:
        code = "context_length_exceeded" if "code=" in line else None
        assert type(error(400, openai(line.partition(": ")[2], code=code))) is ContextOverflowError


@pytest.mark.parametrize(
    ("message", "code"), [("m", "context_length_exceeded"), ("m", "exceed_context_size_error"), ("m", "context_window_exceeded")]
)
def test_a_full_context_is_recognised_by_its_code(message: str, code: str) -> None:
    assert type(error(400, openai(message, code=code))) is ContextOverflowError
    assert type(error(400, openai(message, type=code))) is ContextOverflowError


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 10 instead.",
        "string too long. Expected a string with maximum length 64, but got a string with length 69 instead.",
        "The request is too long to read today",
    ],
)
def test_what_only_sounds_like_a_full_context_is_not(message: str) -> None:
    assert type(error(400, openai(message, type="invalid_request_error"))) is InvalidRequestError


def test_a_tool_id_that_is_too_long_is_no_full_context() -> None:
    message = "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40"
    assert type(error(400, openai(message, code="string_above_max_length"))) is InvalidRequestError


def test_a_rate_limit_that_talks_of_context_is_a_rate_limit() -> None:
    assert type(error(429, openai("maximum context length"))) is RateLimitedError


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (openai("m", type="t", code="c"), "OpenAI request failed with HTTP 400 (t): m"),
        (openai("m", type=None, code="c"), "OpenAI request failed with HTTP 400 (c): m"),
        (openai("m", code=400), "OpenAI request failed with HTTP 400: m"),
        ({"code": "c", "error": "text"}, "OpenAI request failed with HTTP 400 (c): text"),
        ({"detail": "d"}, "OpenAI request failed with HTTP 400: d"),
        ({"detail": [{"msg": "x"}]}, 'OpenAI request failed with HTTP 400: [{"msg":"x"}]'),
        ([openai("m")], "OpenAI request failed with HTTP 400: m"),
        ("just text", "OpenAI request failed with HTTP 400: just text"),
        (b"plain words", "OpenAI request failed with HTTP 400: plain words"),
        (b"<html>x</html>", "OpenAI request failed with HTTP 400: (an HTML page, not an answer of the API)"),
        (b"", "OpenAI request failed with HTTP 400"),
        (b"\xff", "OpenAI request failed with HTTP 400: \ufffd"),
    ],
)
def test_every_shape_of_a_body_has_a_text(body: Any, text: str) -> None:
    assert str(error(400, body)) == text


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        ('{"error": {"message": "Unsupported parameter"}}', "Provider returned error: Unsupported parameter"),
        ("temporarily rate-limited upstream", "Provider returned error: temporarily rate-limited upstream"),
        ({"retryable": True}, "Provider returned error"),
    ],
)
def test_the_cause_behind_a_gateways_error_is_told(raw: Any, cause: str) -> None:
    found = error(400, openai("Provider returned error", code=400, metadata={"provider_name": "X", "raw": raw}), dialect="openrouter")
    assert str(found) == f"OpenRouter request failed with HTTP 400: {cause}"


def test_a_full_context_behind_a_gateways_error_is_recognised() -> None:
    raw = json.dumps(openai("This model's maximum context length is 10 tokens"))
    assert type(error(400, openai("Provider returned error", metadata={"raw": raw}))) is ContextOverflowError


@pytest.mark.parametrize("name", ["x-request-id", "apim-request-id", "mistral-correlation-id"])
def test_the_request_id_comes_from_the_headers(name: str) -> None:
    found = error(500, openai(), {name.title(): "r1"})
    assert found.request_id == "r1"
    assert str(found).endswith("[r1]")


def test_when_to_try_again() -> None:
    assert error(429, openai(), {"retry-after": "7"}).retry_after == 7
    assert error(500, openai(), {"x-should-retry": "false"}).retryable is False
    assert error(400, openai(), {"x-should-retry": "true"}).retryable is True
    assert error(429, openai(code="insufficient_quota"), {"x-should-retry": "true"}).retryable is False


def test_keys_are_removed_and_the_body_is_kept() -> None:
    found = error(401, openai("Incorrect API key provided: sk-proj-abcdefghijklmnop"))
    assert "abcdefgh" not in str(found) + found.body
    assert json.loads(found.body)["error"]["message"].startswith("Incorrect API key provided")


def test_a_body_is_kept_up_to_its_limit() -> None:
    assert len(error(500, b"x" * 200_000).body) == 65536


@pytest.mark.parametrize("dialect", ["openai", "groq", "generic"])
def test_errors_say_who_was_called(dialect: str) -> None:
    wire = OpenAIChatWire(dialect)
    found = error(500, openai(), dialect=dialect)
    assert str(found).startswith(f"{wire.dialect.label} request failed")
    assert found.provider == wire.provider


def test_a_name_of_ones_own() -> None:
    wire = OpenAIChatWire("vllm", provider="house", label="Our server")
    found = wire.decode_error(500, {}, b"")
    assert (found.provider, str(found)) == ("house", "Our server request failed with HTTP 500")
    assert repr(wire) == "OpenAIChatWire('vllm')"
