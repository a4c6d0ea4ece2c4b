"""`telemetry="auto"`: OpenTelemetry is picked up where a program has configured it, and is not even looked for where it has not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dragoman import Anthropic, ConfigError, Request
from dragoman.hooks import resolve_telemetry
from dragoman.testing import ScriptedProvider
from tests.telemetry.recorder import Recorder


def run(code: str) -> str:
    """What a fresh interpreter prints for this code; OpenTelemetry's providers are one per process."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CALL = """
import sys
from dragoman import Request
from dragoman.testing import ScriptedProvider
provider = ScriptedProvider.of("Hello", "Hello", "Hello")
def call():
    return provider.complete(Request("hi")).text
"""


def test_a_program_without_opentelemetry_loads_none_of_it() -> None:
    loaded = '[m for m in sys.modules if m.startswith(("opentelemetry", "dragoman.telemetry"))]'
    assert run(f"{CALL}\ncall(); print({loaded})") == "[]"


def test_a_program_that_only_imported_the_api_has_no_spans() -> None:
    asked = "from dragoman.telemetry import configured; print(configured())"
    assert run(f"from opentelemetry import trace\n{CALL}\ncall()\n{asked}\nprint(provider._span(Request('hi')))") == "None\nNone"


def test_a_no_op_provider_is_none() -> None:
    code = "from opentelemetry import trace; trace.set_tracer_provider(trace.NoOpTracerProvider())"
    assert run(f"{code}\n{CALL}\ncall()\nfrom dragoman.telemetry import configured; print(configured())") == "None"


SDK = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
def configure():
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
"""


def test_a_configured_program_has_spans_and_metrics_without_saying_so() -> None:
    names = "sorted(m.name for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics)"
    code = f"{SDK}\nconfigure()\n{CALL}\ncall()\nprint([s.name for s in exporter.get_finished_spans()])\nprint({names}[0])"
    assert run(code) == "['chat scripted-1']\ngen_ai.client.operation.duration"


def test_a_program_that_configures_later_has_spans_from_then_on() -> None:
    code = f"{SDK}\n{CALL}\ncall()\nconfigure()\ncall()\ncall()\nprint(len(exporter.get_finished_spans()))"
    assert run(code) == "2"


def test_one_adapter_serves_all_calls() -> None:
    code = f"{SDK}\nconfigure()\nfrom dragoman.telemetry import configured\nprint(configured() is configured())"
    assert run(code) == "True"


def test_none_turns_it_off_in_a_configured_program() -> None:
    code = f"{SDK}\nconfigure()\n{CALL}\nprovider.telemetry = None\ncall()\nprint(exporter.get_finished_spans())"
    assert run(code) == "()"


def test_the_package_names_the_extra_where_the_api_is_missing() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from dragoman import ConfigError
try:
    from dragoman.telemetry import OpenTelemetry
except ConfigError as error:
    print(error)
"""
    assert run(code) == "OpenTelemetry is not installed: pip install 'dragoman[otel]', or pass telemetry=None"


@pytest.mark.parametrize("setting", ["yes", 1, object()])
def test_what_is_no_telemetry_is_refused(setting: object) -> None:
    with pytest.raises(ConfigError, match="telemetry must be 'auto', None or a Telemetry object"):
        resolve_telemetry(setting)  # type: ignore[arg-type]


# ---- trace context in the request


def sent_headers(recorder: Recorder, **options: object) -> dict[str, str]:
    from dragoman.testing import WireServer
    from dragoman.testing.anthropic import anthropic_stream

    telemetry = recorder.telemetry(**options)
    with WireServer([anthropic_stream("Hello")]) as server:
        with Anthropic(api_key="k", base_url=server.url, model="claude-test-1", telemetry=telemetry) as provider:
            provider.complete(Request("hi"))
        return dict(server.requests[0].headers)


def test_trace_context_is_not_sent_unless_asked(recorder: Recorder) -> None:
    headers = sent_headers(recorder)
    assert "traceparent" not in headers


def test_trace_context_is_sent_if_asked_and_baggage_is_not(recorder: Recorder) -> None:
    from opentelemetry import baggage, context

    token = context.attach(baggage.set_baggage("customer", "SECRET"))
    try:
        headers = sent_headers(recorder, propagate=True)
    finally:
        context.detach(token)
    found = recorder.span.get_span_context()
    assert found is not None
    assert headers["traceparent"].startswith(f"00-{found.trace_id:032x}-{found.span_id:016x}-")
    assert "baggage" not in headers


# ---- an unsampled call


def test_a_call_that_is_not_sampled_is_counted_all_the_same(recorder: Recorder) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    from dragoman.telemetry import OpenTelemetry

    provider = ScriptedProvider.of("Hello")
    provider.telemetry = OpenTelemetry(
        tracer_provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False), meter_provider=recorder.meter_provider
    )
    provider.complete(Request("hi"))
    assert recorder.metrics()["gen_ai.client.operation.duration"][0].count == 1
