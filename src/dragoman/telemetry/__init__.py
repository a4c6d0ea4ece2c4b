"""Telemetry: one span and five metrics per call, for OpenTelemetry and Langfuse, with content behind two gates.

Strategy. The core tells a `dragoman.hooks.CallSpan` what happens and knows nothing else. `call` turns that into one span's worth of
attributes and events and hands them to a sink: OpenTelemetry's (`otel`), or a terminal (`console`). What the attributes are called is
in `names`, what they are in `attributes`, what may quote a prompt in `content` and nowhere else.

Loading this package loads none of it, and no OpenTelemetry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.hooks import CallInfo, CallSpan, Telemetry, Unfinished
    from dragoman.telemetry.console import console_telemetry
    from dragoman.telemetry.content import CONTENT_CAP_BYTES, CONTENT_KEYS, record_content
    from dragoman.telemetry.otel import OpenTelemetry, configured
    from dragoman.telemetry.otlp import OTLPTelemetry, otlp_telemetry

__all__ = [
    "CONTENT_CAP_BYTES",
    "CONTENT_KEYS",
    "CallInfo",
    "CallSpan",
    "OTLPTelemetry",
    "OpenTelemetry",
    "Telemetry",
    "Unfinished",
    "configured",
    "console_telemetry",
    "otlp_telemetry",
    "record_content",
]

_LAZY = {
    "CONTENT_CAP_BYTES": "dragoman.telemetry.content",
    "CONTENT_KEYS": "dragoman.telemetry.content",
    "CallInfo": "dragoman.hooks",
    "CallSpan": "dragoman.hooks",
    "OTLPTelemetry": "dragoman.telemetry.otlp",
    "OpenTelemetry": "dragoman.telemetry.otel",
    "Telemetry": "dragoman.hooks",
    "Unfinished": "dragoman.hooks",
    "configured": "dragoman.telemetry.otel",
    "console_telemetry": "dragoman.telemetry.console",
    "otlp_telemetry": "dragoman.telemetry.otlp",
    "record_content": "dragoman.telemetry.content",
}
"""Public names, and the module each lives in."""


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'dragoman.telemetry' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
