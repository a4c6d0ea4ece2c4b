"""An answer on a loop that is polled: what comes while it is awaited is handed over with the waking, and counts as read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.errors import ConnectionFailedError
from dragoman.testing import Answer, Gate, Wait, WireServer
from dragoman.transport import Arrived
from dragoman.transport.direct import AsyncDirectTransport
from dragoman.transport.direct.loop_exchange import LoopExchange
from tests.transport.calls import request_to, run, running

LOOPS = pytest.mark.parametrize("library", ["asyncio", "uvloop"])


async def next_of(response: LoopExchange) -> bytes:
    """As a driver gets it."""
    while (data := response.take()) is None:
        arrived = await response.arrival
        if arrived is not None:
            return arrived.data
    return data


def waiting(library: str, use: Callable[[LoopExchange, Gate], Awaitable[object]], *, times: int = 1, **settings: Any) -> int:
    """Use answers, one after another, of which `ab` was read, while nothing is there and `c` will come when the gate opens; how many
    connections it took.
    """

    async def main() -> None:
        transport = AsyncDirectTransport()
        for gate in gates:
            response = await transport.send(request_to(server), running())
            assert isinstance(response, LoopExchange)
            read = b""
            while read != b"ab":
                read += await next_of(response)
            assert response.take() is None
            await use(response, gate)
        await transport.close()

    gates = [Gate() for _ in range(times)]
    with WireServer([Answer(body=[b"ab", Wait(gate), b"c"], **settings) for gate in gates]) as server:
        run(library, main)
        return len(server.connections)


def bring(response: LoopExchange, piece: bytes) -> None:
    """Bytes come now, and the task that awaits them has not run yet."""
    connection: Any = response._connection  # pyright: ignore[reportPrivateUsage]
    chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
    connection.get_buffer(-1)[: len(chunk)] = chunk
    connection.buffer_updated(len(chunk))


@LOOPS
def test_bytes_that_are_awaited_come_with_the_waking(library: str) -> None:
    async def use(response: LoopExchange, gate: Gate) -> None:
        gate.open()
        assert await response.arrival == Arrived(b"c")
        while (end := response.take()) is None:
            assert await response.arrival is None  # the end alone
        assert end == b""

    waiting(library, use)


@LOOPS
def test_packed_bytes_wake_and_are_then_taken(library: str) -> None:
    async def use(response: LoopExchange, gate: Gate) -> None:
        gate.open()
        rest = b""
        while (piece := response.take()) != b"":
            assert piece is not None or await response.arrival is None
            rest += piece or b""
        assert rest == b"c"

    waiting(library, use, gzip=True)


@LOOPS
def test_a_connection_is_used_again_when_the_end_came_with_the_waking(library: str) -> None:
    async def use(response: LoopExchange, gate: Gate) -> None:
        gate.open()
        assert await response.arrival == Arrived(b"c")
        await response.close()

    assert waiting(library, use, times=3, framing="length") == 1


@LOOPS
@pytest.mark.parametrize("brought", [False, True])
def test_an_answer_that_another_task_closes_is_cut_for_the_one_that_awaits_it(library: str, brought: bool) -> None:
    async def use(response: LoopExchange, gate: Gate) -> None:
        del gate
        reader = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        if brought:
            bring(response, b"c")
        await response.close()
        [result] = await asyncio.gather(reader, return_exceptions=True)
        assert isinstance(result, ConnectionFailedError), "anything else would look like the end of the body"

    waiting(library, use)


@LOOPS
def test_no_repr_of_a_task_shows_what_has_come(library: str) -> None:
    async def use(response: LoopExchange, gate: Gate) -> None:
        del gate
        reader = asyncio.ensure_future(anext(response))
        await asyncio.sleep(0)
        bring(response, b"s3cret")
        assert "<6 bytes>" in repr(response.arrival)
        assert "s3cret" not in repr(reader) + repr(response.arrival)
        assert await reader == b"s3cret"
        await response.close()

    waiting(library, use)
