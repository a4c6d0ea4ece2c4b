"""Faults that users met in other libraries with errors, retry, timeouts, cancellation, proxies and secrets, each named by its case.

Those that are about decoding are in `tests/wire/test_anthropic_cases.py`; here are those that need a clock, a loop or a connection, and
the check that none is forgotten.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dragoman import Event, Failed, MessageStop, RateLimitedError, Request, RequestTimeoutError, RetryPolicy, TextDelta, Timeouts
from dragoman.errors import is_retryable
from dragoman.retry import retry_after
from dragoman.testing import anthropic_events
from dragoman.transport import Clocks
from tests.driver.fakes import Answer, Time, complete, events_of, kinds, provider
from tests.shared import case, cases, needs_cases

WAYS = pytest.mark.parametrize("way", ["sync", "async"])
ASK = Request("hi")
TESTS = Path(__file__).parents[1]


@needs_cases
def test_every_case_of_these_themes_is_covered_by_some_test() -> None:
    themes = {"errors", "retry", "timeout", "cancel", "proxy", "security"}
    sources = "\n".join(path.read_text("utf-8") for path in sorted(TESTS.rglob("test_*.py")))
    assert [identity for identity, found in cases().items() if found["theme"] in themes and identity not in sources] == []


# ---- NousResearch/hermes-agent#84738: every form of Retry-After

NOW = datetime(2026, 10, 21, 7, 28, 0, tzinfo=UTC)
FORMS: dict[str, float | None] = {
    "7": 7,
    "0": 0,
    "1.5": 1.5,
    "Wed, 21 Oct 2026 07:28:10 GMT": 10,
    "Wed, 21 Oct 2026 07:27:00 GMT": 0,
    "-5": 0,
    "soon": None,
    "": None,
    "99999999999999999999": 1e20,
    "nan": None,
    "inf": None,
    "1e400": None,
    "Wed, 99 Foo 2026 07:28:10 GMT": None,
    "Wed, 21 Oct 99999 07:28:10 GMT": None,
}


def test_the_forms_of_the_case_are_all_here() -> None:
    lines = [line for line in case("NousResearch/hermes-agent#84738")["input"].split("\n") if line]
    given = [re.sub(r"\s+\((?:now|past).*\)$", "", line.removeprefix("Retry-After:")).strip() for line in lines]
    assert {"" if value == "(empty)" else value for value in given} <= set(FORMS)


@pytest.mark.parametrize(("text", "seconds"), FORMS.items())
def test_a_retry_after_is_read_or_is_as_if_absent(text: str, seconds: float | None) -> None:
    assert retry_after(429, {"retry-after": text}, NOW) == (None if seconds is None else pytest.approx(seconds))


@WAYS
@pytest.mark.parametrize("text", FORMS)
def test_whatever_it_says_the_call_waits_no_negative_time_and_no_longer_than_it_may(text: str, way: str) -> None:
    limited = Answer(b"{}", status=429, headers=(("content-type", "application/json"), ("retry-after", text)))
    made, transport = provider(limited, good(), retry=RetryPolicy(base=0.25, jitter="none", max_wait=20), time=at(NOW))
    transport.sleep = lambda seconds, clocks: None  # type: ignore[attr-defined]
    events = events_of(made, way, ASK)
    wanted = FORMS[text]
    if wanted is not None and wanted > 20:
        assert kinds(events) == ["failed"]
        assert len(transport.requests) == 1
        return
    first, last = events[0], events[-1]
    assert first.type == "retrying"
    assert first.delay == pytest.approx(max(0.25, wanted or 0))  # type: ignore[union-attr]
    assert isinstance(last, MessageStop)


def good() -> Answer:
    return Answer(b"".join(anthropic_events("fine")))


def at(moment: datetime) -> Time:
    """A clock that shows this moment."""
    time = Time()
    time.at += moment.timestamp() - 1_700_000_000
    return time


# ---- AtomicBot-ai/atomic-agent#323, frontman-ai/frontman#731: clocks


class Slow:
    """A transport whose bytes take time to come, by a clock of the test; it obeys `Clocks` as a transport should."""

    def __init__(self, time: Time, *steps: tuple[float, bytes]) -> None:
        self.time = time
        self.steps = steps
        self.status = 200
        self.headers = [("content-type", "text/event-stream")]
        self.closed = False

    def send(self, request: object, timeouts: Clocks) -> Slow:
        self.clocks = timeouts
        timeouts.connected()
        return self

    def _pieces(self) -> Iterator[bytes]:
        for seconds, data in self.steps:
            left, phase = self.clocks.limit()
            if left is not None and seconds > left:
                self.time.at += left
                raise self.clocks.expired(phase)
            self.time.at += seconds
            yield data

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()

    def read(self) -> bytes:
        return b"".join(self)

    def close(self) -> None:
        self.closed = True


def slow(timeouts: Timeouts, *steps: tuple[float, bytes]) -> tuple[list[Event], Any, Slow]:
    """The events of a call whose bytes come after so many seconds each, its stream, and the transport."""
    from dragoman import Anthropic

    time = Time()
    transport = Slow(time, *steps)
    made = Anthropic(
        api_key="k",
        model="m",
        transport=transport,
        clock=time.clock(),
        timeouts=timeouts,
        telemetry=None,
        retry=RetryPolicy(max_attempts=1),
    )
    stream = made.events(ASK)
    return list(stream), stream, transport


HEAD, BLOCK, DELTA, *TAIL = anthropic_events("x", ping=False)
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


def test_a_healthy_long_stream_is_not_ended_by_the_time_between_its_pieces() -> None:
    """AtomicBot-ai/atomic-agent#323: one delta each 2 s for 30 s."""
    steps = [(1.0, HEAD + BLOCK), *[(2.0, DELTA)] * 15, (1.0, b"".join(TAIL))]
    events, stream, _ = slow(Timeouts(first_byte=10, idle=10), *steps)
    assert isinstance(events[-1], MessageStop)
    assert stream.partial().text == "x" * 15


