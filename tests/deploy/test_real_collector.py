"""The configuration in a real collector: it is valid, and of four tenants each gets what it said.

Runs when OTELCOL_BIN names a collector binary (the contrib distribution, 0.144 or newer). Spans go in by OTLP, receivers on loopback stand
for Tempo and Langfuse, and what they hold when the collector has stopped (which empties its queues) is what would have arrived there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from dragoman import OverloadedError, Request, Tenant, TraceInfo
from dragoman.telemetry import CONTENT_KEYS, OpenTelemetry
from dragoman.testing import ScriptedProvider
from tests.telemetry.test_otlp import Receiver

BINARY = os.environ.get("OTELCOL_BIN", "")
OTELCOL = Path(__file__).parents[2] / "deploy" / "otelcol"
CONFIGS = [f"--config={OTELCOL / 'config.yaml'}", f"--config={OTELCOL / 'without-grafana-cloud.yaml'}"]

pytestmark = pytest.mark.skipif(not BINARY, reason="OTELCOL_BIN is not set: no collector to run the configuration in")

TENANTS = {
    "says-yes": Tenant("says-yes", trace_llm_content=True),
    "says-no": Tenant("says-no", trace_llm_content=False),
    "off": Tenant("off", trace_llm_content=True, langfuse_enabled=False),
}
UNSET = "unset"
"""A fourth tenant: content is on its span, and nothing says whether it may be."""


class Arrived(NamedTuple):
    """One span as a receiver got it."""

    name: str
    attributes: dict[str, str]
    events: list[dict[str, str]]

    @property
    def content(self) -> set[str]:
        return set(CONTENT_KEYS) & self.attributes.keys()


class Delivered(NamedTuple):
    tempo: list[Arrived]
    langfuse: list[Arrived]

    def of(self, tenant: str) -> Arrived:
        [span] = [span for span in self.langfuse if span.attributes.get("dragoman.tenant.id") == tenant and not span.events]
        return span


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def arrived(receiver: Receiver, path: str) -> list[Arrived]:
    spans: list[Arrived] = []
    for body in receiver.received.get(path, ()):
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {a.key: str(a.value) for a in span.attributes}
                    attributes["dragoman.tenant.id"] = next(
                        (a.value.string_value for a in span.attributes if a.key == "dragoman.tenant.id"), ""
                    )
                    spans.append(Arrived(span.name, attributes, [{a.key: str(a.value) for a in e.attributes} for e in span.events]))
    return spans


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def environment(**values: str) -> dict[str, str]:
    return {
        **os.environ,
        "OTLP_GRPC_LISTEN": f"127.0.0.1:{free_port()}",
        "LANGFUSE_OTLP_AUTH": "cGs6c2s=",
        "GRAFANA_CLOUD_OTLP_AUTH": "",
        **values,
    }


def wait_until_it_listens(port: int, collector: subprocess.Popen[str]) -> None:
    """Connect until it answers; a collector that has stopped fails at once, and its own words are shown."""
    for _ in range(100):
        if collector.poll() is not None:
            pytest.fail(f"the collector stopped: {collector.communicate()[0]}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            collector.wait(0.1)
    pytest.fail("the collector did not listen within 10 s")


def send(endpoint: str) -> None:
    """The spans of four tenants, of one failed call, and of what else a program traces."""
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    tracer = tracers.get_tracer("test")
    for tenant in TENANTS.values():
        provider = ScriptedProvider.of("SECRET-OUT", OverloadedError("SECRET-ERROR"))
        provider.telemetry = OpenTelemetry(tracer_provider=tracers)
        for _ in range(2):
            list(provider.events(Request("SECRET-IN", trace=TraceInfo(tenant=tenant))))
    for tenant_id, content in ((UNSET, None), ("says-no", False), ("says-text", "true")):  # content that another instrumentation put there
        attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "dragoman.tenant.id": tenant_id}
        attributes |= dict.fromkeys(CONTENT_KEYS, "SECRET")
        attributes |= {} if content is None else {"dragoman.tenant.trace_llm_content": content}
        name = "chat" if tenant_id != "says-no" else "chat with content all the same"
        span = tracer.start_span(name, attributes=attributes)
        span.end()
    tracer.start_span("GET /readyz").end()
    tracer.start_span("invoke_agent planner", attributes={"gen_ai.operation.name": "invoke_agent"}).end()
    tracer.start_span("execute_tool look", attributes={"gen_ai.operation.name": "execute_tool"}).end()
    tracers.shutdown()


@pytest.fixture(scope="module")
def delivered() -> Iterator[Delivered]:
    with pytest.MonkeyPatch.context() as patch, receiving() as tempo, receiving() as langfuse:
        patch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", "true")
        port = free_port()
        variables = environment(
            OTLP_HTTP_LISTEN=f"127.0.0.1:{port}",
            TEMPO_OTLP_ENDPOINT=tempo.url,
            LANGFUSE_HOST=langfuse.url,
            METRICS_OTLP_ENDPOINT=tempo.url,
        )
        command = [BINARY, *CONFIGS, "--config=yaml:service::telemetry::metrics::level: none"]
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as collector:
            try:
                wait_until_it_listens(port, collector)
                send(f"http://127.0.0.1:{port}")
            finally:
                collector.send_signal(signal.SIGTERM)
                collector.communicate(timeout=30)
        yield Delivered(arrived(tempo, "/v1/traces"), arrived(langfuse, "/api/public/otel/v1/traces"))


def test_the_configuration_is_valid() -> None:
    variables = environment(LANGFUSE_HOST="http://127.0.0.1:1")
    done = subprocess.run([BINARY, "validate", *CONFIGS], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_tenant_that_says_true_keeps_its_content(delivered: Delivered) -> None:
    assert delivered.of("says-yes").content == {"langfuse.observation.input", "langfuse.observation.output"}


def test_a_tenant_that_says_false_has_its_content_stripped(delivered: Delivered) -> None:
    spans = [span for span in delivered.langfuse if span.attributes["dragoman.tenant.id"] == "says-no"]
    assert len(spans) == 3
    assert {key for span in spans for key in span.content} == set()


@pytest.mark.parametrize("tenant", [UNSET, "says-text"])
def test_a_tenant_that_does_not_say_true_has_its_content_stripped(delivered: Delivered, tenant: str) -> None:
    assert delivered.of(tenant).content == set()


def test_a_tenant_that_turned_langfuse_off_is_not_there(delivered: Delivered) -> None:
    assert [span for span in delivered.langfuse if span.attributes["dragoman.tenant.id"] == "off"] == []
    assert len([span for span in delivered.tempo if span.attributes["dragoman.tenant.id"] == "off"]) == 2


def test_what_is_no_model_call_reaches_tempo_only(delivered: Delivered) -> None:
    assert "GET /readyz" in {span.name for span in delivered.tempo}
    assert "GET /readyz" not in {span.name for span in delivered.langfuse}


@pytest.mark.parametrize("name", ["invoke_agent planner", "execute_tool look"])
def test_agents_and_tools_reach_both(delivered: Delivered, name: str) -> None:
    assert name in {span.name for span in delivered.tempo}
    assert name in {span.name for span in delivered.langfuse}


def test_messages_and_stack_traces_of_exceptions_are_kept_and_stripped_alike(delivered: Delivered) -> None:
    keys = {
        span.attributes["dragoman.tenant.id"]: {k for event in span.events for k in event} for span in delivered.langfuse if span.events
    }
    assert keys == {
        "says-yes": {"exception.type", "exception.message", "exception.stacktrace"},
        "says-no": {"exception.type"},
    }


def test_tempo_gets_everything_as_it_was(delivered: Delivered) -> None:
    assert len(delivered.tempo) == 2 * len(TENANTS) + 3 + 3
    [span] = [span for span in delivered.tempo if span.attributes["dragoman.tenant.id"] == UNSET]
    assert span.content == set(CONTENT_KEYS)
