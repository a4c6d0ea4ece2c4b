"""Hundreds of calls at once, each ended in another way at another moment: afterwards no place in the pool is lost and nothing is open."""

from __future__ import annotations

import asyncio
import contextlib
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Timer

import pytest

from dragoman.errors import ProviderError
from dragoman.testing import Answer, Close, Delay, Raw, Repeat, Reset, Stall, WireServer
from dragoman.testing.certificate import Authority
from dragoman.testing.connection import RecordedRequest
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from tests.transport.calls import request_to, run, running

ANSWERS = [
    Answer(body=b"whole"),
    Answer(body=[b"in", b"pieces"]),
    Answer(body=b"whole", after="close"),
    Answer(body=b"whole", after="close_silently"),
    Answer(body=b"whole", after="drop_next"),
    Answer(body=b"whole", after="reset"),
    Answer(body=b"until the end", framing="close"),
    Answer(body=[b"x", Repeat(b"y", every=0.005, times=5)]),
    Answer(before=[Delay(0.01)], body=b"late"),
    Answer(body=[b"x", Stall()]),
    Answer(before=[Stall()]),
    Answer(body=[b"x", Close()]),
    Answer(body=[b"x", Reset()]),
    Answer(body=[b"x", Raw(b"zz\r\n"), Stall()]),
    Answer(gzip=True, body=[b"packed", b"twice"]),
    Answer(headers=[("content-encoding", "gzip")], body=b"not packed"),
]
PLACES = 30
CALLS = 300


def answer(request: RecordedRequest) -> Answer:
    return ANSWERS[int(request.body) % len(ANSWERS)]


WHOLE = b"%d" % (CALLS * len(ANSWERS))
"""The body of a request for the first of the answers."""


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_on_a_loop(library: str, tls: bool) -> None:
    rng = random.Random(library)
    authority = Authority()

    async def call(transport: AsyncDirectTransport, number: int, places: asyncio.Semaphore) -> None:
        clocks = running(idle=0.05, first_byte=0.05, total=1)
        loop = asyncio.get_running_loop()
        way = rng.choice(["read", "read", "leave", "abort", "cancel", "complete"])
        async with places:
            task = loop.create_task(one(transport, number, clocks, way))
            if way == "abort":
                loop.call_later(rng.random() * 0.03, clocks.abort)
            elif way == "cancel":
                loop.call_later(rng.random() * 0.03, task.cancel)
            await asyncio.wait([task])
            if not task.cancelled():
                assert isinstance(task.exception(), ProviderError | None), task.exception()

    async def one(transport: AsyncDirectTransport, number: int, clocks: object, way: str) -> None:
        response = await transport.send(request_to(server, b"%d" % number), clocks)  # type: ignore[arg-type]
        try:
            async for _ in response:
                if way in ("leave", "complete"):
                    clocks.complete = way == "complete"  # type: ignore[attr-defined]
                    break
        finally:
            await response.close()

    async def main() -> None:
        transport = AsyncDirectTransport(max_connections=PLACES, verify=authority.client_context())
        places = asyncio.Semaphore(PLACES)
        await asyncio.gather(*(call(transport, number, places) for number in range(CALLS)))
        responses = [await transport.send(request_to(server, WHOLE), running()) for _ in range(PLACES)]
        assert [await response.read() for response in responses] == [b"whole"] * PLACES
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await transport.close()
        await asyncio.to_thread(partial(server.wait_for, lambda: not server.open_connections))

    with WireServer(answer, tls=authority.server_context() if tls else None) as server:
        run(library, main)


def test_in_threads() -> None:
    rng = random.Random(0)
    transport = DirectTransport(max_connections=PLACES)

    def call(number: int) -> None:
        clocks = running(idle=0.05, first_byte=0.05, total=1)
        way = rng.choice(["read", "read", "leave", "abort", "complete"])
        timer = Timer(rng.random() * 0.03, clocks.abort)
        if way == "abort":
            timer.start()
        with contextlib.suppress(ProviderError):
            response = transport.send(request_to(server, b"%d" % number), clocks)
            try:
                for _ in response:
                    if way in ("leave", "complete"):
                        clocks.complete = way == "complete"
                        break
            finally:
                response.close()
        if way == "abort":
            timer.join()

    with WireServer(answer) as server:
        with ThreadPoolExecutor(PLACES) as threads:
            assert list(threads.map(call, range(CALLS))) == [None] * CALLS
        responses = [transport.send(request_to(server, WHOLE), running()) for _ in range(PLACES)]
        assert [response.read() for response in responses] == [b"whole"] * PLACES
        transport.close()
        server.wait_for(lambda: not server.open_connections)
