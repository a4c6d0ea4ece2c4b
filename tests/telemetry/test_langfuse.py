"""What Langfuse reads: usage under the keys that it has prices for, so that the cost it shows is the cost."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from dragoman import Failed, MessageStart, MessageStop, OverloadedError, ProviderError, Request, TraceInfo, Usage
from dragoman.event import Event
from dragoman.telemetry.attributes import usage_details
from dragoman.testing import ScriptedProvider
from tests.shared import case, needs_cases
from tests.telemetry.recorder import Recorder

START = MessageStart("m", "claude-sonnet-4-5", provider="anthropic", wire="anthropic")

SONNET_4_5 = {
    "input": Decimal("3e-06"),
    "output": Decimal("1.5e-05"),
    "cache_read_input_tokens": Decimal("3e-07"),
    "input_cache_creation": Decimal("3.75e-06"),
    "input_cache_creation_5m": Decimal("3.75e-06"),
    "input_cache_creation_1h": Decimal("6e-06"),
}
"""USD per token, as Langfuse's price table has them (otel.md §2)."""


def price(details: dict[str, int], prices: dict[str, Decimal] = SONNET_4_5) -> Decimal:
    """As Langfuse does it: each key times its price, an unknown key at none."""
    return sum((count * prices.get(key, Decimal(0)) for key, count in details.items()), Decimal(0))


def exported(recorder: Recorder, usage: Usage) -> dict[str, int]:
    provider = ScriptedProvider([[START, MessageStop("end_turn", raw_stop="end_turn", usage=usage)]])
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi"))
    return recorder.usage_details()


def test_the_five_keys_cost_exactly_what_the_call_cost(recorder: Recorder) -> None:
    usage = Usage(input=10, output=50, reasoning=20, cache_read=200, cache_write_5m=60, cache_write_1h=40)
    assert price(exported(recorder, usage)) == Decimal("0.001305")


@pytest.mark.parametrize(
    ("usage", "details"),
    [
        (Usage(input=10, output=5), {"input": 10, "output": 5}),
        (Usage(output=5), {"input": 0, "output": 5}),
        (Usage(input=10, output=50, reasoning=20), {"input": 10, "output": 50}),
        (Usage(input=10, output=5, cache_read=7), {"input": 10, "output": 5, "cache_read_input_tokens": 7}),
        (Usage(input=10, output=5, cache_write_other=7), {"input": 10, "output": 5, "input_cache_creation": 7}),
        (
            Usage(input=10, output=5, cache_write_5m=3, cache_write_other=7),
            {"input": 10, "output": 5, "input_cache_creation_5m": 10},
        ),
        (
            Usage(input=10, output=5, cache_write_1h=3, cache_write_other=7),
            {"input": 10, "output": 5, "input_cache_creation_5m": 7, "input_cache_creation_1h": 3},
        ),
        (
            Usage(input=10, output=5, cache_write_5m=3, cache_write_1h=4),
            {"input": 10, "output": 5, "input_cache_creation_5m": 3, "input_cache_creation_1h": 4},
        ),
    ],
    ids=["plain", "all from nowhere", "reasoning stays in output", "read", "a total only", "5m + other", "1h + other", "split"],
)
def test_usage_details(usage: Usage, details: dict[str, int]) -> None:
    assert usage_details(usage) == details


def test_usage_details_are_a_json_string(recorder: Recorder) -> None:
    exported(recorder, Usage(input=10, output=5))
    assert recorder.attributes["langfuse.observation.usage_details"] == '{"input":10,"output":5}'


def test_a_call_without_any_count_has_no_usage(recorder: Recorder) -> None:
    provider = ScriptedProvider([[Failed(OverloadedError("text"))]])
    provider.telemetry = recorder.telemetry()
    with pytest.raises(ProviderError):
        provider.complete(Request("hi"))
    assert not [key for key in recorder.attributes if "usage" in key]


@needs_cases
def test_both_reads_and_writes_are_taken_out_of_input(recorder: Recorder) -> None:
    given = json.loads(case("BerriAI/litellm#26919")["input"])
    wire = given["anthropic"]
    usage = Usage(
        input=wire["input_tokens"],
        output=wire["output_tokens"],
        cache_read=wire["cache_read_input_tokens"],
        cache_write_other=wire["cache_creation_input_tokens"],
    )
    details = exported(recorder, usage)
    prices = {key: Decimal(str(value)) for key, value in given["prices"].items()}
    prices["input_cache_creation"] = prices.pop("cache_creation_input_tokens")
    assert details["input"] == 100
    assert price(details, prices) == Decimal("0.009450")


@needs_cases
def test_cache_reads_are_exported_and_no_total_is(recorder: Recorder) -> None:
    case("langfuse/langfuse#13988")
    assert exported(recorder, Usage(input=2500, output=100, cache_read=30000)) == {
        "input": 2500,
        "output": 100,
        "cache_read_input_tokens": 30000,
    }


@needs_cases
def test_the_same_counts_are_the_same_through_another_provider(recorder: Recorder) -> None:
    wire = json.loads(case("traceloop/openllmetry#4449")["input"])["usage"]
    usage = Usage(
        input=wire["inputTokens"],
        output=wire["outputTokens"],
        cache_read=wire["cacheReadInputTokens"],
        cache_write_other=wire["cacheWriteInputTokens"],
    )
    exported(recorder, usage)
    found = recorder.attributes
    assert found["gen_ai.usage.input_tokens"] == 3020
    assert found["gen_ai.usage.input_tokens"] + found["gen_ai.usage.output_tokens"] == wire["totalTokens"]


@pytest.mark.parametrize(
    ("trace", "name"),
    [(None, "chat scripted-1"), (TraceInfo(), "chat scripted-1"), (TraceInfo(trace_name="nightly"), "nightly")],
)
def test_the_trace_always_has_a_name(recorder: Recorder, trace: TraceInfo | None, name: str) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi", trace=trace))
    assert recorder.attributes["langfuse.trace.name"] == name


def test_ids_that_the_caller_did_not_give_are_not_invented(recorder: Recorder) -> None:
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi", trace=TraceInfo()))
    absent = {"gen_ai.conversation.id", "langfuse.user.id", "langfuse.session.id", "langfuse.trace.tags", "dragoman.tenant.id"}
    assert not absent & recorder.attributes.keys()


@pytest.mark.parametrize("script", [[START, MessageStop("end_turn")], [Failed(OverloadedError("text"))]], ids=["answered", "failed"])
def test_no_attribute_begins_with_gen_ai_prompt(recorder: Recorder, script: list[Event]) -> None:
    """Langfuse takes such a name for the input, before `gen_ai.input.messages`."""
    provider = ScriptedProvider([script])
    provider.telemetry = recorder.telemetry()
    list(provider.events(Request("hi")))
    assert not [key for key in recorder.attributes if key.startswith("gen_ai.prompt")]
