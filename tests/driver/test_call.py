"""One call: attempts, hold-back, retries, errors, timing. Every test runs over the blocking and the async driver."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from dragoman import (
    Anthropic,
    AuthError,
    ConfigError,
    ConnectionFailedError,
    Event,
    Failed,
    HTTPProvider,
    IncompleteStreamError,
    InvalidInputError,
    MessageStart,
    OpenAIChat,
    OpenAIResponses,
    OverloadedError,
    PermissionDeniedError,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    Request,
    RequestTimeoutError,
    Retrying,
    RetryPolicy,
    ServerError,
    ThinkingConfig,
    Timeouts,
)
from dragoman.testing import anthropic_events
from dragoman.wire.anthropic import AnthropicWire
from tests.driver.fakes import SSE_HEADERS, Answer, AsyncFakeTransport, FakeTransport, Time, complete, events_of, kinds, provider
from tests.shared import case

ASK = Request("hi")
ONCE = RetryPolicy(max_attempts=1)
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def text_events(text: str = "Hello", **settings: Any) -> list[bytes]:
    return anthropic_events(text, pieces=1, **settings)


def answer(text: str = "Hello") -> Answer:
    return Answer(b"".join(text_events(text)))


def overload() -> bytes:
    return b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_9"}\n\n'


def failure(status: int, type: str = "api_error", message: str = "no", headers: dict[str, str] | None = None) -> Answer:
    body = json.dumps({"type": "error", "error": {"type": type, "message": message}}).encode()
    return Answer(body, status=status, headers=[("Content-Type", "application/json"), *(headers or {}).items()])


@WAYS
def test_a_call_gives_its_events_and_its_answer(way: str) -> None:
    made, transport = provider(answer())
    events = events_of(made, way, ASK)
    assert kinds(events) == ["message_start", "block_start", "text_delta", "block_stop", "usage_update", "message_stop"]
    [sent] = transport.requests
    assert sent.url == "https://api.anthropic.com/v1/messages"
    assert sent.headers["x-api-key"] == "sk-ant-secret-key-1"
    assert sent.headers["user-agent"].startswith("dragoman/")
    assert sent.headers["accept"] == "text/event-stream"
    assert json.loads(sent.body)["stream"] is True


@WAYS
def test_complete_is_the_fold(way: str) -> None:
    made, _ = provider(answer())
    seen: list[Event] = []
    response = complete(made, way, ASK, on_event=seen.append)
    assert (response.text, response.stop, response.attempts, response.request_id) == ("Hello", "end_turn", 1, "req_1")
    assert kinds(seen)[-1] == "message_stop"


@WAYS
def test_without_streaming_a_plain_request_is_sent(way: str) -> None:
    body = {"id": "m", "type": "message", "model": "c", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    made, transport = provider(Answer(json.dumps(body).encode(), headers=[("content-type", "application/json")]))
    assert complete(made, way, ASK, stream=False).text == "hi"
    assert "stream" not in json.loads(transport.requests[0].body)
    assert transport.requests[0].headers["accept"] == "application/json"
    clocks = transport.clocks[0]
    assert (clocks.connect, clocks.first_byte, clocks.idle, clocks.total) == (10, None, None, 600)


@WAYS
def test_the_connection_is_released_before_the_terminal_event(way: str) -> None:
    script = answer()
    made, _ = provider(script)
    closed: list[tuple[str, int]] = []
    complete(made, way, ASK, on_event=lambda event: closed.append((event.type, script.closed)))
    assert closed[-1] == ("message_stop", 1)


@WAYS
def test_what_encoding_changed_is_told_behind_the_message_start(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dragoman")
    request = Request("hi", max_tokens=2000, thinking=ThinkingConfig.budget(9000, clamp=True))
    made, _ = provider(failure(500), answer())
    events = events_of(made, way, request)
    assert kinds(events)[:3] == ["retrying", "message_start", "notice"]
    made, _ = provider(answer())
    [notice] = complete(made, way, request).notices
    assert notice in events
    assert notice.code in caplog.text


# ---- retry


@WAYS
@pytest.mark.parametrize(
    "first",
    [
        failure(500),
        failure(529, "overloaded_error"),
        failure(429, "rate_limit_error"),
        failure(408),
        failure(409),
        ConnectionFailedError("refused"),
        Answer(overload()),
        Answer(text_events()[0], overload()),
        Answer(text_events()[0]),
        Answer(),
        Answer(text_events()[0], ConnectionFailedError("reset")),
    ],
    ids=["500", "529", "429", "408", "409", "connect", "error event", "error after start", "cut after start", "empty", "reset after start"],
)
def test_a_failure_before_any_block_is_retried_and_leaves_no_trace(way: str, first: Any) -> None:
    made, transport = provider(copy.copy(first), answer())
    events = events_of(made, way, ASK)
    assert kinds(events) == ["retrying", "message_start", "block_start", "text_delta", "block_stop", "usage_update", "message_stop"]
    assert len(transport.requests) == 2


@WAYS
@pytest.mark.parametrize(
    ("first", "error"),
    [
        (failure(400, "invalid_request_error"), "invalid_request"),
        (failure(401, "authentication_error"), "auth"),
        (failure(403, "permission_error"), "permission_denied"),
        (failure(404, "not_found_error"), "model_not_found"),
        (failure(413), "request_too_large"),
        (failure(402, "billing_error"), "quota"),
        (failure(503, headers={"X-Should-Retry": "false"}), "overloaded"),
        (Answer(b"<html>", headers=[("content-type", "text/html")]), "protocol"),
        (RequestTimeoutError("total timeout", phase="total"), "timeout"),
    ],
)
def test_what_cannot_pass_is_not_retried(way: str, first: Any, error: str) -> None:
    made, transport = provider(copy.copy(first), answer())
    [event] = events_of(made, way, ASK)
    assert isinstance(event, Failed)
    assert (event.error.kind, event.error.attempts) == (error, 1)
    assert len(transport.requests) == 1


@WAYS
def test_x_should_retry_allows_what_would_not_be_retried(way: str) -> None:
    made, _ = provider(failure(400, headers={"x-should-retry": "true"}), answer())
    assert kinds(events_of(made, way, ASK))[0] == "retrying"


@WAYS
def test_quota_is_never_retried_even_if_asked_for(way: str) -> None:
    made, transport = provider(failure(402, "billing_error", headers={"x-should-retry": "true"}), answer())
    with pytest.raises(QuotaExceededError):
        complete(made, way, ASK)
    assert len(transport.requests) == 1


@WAYS
def test_nothing_is_retried_after_a_block_has_started(way: str) -> None:
    scenario = json.loads(case("HKUDS/nanobot#4038")["input"])
    made, transport = provider(Answer(scenario["attempt1"].encode()), Answer(scenario["attempt2"].encode()))
    events = events_of(made, way, ASK)
    assert len(transport.requests) == 1
    assert [event.text for event in events if event.type == "text_delta"] == ["Step one"]
    assert isinstance(events[-1], Failed)
    assert events[-1].error.partial is not None
    assert events[-1].error.partial.text == "Step one"


@WAYS
def test_an_overload_inside_a_200_stream_is_retried(way: str) -> None:
    scenario = json.loads(case("byte5ai/omadia#122")["input"])
    made, transport = provider(Answer(scenario["attempt1"].encode()), Answer(scenario["attempt2"].encode()))
    events = events_of(made, way, ASK)
    assert len(transport.requests) == 2
    assert isinstance(events[0], Retrying)
    assert events[0].error.kind == "overloaded"
    assert [event.text for event in events if event.type == "text_delta"] == ["fine"]


@WAYS
def test_the_last_attempts_events_and_error_are_handed_out_as_they_are(way: str) -> None:
    first = Answer(text_events()[0], overload())
    made, _ = provider(first, first, first)
    events = events_of(made, way, ASK)
    assert kinds(events) == ["retrying", "retrying", "message_start", "failed"]
    assert isinstance(events[-1], Failed)
    assert isinstance(events[-1].error, OverloadedError)
    assert (events[-1].error.attempts, events[-1].error.request_id) == (3, "req_9")
    assert [(e.attempt, e.error.attempts) for e in events if isinstance(e, Retrying)] == [(1, 1), (2, 2)]


@WAYS
def test_attempts_are_counted_in_the_response(way: str) -> None:
    made, _ = provider(failure(500), answer())
    response = complete(made, way, ASK)
    assert (response.attempts, response.timing.attempts if response.timing else 0) == (2, 2)


@WAYS
def test_a_timeout_after_sending_is_repeated_at_most_once(way: str) -> None:
    def timeout() -> RequestTimeoutError:
        return RequestTimeoutError("idle timeout", phase="idle")

    made, transport = provider(timeout(), timeout(), answer(), retry=RetryPolicy(base=0, max_attempts=5))
    with pytest.raises(RequestTimeoutError):
        complete(made, way, ASK)
    assert len(transport.requests) == 2


@WAYS
def test_timeouts_are_not_repeated_if_so_set(way: str) -> None:
    made, transport = provider(RequestTimeoutError("idle timeout", phase="first_byte"), retry=RetryPolicy(retry_timeouts=False))
    with pytest.raises(RequestTimeoutError):
        complete(made, way, ASK)
    assert len(transport.requests) == 1


@WAYS
def test_the_retry_policy_of_a_call_wins(way: str) -> None:
    made, transport = provider(failure(500), answer())
    with pytest.raises(ServerError):
        complete(made, way, ASK, retry=RetryPolicy(max_attempts=1))
    assert len(transport.requests) == 1


def delays_of(way: str, headers: dict[str, str], *, status: int = 429, **policy: Any) -> list[float]:
    """The waits that an answer with these headers leads to, back-off being 0.5 s."""
    made, _ = provider(failure(status, headers=headers), answer(), retry=RetryPolicy(base=0.0, **policy))
    return [event.delay for event in _without_waiting(made, way) if isinstance(event, Retrying)]


def _without_waiting(made: Any, way: str) -> list[Event]:
    """The events up to the first wait (which is the only thing asked about)."""
    if way == "async":  # the fake async transport does not wait
        return events_of(made, way, ASK)
    with made.events(ASK) as stream:
        return [next(stream)]


NOW = datetime.fromtimestamp(1_700_000_000, UTC)


@WAYS
@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({"retry-after": "7"}, 7),
        ({"Retry-After": "0"}, 0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=10), usegmt=True)}, 10),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=60), usegmt=True)}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "soon"}, 0),
        ({"retry-after": ""}, 0),
        ({"retry-after": "nan"}, 0),
        ({"retry-after": "30", "retry-after-ms": "250"}, 0.25),
        ({"x-ratelimit-reset": "12"}, 12),
        ({"ratelimit-reset": "1m30s"}, 90),
        ({"x-ratelimit-reset": "6ms"}, 0.006),
        ({"x-ratelimit-reset": "1700000020"}, 20),
        ({"x-ratelimit-reset": "1700000020000"}, 20),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": (NOW + timedelta(seconds=4)).isoformat(),
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": (NOW + timedelta(seconds=9)).isoformat(),
                "anthropic-ratelimit-input-tokens-remaining": "5",
                "anthropic-ratelimit-input-tokens-reset": (NOW + timedelta(seconds=99)).isoformat(),
            },
            9,
        ),
        ({"retry-after": "3", "x-ratelimit-reset": "50"}, 3),
    ],
)
def test_the_server_says_how_long_to_wait(way: str, headers: dict[str, str], delay: float) -> None:
    assert delays_of(way, headers) == [pytest.approx(delay)]


@WAYS
def test_rate_limit_resets_count_on_a_429_only(way: str) -> None:
    assert delays_of(way, {"x-ratelimit-reset": "12"}, status=500) == [0]


@WAYS
def test_a_longer_wait_than_we_are_willing_is_the_error_at_once(way: str) -> None:
    made, transport = provider(failure(429, headers={"retry-after": "99999999999999999999"}), answer())
    with pytest.raises(RateLimitedError) as raised:
        complete(made, way, ASK)
    assert raised.value.retry_after == 1e20
    assert len(transport.requests) == 1


@WAYS
def test_retry_after_on_a_good_answer_means_nothing(way: str) -> None:
    made, _ = provider(Answer(text_events()[0], overload(), headers=[*SSE_HEADERS, ("retry-after", "50")]), answer())
    events = _without_waiting(made, way)
    assert isinstance(events[0], Retrying)
    assert events[0].delay == 0


@WAYS
def test_nor_does_it_where_the_error_within_it_names_a_status(way: str) -> None:
    transport = FakeTransport(
        Answer(
            b'data: {"error": {"message": "busy", "code": 429}}\n\n',
            headers=[*SSE_HEADERS, ("retry-after", "50"), ("x-ratelimit-reset", "50"), ("x-ratelimit-remaining-requests", "9")],
        ),
        Answer(b'data: {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\n'),
    )
    made = OpenAIChat(
        "key",
        model="m",
        transport=transport,
        async_transport=AsyncFakeTransport(transport),
        clock=Time().clock(),
        retry=RetryPolicy(base=0.0),
        telemetry=None,
    )
    first = _without_waiting(made, way)[0]
    assert isinstance(first, Retrying)
    assert (first.delay, first.error.status, first.error.retry_after) == (0, 429, None)


def test_back_off_grows_with_full_jitter_up_to_its_cap() -> None:
    from dragoman.retry import RetryState

    state = RetryState(RetryPolicy(max_attempts=9, base=1, factor=3, cap=20), lambda: 0.5)
    assert [state.next_delay(ServerError()) for _ in range(5)] == [0.5, 1.5, 4.5, 10, 10]


def test_back_off_is_the_floor_of_the_servers_wait() -> None:
    from dragoman.retry import RetryState

    assert RetryState(RetryPolicy(base=8, jitter="none"), lambda: 0.5).next_delay(RateLimitedError(retry_after=2)) == 8


# ---- credentials


@WAYS
def test_a_401_asks_a_credentials_source_once_more(way: str) -> None:
    keys = iter(["old-key-1234", "new-key-5678"])
    made, transport = provider(failure(401, "authentication_error"), answer(), api_key=None, credentials=lambda: next(keys))
    assert complete(made, way, ASK).text == "Hello"
    assert [request.headers["x-api-key"] for request in transport.requests] == ["old-key-1234", "new-key-5678"]


@WAYS
def test_a_second_401_is_the_error(way: str) -> None:
    made, transport = provider(failure(401), failure(401), answer(), api_key=None, credentials=lambda: "k-12345678")
    with pytest.raises(AuthError):
        complete(made, way, ASK)
    assert len(transport.requests) == 2


@WAYS
def test_a_403_asks_nobody(way: str) -> None:
    made, transport = provider(failure(403), answer(), api_key=None, credentials=lambda: "k-12345678")
    with pytest.raises(PermissionDeniedError):
        complete(made, way, ASK)
    assert len(transport.requests) == 1


def test_a_missing_key_is_reported_by_the_call_and_by_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRAGOMAN_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made, transport = provider(answer(), api_key=None)
    assert made.wire.encode(Request("hi", model="m"), stream=False).body
    with pytest.raises(ConfigError, match=r"^Anthropic API key is required.*DRAGOMAN_ANTHROPIC_API_KEY, ANTHROPIC_API_KEY"):
        made.stream(ASK)
    assert transport.requests == []


@WAYS
def test_a_key_is_nowhere_to_be_seen(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = "the key sk-ant-secret-key-1 is wrong"
    made, _ = provider(failure(401, "authentication_error", echo))
    with pytest.raises(AuthError) as raised:
        complete(made, way, Request("PROMPT-SECRET"))
    error = raised.value
    seen = [str(error), repr(error), error.body, repr(made), repr(made.stream(ASK)), caplog.text, str(pickle.dumps(error))]
    assert not [text for text in seen if "secret-key" in text]
    assert "PROMPT-SECRET" not in caplog.text + repr(made)


def test_a_key_that_no_header_can_carry_is_a_config_error() -> None:
    made, _ = provider(answer(), api_key="abc\ndef")
    with pytest.raises(ConfigError, match="line break") as raised:
        made.stream(ASK)
    assert "abc" not in str(raised.value)


# ---- local checks


@pytest.mark.parametrize("validate", ["error", "off"])
@pytest.mark.parametrize(
    ("request_", "settings", "text"),
    [
        (Request("hi"), {"model": ""}, "Anthropic request requires a model"),
        (Request([]), {}, "Anthropic request requires at least one user/assistant message"),
    ],
)
def test_what_no_request_can_be_without_is_checked_first(request_: Request, settings: dict[str, Any], text: str, validate: str) -> None:
    made, transport = provider(answer(), validate=validate, **settings)
    with pytest.raises(InvalidInputError, match=f"^{text}"):
        made.stream(request_)
    assert transport.requests == []


def test_problems_are_reported_by_the_call_unless_turned_off() -> None:
    bad = Request("hi", temperature=0.5, top_k=3, max_tokens=-1)
    made, _ = provider(answer())
    with pytest.raises(InvalidInputError):
        made.astream(bad)
    made, transport = provider(answer(), validate="off")
    assert made.complete(bad).text == "Hello"
    assert len(transport.requests) == 1


# ---- errors


@WAYS
def test_a_failure_is_the_last_event_or_raised_with_what_had_arrived(way: str) -> None:
    events = text_events()
    cut = [b"".join(events[:4])]
    made, _ = provider(Answer(*cut), Answer(*cut))
    last = events_of(made, way, ASK)[-1]
    assert isinstance(last, Failed)
    with pytest.raises(IncompleteStreamError) as raised:
        complete(made, way, ASK)
    assert raised.value.partial is not None
    assert raised.value.partial.text == "Hello"
    assert raised.value.usage is not None
    assert raised.value.usage.input == 10
    assert (raised.value.provider, raised.value.model) == ("anthropic", "claude-test-1")


@WAYS
def test_a_transport_error_is_named_after_the_provider_and_keeps_its_cause(way: str) -> None:
    error = ConnectionFailedError("connection reset by peer")
    error.__cause__ = OSError("boom")
    made, _ = provider(error, retry=RetryPolicy(max_attempts=1))
    with pytest.raises(ConnectionFailedError, match=r"^Anthropic request failed: connection reset by peer$") as raised:
        complete(made, way, ASK)
    assert isinstance(raised.value.__cause__, OSError)


@WAYS
def test_an_error_body_is_read_up_to_its_limit(way: str) -> None:
    script = Answer(*[b"x" * 10_000] * 50, status=500)
    made, _ = provider(script, retry=RetryPolicy(max_attempts=1))
    with pytest.raises(ServerError) as raised:
        complete(made, way, ASK)
    assert len(raised.value.body) == 64 * 1024
    assert not script.read_to_end


@WAYS
def test_a_stop_reason_counts_whatever_the_transport_says_afterwards(way: str) -> None:
    made, _ = provider(Answer(b"".join(text_events()[:-1]), ConnectionFailedError("reset")))
    assert complete(made, way, ASK).text == "Hello"


@WAYS
def test_bugs_and_interrupts_pass_unwrapped_and_close_the_connection(way: str) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    script = Answer(text_events()[0], interrupt)
    made, transport = provider(script)
    with pytest.raises(KeyboardInterrupt):
        complete(made, way, ASK)
    assert script.closed == 1
    assert len(transport.requests) == 1


def test_cancellation_passes_unwrapped_and_is_not_retried() -> None:
    def cancel() -> None:
        raise asyncio.CancelledError

    script = Answer(text_events()[0], cancel)
    made, transport = provider(script, answer())
    with pytest.raises(asyncio.CancelledError):
        complete(made, "async", ASK)
    assert script.closed == 1
    assert len(transport.requests) == 1


# ---- timing


@WAYS
def test_timing_tells_when_things_happened_and_the_longest_wait_for_the_network(way: str) -> None:
    time = Time()
    start, *rest = anthropic_events({"type": "thinking", "thinking": "hm", "signature": "s"}, "Hello", pieces=1, ping=False)
    script = Answer(time.go(1), start, time.go(2), b"event: ping\ndata: {}\n\n", time.go(3), *rest)
    made, _ = provider(script, time=time)
    response = complete(made, way, ASK, on_event=lambda _: time.go(100)())
    timing = response.timing
    assert timing is not None
    assert (timing.started, timing.first_byte, timing.longest_gap) == (1_700_000_000.0, 1.0, 3.0)
    assert timing.first_content == 206.0  # the consumer took 100 s for each of the two events before it
    assert timing.bytes == len(start) + len(b"event: ping\ndata: {}\n\n") + sum(map(len, rest))


@WAYS
def test_the_clocks_stand_still_while_the_consumer_works(way: str) -> None:
    time = Time()
    left: list[float | None] = []
    events = text_events()

    def look() -> None:
        left.append(transport.clocks[0].limit()[0])

    made, transport = provider(
        Answer(time.go(1), *[piece for event in events[:-1] for piece in (event, look)], events[-1]),
        time=time,
        timeouts=Timeouts(idle=None, total=10, first_byte=None, connect=None),
    )
    complete(made, way, ASK, on_event=lambda _: time.go(50)())
    assert left == [9.0] * (len(events) - 1)


@WAYS
def test_the_total_goes_on_over_the_attempts(way: str) -> None:
    time = Time()
    made, transport = provider(
        Answer(time.go(4)), Answer(time.go(1), *text_events()), time=time, timeouts=Timeouts(total=10, idle=None, first_byte=None)
    )
    complete(made, way, ASK)
    assert transport.clocks[1].total_used == 5


@WAYS
def test_pings_reset_the_idle_clock_but_not_that_of_content(way: str) -> None:
    time = Time()
    ping = b"event: ping\ndata: {}\n\n"
    limits: list[tuple[float | None, str]] = []

    def look() -> None:
        limits.append(transport.clocks[0].limit())

    start, *rest = text_events()
    script = Answer(start, look, time.go(5), ping, look, time.go(5), b": comment\n\n", look, *rest)
    made, transport = provider(script, time=time, timeouts=Timeouts(idle=8, content_idle=30))
    complete(made, way, ASK)
    assert limits == [(8, "idle")] * 3
    made, transport = provider(Answer(*script.pieces), time=time, timeouts=Timeouts(idle=None, content_idle=30))
    limits.clear()
    complete(made, way, ASK)
    assert limits == [(30, "content_idle"), (25, "content_idle"), (20, "content_idle")]


# ---- other endpoints


@WAYS
def test_tokens_are_counted(way: str) -> None:
    made, transport = provider(Answer(b'{"input_tokens": 14}', headers=[("content-type", "application/json")]))
    count = made.count_tokens(ASK) if way == "sync" else asyncio.run(made.acount_tokens(ASK))
    assert count == 14
    assert transport.requests[0].path == "/v1/messages/count_tokens"
    assert "max_tokens" not in json.loads(transport.requests[0].body)


@WAYS
def test_models_come_page_after_page(way: str) -> None:
    pages = [{"data": [{"id": "a"}], "has_more": True, "last_id": "a"}, {"data": [{"id": "b", "max_tokens": 5}], "has_more": False}]
    made, transport = provider(*(Answer(json.dumps(page).encode()) for page in pages))
    models = made.models() if way == "sync" else asyncio.run(made.amodels())
    assert [(model.id, model.max_tokens) for model in models] == [("a", None), ("b", 5)]
    assert [request.path for request in transport.requests] == ["/v1/models?limit=1000", "/v1/models?limit=1000&after_id=a"]
    assert [request.method for request in transport.requests] == ["GET", "GET"]


@WAYS
def test_one_model_is_described(way: str) -> None:
    made, transport = provider(failure(529), Answer(b'{"id": "claude/x", "lifecycle": "deprecated"}'))
    model = made.model("claude/x") if way == "sync" else asyncio.run(made.amodel("claude/x"))
    assert model.lifecycle == "deprecated"
    assert transport.requests[1].path == "/v1/models/claude%2Fx"


@WAYS
@pytest.mark.parametrize("body", [b"<html>", b'{"tokens": 1}', b""])
def test_an_endpoint_that_answers_something_else_is_a_protocol_error(way: str, body: bytes) -> None:
    made, _ = provider(Answer(body))
    with pytest.raises(ProtocolError):
        _ = made.count_tokens(ASK) if way == "sync" else asyncio.run(made.acount_tokens(ASK))


JSON_HEADERS = [("content-type", "application/json")]


@pytest.mark.parametrize(
    "fault",
    [
        Answer(b"<html>"),
        Answer(b"{}", headers=JSON_HEADERS),
        Answer(b'{"data": [{"object": "model"}]}', headers=JSON_HEADERS),
        failure(400),
        ConnectionFailedError("ConnectError"),
    ],
    ids=["a page", "an empty object", "a model without an id", "400", "no connection"],
)
@pytest.mark.parametrize(
    ("make", "label"),
    [
        (lambda transport: Anthropic("sk-ant-secret-key-1", transport=transport, telemetry=None), "Anthropic"),
        (lambda transport: Anthropic("sk-ant-secret-key-1", transport=transport, telemetry=None, name="house"), "Anthropic"),
        (lambda transport: OpenAIChat("sk-secret-key-1", transport=transport, telemetry=None), "OpenAI"),
        (lambda transport: OpenAIResponses("sk-secret-key-1", transport=transport, telemetry=None), "OpenAI"),
        (lambda transport: HTTPProvider(AnthropicWire(provider="local"), transport, name="local"), "Local"),
    ],
    ids=["Anthropic", "Anthropic by another name", "OpenAIChat", "OpenAIResponses", "local"],
)
@pytest.mark.parametrize("endpoint", ["count_tokens", "models", "model", "complete"])
def test_every_failure_begins_with_the_name_of_the_one_who_was_called(
    endpoint: str, make: Callable[[FakeTransport], HTTPProvider], label: str, fault: Answer | ProviderError
) -> None:
    made = make(FakeTransport(copy.copy(fault)))
    ask = Request("hi", model="some-model-1")
    calls: dict[str, Callable[[], object]] = {
        "count_tokens": lambda: made.count_tokens(ask, retry=ONCE),
        "models": lambda: made.models(retry=ONCE),
        "model": lambda: made.model("m", retry=ONCE),
        "complete": lambda: made.complete(ask, retry=ONCE),
    }
    expected: type[Exception] = ConfigError if endpoint == "count_tokens" and label == "OpenAI" else ProviderError
    with pytest.raises(expected) as raised:
        calls[endpoint]()
    assert isinstance(raised.value, ConfigError) or str(raised.value).startswith(f"{label} request failed")


@WAYS
def test_a_value_larger_than_any_is_a_protocol_error(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.wire.decoder.BODY_LIMIT", 5)
    made, _ = provider(Answer(b'{"input_tokens": 14}'))
    with pytest.raises(ProtocolError, match=r"^Anthropic request failed: protocol error: the answer is larger than 5 bytes"):
        _ = made.count_tokens(ASK) if way == "sync" else asyncio.run(made.acount_tokens(ASK))


def test_a_started_message_is_seen_once() -> None:
    made, _ = provider(Answer(text_events()[0], overload()), answer())
    assert sum(isinstance(event, MessageStart) for event in made.events(ASK)) == 1


def test_a_transport_of_ones_own_may_do_without_an_address() -> None:
    transport = FakeTransport(answer())
    made = HTTPProvider(AnthropicWire(), transport)
    assert made.complete(Request("hi", model="claude-test-1")).text == "Hello"
    assert transport.requests[0].url == "/v1/messages"
    with pytest.raises(ConfigError, match="base_url"):
        HTTPProvider(AnthropicWire())
