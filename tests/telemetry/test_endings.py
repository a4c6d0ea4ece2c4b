"""The span ends exactly once, whichever way a call ends, and says how."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from dragoman import (
    Anthropic,
    BlockStart,
    ConfigError,
    Failed,
    IncompleteStreamError,
    InvalidInputError,
    MessageStart,
    OverloadedError,
    ProtocolError,
    ProviderError,
    RateLimitedError,
    Request,
    RetryPolicy,
    Text,
    TextDelta,
    Usage,
)
from dragoman.errors import KINDS, RequestTimeoutError, UnsupportedStopError
from dragoman.event import Event, Retrying
from dragoman.provider import ProviderBase
from dragoman.testing import ScriptedProvider, WireServer
from dragoman.testing.answer import Answer, Gate, Reset, Stall, Wait
from dragoman.testing.anthropic import anthropic_error, anthropic_events, anthropic_stream
from dragoman.transport import Timeouts
from tests.shared import case, needs_cases
from tests.telemetry.recorder import Recorder

SSE = [("content-type", "text/event-stream")]
HI = Request("hi")
START = MessageStart("msg_1", "claude-test-1", provider="p", wire="w", usage=Usage(input=10, output=1))
BEGUN: list[Event] = [START, BlockStart(0, Text("")), TextDelta(0, "one "), TextDelta(0, "two "), TextDelta(0, "three")]


def client(server: WireServer, recorder: Recorder, **settings: Any) -> Anthropic:
    settings.setdefault("retry", RetryPolicy(max_attempts=1))
    return Anthropic(api_key="key-1", base_url=server.url, model="claude-test-1", telemetry=recorder.telemetry(), **settings)


def scripted(recorder: Recorder, events: list[Event]) -> ScriptedProvider:
    provider = ScriptedProvider([events])
    provider.telemetry = recorder.telemetry()
    return provider


def ended_as_cancelled(recorder: Recorder) -> None:
    assert recorder.attributes["error.type"] == "cancelled"
    assert recorder.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert recorder.span.status.status_code is StatusCode.UNSET
    assert recorder.events == []
    assert "langfuse.observation.level" not in recorder.attributes
    assert "langfuse.observation.status_message" not in recorder.attributes


def ended_as_failed(recorder: Recorder, kind: str) -> None:
    assert recorder.attributes["error.type"] == kind
    assert recorder.span.status.status_code is StatusCode.ERROR
    assert recorder.span.status.description == kind
    assert recorder.attributes["langfuse.observation.level"] == "ERROR"
    assert recorder.attributes["langfuse.observation.status_message"] == kind
    assert [name for name, _ in recorder.events] == ["exception"]


# ---- read to the end


def test_reading_to_the_end_and_then_closing_is_one_end(recorder: Recorder) -> None:
    with WireServer([anthropic_stream("Hello")]) as server, client(server, recorder) as provider:
        stream = provider.stream(HI)
        stream.response()
        stream.close()
        stream.close()
    assert "error.type" not in recorder.attributes
    assert recorder.span.status.status_code is StatusCode.UNSET


def test_the_span_has_ended_before_the_last_event_is_handed_out(recorder: Recorder) -> None:
    with WireServer([anthropic_stream("Hello")]) as server, client(server, recorder) as provider:
        ended = [(event.type, len(recorder.ended)) for event in provider.events(HI)]
    assert ended[-1] == ("message_stop", 1)
    assert {count for _, count in ended[:-1]} == {0}


def test_the_span_has_ended_before_the_failure_is_handed_out(recorder: Recorder) -> None:
    with WireServer([anthropic_error(400, "invalid_request_error")]) as server, client(server, recorder) as provider:
        ended = [(event.type, len(recorder.ended)) for event in provider.events(HI)]
    assert ended == [("failed", 1)]


# ---- left early


@needs_cases
def test_a_break_ends_the_span_with_what_was_known(recorder: Recorder) -> None:
    case("openlit/openlit#1454")
    with WireServer([anthropic_stream("one two three", pieces=3)]) as server, client(server, recorder) as provider:
        with provider.stream(HI) as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    break
    ended_as_cancelled(recorder)
    assert recorder.attributes["gen_ai.response.id"] == "msg_test_1"
    assert recorder.attributes["gen_ai.response.model"] == "claude-test-1"
    assert recorder.attributes["gen_ai.usage.input_tokens"] == 10


def test_close_before_the_first_byte_is_a_cancelled_call(recorder: Recorder) -> None:
    gate = Gate()
    with WireServer([Answer(headers=SSE, before=[Wait(gate)], body=b"")]) as server, client(server, recorder) as provider:
        stream = provider.stream(HI)
        reader = threading.Thread(target=lambda: list(stream))
        reader.start()
        gate.reached()
        stream.close()
        reader.join(20)
        assert not reader.is_alive()
    ended_as_cancelled(recorder)


def test_a_stream_that_was_never_read_sent_nothing_and_has_no_span(recorder: Recorder) -> None:
    with WireServer() as server, client(server, recorder) as provider, provider.stream(HI):
        pass
    assert recorder.started == []
    assert recorder.metrics() == {}


def drop(holder: list[Any]) -> None:
    """Let go of what the list holds, so that nothing refers to it any more."""
    holder.clear()
    gc.collect()


def test_garbage_collection_ends_the_span(recorder: Recorder) -> None:
    holder = [scripted(recorder, BEGUN).stream(HI)]
    next(holder[0])
    with pytest.warns(ResourceWarning, match="neither read to its end nor closed"):
        drop(holder)
    ended_as_cancelled(recorder)


def test_garbage_collection_ends_the_span_of_an_async_stream(recorder: Recorder) -> None:
    async def main() -> None:
        holder = [scripted(recorder, BEGUN).astream(HI)]
        await anext(holder[0])
        with pytest.warns(ResourceWarning, match="neither read to its end nor closed"):
            drop(holder)

    asyncio.run(main())
    ended_as_cancelled(recorder)


def test_garbage_collection_ends_the_span_although_warnings_are_errors(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: raised.append(unraisable.exc_type))
    holder = [scripted(recorder, BEGUN).stream(HI)]
    next(holder[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        drop(holder)
    assert raised == [ResourceWarning]
    ended_as_cancelled(recorder)


def test_task_cancellation_ends_the_span(recorder: Recorder) -> None:
    async def main(server: WireServer) -> None:
        async with client(server, recorder) as provider:
            task = asyncio.create_task(provider.acomplete(HI))
            await asyncio.to_thread(gate.reached)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    gate = Gate()
    with WireServer([Answer(headers=SSE, body=[*anthropic_events("Hello")[:3], Wait(gate)])]) as server:
        asyncio.run(main(server))
    ended_as_cancelled(recorder)


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ZeroDivisionError("a bug of a transport")], ids=["Ctrl-C", "a bug"])
def test_what_is_not_a_providers_failure_passes_and_ends_the_span(recorder: Recorder, cause: BaseException) -> None:
    provider = ScriptedProvider([BEGUN], after=lambda event: cause if isinstance(event, TextDelta) else None)
    provider.telemetry = recorder.telemetry()
    with pytest.raises(type(cause)):
        provider.complete(HI)
    ended_as_cancelled(recorder)


def test_an_exception_of_the_consumer_ends_the_span_as_left_early(recorder: Recorder) -> None:
    def broken(event: Event) -> None:
        raise LookupError(event.type)

    with pytest.raises(LookupError):
        scripted(recorder, BEGUN).complete(HI, on_event=broken)
    ended_as_cancelled(recorder)


# ---- failed


def test_a_refusal_before_the_first_byte_is_a_failure_with_its_status(recorder: Recorder) -> None:
    with WireServer([anthropic_error(400, "invalid_request_error", "no")]) as server, client(server, recorder) as provider:
        with pytest.raises(ProviderError):
            provider.complete(HI)
    ended_as_failed(recorder, "invalid_request")
    assert recorder.attributes["http.response.status_code"] == 400
    assert recorder.attributes["gen_ai.response.finish_reasons"] == ["error"]
    assert "gen_ai.usage.input_tokens" not in recorder.attributes
    assert recorder.events == [("exception", {"exception.type": "dragoman.errors.InvalidRequestError"})]


def test_an_error_in_the_middle_is_a_failure_with_what_had_come(recorder: Recorder) -> None:
    body = [*anthropic_events("Hello")[:4], b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n']
    with WireServer([Answer(headers=SSE, body=body)]) as server, client(server, recorder) as provider:
        with pytest.raises(OverloadedError):
            provider.complete(HI)
    ended_as_failed(recorder, "overloaded")
    assert recorder.attributes["gen_ai.response.id"] == "msg_test_1"
    assert recorder.attributes["gen_ai.usage.input_tokens"] == 10


@pytest.mark.parametrize(
    ("steps", "kind"),
    [((), "incomplete_stream"), ((Reset(),), "connection")],
    ids=["the stream just ends", "the connection is reset"],
)
def test_a_cut_stream_is_a_failure(recorder: Recorder, steps: tuple[Any, ...], kind: str) -> None:
    with WireServer([Answer(headers=SSE, body=[*anthropic_events("Hello")[:4], *steps])]) as server, client(server, recorder) as provider:
        with pytest.raises(ProviderError):
            provider.complete(HI)
    ended_as_failed(recorder, kind)


def test_a_timeout_is_a_failure(recorder: Recorder) -> None:
    from dragoman import Timeouts

    with WireServer([Answer(headers=SSE, body=[Stall()])]) as server:
        with client(server, recorder, timeouts=Timeouts(idle=0.01)) as provider, pytest.raises(RequestTimeoutError):
            provider.complete(HI)
    ended_as_failed(recorder, "timeout")


def test_a_stop_that_cannot_be_continued_from_keeps_its_raw_reason(recorder: Recorder) -> None:
    provider = scripted(recorder, [START, Failed(UnsupportedStopError("no", raw="pause_turn"), stop="pause_turn", raw_stop="pause_turn")])
    with pytest.raises(UnsupportedStopError):
        provider.complete(HI)
    ended_as_failed(recorder, "unsupported_stop")
    assert recorder.attributes["gen_ai.response.finish_reasons"] == ["pause_turn"]


def test_events_that_contradict_each_other_are_a_failure(recorder: Recorder) -> None:
    provider = scripted(recorder, [START, TextDelta(0, "a delta for a block that was never started")])
    with pytest.raises(ProtocolError):
        provider.complete(HI)
    ended_as_failed(recorder, "protocol")


def test_events_that_just_end_are_an_incomplete_stream(recorder: Recorder) -> None:
    provider = scripted(recorder, BEGUN)
    with pytest.raises(IncompleteStreamError):
        provider.complete(HI)
    ended_as_failed(recorder, "incomplete_stream")


class Raising(ProviderBase):
    """Raises its failure in the middle instead of handing it out as the last event."""

    name = "raising"

    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Iterator[Event]:
        yield from BEGUN
        raise RateLimitedError("slow down")

    async def aevents(
        self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None
    ) -> AsyncIterator[Event]:
        for event in BEGUN:
            yield event
        raise RateLimitedError("slow down")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_that_a_provider_raises_is_a_failure_with_what_had_come(recorder: Recorder, is_async: bool) -> None:
    provider = Raising()
    provider.telemetry = recorder.telemetry()
    with pytest.raises(RateLimitedError) as caught:
        asyncio.run(provider.acomplete(HI)) if is_async else provider.complete(HI)
    ended_as_failed(recorder, "rate_limited")
    assert caught.value.partial is not None
    assert caught.value.partial.text


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_error_is_written_as_its_kind(recorder: Recorder, kind: str) -> None:
    cls = KINDS[kind]
    extra: dict[str, Any] = {"phase": "idle"} if cls is RequestTimeoutError else {}
    provider = scripted(recorder, [Failed(cls("text", **extra))])
    with pytest.raises(cls):
        provider.complete(HI)
    ended_as_failed(recorder, kind)


def test_an_error_class_of_the_program_is_written_as_the_kind_it_derives_from(recorder: Recorder) -> None:
    class OurOverload(OverloadedError):
        kind = "ours"

    provider = scripted(recorder, [Failed(OurOverload("text"))])
    with pytest.raises(OurOverload):
        provider.complete(HI)
    ended_as_failed(recorder, "overloaded")


# ---- retries


def test_a_retried_attempt_is_an_event_on_the_one_span(recorder: Recorder) -> None:
    script = [anthropic_error(429, "rate_limit_error", headers=[("retry-after", "0")]), anthropic_stream("Hello")]
    retry = RetryPolicy(base=0.25, jitter="none", cap=0.001)
    with WireServer(script) as server, client(server, recorder, retry=retry) as provider:
        provider.complete(HI)
    assert recorder.events == [
        (
            "provider.retry",
            {"attempt": 1, "delay_ms": 1, "error.type": "rate_limited", "http.response.status_code": 429, "retry_after_s": 0.0},
        )
    ]
    assert recorder.attributes["langfuse.observation.metadata.retry_count"] == 1
    assert recorder.span.status.status_code is StatusCode.UNSET


def test_retries_that_run_out_are_one_failed_span(recorder: Recorder) -> None:
    script = [anthropic_error(529, "overloaded_error")] * 3
    with WireServer(script) as server, client(server, recorder, retry=RetryPolicy(max_attempts=3, base=0.0)) as provider:
        with pytest.raises(OverloadedError):
            provider.complete(HI)
    assert [(name, attributes.get("attempt")) for name, attributes in recorder.events] == [
        ("provider.retry", 1),
        ("provider.retry", 2),
        ("exception", None),
    ]
    assert recorder.attributes["error.type"] == "overloaded"
    assert recorder.attributes["langfuse.observation.metadata.retry_count"] == 2


def test_retries_of_a_script_are_counted_too(recorder: Recorder) -> None:
    provider = scripted(
        recorder, [Retrying(1, 0.5, OverloadedError("text", status=529, retry_after=0.25)), Failed(OverloadedError("text"))]
    )
    with pytest.raises(OverloadedError):
        provider.complete(HI)
    assert recorder.events[0] == (
        "provider.retry",
        {"attempt": 1, "delay_ms": 500, "error.type": "overloaded", "http.response.status_code": 529, "retry_after_s": 0.25},
    )
    assert recorder.attributes["langfuse.observation.metadata.retry_count"] == 1


# ---- mistakes of the caller: no span, no metric


@pytest.mark.parametrize(
    ("request_", "settings", "error"),
    [(Request([]), {}, InvalidInputError), (Request("hi"), {"api_key": ""}, ConfigError)],
    ids=["a request that cannot be sent", "no key"],
)
def test_mistakes_of_the_caller_are_not_traced(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, request_: Request, settings: dict[str, Any], error: type[Exception]
) -> None:
    for name in ("DRAGOMAN_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    provider = Anthropic(**{"api_key": "k", "model": "claude-test-1", "telemetry": recorder.telemetry(), **settings})
    with pytest.raises(error):
        provider.complete(request_)
    assert recorder.started == []
    assert recorder.metrics() == {}


# ---- who ends it


def test_the_thread_that_closes_and_the_thread_that_reads_end_the_span_once(recorder: Recorder) -> None:
    """`close` wakes a reader that then finds the stream at its end: both come to the same place at the same time."""
    gate = Gate()
    body = [*anthropic_events("Hello")[:4], Wait(gate)]
    with WireServer(Answer(headers=SSE, body=body)) as server, client(server, recorder) as provider:
        stream = provider.stream(HI)
        reader = threading.Thread(target=lambda: list(stream))
        reader.start()
        gate.reached()
        closers = [threading.Thread(target=stream.close) for _ in range(8)]
        for thread in closers:
            thread.start()
        for thread in [*closers, reader]:
            thread.join(20)
    ended_as_cancelled(recorder)


def reads(*calls: Callable[[ScriptedProvider], object]) -> list[Any]:
    return [pytest.param(call, id=call.__name__) for call in calls]


def complete(provider: ScriptedProvider) -> object:
    return provider.complete(HI)


def text(provider: ScriptedProvider) -> object:
    with provider.stream(HI) as stream:
        return "".join(stream.text())


def events(provider: ScriptedProvider) -> object:
    return list(provider.events(HI))


def acomplete(provider: ScriptedProvider) -> object:
    return asyncio.run(provider.acomplete(HI))


@pytest.mark.parametrize("call", reads(complete, text, events, acomplete))
def test_every_way_to_call_makes_one_span(recorder: Recorder, call: Callable[[ScriptedProvider], object]) -> None:
    provider = ScriptedProvider.of("Hello there")
    provider.telemetry = recorder.telemetry()
    call(provider)
    assert recorder.attributes["gen_ai.response.finish_reasons"] == ["end_turn"]
