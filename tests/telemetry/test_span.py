"""The span of a call that succeeds: name, kind, and the full set of attributes, for every kind of provider."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from dragoman import (
    Anthropic,
    BlockStart,
    MessageStart,
    MessageStop,
    Request,
    RetryPolicy,
    Tenant,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolUse,
    TraceInfo,
    Usage,
)
from dragoman.call import Clock
from dragoman.event import Event
from dragoman.testing import ScriptedProvider, WireServer
from dragoman.testing.anthropic import anthropic_message, anthropic_stream
from tests.shared import case, needs_cases
from tests.telemetry.recorder import Recorder

USAGE = {
    "input_tokens": 10,
    "output_tokens": 50,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 100,
    "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
    "output_tokens_details": {"thinking_tokens": 20},
}
EVERYTHING = Request(
    "hi",
    max_tokens=2048,
    temperature=1,
    top_p=0.5,
    top_k=7,
    stop_sequences=["END"],
    trace=TraceInfo(
        conversation_id="conv-1",
        user_id="user-1",
        session_id="session-1",
        trace_name="nightly report",
        tags=["a", "b"],
        tenant=Tenant("acme"),
    ),
)
EXPECTED: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.system": "anthropic",
    "gen_ai.request.model": "claude-sonnet-4-5",
    "gen_ai.request.max_tokens": 2048,
    "gen_ai.request.temperature": 1.0,
    "gen_ai.request.top_p": 0.5,
    "gen_ai.request.top_k": 7,
    "gen_ai.request.stop_sequences": ["END"],
    "gen_ai.conversation.id": "conv-1",
    "gen_ai.response.id": "msg_test_1",
    "gen_ai.response.model": "claude-sonnet-4-5-20250929",
    "gen_ai.response.finish_reasons": ["end_turn"],
    "gen_ai.usage.input_tokens": 310,
    "gen_ai.usage.output_tokens": 50,
    "gen_ai.usage.cache_read.input_tokens": 200,
    "gen_ai.usage.cache_write.input_tokens": 100,
    "gen_ai.usage.reasoning.output_tokens": 20,
    "server.address": "127.0.0.1",
    "langfuse.observation.type": "generation",
    "langfuse.observation.model.name": "claude-sonnet-4-5-20250929",
    "langfuse.observation.metadata.finish_reason": "end_turn",
    "langfuse.observation.metadata.retry_count": 0,
    "langfuse.trace.name": "nightly report",
    "langfuse.trace.tags": ["a", "b"],
    "langfuse.user.id": "user-1",
    "langfuse.session.id": "session-1",
    "dragoman.tenant.id": "acme",
    "dragoman.tenant.trace_llm_content": False,
    "dragoman.tenant.langfuse_enabled": True,
}
USAGE_DETAILS = {
    "input": 10,
    "output": 50,
    "cache_read_input_tokens": 200,
    "input_cache_creation_5m": 60,
    "input_cache_creation_1h": 40,
}


class FrozenClock:
    """A clock that stands until it is turned."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def clock(self, wall: float = 1_700_000_000.0) -> Clock:
        return Clock(now=lambda: self.seconds, wall=lambda: wall + self.seconds, random=lambda: 0.0)


def client(server: WireServer, recorder: Recorder, **settings: Any) -> Anthropic:
    return Anthropic(
        api_key="key-1",
        base_url=server.url,
        model="claude-sonnet-4-5",
        telemetry=recorder.telemetry(),
        retry=RetryPolicy(base=0.0, jitter="none") if "retry" not in settings else settings.pop("retry"),
        **settings,
    )


def test_a_streamed_call_has_exactly_these_attributes(recorder: Recorder) -> None:
    answer = anthropic_stream("Hello", usage=USAGE, model="claude-sonnet-4-5-20250929")
    with WireServer([answer]) as server, client(server, recorder, validate="off", clock=FrozenClock().clock()) as provider:
        provider.complete(EVERYTHING)
        port = server.port
    found = recorder.attributes
    assert json.loads(found.pop("langfuse.observation.usage_details")) == USAGE_DETAILS
    assert found == EXPECTED | {
        "server.port": port,
        "gen_ai.request.stream": True,
        "gen_ai.response.time_to_first_chunk": 0.0,
        "langfuse.observation.completion_start_time": "2023-11-14T22:13:20.000000Z",
    }


