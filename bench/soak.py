"""`python bench/soak.py`: a bad day at full size. Load, faults, callers that leave, a consumer that stops; and what is left afterwards.

The server runs in a process of its own, so that what is counted here is the client's. Each part checks its answers and prints what it
measured: sockets, threads, objects and memory before and after, and the time from leaving a stream to the moment when the server sees its
connection end. Times depend on the machine and are printed only; what must hold is checked, and the exit status is 1 if it does not.

    python bench/soak.py                 all of it, a few minutes
    python bench/soak.py --scale 0.05    a twentieth, for a look
    python bench/soak.py --transport direct
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from dragoman import Anthropic, Request, RetryPolicy, TextDelta, Timeouts
from dragoman.errors import (
    ConnectionFailedError,
    IncompleteStreamError,
    OverloadedError,
    ProtocolError,
    ProviderError,
    RequestTimeoutError,
    ServerError,
)
from dragoman.testing import Answer, WireServer, anthropic_error, anthropic_events, sse
from dragoman.testing.answer import Close, Reset, Send, Stall
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.testing.connection import RecordedRequest
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

AIM_MS = 50
"""Milliseconds in which the server should see that a caller has left, at the 99th percentile."""
PAGE = resource.getpagesize()

FAULTS: dict[str, type[ProviderError] | None] = {
    "good": None,
    "bytes": None,
    "busy-once": None,
    "busy-in-stream-once": None,
    "busy": OverloadedError,
    "cut": IncompleteStreamError,
    "reset": ConnectionFailedError,
    "error-event": ServerError,
    "page": ProtocolError,
    "rubbish": ProtocolError,
    "stall": RequestTimeoutError,
}
"""What may go wrong with a call, and the error that it must end in; None: a right answer all the same."""


TRANSPORTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "httpx2": (HTTPX2Transport, AsyncHTTPX2Transport),
    "direct": (DirectTransport, AsyncDirectTransport),
}
transport = "httpx2"
"""The kind that is under load: `--transport`."""


# ---- the server


def text_for(number: int) -> str:
    """A text of its own for each call, not ASCII alone."""
    return f"{number}: " + "ein Wort, 言葉, 🦜 " * (3 + number % 40)


class Script:
    """Answers a request that says `fault number` as this says; remembers who has been refused once."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def __call__(self, request: RecordedRequest) -> Answer:
        asked = request.json()["messages"][0]["content"]
        fault, number = asked.split()
        events = anthropic_events(text_for(int(number)), pieces=30)
        body = b"".join(events)
        again = asked in self.refused
        self.refused.add(asked)
        match fault:
            case "busy" | "busy-once" if fault == "busy" or not again:
                return anthropic_error(529, "overloaded_error")
            case "busy-in-stream-once" if not again:
                error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
                return Answer(headers=SSE_HEADERS, body=[events[0], error])
            case "bytes":
                return Answer(headers=SSE_HEADERS, body=[body[at : at + 7] for at in range(0, len(body), 7)])
            case "cut":
                return Answer(headers=SSE_HEADERS, body=[*events[:9], Close()])
            case "reset":
                return Answer(headers=SSE_HEADERS, body=[*events[:9], Reset()])
            case "error-event":
                return Answer(
                    headers=SSE_HEADERS, body=[*events[:9], sse({"type": "error", "error": {"type": "api_error", "message": "x"}})]
                )
            case "page":
                return Answer(status=200, headers=[("content-type", "text/html")], body=b"<html>log in</html>")
            case "rubbish":
                return Answer(headers=SSE_HEADERS, body=[*events[:9], b"data: {not json\n\n"])
            case "stall":
                return Answer(headers=SSE_HEADERS, body=[*events[:9], Stall()])
            case "flood":
                delta = events[3].split(b'"text": "')[0] + b'"text": "' + b"x" * 60_000 + b'"}}\n\n'
                return Answer(headers=SSE_HEADERS, body=[*events[:3], *[Send(delta)] * 20_000, *events[-3:]])
            case _:
                return Answer(headers=SSE_HEADERS, body=events)


def serve() -> None:
    """The server's process: says where it is, and ends with its input."""
    more_files()
    with WireServer(Script()) as server:
        print(server.url, flush=True)
        sys.stdin.read()


