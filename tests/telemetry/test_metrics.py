"""The five metrics: names, units, buckets, what they count and what they are split by."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.metrics import Meter
from opentelemetry.util.genai import _instruments as oracle  # the only place where the conventions' buckets can be read

from dragoman import (
    Anthropic,
    BlockStart,
    MessageStart,
    MessageStop,
    OverloadedError,
    ProviderError,
    Request,
    RetryPolicy,
    Tenant,
    Text,
    TextDelta,
    TraceInfo,
    Usage,
)
from dragoman.event import Event, Failed, Retrying
from dragoman.telemetry import names
from dragoman.testing import ScriptedProvider, WireServer
from dragoman.testing.anthropic import anthropic_message, anthropic_stream
from tests.telemetry.recorder import Point, Recorder

HI = Request("hi", trace=TraceInfo(user_id="user-1", session_id="s", conversation_id="c", tags=["t"], tenant=Tenant("acme")))
SHARED = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "scripted",
    "gen_ai.request.model": "scripted-1",
    "gen_ai.response.model": "answering-model",
}
START = MessageStart("m", "answering-model", provider="p", wire="w", usage=Usage(input=10, output=1))
PIECES: list[Event] = [START, BlockStart(0, Text("")), TextDelta(0, "a"), TextDelta(0, "b"), TextDelta(0, "c")]
USAGE = Usage(input=10, output=50, reasoning=20, cache_read=200, cache_write_5m=60, cache_write_1h=40)


def run(recorder: Recorder, script: list[Event]) -> dict[str, list[Point]]:
    provider = ScriptedProvider([script])
    provider.telemetry = recorder.telemetry()
    list(provider.events(HI))
    return recorder.metrics()


def by(points: list[Point], key: str) -> dict[Any, Point]:
    return {point.attributes[key]: point for point in points}


def test_an_answer_is_counted_in_four_metrics(recorder: Recorder) -> None:
    found = run(recorder, [*PIECES, MessageStop("end_turn", usage=USAGE)])
    assert set(found) == {
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.operation.time_per_output_chunk",
    }


def test_tokens_are_counted_by_type_with_the_cache_as_part_of_input(recorder: Recorder) -> None:
    points = by(run(recorder, [*PIECES, MessageStop("end_turn", usage=USAGE)])["gen_ai.client.token.usage"], "gen_ai.token.type")
    assert {kind: point.sum for kind, point in points.items()} == {"input": 310, "output": 50, "cache_read": 200, "cache_write": 100}
    assert {point.count for point in points.values()} == {1}
    assert points["input"].attributes == SHARED | {"gen_ai.token.type": "input"}


def test_a_call_that_did_not_use_the_cache_counts_no_cache_tokens(recorder: Recorder) -> None:
    points = run(recorder, [*PIECES, MessageStop("end_turn")])["gen_ai.client.token.usage"]
    assert set(by(points, "gen_ai.token.type")) == {"input", "output"}


def test_the_duration_is_split_by_model_and_provider_only(recorder: Recorder) -> None:
    [point] = run(recorder, [*PIECES, MessageStop("end_turn")])["gen_ai.client.operation.duration"]
    assert point.count == 1
    assert point.attributes == SHARED


def test_one_record_per_piece_of_content_after_the_first(recorder: Recorder) -> None:
    found = run(recorder, [*PIECES, MessageStop("end_turn")])
    [first] = found["gen_ai.client.operation.time_to_first_chunk"]
    [others] = found["gen_ai.client.operation.time_per_output_chunk"]
    assert (first.count, others.count) == (1, 2)
    assert first.attributes == others.attributes == SHARED


def test_the_number_of_pieces_does_not_depend_on_how_the_network_cut_the_bytes(recorder: Recorder) -> None:
    whole = anthropic_stream("one two three four", pieces=4)
    joined = type(whole)(headers=whole.headers, body=[b"".join(piece for piece in whole.steps() if isinstance(piece, bytes))])
    with WireServer([whole, joined]) as server:
        with Anthropic(api_key="k", base_url=server.url, model="claude-test-1", telemetry=recorder.telemetry()) as provider:
            provider.complete(HI)
            provider.complete(HI)
    [point] = recorder.metrics()["gen_ai.client.operation.time_per_output_chunk"]
    assert point.count == 3 + 3


def test_a_plain_call_has_no_chunks(recorder: Recorder) -> None:
    with WireServer([anthropic_message("Hello")]) as server:
        with Anthropic(api_key="k", base_url=server.url, model="claude-test-1", telemetry=recorder.telemetry()) as provider:
            provider.complete(HI, stream=False)
    assert set(recorder.metrics()) == {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"}


# ---- failures


def test_a_failed_call_is_one_error_and_its_duration_says_so(recorder: Recorder) -> None:
    found = run(recorder, [Failed(OverloadedError("text"))])
    [error] = found["dragoman.provider.errors"]
    assert error == Point({"error.type": "overloaded", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted-1"}, 1, 1)
    [duration] = found["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "overloaded"
    assert set(found) == {"dragoman.provider.errors", "gen_ai.client.operation.duration"}


def test_a_call_that_failed_in_the_middle_still_counts_its_tokens(recorder: Recorder) -> None:
    points = run(recorder, [*PIECES, Failed(OverloadedError("text"), usage=Usage(input=10, output=3))])["gen_ai.client.token.usage"]
    assert {kind: point.sum for kind, point in by(points, "gen_ai.token.type").items()} == {"input": 10, "output": 3}


def test_an_attempt_that_a_retry_made_good_is_no_error(recorder: Recorder) -> None:
    found = run(recorder, [Retrying(1, 0.5, OverloadedError("text")), *PIECES, MessageStop("end_turn")])
    assert "dragoman.provider.errors" not in found
    assert found["gen_ai.client.operation.duration"][0].count == 1


def test_leaving_early_is_no_error_of_the_provider(recorder: Recorder) -> None:
    provider = ScriptedProvider([PIECES])
    provider.telemetry = recorder.telemetry()
    with provider.stream(HI) as stream:
        next(stream)
    found = recorder.metrics()
    assert "dragoman.provider.errors" not in found
    assert found["gen_ai.client.operation.duration"][0].attributes["error.type"] == "cancelled"


def test_no_metric_is_split_by_who_asked(recorder: Recorder) -> None:
    found = run(recorder, [*PIECES, Failed(OverloadedError("text"), usage=USAGE)])
    seen = {key for points in found.values() for point in points for key in point.attributes}
    assert seen == {*SHARED, "gen_ai.token.type", "error.type"}


# ---- the instruments, against the table and against OpenTelemetry's own


def advised(recorder: Recorder) -> dict[str, tuple[float, ...]]:
    found = run(recorder, [*PIECES, MessageStop("end_turn", usage=USAGE)])
    return {name: points[0].bounds for name, points in found.items()}


def test_units_are_those_of_the_table(recorder: Recorder) -> None:
    provider = ScriptedProvider([[*PIECES, MessageStop("end_turn")], [Failed(OverloadedError("text"))]])
    provider.telemetry = recorder.telemetry()
    provider.complete(HI)
    with pytest.raises(ProviderError):
        provider.complete(HI)
    assert {(name, metric.unit) for name, metric in recorder.raw_metrics()} == {(metric.name, metric.unit) for metric in names.METRICS}


def test_buckets_are_those_of_the_specification(recorder: Recorder) -> None:
    bounds = advised(recorder)
    seconds = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
    tokens = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
    assert bounds["gen_ai.client.token.usage"] == tokens
    assert {bounds[name] for name in bounds if name != "gen_ai.client.token.usage"} == {seconds}


def test_names_units_and_buckets_are_those_of_opentelemetrys_own_instrumentation(recorder: Recorder) -> None:
    known: dict[str, tuple[str, tuple[float, ...]]] = {}

    class Listing(Meter):
        """A meter that writes down what is made with it."""

        def create_histogram(self, name: str, unit: str = "", description: str = "", **options: Any) -> Any:
            known[name] = (unit, tuple(options["explicit_bucket_boundaries_advisory"]))

        def _refuse(self, *args: object, **options: object) -> Any:
            raise NotImplementedError

        create_counter = create_up_down_counter = create_gauge = _refuse
        create_observable_counter = create_observable_gauge = create_observable_up_down_counter = _refuse

    oracle._Instruments(Listing("oracle"))
    ours = {metric.name: (metric.unit, tuple(float(b) for b in metric.buckets)) for metric in names.METRICS if metric.buckets}
    assert ours == {name: known[name] for name in ours}


def test_retries_are_inside_the_one_duration(recorder: Recorder) -> None:
    from dragoman.testing.anthropic import anthropic_error

    script = [anthropic_error(529, "overloaded_error"), anthropic_stream("Hello")]
    with WireServer(script) as server:
        retry = RetryPolicy(base=0.0)
        with Anthropic(api_key="k", base_url=server.url, model="claude-test-1", telemetry=recorder.telemetry(), retry=retry) as provider:
            provider.complete(HI)
    [point] = recorder.metrics()["gen_ai.client.operation.duration"]
    assert point.count == 1