def test_a_total_cap_ends_it_under_its_own_name() -> None:
    """AtomicBot-ai/atomic-agent#323: a cap of 20 s."""
    steps = [(1.0, HEAD + BLOCK), *[(2.0, DELTA)] * 15, (1.0, b"".join(TAIL))]
    events, stream, transport = slow(Timeouts(first_byte=10, idle=10, total=20), *steps)
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, RequestTimeoutError)
    assert last.error.phase == "total"
    assert "total timeout after 20 s" in str(last.error)
    assert last.error.partial is not None
    assert last.error.partial.text == stream.partial().text == "x" * 9
    assert not is_retryable(last.error)
    assert transport.closed


def test_pings_are_signs_of_life_and_neither_events_nor_content() -> None:
    """frontman-ai/frontman#731: idle 60 s, pings 27 s apart, then text."""
    steps = [(1.0, HEAD), *[(27.0, PING)] * 4, (27.0, BLOCK + DELTA), (1.0, b"".join(TAIL))]
    events, stream, _ = slow(Timeouts(first_byte=60, idle=60), *steps)
    assert kinds(events) == ["message_start", "block_start", "text_delta", "block_stop", "usage_update", "message_stop"]
    assert stream.timing.first_content == pytest.approx(1 + 4 * 27 + 27)
    assert stream.timing.first_byte == pytest.approx(1)


def test_silence_between_pings_that_is_too_long_is_an_idle_timeout() -> None:
    events, _, _ = slow(Timeouts(first_byte=60, idle=60), (1.0, HEAD), (59.0, PING), (61.0, PING))
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, RequestTimeoutError)
    assert last.error.phase == "idle"


# ---- Alishahryar1/free-claude-code#1611, productdevbook/misina#61: what a status and its headers allow


@WAYS
def test_a_413_is_final_whatever_its_words_and_headers_say(way: str) -> None:
    """Alishahryar1/free-claude-code#1611."""
    made, transport = provider(raw_answer(case("Alishahryar1/free-claude-code#1611")["input"]), good())
    [failed] = events_of(made, way, ASK)
    assert isinstance(failed, Failed)
    assert not isinstance(failed.error, RateLimitedError)
    assert not is_retryable(failed.error)
    assert len(transport.requests) == 1


@WAYS
def test_milliseconds_count_before_seconds(way: str) -> None:
    """productdevbook/misina#61."""
    limited = raw_answer(case("productdevbook/misina#61")["input"])
    limited.headers = tuple((name.title(), value) for name, value in limited.headers)  # whatever their case
    made, _ = provider(limited, good(), retry=RetryPolicy(base=0.0))
    first = events_of(made, way, ASK)[0]
    assert first.type == "retrying"
    assert 0.25 <= first.delay < 30  # type: ignore[union-attr]


@WAYS
def test_x_should_retry_false_forbids(way: str) -> None:
    """productdevbook/misina#61."""
    refused = Answer(b"{}", status=503, headers=(("content-type", "application/json"), ("X-Should-Retry", "false")))
    made, transport = provider(refused, good())
    assert kinds(events_of(made, way, ASK)) == ["failed"]
    assert len(transport.requests) == 1


def raw_answer(text: str) -> Answer:
    """An HTTP answer that is written out."""
    head, _, body = text.partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    return Answer(body.encode(), status=int(status.split()[1]), headers=headers)


# ---- krafton-ai/KIRA#60: what is never retried


@WAYS
@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, MemoryError, ZeroDivisionError])
@pytest.mark.parametrize("place", ["head", "body"])
def test_what_is_not_an_error_of_ours_passes_unwrapped_and_is_not_repeated(raised: type[BaseException], place: str, way: str) -> None:
    def fail() -> None:
        raise raised

    made, transport = provider(Answer(*([HEAD, fail] if place == "body" else [fail])), good())
    with pytest.raises(raised) as passed:
        complete(made, way, ASK)
    assert type(passed.value) is raised
    assert len(transport.requests) == 1


def test_the_case_of_a_consumer_that_sees_text_once() -> None:
    """The themes' other scenarios are in tests/driver: HKUDS/nanobot#4038 and byte5ai/omadia#122."""
    attempts = json.loads(case("HKUDS/nanobot#4038")["input"])
    made, transport = provider(Answer(attempts["attempt1"].encode()), Answer(attempts["attempt2"].encode()))
    events = events_of(made, "sync", ASK)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Step one"]
    assert isinstance(events[-1], Failed)
    assert len(transport.requests) == 1
