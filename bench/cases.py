"""What is measured: one row per piece of work, and who takes part.

A case is a job for `worker.py`, how often each contestant does it, and how its replies become one figure per round. All contestants of a
case take turns, round by round, so that what else the machine does falls on all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "CONTESTANTS", "FREE", "Case", "Contestant"]

Reply = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """A library as it is used: its environment, its client module, what it is imported by, and settings of its client."""

    key: str
    label: str
    environment: str
    client: str
    library: str = ""
    environ: dict[str, str] = field(default_factory=dict)


CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("bare", "raw socket, bytes only received", "dragoman", "clients.raw", "", {"BENCH_BARE": "1"}),
    Contestant("callbacks", "raw socket, chunks taken apart in callbacks", "dragoman", "clients.raw", "", {"BENCH_CALLBACKS": "1"}),
    Contestant("raw", "raw socket, chunks taken apart and iterated over", "dragoman", "clients.raw"),
    Contestant("httpx2", "dragoman, through httpx2", "dragoman", "clients.ours", "dragoman", {"BENCH_TRANSPORT": "httpx2"}),
    Contestant("direct", "dragoman, direct", "dragoman", "clients.ours", "dragoman", {"BENCH_TRANSPORT": "direct"}),
    Contestant(
        "traced", "dragoman, httpx2, OpenTelemetry", "dragoman", "clients.ours", "", {"BENCH_TRANSPORT": "httpx2", "BENCH_TELEMETRY": "1"}
    ),
    Contestant(
        "unchecked", 'dragoman, validate="off"', "dragoman", "clients.ours", "", {"BENCH_TRANSPORT": "httpx2", "BENCH_VALIDATE": "off"}
    ),
    Contestant("anthropic", "anthropic, messages.stream()", "anthropic-2.14.0", "clients.sdk", "anthropic"),
    Contestant("anthropic events", "anthropic, create(stream=True)", "anthropic-2.14.0", "clients.sdk", "", {"BENCH_EVENTS": "1"}),
    Contestant(
        "anthropic aiohttp",
        "anthropic, messages.stream() on aiohttp",
        "anthropic-aiohttp-2.14.0",
        "clients.sdk",
        "",
        {"BENCH_AIOHTTP": "1"},
    ),
    Contestant(
        "aiohttp events",
        "anthropic, create(stream=True) on aiohttp",
        "anthropic-aiohttp-2.14.0",
        "clients.sdk",
        "",
        {"BENCH_AIOHTTP": "1", "BENCH_EVENTS": "1"},
    ),
    Contestant("pydantic-ai", "pydantic-ai, direct", "pydantic-ai-slim-2.68.0", "clients.pydanticai", "pydantic_ai.direct"),
    Contestant("any-llm", "any-llm", "any-llm-sdk-1.27.0", "clients.anyllm", "any_llm"),
    Contestant("langchain", "langchain-anthropic", "langchain-anthropic-1.7.10", "clients.langchain", "langchain_anthropic"),
    Contestant("litellm", "litellm", "litellm-1.110.2", "clients.litellm_", "litellm", {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
)
"""In the order of the tables. `raw` is the floor, over which ratios are taken; the two before it do less than any reader for tasks can."""

FREE = ("bare", "callbacks", "raw", "httpx2", "direct")
"""Those that need no peer's environment."""

_ON_AIOHTTP = ("anthropic aiohttp", "aiohttp events")
_ASYNC = tuple(contestant.key for contestant in CONTESTANTS if contestant.key not in ("traced", "unchecked"))
_ALL = tuple(key for key in _ASYNC if key not in _ON_AIOHTTP)
_WAYS = ("bare", "callbacks", "raw", "httpx2", "direct", "anthropic")
_LIBRARIES = tuple(key for key in _ALL if key not in ("bare", "callbacks", "raw"))

_MICRO, _MILLI, _MEGA = 1e6, 1e3, 1e-6


@dataclass(frozen=True)
class Case:
    """One piece of work. `figure` makes one number, in `unit`, of a reply; None: its `first` and `whole` are pooled to p50 and p99."""

    key: str
    title: str
    job: dict[str, Any]
    unit: str
    figure: Callable[[Reply], float] | None
    rounds: int = 7
    who: tuple[str, ...] = _ALL
    warm: dict[str, Any] | None = None
    tls: bool = False
    environ: dict[str, str] = field(default_factory=dict)
    extra: str = ""
    fresh: bool = False

    @property
    def ready(self) -> dict[str, Any]:
        """The job that warms a contestant up: a small one of the same kind."""
        return self.warm or {**self.job, "answer": [self.job["answer"][0], 20], "times": 1, "streams": 1}


def _cpu_per(count: int, scale: float = _MICRO) -> Callable[[Reply], float]:
    return lambda reply: reply["cpu"] / count * scale


def _growth(reply: Reply) -> float:
    return (reply["peak"] - reply["before"]) * _MEGA


def _text(key: str, title: str, do: str, count: int, times: int, **more: Any) -> Case:
    return Case(key, title, {"do": do, "answer": ["text", count], "times": times}, "µs/delta", _cpu_per(count * times), **more)


def _over_bare(key: str, title: str, **more: Any) -> Case:
    job = {"do": "over_bare", "answer": ["text", 5_000], "times": 4, **more}
    return Case(key, title, job, "times", lambda reply: reply["ratio"], who=("httpx2",))


