"""`OpenTelemetry`: spans and metrics through the OpenTelemetry API, picked up by itself where a program has configured it.

Strategy. Only the API is used; SDK, exporters and sampling are the program's. A span is started with an explicit context and never
made the current one: a stream is a generator in spirit, and what it makes current would leak into its consumer. The exporter's clock
is ours: the span ends as many seconds after its start as the call took, however late the consumer asks for the last event.
"""

from __future__ import annotations

from array import array
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError
from dragoman.hooks import CallInfo, CallSpan
from dragoman.settings import Environment
from dragoman.telemetry import names
from dragoman.telemetry.attributes import Attributes, Outcome, metric_attributes, span_name, start_attributes
from dragoman.telemetry.call import ObservedCall, Settings
from dragoman.telemetry.capped import CAP_MINIMUM
from dragoman.telemetry.content import CONTENT_CAP_BYTES, GATE_VARIABLE

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise ConfigError("OpenTelemetry is not installed: pip install 'dragoman[otel]', or pass telemetry=None") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Counter, Histogram, MeterProvider
    from opentelemetry.trace import Span, TracerProvider

__all__ = ["OpenTelemetry", "configured"]

SCOPE = "dragoman"
"""The instrumentation scope."""

_NO_SPAN = otel_context.Context()
"""The context of records that need no exemplar: there is one for each piece of content, and looking for one doubles its cost."""

_UNCONFIGURED = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)

_PROPAGATOR = TraceContextTextMapPropagator()
"""W3C `traceparent` and `tracestate` only: baggage may hold anything, and the provider is a stranger."""


class OpenTelemetry:
    """A `Telemetry` on the OpenTelemetry API. Made once, used for any number of calls, threads and event loops.

    `tracer_provider`, `meter_provider`: the global ones unless given. `propagate`: send `traceparent` with each HTTP request.
    `legacy_cache_creation`: write the cache-write count under its older name too. Content is recorded only behind both gates
    (`DRAGOMAN_TRACE_LLM_CONTENT` and the call's tenant), under Langfuse's names, or with `genai_content` under those of the conventions;
    `content_cap_bytes` is how many bytes of JSON each such attribute holds at most. Raises ConfigError for a cap below 1024, for a
    gate variable that is neither true nor false, and if the API is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        genai_content: bool = False,
        content_cap_bytes: int = CONTENT_CAP_BYTES,
        propagate: bool = False,
        legacy_cache_creation: bool = False,
    ) -> None:
        from dragoman import __version__

        if content_cap_bytes < CAP_MINIMUM:
            raise ConfigError(f"content_cap_bytes must be {CAP_MINIMUM} or more, not {content_cap_bytes}")
        Environment().flag(GATE_VARIABLE)
        self._tracer = trace.get_tracer(SCOPE, __version__, tracer_provider)
        self._instruments = _Instruments(metrics.get_meter(SCOPE, __version__, meter_provider))
        self._propagate = propagate
        self._settings = Settings(
            genai_content=genai_content,
            content_cap_bytes=content_cap_bytes,
            legacy_cache_creation=legacy_cache_creation,
        )

    def started(self, call: CallInfo) -> CallSpan:
        """Start the span of a call, as a child of the current one."""
        context = otel_context.get_current()
        start = time_ns()
        span = self._tracer.start_span(
            span_name(call),
            context=context,
            kind=trace.SpanKind.CLIENT,
            attributes=start_attributes(call),
            start_time=start,
        )
        sink = _SpanSink(span, trace.set_span_in_context(span, context), start, self._instruments, propagate=self._propagate)
        return ObservedCall(call, sink, self._settings)

    def __repr__(self) -> str:
        return "OpenTelemetry()"


class _SpanSink:
    """One OpenTelemetry span."""

    __slots__ = ("_context", "_instruments", "_propagate", "_span", "_start", "recording")

    def __init__(self, span: Span, context: Context, start: int, instruments: _Instruments, *, propagate: bool) -> None:
        self._span = span
        self._context = context
        self._start = start
        self._instruments = instruments
        self._propagate = propagate
        self.recording = span.is_recording()

    def attributes(self, values: Attributes) -> None:
        self._span.set_attributes(values)

    def event(self, name: str, values: Attributes) -> None:
        self._span.add_event(name, values)

    def failed(self, description: str) -> None:
        self._span.set_status(trace.Status(trace.StatusCode.ERROR, description))

    def measured(self, call: CallInfo, outcome: Outcome, seconds: float, gaps: array[float]) -> None:
        self._instruments.record(call, outcome, seconds, gaps, self._context)

    def end(self, seconds: float) -> None:
        self._span.end(self._start + int(seconds * 1e9))

    def headers(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        if self._propagate:
            _PROPAGATOR.inject(carrier, self._context)
        return carrier


class _Instruments:
    """The five metrics."""

    def __init__(self, meter: metrics.Meter) -> None:
        def histogram(metric: names.Metric) -> Histogram:
            return meter.create_histogram(
                metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=list(metric.buckets)
            )

        self._tokens = histogram(names.TOKEN_USAGE)
        self._duration = histogram(names.DURATION)
        self._first_chunk = histogram(names.TIME_TO_FIRST_CHUNK)
        self._per_chunk = histogram(names.TIME_PER_OUTPUT_CHUNK)
        errors = names.PROVIDER_ERRORS
        self._errors: Counter = meter.create_counter(errors.name, errors.unit, errors.description)

    def record(self, call: CallInfo, outcome: Outcome, seconds: float, gaps: array[float], context: Context) -> None:
        """One call that has ended; `context` holds its span, for exemplars. An early leave is in the duration, as `cancelled`, and is no
        error of the provider.
        """
        shared = metric_attributes(call, outcome)
        if outcome.usage_known:
            for kind, count in _token_counts(outcome):
                self._tokens.record(count, {**shared, names.TOKEN_TYPE: kind}, context)
        ended = {**shared, names.ERROR_TYPE: outcome.error_type} if outcome.error_type else shared
        self._duration.record(seconds, ended, context)
        if call.streaming and outcome.timing.first_content is not None:
            self._first_chunk.record(outcome.timing.first_content, shared, context)
            for gap in gaps:
                self._per_chunk.record(gap, shared, _NO_SPAN)
        if outcome.failed:
            failed: Attributes = {name: shared[name] for name in (names.PROVIDER, names.REQUEST_MODEL)}
            self._errors.add(1, {**failed, names.ERROR_TYPE: outcome.error_type}, context)


def _token_counts(outcome: Outcome) -> list[tuple[str, int]]:
    """Counts by token type. The cache types are part of input, and left out where the cache was not used."""
    usage = outcome.usage
    cache = [("cache_read", usage.cache_read), ("cache_write", usage.cache_write)]
    return [("input", usage.total_input), ("output", usage.output), *(entry for entry in cache if entry[1])]


# ---- picked up by itself

_lock = Lock()
_picked_up: tuple[object, object, OpenTelemetry] | None = None


def configured() -> OpenTelemetry | None:
    """The telemetry of a program that has configured a tracer provider; None if it has not (a proxy or a no-op is none)."""
    global _picked_up  # noqa: PLW0603  # one per process, as the providers are
    tracers = trace.get_tracer_provider()
    if isinstance(tracers, _UNCONFIGURED):
        return None
    meters = metrics.get_meter_provider()
    known = _picked_up
    if known is not None and known[0] is tracers and known[1] is meters:
        return known[2]
    with _lock:
        telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=meters)
        _picked_up = (tracers, meters, telemetry)
    return telemetry
