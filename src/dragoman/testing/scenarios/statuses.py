"""Answers with an error status: every status, every shape of body, and every form of Retry-After."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from dragoman.errors import (
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
from dragoman.testing.answer import Answer, Reset, Stall
from dragoman.testing.anthropic import anthropic_error
from dragoman.testing.connection import RecordedRequest
from dragoman.testing.scenarios.scenario import OK, TEXT, Scenario

__all__ = ["STATUSES"]

HTML = Answer(
    status=502,
    headers=[("content-type", "text/html; charset=utf-8"), ("server", "nginx")],
    body="<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>",
)
RATE_LIMITED = anthropic_error(429, "rate_limit_error", "This request would exceed the rate limit of 40000 input tokens per minute")
OVERLOADED = anthropic_error(529, "overloaded_error", "Overloaded")


def _final(name: str, answer: Answer, error: type[ProviderError], story: str) -> Scenario:
    return Scenario(name=name, story=story, must=f"raise {error.__name__} at once", answers=[answer], error=error)


def _again(name: str, answer: Answer, error: type[ProviderError], story: str, **fields: object) -> list[Scenario]:
    """Two scenarios: the error goes away, and it does not."""
    return [
        Scenario(name=f"{name}-once", story=f"{story}, once", must="wait and repeat", answers=[answer, OK], attempts=2, text=TEXT),
        Scenario(
            name=name,
            story=f"{story}, every time",
            must=f"raise the last {error.__name__} after three attempts",
            answers=[answer],
            error=error,
            attempts=3,
            **fields,  # type: ignore[arg-type]  # the fields of Scenario
        ),
    ]


def _waiting(name: str, headers: Sequence[tuple[str, str]], wait: float, story: str) -> Scenario:
    """A rate limit with these headers, then a good answer."""
    return Scenario(
        name=name,
        story=f"429 with {story}",
        must=f"wait {wait:g} s or its own back-off, whichever is longer, and repeat" if wait else "wait its own back-off and repeat",
        answers=[replace(RATE_LIMITED, headers=(*RATE_LIMITED.header_list(), *headers)), OK],
        attempts=2,
        text=TEXT,
        waits=[wait],
    )


def _refusing_to_wait(name: str, header: tuple[str, str], story: str) -> Scenario:
    return Scenario(
        name=name,
        story=f"429 with {story}",
        must="raise RateLimitedError at once, which says how long",
        answers=[replace(RATE_LIMITED, headers=(*RATE_LIMITED.header_list(), header))],
        error=RateLimitedError,
    )


def _soon(request: RecordedRequest) -> Answer:
    """The limits of Anthropic's own headers: the requests are used up, the tokens are not."""
    del request
    reset = (datetime.now(UTC) + timedelta(seconds=0.1)).isoformat()
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    limits = [
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", reset),
        ("anthropic-ratelimit-tokens-remaining", "1000"),
        ("anthropic-ratelimit-tokens-reset", later),
    ]
    return replace(RATE_LIMITED, headers=(*RATE_LIMITED.header_list(), *limits))


_FAR = format_datetime(datetime(2999, 1, 1, tzinfo=UTC), usegmt=True)
_PAST = format_datetime(datetime(2001, 1, 1, tzinfo=UTC), usegmt=True)

