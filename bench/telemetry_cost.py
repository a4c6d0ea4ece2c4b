"""`python bench/telemetry_cost.py`: what telemetry costs, per call and per event, where it is off, where it is not configured, where it is.

Four settings read the same scripted streams, side by side in this run, in CPU time, best of several rounds. The cost of a call is
the time of a stream of one piece; the cost of an event is what each of 1,000 pieces more adds. `off` is the yardstick; the program
exits with 1 if telemetry that nobody configured costs more than a whisper over it, or loads anything. The SDK's row includes what
the SDK itself does (a span, thirteen records of metrics, a batch processor's queue), which is most of it.

Needs opentelemetry-sdk for the last row.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

from dragoman import BlockStart, MessageStart, MessageStop, ProviderBase, Request, Text, TextDelta, Usage
from dragoman.event import Event
from dragoman.hooks import Telemetry

ROUNDS = 15
CALLS = 300
PIECES = 1_000
CALL_LIMIT = 10.0
"""Microseconds per call that telemetry may cost where it is not configured."""
EVENT_LIMIT = 0.2
"""Microseconds per event that it may cost there."""


class Scripted(ProviderBase):
    """Gives the same events to every call, at the least cost."""

    def __init__(self, pieces: int) -> None:
        start = MessageStart("msg_1", "model-1", provider="bench", wire="bench", usage=Usage(input=10))
        deltas = [TextDelta(0, "a few words ") for _ in range(pieces)]
        self.name = "bench"
        self.default_model = "model-1"
        self._events: list[Event] = [start, BlockStart(0, Text("")), *deltas, MessageStop("end_turn", usage=Usage(input=10, output=20))]

    def events(self, request: Request, **options: object) -> Iterator[Event]:
        del request, options
        return iter(self._events)

    def aevents(self, request: Request, **options: object) -> AsyncIterator[Event]:
        raise NotImplementedError


class Cost(NamedTuple):
    """Microseconds of CPU."""

    call: float
    event: float


def best(work: Callable[[], None], times: int) -> float:
    """Microseconds for one, of the quickest round."""
    seconds: list[float] = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            work()
        seconds.append(time.process_time() - began)
    return min(seconds) / times * 1e6


def measure(telemetry: Telemetry | str | None) -> Cost:
    """The cost of reading a stream under this setting."""
    one, many = Scripted(1), Scripted(1 + PIECES)
    request = Request("hi")
    for provider in (one, many):
        provider.telemetry = telemetry  # type: ignore[assignment]
    call = best(lambda: one.stream(request).response() and None, CALLS)
    long = best(lambda: many.stream(request).response() and None, max(1, CALLS // 30))
    return Cost(call, (long - call) / PIECES)


def loaded_without() -> str:
    """What a call loads of telemetry in a program that has no OpenTelemetry."""
    code = (
        "import sys; sys.path.insert(0, 'bench'); from telemetry_cost import Scripted; from dragoman import Request; "
        "Scripted(3).stream(Request('hi')).response(); "
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'dragoman.telemetry'))])"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def with_sdk() -> Telemetry:
    """An adapter on a real SDK: a batch processor with an exporter that throws away, and metrics."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    from dragoman.telemetry import OpenTelemetry

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            del spans
            return SpanExportResult.SUCCESS

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
    return OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False))


def main() -> int:
    loaded = loaded_without()
    offs = [measure(None) for _ in range(2)]  # the first one warms up
    rows = {"auto, no OpenTelemetry in the program": measure("auto")}
    import opentelemetry.trace  # noqa: F401  # from here on the program has imported it, and configured nothing

    rows["auto, OpenTelemetry imported, not configured"] = measure("auto")
    rows["OpenTelemetry with an SDK"] = measure(with_sdk())
    offs.append(measure(None))
    off = Cost(min(cost.call for cost in offs), min(cost.event for cost in offs))
    rows = {"off (telemetry=None)": off, **rows}
    print(f"{'':46}  {'µs/call':>8}  {'over off':>8}  {'µs/event':>8}  {'over off':>8}")
    for name, cost in rows.items():
        print(f"{name:46}  {cost.call:8.2f}  {cost.call - off.call:8.2f}  {cost.event:8.3f}  {cost.event - off.event:8.3f}")
    print(f"loaded by a call without OpenTelemetry: {loaded}")
    unconfigured = [cost for name, cost in rows.items() if name.startswith("auto")]
    broken = loaded != "[]" or any(c.call - off.call > CALL_LIMIT or c.event - off.event > EVENT_LIMIT for c in unconfigured)
    print("BROKEN: telemetry that nobody configured costs something" if broken else "ok")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