def _tool(count: int, size: int, times: int) -> Case:
    title = f"Tool input, {count:,} fragments of {size} bytes, async"
    job = {"do": "astream", "answer": ["tool", count, size], "times": times}
    return Case(f"tool {count} {size}", title, job, "ms", _cpu_per(times, _MILLI), rounds=3, who=_LIBRARIES)


def _paced(key: str, title: str, **more: Any) -> Case:
    job = {"do": "astream", "answer": ["text", 100, 8, 20], "streams": 200}
    return Case(key, title, job, "µs/delta", _cpu_per(200 * 100), rounds=5, **more)


CASES: tuple[Case, ...] = (
    _text("codec", "The codec alone: bytes to the final response, 64 KiB at a time", "codec", 5_000, 4, who=("httpx2", "anthropic")),
    Case(
        "codec one",
        "The codec alone, one event per read",
        {"do": "codec", "answer": ["text", 5_000], "times": 4, "one": True},
        "µs/delta",
        _cpu_per(20_000),
        who=("httpx2", "anthropic"),
    ),
    _over_bare("over bare", "The codec over a bare msgspec decode of the same deltas, 64 KiB at a time"),
    _over_bare("over bare one", "The codec over a bare msgspec decode, one event per read", one=True),
    _text("sync", "One stream at full speed, sync", "stream", 2_000, 3),
    _text("async", "One stream at full speed, async", "astream", 2_000, 3, who=_ASYNC),
    _text("whole", "One stream at full speed, final response only, sync", "whole", 2_000, 3, who=_WAYS),
    _text("long", "One stream of 20,000 deltas at full speed, async", "astream", 20_000, 1, rounds=3, who=_ASYNC),
    _paced("paced", "200 streams, one event per 20 ms each, async", who=_ASYNC),
    Case(
        "paced sync",
        "One stream, one event per millisecond, sync",
        {"do": "stream", "answer": ["text", 1_000, 8, 1]},
        "µs/delta",
        _cpu_per(1_000),
        rounds=3,
    ),
    _tool(1_000, 8, 5),
    _tool(10_000, 8, 1),
    _tool(50_000, 8, 1),
    _tool(10_000, 100, 1),
    Case(
        "concurrent",
        "1,000 streams of 200 deltas at once, at full speed, async",
        {"do": "astream", "answer": ["text", 200], "streams": 1_000},
        "s",
        lambda reply: reply["cpu"],
        rounds=3,
        who=_ASYNC,
    ),
    Case(
        "concurrent memory",
        "Memory of the process at 1,000 streams at once, at its peak",
        {"do": "astream", "answer": ["text", 200], "streams": 1_000},
        "MB",
        lambda reply: reply["peak"] * _MEGA,
        rounds=1,
        who=_ASYNC,
        fresh=True,
    ),
    Case(
        "send",
        "Build and send a request of 1.1 MB, 999 messages, 20 tools",
        {"do": "send", "answer": ["text", 2], "times": 10},
        "ms",
        _cpu_per(10, _MILLI),
        who=_LIBRARIES,
        warm={"do": "send", "answer": ["text", 2], "times": 1},
    ),
    Case(
        "build",
        "The same, built and serialized, not sent",
        {"do": "build", "answer": ["text", 2], "times": 20},
        "ms",
        _cpu_per(20, _MILLI),
        who=("httpx2", "unchecked", "anthropic"),
        warm={"do": "build", "answer": ["text", 2], "times": 1},
    ),
    Case("first sync", "Time to first token, warm connection, sync", {"do": "timed", "answer": ["text", 20], "times": 60}, "µs", None),
    Case(
        "first async",
        "Time to first token, warm connection, async",
        {"do": "atimed", "answer": ["text", 20], "times": 60},
        "µs",
        None,
        who=_ASYNC,
    ),
    Case("plain sync", "An answer that does not stream, sync", {"do": "complete", "answer": ["text", 20], "times": 60}, "µs", None),
    Case(
        "memory",
        "Memory growth over a stream of 50,000 deltas, async",
        {"do": "astream", "answer": ["text", 50_000]},
        "MB",
        _growth,
        rounds=1,
        fresh=True,
        warm={"do": "astream", "answer": ["text", 1_000]},
    ),
    _text("telemetry", "Telemetry off and on: full speed, sync", "stream", 2_000, 3, who=("httpx2", "traced"), extra="otel"),
    Case(
        "telemetry short",
        "Telemetry off and on: a call of 20 deltas, sync",
        {"do": "stream", "answer": ["text", 20], "times": 50},
        "µs/call",
        _cpu_per(50),
        who=("httpx2", "traced"),
        extra="otel",
    ),
    _text("tls", "TLS: one stream at full speed, async", "astream", 2_000, 3, who=_WAYS, tls=True),
    _paced("paced tls", "TLS: 200 streams, one event per 20 ms each", who=_WAYS, tls=True),
    _paced(
        "paced uvloop",
        "uvloop: 200 streams, one event per 20 ms each",
        who=_WAYS,
        environ={"BENCH_UVLOOP": "1"},
        extra="uvloop",
    ),
)
"""In the order in which they run and are shown."""