def test_a_plain_call_says_nothing_of_streaming(recorder: Recorder) -> None:
    answer = anthropic_message("Hello", usage=USAGE, model="claude-sonnet-4-5-20250929")
    with WireServer([answer]) as server, client(server, recorder, validate="off") as provider:
        provider.complete(EVERYTHING, stream=False)
        port = server.port
    found = recorder.attributes
    assert json.loads(found.pop("langfuse.observation.usage_details")) == USAGE_DETAILS
    assert found == EXPECTED | {"server.port": port}


def test_an_async_call_has_the_same_attributes(recorder: Recorder) -> None:
    answer = anthropic_stream("Hello", usage=USAGE, model="claude-sonnet-4-5-20250929")

    async def main(server: WireServer) -> None:
        async with client(server, recorder, validate="off", clock=FrozenClock().clock()) as provider:
            await provider.acomplete(EVERYTHING)

    with WireServer([answer]) as server:
        asyncio.run(main(server))
        port = server.port
    found = recorder.attributes
    del found["langfuse.observation.usage_details"]
    assert found == EXPECTED | {
        "server.port": port,
        "gen_ai.request.stream": True,
        "gen_ai.response.time_to_first_chunk": 0.0,
        "langfuse.observation.completion_start_time": "2023-11-14T22:13:20.000000Z",
    }


def test_a_scripted_call_has_exactly_these_attributes(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi"))
    found = recorder.attributes
    assert found.pop("gen_ai.response.time_to_first_chunk") >= 0
    assert found.pop("langfuse.observation.completion_start_time").endswith("Z")
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.system": "scripted",
        "gen_ai.request.model": "scripted-1",
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.model": "scripted-1",
        "gen_ai.response.finish_reasons": ["end_turn"],
        "langfuse.observation.type": "generation",
        "langfuse.observation.model.name": "scripted-1",
        "langfuse.observation.metadata.finish_reason": "end_turn",
        "langfuse.observation.metadata.retry_count": 0,
        "langfuse.trace.name": "chat scripted-1",
    }


def test_the_span_is_a_client_span_named_for_operation_and_model(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi", model="other-model"))
    assert (recorder.span.name, recorder.span.kind) == ("chat other-model", SpanKind.CLIENT)
    assert recorder.span.status.status_code is StatusCode.UNSET
    scope = recorder.span.instrumentation_scope
    assert scope is not None
    assert scope.name == "dragoman"


def test_the_max_tokens_that_were_sent_are_on_the_span_although_the_request_left_them_open(recorder: Recorder) -> None:
    with WireServer([anthropic_stream("Hello")]) as server, client(server, recorder) as provider:
        provider.complete(Request("hi"))
        sent = json.loads(server.requests[0].body)["max_tokens"]
    assert recorder.attributes["gen_ai.request.max_tokens"] == sent


def test_the_effort_that_was_sent_is_on_the_span(recorder: Recorder) -> None:
    with WireServer([anthropic_stream("Hello")]) as server, client(server, recorder) as provider:
        provider.complete(Request("hi", model="claude-opus-4-6", effort="low"))
        sent = json.loads(server.requests[0].body)["output_config"]["effort"]
    assert recorder.attributes["gen_ai.request.reasoning.level"] == sent == "low"


def test_the_settings_that_were_sent_by_way_of_extra_body_are_on_the_span(recorder: Recorder) -> None:
    settings = {"temperature": 0.5, "top_p": 0.25, "top_k": 3, "stop_sequences": ["END"]}
    with WireServer([anthropic_stream("Hello")]) as server, client(server, recorder) as provider:
        provider.complete(Request("hi", model="claude-test-1", temperature=1, extra_body=settings))
        sent = json.loads(server.requests[0].body)
    assert (sent["temperature"], sent["top_p"], sent["top_k"], sent["stop_sequences"]) == (1, 0.25, 3, ["END"])
    names = ("temperature", "top_p", "top_k", "stop_sequences")
    assert [recorder.attributes[f"gen_ai.request.{name}"] for name in names] == [1.0, 0.25, 3, ["END"]]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("anthropic", "anthropic"),
        ("gemini", "gcp.gemini"),
        ("google", "gcp.gemini"),
        ("bedrock", "aws.bedrock"),
        ("mistral", "mistral_ai"),
        ("scripted", "scripted"),
    ],
)
def test_providers_have_the_names_of_the_conventions(recorder: Recorder, name: str, written: str) -> None:
    provider = ScriptedProvider.of("Hello", name=name)
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi"))
    assert (recorder.attributes["gen_ai.provider.name"], recorder.attributes["gen_ai.system"]) == (written, written)


