"""One client in a process of its own, doing one job per line of input: `python bench/worker.py clients.sdk http://127.0.0.1:…`.

A job is a JSON object, `{"do": …, "answer": [kind, count, size, pace], …}`; the reply is one line of JSON with the CPU seconds (user and
system) and wall seconds of this process and its resident memory (bytes) before, and at its peak. Every answer is checked, outside of the
measured time; a wrong one ends the process.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from material import Answer

CHUNK = 64 * 1024


def resident(field: str = "VmRSS") -> int:
    """Bytes; `VmHWM` is the peak since `forget_peak`. 0 where there is no /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith(field + ":"))


def forget_peak() -> None:
    """Begin a new peak."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


class Worker:
    """A client and the jobs that it can be given. A method's name is the job's `do`."""

    def __init__(self, module: str, url: str) -> None:
        began = time.process_time()
        clients = importlib.import_module(module)
        imported = time.process_time()
        self.client: Any = clients.Client(url)
        self.started = {"import": imported - began, "client": time.process_time() - imported, "modules": len(sys.modules)}
        self._conversation: Any = None
        loops: Callable[[], asyncio.AbstractEventLoop] | None = None
        if os.environ.get("BENCH_UVLOOP"):
            import uvloop  # type: ignore[import-not-found]

            loops = uvloop.new_event_loop
        self._runner = asyncio.Runner(loop_factory=loops)

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Do one job and measure it."""
        answer = Answer(*job["answer"])
        ready = getattr(self, "ready_" + job["do"], None)
        if ready is not None:
            ready(job, answer)
        gc.collect()
        before = resident()
        forget_peak()
        wall, cpu = time.perf_counter(), time.process_time()
        results = getattr(self, job["do"])(job, answer)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        reply: dict[str, Any] = {"cpu": cpu, "wall": wall, "before": before, "peak": resident("VmHWM")}
        if isinstance(results, dict):
            return reply | results
        for result in results:
            if not self.client.check(result, answer):
                raise SystemExit(f"a wrong answer to {job}: {str(result)[:100]!r}")
        return reply

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What the work gives. The task itself gives nothing: `Runner.run` makes a repr of its result on the way, however long it is."""
        results: list[Any] = []

        async def kept() -> None:
            results.append(await work)

        self._runner.run(kept())
        return results[0]

    # ---- jobs

    def stream(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """Streams, one after another."""
        return [self.client.stream(answer.model) for _ in range(job.get("times", 1))]

    def astream(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """Streams on the event loop, `streams` at once."""

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(self.client.astream(answer.model) for _ in range(job.get("streams", 1))))

        return [result for _ in range(job.get("times", 1)) for result in self._await(all_at_once())]

    def whole(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """Streams read by the call that hands out the final response alone, where there is one."""
        read = getattr(self.client, "whole", self.client.stream)
        return [read(answer.model) for _ in range(job.get("times", 1))]

    def timed(self, job: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Seconds to the first delta and to the whole answer of each of `times` requests."""
        firsts: list[float] = []
        wholes: list[float] = []
        for _ in range(job["times"]):
            began = time.perf_counter()
            first, whole = self.client.timed(answer.model)
            firsts.append(first - began)
            wholes.append(whole - began)
        return {"first": firsts, "whole": wholes}

    def atimed(self, job: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """As `timed`."""

        async def measured() -> dict[str, Any]:
            firsts: list[float] = []
            wholes: list[float] = []
            for _ in range(job["times"]):
                began = time.perf_counter()
                first, whole = await self.client.atimed(answer.model)
                firsts.append(first - began)
                wholes.append(whole - began)
            return {"first": firsts, "whole": wholes}

        return self._await(measured())

    def complete(self, job: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """Seconds to a whole answer that does not stream."""
        wholes: list[float] = []
        for _ in range(job["times"]):
            began = time.perf_counter()
            self.client.complete(answer.model)
            wholes.append(time.perf_counter() - began)
        return {"whole": wholes}

    def ready_send(self, job: dict[str, Any], answer: Answer) -> None:
        """The history in the client's own types is there before the clock runs."""
        del job, answer
        self._conversation = self._conversation or self.client.conversation()

    ready_build = ready_send

    def send(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """The long request, sent."""
        return [self.client.send(self._conversation, answer.model) for _ in range(job["times"])]

    def build(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """The long request, built and written but not sent."""
        return [self.client.build(self._conversation, answer.model) for _ in range(job["times"])]

    def ready_codec(self, job: dict[str, Any], answer: Answer) -> None:
        """The bytes, cut as they would be read: `one` event per read, or 64 KiB."""
        events = answer.events()
        data = b"".join(events)
        self._chunks = events if job.get("one") else [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]

    def codec(self, job: dict[str, Any], answer: Answer) -> list[Any]:
        """Bytes to the final answer, without a network."""
        del answer
        return [self.client.codec(self._chunks) for _ in range(job.get("times", 1))]

    def ready_over_bare(self, job: dict[str, Any], answer: Answer) -> None:
        """The bytes, the JSON of the deltas, and a typed decoder as the yardstick of the codec."""
        self.ready_codec(job, answer)
        from bare import decoder

        self._payloads = answer.payloads()
        self._decode = decoder()

    def over_bare(self, job: dict[str, Any], answer: Answer) -> dict[str, Any]:
        """How many times a bare msgspec decode of each delta the codec takes, in turns."""
        del answer
        decode, payloads = self._decode, self._payloads
        spent = {"bare": 0.0, "codec": 0.0}
        for _ in range(job["times"]):
            began = time.process_time()
            for payload in payloads:
                decode(payload)
            decoded = time.process_time()
            self.client.codec(self._chunks)
            spent["bare"] += decoded - began
            spent["codec"] += time.process_time() - decoded
        return {"ratio": spent["codec"] / spent["bare"]}


def main() -> None:
    """Say what starting cost, then do what comes."""
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # some libraries print
    worker = Worker(sys.argv[1], sys.argv[2])
    print(json.dumps(worker.started), file=replies)
    for line in sys.stdin:
        print(json.dumps(worker.run(json.loads(line))), file=replies)


if __name__ == "__main__":
    main()
