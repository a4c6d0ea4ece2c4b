"""`--trace` and `--trace-console`: where the span of a probe goes, and what is said of it afterwards."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from dragoman.cli.outcome import UsageError
from dragoman.cli.terminal import Screen
from dragoman.errors import ConfigError
from dragoman.hooks import TelemetrySetting

__all__ = ["Tracing", "tracing"]


class Tracing(Protocol):
    """How one command is traced."""

    @property
    def telemetry(self) -> TelemetrySetting:
        """What the provider is given."""
        ...

    def report(self, screen: Screen) -> None:
        """After the answer: what became of the span."""
        ...


def tracing(*, export: bool, show: bool) -> Tracing:
    """Raises UsageError for both at once, ConfigError if the packages that export are not installed."""
    if export and show:
        raise UsageError("--trace sends the span and --trace-console shows it: give one of them")
    return _Export() if export else _Show() if show else _Plain()


class _Plain:
    """Not asked for: what the environment has configured, as in every program."""

    telemetry: TelemetrySetting = "auto"

    def report(self, screen: Screen) -> None:
        del screen


class _Show:
    """The span as text, on standard error, below the summary."""

    def __init__(self) -> None:
        from dragoman.telemetry import console_telemetry

        self._text = io.StringIO()
        self.telemetry: TelemetrySetting = console_telemetry(self._text)

    def report(self, screen: Screen) -> None:
        if text := self._text.getvalue():
            screen.say(text.removesuffix("\n"))


class _Export:
    """The span and the metrics, to the OTLP endpoint of the environment."""

    def __init__(self) -> None:
        try:
            from dragoman.telemetry import otlp_telemetry
        except ConfigError as error:  # of a library: it names one package after the other, and settings that are no options
            raise ConfigError("--trace needs OpenTelemetry and its OTLP exporter: pip install 'dragoman[otlp]'") from error

        self._otlp = otlp_telemetry()
        self.telemetry: TelemetrySetting = self._otlp

    def report(self, screen: Screen) -> None:
        with _collected() as complaints:
            delivered = self._otlp.shutdown()
        if not self._otlp.trace_id:
            return
        screen.say(f"trace {self._otlp.trace_id}")
        if not delivered:
            screen.say(f"the trace did not arrive at {_endpoint()}; is a collector listening there? {complaints[-1] if complaints else ''}")


@contextmanager
def _collected() -> Generator[list[str]]:
    """What OpenTelemetry logs meanwhile, kept from the terminal: it repeats itself with every try."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("opentelemetry"), Keep(logging.ERROR)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _endpoint() -> str:
    """Where the exporter sends to, as its environment says."""
    for name in ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        if value := os.environ.get(name, "").strip():
            return value
    return "http://localhost:4318"