def test_the_older_name_of_cache_writes_is_added_on_request(recorder: Recorder) -> None:
    end = MessageStop("end_turn", usage=Usage(input=1, cache_write_5m=7))
    provider = ScriptedProvider([[MessageStart("m", "x", provider="p", wire="w"), end]])
    provider.telemetry = recorder.telemetry(legacy_cache_creation=True)
    provider.complete(Request("hi"))
    assert recorder.attributes["gen_ai.usage.cache_write.input_tokens"] == 7
    assert recorder.attributes["gen_ai.usage.cache_creation.input_tokens"] == 7


def test_half_a_character_in_an_attribute_does_not_reach_the_exporter(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi", stop_sequences=["a\ud800"], trace=TraceInfo(user_id="u\udfff")))
    assert recorder.attributes["gen_ai.request.stop_sequences"] == ["a\ufffd"]
    assert recorder.attributes["langfuse.user.id"] == "u\ufffd"


def test_ids_and_tags_that_are_numbers_do_not_keep_a_call_from_being_traced(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi", trace=TraceInfo(user_id=42, tags=[7])))  # type: ignore[arg-type, list-item]
    assert recorder.attributes["langfuse.user.id"] == "42"
    assert recorder.attributes["langfuse.trace.tags"] == ["7"]


@pytest.mark.parametrize("settings", [{"temperature": "hot"}, {"top_p": [1]}, {"top_k": True, "max_tokens": 5.5}])
def test_what_is_no_number_is_no_attribute_and_does_not_keep_a_call_from_being_made(recorder: Recorder, settings: dict[str, Any]) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    assert provider.complete(Request("hi", **settings)).text == "Hello"
    assert not {f"gen_ai.request.{name}" for name in settings} & recorder.attributes.keys()


def test_a_tenants_switch_that_is_not_true_is_off(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    tenant = Tenant(7, trace_llm_content="yes", langfuse_enabled=None)  # type: ignore[arg-type]
    provider.complete(Request("hi", trace=TraceInfo(tenant=tenant)))
    found = {name: value for name, value in recorder.attributes.items() if name.startswith("dragoman.tenant.")}
    assert found == {"dragoman.tenant.id": "7", "dragoman.tenant.trace_llm_content": False, "dragoman.tenant.langfuse_enabled": False}


# ---- the place of the span in the program's trace


def test_the_span_is_a_child_of_the_one_that_was_current_when_the_call_was_made(recorder: Recorder) -> None:
    tracer = trace.get_tracer("test", tracer_provider=Recorder().tracer_provider)
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    with tracer.start_as_current_span("handler") as handler:
        stream = provider.stream(Request("hi"))
    stream.response()  # read elsewhere: another thread, a framework's streaming response
    assert recorder.span.parent is not None
    assert recorder.span.parent.span_id == handler.get_span_context().span_id


def test_the_consumer_of_a_stream_never_sees_its_span_as_the_current_one(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello there")
    provider.telemetry = recorder.telemetry()
    with provider.stream(Request("hi")) as stream:
        for _ in stream:
            assert trace.get_current_span() is trace.INVALID_SPAN


# ---- time


def scripted_in_time(turns: list[tuple[float, Event]], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """A provider whose n-th event comes at its second."""
    script = [event for _, event in turns]
    times = iter([at for at, _ in turns])
    monkeypatch.setattr("dragoman.stream.monotonic", lambda: clock.seconds)
    monkeypatch.setattr("dragoman.sources.monotonic", lambda: clock.seconds)
    monkeypatch.setattr("dragoman.sources.time", lambda: 1_700_000_000.0)

    def turn(event: Event) -> None:
        del event
        clock.seconds = next(times)

    return ScriptedProvider([script], before=turn)


START = MessageStart("m", "x", provider="p", wire="w")


@needs_cases
@pytest.mark.parametrize(
    ("turns", "first", "moment"),
    [
        (
            [
                (1, START),
                (2, BlockStart(0, Thinking(""))),
                (3, ThinkingDelta(0, "hm")),
                (8, BlockStart(1, Text(""))),
                (9, TextDelta(1, "yes")),
                (9, MessageStop("end_turn")),
            ],
            3.0,
            "2023-11-14T22:13:23.000000Z",
        ),
        (
            [
                (1, START),
                (3, BlockStart(0, ToolUse("t", "f", {}))),
                (4, ToolInputDelta(0, "{}")),
                (4, MessageStop("tool_use")),
            ],
            4.0,
            "2023-11-14T22:13:24.000000Z",
        ),
    ],
    ids=["thinking counts", "tool input counts"],
)
def test_the_first_chunk_is_the_first_content_of_any_kind(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, turns: list[tuple[float, Event]], first: float, moment: str
) -> None:
    case("langchain-ai/langsmith-go#67")
    provider = scripted_in_time(turns, FrozenClock(), monkeypatch)
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi"))
    assert recorder.attributes["gen_ai.response.time_to_first_chunk"] == first
    assert recorder.attributes["langfuse.observation.completion_start_time"] == moment


def test_a_slow_consumer_does_not_make_the_span_longer(recorder: Recorder) -> None:
    clock = FrozenClock()

    def work(event: Event) -> None:
        del event
        clock.seconds += 100

    with WireServer([anthropic_message("Hello")]) as server, client(server, recorder, clock=clock.clock()) as provider:
        provider.complete(Request("hi"), on_event=work, stream=False)
    assert clock.seconds > 300
    assert recorder.span.end_time == recorder.span.start_time


# ---- usage


@needs_cases
def test_input_tokens_include_what_the_cache_gave_and_took(recorder: Recorder) -> None:
    from dragoman.testing.answer import Answer

    body = case("pydantic/logfire#1812")["input"]
    answer = Answer(headers=[("content-type", "text/event-stream")], body=body)
    with WireServer([answer]) as server, client(server, recorder) as provider:
        provider.complete(Request("hi"))
    found = recorder.attributes
    assert found["gen_ai.usage.input_tokens"] == 1000
    assert found["gen_ai.usage.cache_read.input_tokens"] == 900
    assert found["gen_ai.usage.cache_write.input_tokens"] == 95
    assert found["gen_ai.usage.output_tokens"] == 7


@pytest.mark.local
def test_a_local_model_has_the_attributes_of_any_other(recorder: Recorder) -> None:
    pytest.importorskip("xllamacpp", reason="the local engine is not installed")
    from dragoman import connect
    from dragoman.local.model_file import find_model

    if find_model() is None:
        pytest.skip("the local model has not been downloaded")
    with connect("local", telemetry=recorder.telemetry()) as provider:
        response = provider.complete(Request("Say hi.", max_tokens=8, trace=TraceInfo(user_id="u")))
    found = recorder.attributes
    assert found["gen_ai.provider.name"] == "local"
    assert found["gen_ai.usage.input_tokens"] == response.usage.total_input > 0
    assert found["gen_ai.usage.output_tokens"] == response.usage.output > 0
    assert found["gen_ai.request.max_tokens"] == 8
    assert found["gen_ai.response.id"] == response.id
    assert found["langfuse.user.id"] == "u"
    assert found["gen_ai.response.time_to_first_chunk"] > 0
