"""`make bench-quick`: the shape of our own costs, without peers, in under a minute.

Everything is a ratio of two things measured side by side in this run, in CPU time, best of several rounds: absolute figures of a busy
machine mean nothing. What takes part over loopback reads from the mock server, which is a process of its own. Exits with 1 if a shape is
broken: not linear, too far from a bare decode or from the raw reader, more modules or a dearer import than allowed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["BENCH_TRANSPORT"] = "httpx2"
sys.path.insert(0, str(Path(__file__).parent))

from bare import decoder
from clients import ours, raw
from dragoman import Request
from dragoman.history import problems
from dragoman.wire.anthropic import AnthropicWire
from material import Answer, history, tools
from run import serving

ROUNDS = 7
CHUNK = 64 * 1024
LIMITS: dict[str, float] = {
    "codec / bare decode, 64 KiB per read": 5.0,
    "codec / bare decode, one event per read": 10.0,
    "text, 5 times the deltas": 10.0,
    "tool input, 5 times the fragments": 10.0,
    "blocks, 5 times as many": 10.0,
    "history, 5 times as long: validate and encode": 10.0,
    "concurrent streams, 5 times as many": 10.0,
    "one event per read, httpx2 / raw reader": 12.0,
    "one event per read, direct / raw reader": 4.0,
    "calls of two deltas, direct / httpx2": 0.9,
    "full speed, sync, direct / raw reader": 6.0,
    "full speed, async, direct / raw reader": 6.0,
    "request of 1.1 MB / its bare JSON encoding": 10.0,
    "modules after import": 200.0,
    "import / import of asyncio, ssl and json": 1.5,
    "dragoman --help / a bare typer app": 1.5,
}
"""What must hold. Five times the work costs 5 if it is linear, 25 if quadratic; the rest are yardsticks that any machine has."""

TYPER_APP = """
import typer
app = typer.Typer(help="An app.")
inner = typer.Typer(help="More.")
app.add_typer(inner, name="inner")
def add(where, name):
    @where.command(name)
    def command(what: str = typer.Argument("", help="what"), how: str = typer.Option("", help="how"), loud: bool = False) -> None:
        "Do something."
for name in ("one", "two", "three", "four"):
    add(app, name)
    add(inner, name)
app(["--help"])
"""


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def interleaved(*works: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """The best CPU time of each, the rounds taking turns."""
    times = [[cpu(work) for work in works] for _ in range(rounds)]
    return [min(each) for each in zip(*times, strict=True)]


def over(numerator: Callable[[], object], denominator: Callable[[], object], rounds: int = ROUNDS) -> float:
    """How many times the cost."""
    above, below = interleaved(numerator, denominator, rounds=rounds)
    return above / below


def read_at(data: bytes, size: int = CHUNK) -> list[bytes]:
    """The bytes as reads bring them."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def folds(answer: Answer) -> Callable[[], object]:
    """Bytes to the final response, checked once."""
    chunks = read_at(b"".join(answer.events()))
    assert ours.codec(chunks) == answer.content()
    return lambda: ours.codec(chunks)


def codec(found: dict[str, float]) -> float:
    """Against a bare typed decode; returns microseconds per delta."""
    answer = Answer("text", 20_000)
    events, payloads, decode = answer.events(), answer.payloads(), decoder()
    chunks = read_at(b"".join(events))
    bare, whole, single = interleaved(
        lambda: [decode(payload) for payload in payloads], lambda: ours.codec(chunks), lambda: ours.codec(events)
    )
    found["codec / bare decode, 64 KiB per read"] = whole / bare
    found["codec / bare decode, one event per read"] = single / bare
    return whole / answer.count * 1e6


def many_blocks(count: int) -> Callable[[], object]:
    """An answer of so many blocks of one delta each."""
    events = Answer("text", 1).events()
    head, block, tail = events[:1], [events[1], events[3], events[4]], events[5:]
    numbered = [frame.replace(b'"index":0', b'"index":%d' % n) for n in range(count) for frame in block]
    chunks = read_at(b"".join([*head, *numbered, *tail]))
    return lambda: ours.codec(chunks)


def request_of(messages: int, text: int = 200) -> Request:
    """A conversation with tool calls."""
    turns, offered = ours.conversation(history(messages, text), tools())
    return Request(turns, model=Answer("text", 1).model, tools=offered)


def prepares(request: Request) -> Callable[[], object]:
    """Validate and write a request."""
    wire = AnthropicWire()
    assert not problems(request, wire)
    return lambda: (problems(request, wire), wire.encode(request, stream=True))


