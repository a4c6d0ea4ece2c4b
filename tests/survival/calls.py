"""What the tests of bad days share: a provider for a server, answers that stop coming, and counts of what a process holds open."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
import trio

from dragoman import Anthropic, Request, RetryPolicy, Timeouts
from dragoman.testing import Answer, Stall, anthropic_events, anthropic_stream
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.testing.connection import RecordedRequest
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

T = TypeVar("T")

_DESCRIPTORS = Path("/proc/self/fd")

KEY = "sk-ant-api03-canary-0123456789"
TOKEN = "oauth-canary-9876543210"
PROMPT = "PROMPT-CANARY"
ASK = Request(PROMPT)
PATIENT = RetryPolicy(base=30, jitter="none")
"""A back-off that no test would sit out."""

LIBRARIES = pytest.mark.parametrize("library", ["asyncio", "trio"])


transport_of_the_test = "httpx2"
"""Set by the fixture `each_transport`."""


def transports(**options: Any) -> dict[str, Any]:
    """Both transports of the kind under test, as settings of a provider."""
    if transport_of_the_test == "direct":
        return {"transport": DirectTransport(**options), "async_transport": AsyncDirectTransport(**options)}
    return {
        "transport": HTTPX2Transport(trust_env=False, **options),
        "async_transport": AsyncHTTPX2Transport(trust_env=False, **options),
    }


class Addressed(Protocol):
    """What has a base URL."""

    @property
    def url(self) -> str: ...


def connect(server: Addressed, **settings: Any) -> Anthropic:
    """A provider for this server that does not look at the environment's proxies."""
    given = {
        "api_key": KEY,
        "base_url": server.url,
        "model": "claude-test-1",
        "telemetry": None,
        "timeouts": Timeouts(first_byte=None, idle=None),
        **transports(),
    }
    return Anthropic(**{**given, **settings})


def stalled(text: str = "Hello") -> Answer:
    """A stream that stops coming after its first text delta, the connection staying open."""
    return Answer(headers=SSE_HEADERS, body=[*anthropic_events(text, pieces=3, ping=False)[:3], Stall()])


def silent() -> Answer:
    """An answer whose head never comes."""
    return Answer(before=[Stall()])


def overloaded() -> Answer:
    """An answer after which the call backs off."""
    return Answer(status=529, headers=[("content-type", "application/json")], body={"type": "error", "error": {"type": "overloaded_error"}})


WAITS = {"head": silent, "body": stalled, "back-off": overloaded}
"""The three places in which a call waits, each with the answer that keeps it there."""


def echo(request: RecordedRequest) -> Answer:
    """Answers with the caller's own words."""
    return anthropic_stream(request.json()["messages"][0]["content"], pieces=7)


def run(library: str, main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function under asyncio or trio."""
    if library == "trio":
        return trio.run(main)

    async def as_coroutine() -> T:
        return await main()

    return asyncio.run(as_coroutine())


async def in_thread(library: str, function: Callable[[], T]) -> T:
    """Run what blocks beside the loop."""
    return await (trio.to_thread.run_sync(function) if library == "trio" else asyncio.to_thread(function))


# ---- what a process holds


def sockets() -> int:
    """Sockets that this process has open."""
    count = 0
    for descriptor in _DESCRIPTORS.iterdir():
        with suppress(FileNotFoundError):  # the folder's own
            count += str(descriptor.readlink()).startswith("socket:")
    return count


needs_proc = pytest.mark.skipif(not _DESCRIPTORS.is_dir(), reason="counts sockets in /proc")


def holdings() -> Counter[str]:
    """Live objects by type, once there is nothing left to collect."""
    while gc.collect():
        pass
    return Counter(f"{type(thing).__module__}.{type(thing).__qualname__}" for thing in gc.get_objects())


COVERAGES_OWN = {"builtins.builtin_function_or_method", "builtins.method"} if sys.gettrace() is not None else set[str]()
"""While coverage is measured, its collector keeps a tracer for every thread that ever ran, with two of each of these."""


def grown(before: Counter[str], after: Counter[str], by: int) -> dict[str, int]:
    """The types of which there are at least `by` more than before."""
    more = {name: count - before[name] for name, count in after.items() if count - before[name] >= by}
    return {name: count for name, count in more.items() if name not in COVERAGES_OWN}


def threads() -> set[threading.Thread]:
    """The threads that run."""
    return set(threading.enumerate())
