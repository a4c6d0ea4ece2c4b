"""The span of a call as text, for a person at a terminal: no backend, no OpenTelemetry.

Shows exactly what an exporter would get: the same attributes and events from the same code, content behind the same gates.
"""

from __future__ import annotations

import sys
from array import array
from time import monotonic
from typing import TextIO

from dragoman.hooks import CallInfo, CallSpan, Telemetry
from dragoman.telemetry.attributes import Attributes, Outcome, span_name, start_attributes
from dragoman.telemetry.call import ObservedCall, Settings

__all__ = ["console_telemetry"]


def console_telemetry(stream: TextIO | None = None) -> Telemetry:
    """A telemetry that writes each call's span to `stream` (standard error) when it ends, in one piece."""
    return _Console(stream)


class _Console:
    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def started(self, call: CallInfo) -> CallSpan:
        return ObservedCall(call, _TextSink(call, self._stream or sys.stderr), Settings())


class _TextSink:
    """One span, written when it ends."""

    recording = True

    def __init__(self, call: CallInfo, stream: TextIO) -> None:
        self._stream = stream
        self._name = span_name(call)
        self._values: Attributes = start_attributes(call)
        self._events: list[tuple[float, str, Attributes]] = []
        self._began = monotonic()
        self._status = ""

    def attributes(self, values: Attributes) -> None:
        self._values |= values

    def event(self, name: str, values: Attributes) -> None:
        self._events.append((monotonic() - self._began, name, values))

    def failed(self, description: str) -> None:
        self._status = f"  ERROR {description}"

    def measured(self, call: CallInfo, outcome: Outcome, seconds: float, gaps: array[float]) -> None:
        """A terminal has no metrics: the span says it all."""

    def end(self, seconds: float) -> None:
        width = max(map(len, self._values))
        lines = [f"span {self._name}  CLIENT  {seconds:.3f} s{self._status}"]
        lines += [f"  {key:<{width}}  {_shown(value)}" for key, value in sorted(self._values.items())]
        for at, name, values in self._events:
            details = "  ".join(f"{key}={_shown(value)}" for key, value in values.items())
            lines.append(f"  event after {at:.3f} s: {name}  {details}")
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()

    def headers(self) -> dict[str, str]:
        return {}


def _shown(value: object) -> str:
    """A value on one line, with no control character that a terminal would obey."""
    if isinstance(value, str):
        return value if value.isprintable() else ascii(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
