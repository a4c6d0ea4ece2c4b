"""Tools for testing an agent without a provider: a scripted provider, and a real server that goes wrong on request.

`ScriptedProvider` hands out events and opens no socket. `WireServer` is a real HTTP server on loopback, for tests of everything
below the events: retry, timeouts, cancellation, proxies; `SCENARIOS` is a table of bad days for it. `Recorder` and `Replay` keep real
exchanges on cassettes. Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.testing.answer import Answer, Close, Delay, Gate, Raw, Repeat, Reset, Send, Stall, Step, Wait
    from dragoman.testing.anthropic import (
        anthropic_error,
        anthropic_events,
        anthropic_message,
        anthropic_stream,
        content_text,
        content_thinking,
        content_tool_use,
        sse,
    )
    from dragoman.testing.cassette import Cassette, CassetteError
    from dragoman.testing.certificate import Authority
    from dragoman.testing.connection import Connection, RecordedRequest
    from dragoman.testing.recorder import Recorder
    from dragoman.testing.replay import Replay, UnmatchedRequestError
    from dragoman.testing.scenarios import SCENARIOS, Scenario, open_scenario, serve
    from dragoman.testing.scripted import ScriptedProvider, script
    from dragoman.testing.wire_server import WireServer

__all__ = [
    "SCENARIOS",
    "Answer",
    "Authority",
    "Cassette",
    "CassetteError",
    "Close",
    "Connection",
    "Delay",
    "Gate",
    "Raw",
    "RecordedRequest",
    "Recorder",
    "Repeat",
    "Replay",
    "Reset",
    "Scenario",
    "ScriptedProvider",
    "Send",
    "Stall",
    "Step",
    "UnmatchedRequestError",
    "Wait",
    "WireServer",
    "anthropic_error",
    "anthropic_events",
    "anthropic_message",
    "anthropic_stream",
    "content_text",
    "content_thinking",
    "content_tool_use",
    "open_scenario",
    "script",
    "serve",
    "sse",
]

_HOME = {
    "answer": ["Answer", "Close", "Delay", "Gate", "Raw", "Repeat", "Reset", "Send", "Stall", "Step", "Wait"],
    "anthropic": [
        "anthropic_error",
        "anthropic_events",
        "anthropic_message",
        "anthropic_stream",
        "content_text",
        "content_thinking",
        "content_tool_use",
        "sse",
    ],
    "cassette": ["Cassette", "CassetteError"],
    "certificate": ["Authority"],
    "connection": ["Connection", "RecordedRequest"],
    "recorder": ["Recorder"],
    "replay": ["Replay", "UnmatchedRequestError"],
    "scenarios": ["SCENARIOS", "Scenario", "open_scenario", "serve"],
    "scripted": ["ScriptedProvider", "script"],
    "wire_server": ["WireServer"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