def linear(found: dict[str, float]) -> None:
    """Five times the work against once."""
    found["text, 5 times the deltas"] = over(folds(Answer("text", 50_000)), folds(Answer("text", 10_000)))
    found["tool input, 5 times the fragments"] = over(folds(Answer("tool", 50_000)), folds(Answer("tool", 10_000)))
    found["blocks, 5 times as many"] = over(many_blocks(5_000), many_blocks(1_000))
    long, short = prepares(request_of(1_999)), prepares(request_of(399))
    found["history, 5 times as long: validate and encode"] = over(long, short)


def building(found: dict[str, float]) -> None:
    """A long request against msgspec writing the same JSON from dicts."""
    import msgspec

    request = request_of(999, 1_950)
    body = msgspec.json.decode(AnthropicWire().encode(request, stream=True).body)
    found["request of 1.1 MB / its bare JSON encoding"] = over(prepares(request), lambda: msgspec.json.encode(body))


def loopback(found: dict[str, float]) -> None:
    """Over the mock server: many streams at once, streams whose events come one at a time, and one at full speed."""
    with serving() as server, asyncio.Runner() as runner:
        floor = raw.Client(server.http)
        contestants: dict[str, Any] = {"httpx2": ours.Client(server.http)}
        os.environ["BENCH_TRANSPORT"] = "direct"
        contestants["direct"] = ours.Client(server.http)

        def streams(client: Any, answer: Answer, count: int) -> Callable[[], object]:
            async def all_at_once() -> None:
                for result in await asyncio.gather(*(client.astream(answer.model) for _ in range(count))):
                    assert client.check(result, answer)

            runner.run(all_at_once())  # connections are there
            return lambda: runner.run(all_at_once())

        paced(found, {"raw": floor, **contestants}, streams)
        direct, whole = contestants["direct"], Answer("text", 5_000)
        two = Answer("text", 2)
        through_httpx2, direct_calls = (
            lambda client=client: [client.stream(two.model) for _ in range(100)] for client in contestants.values()
        )
        found["calls of two deltas, direct / httpx2"] = over(direct_calls, through_httpx2)
        found["full speed, sync, direct / raw reader"] = over(lambda: direct.stream(whole.model), lambda: floor.stream(whole.model))
        found["full speed, async, direct / raw reader"] = over(streams(direct, whole, 1), streams(floor, whole, 1))
        short, client = Answer("text", 20), contestants["httpx2"]
        found["concurrent streams, 5 times as many"] = over(streams(client, short, 250), streams(client, short, 50), rounds=3)


def paced(found: dict[str, float], clients: dict[str, Any], streams: Callable[[Any, Answer, int], Callable[[], object]]) -> None:
    """100 streams, one event per 20 ms each. What a delta costs is the difference of two lengths: what a call costs, whatever its length,
    would otherwise be half of what is measured in so short a run.
    """
    count, few, many = 100, 10, 45
    works = [streams(client, Answer("text", deltas, 8, 20), count) for client in clients.values() for deltas in (few, many)]
    times = iter(interleaved(*works, rounds=3))
    delta = {name: long - short for name, short, long in zip(clients, times, times, strict=True)}
    for name in ("httpx2", "direct"):
        found[f"one event per read, {name} / raw reader"] = delta[name] / delta["raw"]


def children(code: str) -> tuple[float, str]:
    """CPU seconds of a Python process that runs this, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


def starting(found: dict[str, float]) -> float:
    """Imports and the command line, best of several processes that take turns; returns milliseconds of `import dragoman`."""
    codes = {
        "bare": "pass",
        "import": "import dragoman",
        "yardstick": "import asyncio, ssl, json",
        "help": "import sys; sys.argv = ['dragoman', '--help']; from dragoman.cli import main; main()",
        "typer": TYPER_APP,
    }
    for code in codes.values():
        children(code)  # writes the bytecode
    rounds = [{name: children(code)[0] for name, code in codes.items()} for _ in range(ROUNDS)]
    best = {name: min(times[name] for times in rounds) for name in codes}
    found["modules after import"] = float(children("import dragoman, sys; print(len(sys.modules))")[1])
    found["import / import of asyncio, ssl and json"] = (best["import"] - best["bare"]) / (best["yardstick"] - best["bare"])
    found["dragoman --help / a bare typer app"] = best["help"] / best["typer"]
    return (best["import"] - best["bare"]) * 1e3


def main() -> int:
    """Measure, print, and say with the exit code whether all holds."""
    began = time.monotonic()
    found: dict[str, float] = {}
    micros = codec(found)
    linear(found)
    building(found)
    loopback(found)
    milliseconds = starting(found)
    broken = [name for name, value in found.items() if value > LIMITS[name]]
    for name, limit in LIMITS.items():
        if name in found:
            print(f"{'BROKEN ' if name in broken else ''}{name:48} {found[name]:8.2f}   at most {limit:g}")
    print(f"(codec {micros:.2f} µs of CPU per delta, import {milliseconds:.0f} ms, in this run of {time.monotonic() - began:.0f} s)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