STATUSES: list[Scenario] = [
    *_again("rate-limited", RATE_LIMITED, RateLimitedError, "429"),
    *_again("overloaded", OVERLOADED, OverloadedError, "529"),
    *_again("server-error", anthropic_error(500, "api_error", "Internal server error"), ServerError, "500"),
    *_again("bad-gateway-html", HTML, ServerError, "502 with an HTML page of a proxy"),
    *_again("bad-gateway-empty", Answer(status=502), ServerError, "502 without a body"),
    *_again("conflict", anthropic_error(409, "conflict_error"), ConflictError, "409"),
    *_again(
        "model-loading",
        Answer(status=503, headers=[("content-type", "application/json")], body='{"error":{"code":503,"message":"Loading model"}}'),
        OverloadedError,
        "503 while the server loads its model",
    ),
    *_again("request-timeout", anthropic_error(408, "timeout_error"), RequestTimeoutError, "408", phase="server"),
    *_again("gateway-timeout", replace(HTML, status=504), RequestTimeoutError, "504 with an HTML page", phase="server"),
    _final("bad-request", anthropic_error(400, "invalid_request_error", "messages: roles must alternate"), InvalidRequestError, "400"),
    _final("unauthorized", anthropic_error(401, "authentication_error", "invalid x-api-key"), AuthError, "401"),
    _final("payment-required", anthropic_error(402, "billing_error"), QuotaExceededError, "402"),
    _final("forbidden", anthropic_error(403, "permission_error"), PermissionDeniedError, "403"),
    _final("model-not-found", anthropic_error(404, "not_found_error", "model: claude-none"), ModelNotFoundError, "404"),
    _final(
        "request-too-large",
        Answer(
            status=413,
            headers=[("content-type", "application/json"), ("retry-after", "37")],
            body={"error": {"message": "Request too large on tokens per minute", "type": "tokens", "code": "rate_limit_exceeded"}},
        ),
        RequestTooLargeError,
        "413 that talks of rate limits and has a Retry-After",
    ),
    _final("unprocessable", anthropic_error(422, "invalid_request_error"), InvalidRequestError, "422"),
    _final("headers-too-large", Answer(status=431), InvalidRequestError, "431 without a body"),
    _final(
        "context-overflow",
        anthropic_error(400, "invalid_request_error", "prompt is too long: 203411 tokens > 200000 maximum"),
        ContextOverflowError,
        "400 because the conversation is too long",
    ),
    _final(
        "spend-limit",
        anthropic_error(
            429, "rate_limit_error", headers=[("x-should-retry", "true")], details={"error_code": "enforced_spend_limit_reached"}
        ),
        QuotaExceededError,
        "429 for a spend limit, with an `x-should-retry: true` that is wrong",
    ),
    _final(
        "should-not-retry",
        anthropic_error(503, "overloaded_error", headers=[("x-should-retry", "false")]),
        OverloadedError,
        "503 with `x-should-retry: false`",
    ),
    Scenario(
        name="should-retry",
        story="400 with `x-should-retry: true`, once",
        must="wait and repeat, because the server says so",
        answers=[anthropic_error(400, "invalid_request_error", headers=[("x-should-retry", "true")]), OK],
        attempts=2,
        text=TEXT,
    ),
    *(
        _final(
            f"error-body-{name}", Answer(status=400, headers=[("content-type", "application/json")], body=body), InvalidRequestError, story
        )
        for name, body, story in [
            ("null", b"null", "400 with the body `null`"),
            ("list", b"[]", "400 with the body `[]`"),
            ("string", b'{"error":"text"}', "400 whose error is a string"),
            ("invalid-utf8", b'{"error":{"message":"\xff\xfe"}}', "400 with bytes that are not UTF-8"),
            ("cut", b'{"type":"error","error":{"type":"invalid_requ', "400 whose JSON breaks off"),
            ("huge", b'{"error":{"message":"' + b"x" * (1 << 20) + b'"}}', "400 with a body of 1 MiB, of which 64 KiB are kept"),
        ]
    ),
    _waiting("retry-after-seconds", [("retry-after", "0.1")], 0.1, "`retry-after: 0.1`"),
    _waiting("retry-after-zero", [("retry-after", "0")], 0, "`retry-after: 0`"),
    _waiting("retry-after-milliseconds", [("retry-after", "30"), ("retry-after-ms", "100")], 0.1, "`retry-after-ms: 100`, which wins"),
    _waiting("retry-after-past-date", [("retry-after", _PAST)], 0, "a date in the past"),
    _waiting("retry-after-negative", [("retry-after", "-5")], 0, "a negative number"),
    _waiting("retry-after-words", [("retry-after", "soon")], 0, "a word that is no time"),
    _waiting("retry-after-empty", [("retry-after", "")], 0, "an empty Retry-After"),
    _waiting("retry-after-nan", [("retry-after", "nan")], 0, "`retry-after: nan`"),
    _waiting("ratelimit-reset", [("ratelimit-reset", "0.1")], 0.1, "`ratelimit-reset: 0.1`"),
    _waiting("x-ratelimit-reset", [("x-ratelimit-reset", "100ms")], 0.1, "`x-ratelimit-reset: 100ms`"),
    Scenario(
        name="anthropic-ratelimit-reset",
        story="429 without Retry-After; the limit that is used up is reset in 0.1 s, another one in an hour",
        must="wait until the reset of the limit that is used up, and repeat",
        answers=[_soon, OK],
        attempts=2,
        text=TEXT,
        waits=[0.05],
    ),
    _refusing_to_wait("retry-after-too-long", ("retry-after", "86400"), "a Retry-After of a day"),
    _refusing_to_wait("retry-after-absurd", ("retry-after", "99999999999999999999"), "a Retry-After of three trillion years"),
    _refusing_to_wait("retry-after-far-date", ("retry-after", _FAR), "a date in the year 2999"),
    Scenario(
        name="retry-after-on-success",
        story="200 with `retry-after: 60`, as the real service sends it at times",
        must="take no notice",
        answers=[replace(OK, headers=(*OK.header_list(), ("retry-after", "60")))],
        text=TEXT,
    ),
    Scenario(
        name="redirect-to-another-host",
        story="307 to another host",
        must="not follow it, for the key would travel along; raise ProtocolError",
        answers=[Answer(status=307, headers=[("location", "https://elsewhere.invalid/v1/messages")])],
        error=ProtocolError,
    ),
    Scenario(
        name="error-body-stalls",
        story="400 whose body does not end",
        must="raise InvalidRequestError when its time is over: the status is known",
        answers=[Answer(status=400, headers=[("content-type", "application/json")], body=[b'{"type":"error",', Stall()])],
        error=InvalidRequestError,
        timeouts={"idle": 0.2},
    ),
    Scenario(
        name="error-body-reset",
        story="529 whose connection is reset within the body, once",
        must="wait and repeat",
        answers=[Answer(status=529, headers=[("content-type", "application/json")], body=[b'{"type":"error",', Reset()]), OK],
        attempts=2,
        text=TEXT,
    ),
]
