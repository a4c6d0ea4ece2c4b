"""One observed call: what the stream tells, turned into a span's attributes and events, and into metrics.

Strategy. `ObservedCall` is the only `CallSpan` there is; where its span goes is a `Sink`'s business (OpenTelemetry, a terminal), so both
show the same. On the hot path a piece of content costs one append; everything is worked out once, at the end.
"""

from __future__ import annotations

from array import array
from time import monotonic, time
from typing import Protocol

from dragoman.errors import ProviderError
from dragoman.event import Retrying
from dragoman.hooks import CallInfo, Unfinished
from dragoman.message import Message
from dragoman.response import Response, Timing
from dragoman.telemetry import names
from dragoman.telemetry.attributes import Attributes, Outcome, end_attributes, retry_attributes
from dragoman.telemetry.content import CONTENT_CAP_BYTES, exception_attributes, record_content
from dragoman.value import Value

__all__ = ["ObservedCall", "Settings", "Sink"]


class Settings(Value, frozen=True, kw_only=True):
    """What may be chosen about a span. The meanings are those of `OpenTelemetry`."""

    genai_content: bool = False
    content_cap_bytes: int = CONTENT_CAP_BYTES
    legacy_cache_creation: bool = False


class Sink(Protocol):
    """Where one span goes. Nothing is called after `end`."""

    @property
    def recording(self) -> bool:
        """Whether anybody will see it; if not, nothing is worked out for it."""
        ...

    def attributes(self, values: Attributes) -> None: ...
    def event(self, name: str, values: Attributes) -> None: ...
    def failed(self, description: str) -> None:
        """The status is an error. `description` is an error.type."""
        ...

    def measured(self, call: CallInfo, outcome: Outcome, seconds: float, gaps: array[float]) -> None:
        """The numbers of the whole call, for metrics: its duration, and the seconds between its pieces of content."""
        ...

    def end(self, seconds: float) -> None:
        """The span ends, so many seconds after its start."""
        ...

    def headers(self) -> dict[str, str]:
        """Trace context for the HTTP request, if it is wanted there."""
        ...


class ObservedCall:
    """The span of one call, from its first request to its end."""

    __slots__ = ("_began", "_call", "_gaps", "_settings", "_sink", "_wall")

    def __init__(self, call: CallInfo, sink: Sink, settings: Settings) -> None:
        self._call = call
        self._sink = sink
        self._settings = settings
        self._began, self._wall = monotonic(), time()
        self._gaps: array[float] = array("d")

    def headers(self) -> dict[str, str]:
        """Trace context, if it is wanted."""
        return self._sink.headers()

    def retried(self, event: Retrying) -> None:
        """One event on the span."""
        if self._sink.recording:
            self._sink.event(names.RETRY_EVENT, retry_attributes(event))

    def first_content(self, timing: Timing) -> None:
        """Nothing yet: the timing of the end says when it was."""

    def chunk(self, seconds: float) -> None:
        """Kept for the metric."""
        self._gaps.append(seconds)

    def finished(self, response: Response) -> None:
        """A success."""
        outcome = Outcome.of_response(response, response.timing or Timing(started=0.0))
        self._end(outcome, response.message)

    def failed(self, error: ProviderError, call: Unfinished) -> None:
        """A failure: its type on the span, and what may quote content only behind the gates."""
        outcome = Outcome.of_unfinished(call, names.error_type(error), error.status)
        if self._sink.recording:
            self._sink.event(names.EXCEPTION_EVENT, exception_attributes(self._call, error))
            self._sink.failed(outcome.error_type)
        self._end(outcome, call.partial)

    def cancelled(self, call: Unfinished) -> None:
        """The caller left: no failure, so the status stays unset."""
        self._end(Outcome.of_unfinished(call, names.CANCELLED), call.partial)

    def _end(self, outcome: Outcome, answer: Message) -> None:
        sink, settings = self._sink, self._settings
        seconds, span_seconds = self._durations(outcome.timing)
        if sink.recording:
            sink.attributes(end_attributes(self._call, outcome, legacy_cache_creation=settings.legacy_cache_creation))
            record_content(sink, self._call, answer, outcome.finish, genai=settings.genai_content, cap_bytes=settings.content_cap_bytes)
        sink.measured(self._call, outcome, seconds, self._gaps)
        sink.end(span_seconds)

    def _durations(self, timing: Timing) -> tuple[float, float]:
        """Seconds that the call took, and those from the span's start to the call's end. The call's clock starts a moment after the
        span's; in a test it may say anything.
        """
        if timing.finished is None:
            now = monotonic() - self._began
            return now, now
        lag = timing.started - self._wall
        return timing.finished, timing.finished + (lag if 0 < lag < 1 else 0.0)
