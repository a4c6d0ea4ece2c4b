"""Export to the standard OTLP endpoint, for programs that have no OpenTelemetry of their own: the command line.

Everything is read from the environment as every OpenTelemetry program reads it (`OTEL_EXPORTER_OTLP_ENDPOINT`, `…_HEADERS`,
`OTEL_SERVICE_NAME` …). The providers made here are not made global, and spans and metrics leave in one batch at `shutdown`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dragoman.errors import ConfigError
from dragoman.hooks import CallInfo, CallSpan
from dragoman.telemetry.otel import OpenTelemetry

try:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
except ImportError as error:
    raise ConfigError("exporting traces needs the OpenTelemetry SDK and its OTLP exporter: pip install 'dragoman[otlp]'") from error

__all__ = ["OTLPTelemetry", "otlp_telemetry"]

PROTOCOL = "http/protobuf"
"""The only protocol that the extra installs an exporter for, and the standard's default."""


class OTLPTelemetry:
    """A `Telemetry` that sends to the OTLP endpoint. `shutdown` sends what there is; then `trace_id` is that of the last call."""

    def __init__(self) -> None:
        _check_protocol()
        resource = _resource()
        self._exporter = _Watched(OTLPSpanExporter())
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(self._exporter))
        self._metrics = OTLPMetricExporter() if _wants_metrics() else None
        readers = [] if self._metrics is None else [PeriodicExportingMetricReader(self._metrics)]
        self._meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        self._telemetry = OpenTelemetry(tracer_provider=self._tracers, meter_provider=self._meters)

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits, once a span was sent; `""` before."""
        return self._exporter.trace_id

    def started(self, call: CallInfo) -> CallSpan:
        """Start the span of a call."""
        return self._telemetry.started(call)

    def shutdown(self) -> bool:
        """Send everything and stop. Whether all spans arrived; if not, the log of `opentelemetry` says why, and the metrics are not tried.
        Takes as long as the exporter tries: at most 10 seconds, or `OTEL_EXPORTER_OTLP_TIMEOUT`.
        """
        self._tracers.shutdown()
        if not self._exporter.delivered and self._metrics is not None:
            self._metrics.shutdown()  # pyright: ignore[reportUnknownMemberType]  # its further arguments have no types
        self._meters.shutdown()
        return self._exporter.delivered

    def __repr__(self) -> str:
        return "OTLPTelemetry()"


class _Watched(SpanExporter):
    """A span exporter that remembers what became of the spans."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.delivered = True
        self.trace_id = ""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        self.delivered = self.delivered and result is SpanExportResult.SUCCESS
        for span in spans:
            context = span.get_span_context()
            self.trace_id = self.trace_id if context is None else f"{context.trace_id:032x}"
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def otlp_telemetry() -> OTLPTelemetry:
    """A telemetry for the endpoint that the environment names. Raises ConfigError if the packages are missing, or the environment asks
    for a protocol other than `http/protobuf`.
    """
    return OTLPTelemetry()


def _check_protocol() -> None:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        value = os.environ.get(name, "").strip()
        if value and value != PROTOCOL:
            raise ConfigError(f"{name} is {value!r}; only {PROTOCOL!r} is supported here (its port is usually 4318)")
        if value:
            return


def _resource() -> Resource:
    """The environment's resource; `dragoman` where it names no service."""
    resource = Resource.create()
    named = str(resource.attributes.get(SERVICE_NAME, ""))
    return resource.merge(Resource({SERVICE_NAME: "dragoman"})) if not named or named.startswith("unknown_service") else resource


def _wants_metrics() -> bool:
    return os.environ.get("OTEL_METRICS_EXPORTER", "").strip() != "none"