@contextmanager
def elsewhere() -> Iterator[str]:
    """The server in a process of its own; its URL."""
    command = [sys.executable, str(Path(__file__)), "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().strip()
        finally:
            child.kill()


def more_files() -> None:
    """A thousand connections need as many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))


def connect(url: str, **settings: Any) -> Anthropic:
    blocking, on_a_loop = TRANSPORTS[transport]
    given: dict[str, Any] = {
        "timeouts": Timeouts(connect=60, first_byte=300, idle=300),
        "retry": RetryPolicy(base=0.01),
        "transport": blocking(trust_env=False),
        "async_transport": on_a_loop(trust_env=False),
    }
    return Anthropic(api_key="soak", base_url=url, model="claude-test-1", telemetry=None, **{**given, **settings})


# ---- what a process holds


def memory() -> float:
    """Resident memory, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def holds() -> dict[str, float]:
    """What can leak. What is found with a finalizer goes only with the collection after the one that found it."""
    while gc.collect():
        pass
    descriptors = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return {
        "sockets": sum(name.startswith("socket:") for name in descriptors),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
        "MB": round(memory(), 1),
    }


class Report:
    """Prints, and remembers whether all that must hold has held."""

    def __init__(self) -> None:
        self.broken: Counter[str] = Counter()

    def say(self, text: str) -> None:
        print(text, flush=True)

    def must(self, holds: bool, what: str) -> None:
        if not holds:
            self.broken[what] += 1
            if self.broken[what] == 1:
                self.say(f"  BROKEN: {what}")

    @contextmanager
    def part(self, title: str, *, objects: int = 2000) -> Iterator[None]:
        """A part of the day, with what the process held before and after; so many `objects` more are no leak."""
        self.say(title)
        before, began = holds(), time.monotonic()
        yield
        after = holds()
        shown = ", ".join(f"{name} {before[name]:g} → {after[name]:g}" for name in before)
        self.say(f"  {time.monotonic() - began:.1f} s; {shown}")
        for name, room in (("sockets", 0), ("threads", 0), ("objects", objects)):
            self.must(after[name] <= before[name] + room, f"{title}: {name} grew")


# ---- the parts


def at_once(report: Report, url: str, streams: int) -> None:
    """Many streams at the same time, on one loop."""

    async def main() -> list[str]:
        async with connect(url) as provider:

            async def ask(number: int) -> str:
                async with provider.astream(Request(f"bytes {number}")) as stream:
                    return "".join([text async for text in stream.text()])

            return await asyncio.gather(*map(ask, range(streams)))

    asyncio.run(connect_once(url))
    with report.part(f"{streams} streams at once, seven bytes at a time"):
        texts = asyncio.run(main())
        right = sum(text == text_for(number) for number, text in enumerate(texts))
        report.say(f"  {right} of {streams} right to the last byte")
        report.must(right == streams, "a stream was not right")


async def connect_once(url: str) -> None:
    """Load what is loaded once."""
    async with connect(url) as provider:
        await provider.acomplete(Request("good 0"))


def in_a_row(report: Report, url: str, calls: int) -> None:
    """Many calls, one after another."""
    with connect(url) as provider:
        for number in range(50):
            provider.complete(Request(f"good {number}"))
        with report.part(f"{calls} requests in a row"):
            for number in range(calls):
                if provider.complete(Request(f"good {number}")).text != text_for(number):
                    report.must(False, f"answer {number} was not right")


def faults(report: Report, url: str, calls: int) -> None:
    """Calls of which most go wrong, many at a time: right answers, or the error that fits."""
    random = Random(7)  # chance, not secrecy
    plan = [(random.choice(list(FAULTS)), number) for number in range(calls)]
    ends: Counter[str] = Counter()

    async def main(plan: list[tuple[str, int]]) -> None:
        async with connect(url) as provider:
            room = asyncio.Semaphore(100)

            async def ask(fault: str, number: int) -> None:
                expected = FAULTS[fault]
                timeouts = Timeouts(connect=60, first_byte=60, idle=0.5 if fault == "stall" else 60)  # a busy machine is no fault
                async with room:
                    try:
                        text = (await provider.acomplete(Request(f"{fault} {number}"), timeouts=timeouts)).text
                    except ProviderError as error:
                        ends[type(error).__name__] += 1
                        report.must(type(error) is expected, f"{fault}: {type(error).__name__}")
                        report.must(
                            bool(error.partial and error.partial.text) == (fault in PARTIAL) or fault == "reset", f"{fault}: partial"
                        )
                    else:
                        ends["right answers"] += 1
                        report.must(expected is None and text == text_for(number), f"{fault}: no error, or a wrong answer")

            await asyncio.gather(*(ask(fault, number) for fault, number in plan))

    asyncio.run(main([(fault, -1) for fault in FAULTS]))  # once each, so that what is loaded once is there
    ends.clear()
    with report.part(f"{calls} calls with faults, a hundred at a time"):
        asyncio.run(main(plan))
        report.say("  " + ", ".join(f"{count} {name}" for name, count in ends.most_common()))


PARTIAL = ("cut", "error-event", "rubbish", "stall")
"""Faults after which something of the answer is there."""


def leaving(report: Report, times: int) -> None:
    """How soon the server sees that a caller has left. Its server is in this process: one clock for both ends."""
    events = anthropic_events("Hello", ping=False)
    ways: dict[str, Callable[[Anthropic, Callable[[], None]], None]] = {"close": _close, "cancel": _cancel}
    with WireServer(Answer(headers=SSE_HEADERS, body=[*events[:4], Stall()])) as server:
        for name, leave in ways.items():
            delays: list[float] = []
            with connect(server.url) as provider:
                for index in count(len(server.connections)):
                    if len(delays) == times:
                        break
                    left: list[float] = []
                    leave(provider, lambda left=left: left.append(time.monotonic()))  # type: ignore[misc]
                    server.wait_closed(index)
                    delays.append((time.monotonic() - left[0]) * 1e3)
            percent = statistics.quantiles(delays, n=100)
            report.say(
                f"{times} streams left by {name}: the server sees it after {statistics.median(delays):.1f} ms (median), "
                f"{percent[98]:.1f} ms (99th percentile, aim {AIM_MS}), {max(delays):.1f} ms (longest)"
            )


def _close(provider: Anthropic, leaving: Callable[[], None]) -> None:
    with provider.stream(Request("x")) as stream:
        next(event for event in stream if isinstance(event, TextDelta))
        leaving()


def _cancel(provider: Anthropic, leaving: Callable[[], None]) -> None:
    async def main() -> None:
        reached = asyncio.Event()

        async def consume() -> None:
            async for event in provider.aevents(Request("x")):
                if isinstance(event, TextDelta):
                    reached.set()

        task = asyncio.create_task(consume())
        await reached.wait()
        leaving()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())


