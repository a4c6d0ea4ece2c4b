"""Export to the standard OTLP endpoint: what arrives at a real HTTP receiver on loopback, decoded by OpenTelemetry's own protocol."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dragoman import ConfigError, Request
from dragoman.telemetry import otlp_telemetry
from dragoman.testing import ScriptedProvider


class Receiver(ThreadingHTTPServer):
    """An OTLP/HTTP receiver that keeps what it is sent."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.received: dict[str, list[bytes]] = {}
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        self.server.received.setdefault(self.path, []).append(body)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME", "OTEL_METRICS_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    with Receiver() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def send() -> tuple[str, bool]:
    """One call, exported. The trace id, and whether it arrived."""
    telemetry = otlp_telemetry()
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = telemetry
    provider.complete(Request("hi"))
    delivered = telemetry.shutdown()
    return telemetry.trace_id, delivered


def test_a_call_arrives_as_a_span_and_metrics(receiver: Receiver) -> None:
    trace_id, delivered = send()
    [traces] = receiver.received["/v1/traces"]
    [resource] = ExportTraceServiceRequest.FromString(traces).resource_spans
    [span] = resource.scope_spans[0].spans
    assert delivered
    assert span.name == "chat scripted-1"
    assert span.trace_id.hex() == trace_id
    values = {attribute.key: attribute.value for attribute in span.attributes}
    assert values["gen_ai.response.finish_reasons"].array_value.values[0].string_value == "end_turn"
    assert values["langfuse.observation.metadata.retry_count"].int_value == 0
    assert values["gen_ai.request.stream"].bool_value is True
    service = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert service["service.name"] == "dragoman"
    [metrics] = receiver.received["/v1/metrics"]
    names = {m.name for r in ExportMetricsServiceRequest.FromString(metrics).resource_metrics for s in r.scope_metrics for m in s.metrics}
    assert "gen_ai.client.operation.duration" in names


def test_the_environment_decides_service_headers_and_metrics(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    send()
    [resource] = ExportTraceServiceRequest.FromString(receiver.received["/v1/traces"][0]).resource_spans
    service = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert service["service.name"] == "nightly"
    assert receiver.headers[0]["authorization"] == "Basic abc"
    assert set(receiver.received) == {"/v1/traces"}


def test_a_receiver_that_refuses_is_reported(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    receiver.status = 400
    with caplog.at_level(logging.CRITICAL):
        trace_id, delivered = send()
    assert not delivered
    assert len(trace_id) == 32


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_a_protocol_without_an_exporter_is_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "grpc")
    with pytest.raises(ConfigError, match=f"{name} is 'grpc'; only 'http/protobuf' is supported"):
        otlp_telemetry()


def test_missing_packages_are_named() -> None:
    import subprocess
    import sys

    code = """
import sys
sys.modules["opentelemetry.exporter"] = None
from dragoman import ConfigError
from dragoman import telemetry
try:
    telemetry.otlp_telemetry
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "exporting traces needs the OpenTelemetry SDK and its OTLP exporter: pip install 'dragoman[otlp]'"
