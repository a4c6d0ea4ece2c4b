"""An OpenTelemetry SDK in memory, and what it recorded in plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from dragoman.telemetry import OpenTelemetry


class Point(NamedTuple):
    """One data point of a metric: its attributes, how many records it holds, and their sum."""

    attributes: dict[str, Any]
    count: int
    sum: float
    bounds: tuple[float, ...] = ()


class Recorder(SpanProcessor):
    """Every span that was started and ended, and every metric."""

    def __init__(self) -> None:
        self.started: list[Span] = []
        self.ended: list[ReadableSpan] = []
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(self)
        self._reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def on_start(self, span: Span, parent_context: object = None) -> None:
        self.started.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def telemetry(self, **options: Any) -> OpenTelemetry:
        """An adapter that records here."""
        return OpenTelemetry(tracer_provider=self.tracer_provider, meter_provider=self.meter_provider, **options)

    @property
    def span(self) -> ReadableSpan:
        """The only span; it was started once and has ended once."""
        assert len(self.started) == len(self.ended) == 1, f"{len(self.started)} started, {len(self.ended)} ended"
        return self.ended[0]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the only span, sequences as lists."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in (self.span.attributes or {}).items()}

    @property
    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """The events of the only span."""
        return [(event.name, dict(event.attributes or {})) for event in self.span.events]

    def metrics(self) -> dict[str, list[Point]]:
        """All metrics by name. May be asked once: reading them is a collection."""
        return {name: [point(p) for p in metric.data.data_points] for name, metric in self.raw_metrics()}

    def raw_metrics(self) -> Iterator[tuple[str, Any]]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield metric.name, metric

    def usage_details(self) -> dict[str, int]:
        """Langfuse's usage, decoded."""
        details: dict[str, int] = json.loads(self.attributes["langfuse.observation.usage_details"])
        return details


def point(data: HistogramDataPoint | NumberDataPoint) -> Point:
    attributes = dict(data.attributes or {})
    if isinstance(data, HistogramDataPoint):
        return Point(attributes, data.count, data.sum, tuple(data.explicit_bounds))
    return Point(attributes, 1, data.value)