def standing_still(report: Report, url: str, seconds: float) -> None:
    """A consumer that stops reading a stream of more than a gigabyte: what does not fit into two sockets stays with the server."""

    async def main() -> float:
        async with connect(url) as provider, provider.astream(Request("flood 1")) as stream:
            texts = stream.text()
            for _ in range(20):
                await anext(texts)
            before = memory()
            await asyncio.sleep(seconds)
            return memory() - before

    with connect(url) as provider, provider.stream(Request("flood 1")) as stream:
        texts = stream.text()
        for _ in range(20):
            next(texts)
        before = memory()
        time.sleep(seconds)
        grown = {"blocking": memory() - before, "on a loop": asyncio.run(main())}
    for name, megabytes in grown.items():
        report.say(f"a consumer that stops for {seconds:g} s, {name}: memory grew by {megabytes:.1f} MB")
        report.must(megabytes < 8, f"a consumer that stops ({name}): memory grew by {megabytes:.1f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of the full load")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--transport", choices=TRANSPORTS, default=transport, help="what carries the calls")
    given = parser.parse_args()
    globals()["transport"] = given.transport
    if given.serve:
        serve()
        return 0
    more_files()
    report, scale = Report(), given.scale
    with elsewhere() as url:
        at_once(report, url, max(10, int(1000 * scale)))
        in_a_row(report, url, max(10, int(10_000 * scale)))
        faults(report, url, max(20, int(3000 * scale)))
        standing_still(report, url, 5 * scale)
    leaving(report, max(10, int(1000 * scale)))
    report.say(f"broken: {report.broken.total()} times" if report.broken else "all held")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
