"""An answer on a loop that is polled: what comes while it is awaited is handed over with the waking, and counts as read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import ConnectionFailedError
from dragoman.testing import Answer, Gate, Wait, WireServer
from dragoman.transport.direct import AsyncDirectTransport
from dragoman.transport.direct.loop_exchange import LoopExchange
from tests.transport.calls import request_to, run, running

LOOPS = pytest.mark.parametrize("library", ["asyncio", "uvloop"])


def paused(**settings: Any) -> tuple[Gate, Answer]:
    """An answer of two parts, and what keeps the second back."""
    gate = Gate()
    return gate, Answer(body=[b"ab", Wait(gate), b"c"], **settings)


async def waiting(transport: AsyncDirectTransport, server: WireServer) -> LoopExchange:
    """An answer whose first part was read, and which has nothing yet."""
    response = await transport.send(request_to(server), running())
    assert isinstance(response, LoopExchange)
    data = b""
    while data != b"ab":
        piece = response.take()
        data += (await response.arrival or b"") if piece is None else piece
    assert response.take() is None
    return response


@LOOPS
def test_bytes_that_are_awaited_come_with_the_waking(library: str) -> None:
    async def main() -> None:
        transport = AsyncDirectTransport()
        response = await waiting(transport, server)
        gate.open()
        assert await response.arrival == b"c"
        while (end := response.take()) is None:
            assert await response.arrival is None  # the end alone
        assert end == b""
        await transport.close()

    gate, answer = paused()
    with WireServer([answer]) as server:
        run(library, main)


@LOOPS
def test_packed_bytes_wake_and_are_then_taken(library: str) -> None:
    async def main() -> None:
        transport = AsyncDirectTransport()
        response = await waiting(transport, server)
        gate.open()
        rest = b""
        while (piece := response.take()) != b"":
            assert piece is not None or await response.arrival is None
            rest += piece or b""
        assert rest == b"c"
        await transport.close()

    gate, answer = paused(gzip=True)
    with WireServer([answer]) as server:
        run(library, main)


@LOOPS
def test_a_connection_is_used_again_when_the_end_came_with_the_waking(library: str) -> None:
    async def main() -> None:
        transport = AsyncDirectTransport()
        for gate in gates:
            response = await waiting(transport, server)
            gate.open()
            assert await response.arrival == b"c"
            await response.close()
        await transport.close()
        assert len(server.connections) == 1

    pairs = [paused(framing="length") for _ in range(3)]
    gates = [gate for gate, _ in pairs]
    with WireServer([answer for _, answer in pairs]) as server:
        run(library, main)


@LOOPS
def test_an_answer_that_is_closed_while_another_task_awaits_it_is_cut(library: str) -> None:
    async def main() -> None:
        transport = AsyncDirectTransport()
        response = await waiting(transport, server)
        reader = asyncio.ensure_future(anext(response))
        await asyncio.sleep(0)
        await response.close()
        [result] = await asyncio.gather(reader, return_exceptions=True)
        assert isinstance(result, ConnectionFailedError), "anything else would look like the end of the body"
        await transport.close()

    _, answer = paused()
    with WireServer([answer]) as server:
        run(library, main)


@LOOPS
def test_an_answer_that_is_closed_between_the_bytes_and_the_waking_is_cut(library: str) -> None:
    async def main() -> None:
        transport = AsyncDirectTransport()
        response = await waiting(transport, server)
        reader = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        connection: Any = response._connection  # pyright: ignore[reportPrivateUsage]
        chunk = b"1\r\nc\r\n"
        connection.get_buffer(-1)[: len(chunk)] = chunk
        connection.buffer_updated(len(chunk))
        await response.close()
        [result] = await asyncio.gather(reader, return_exceptions=True)
        assert isinstance(result, ConnectionFailedError), "anything else would look like the end of the body"
        await transport.close()

    _, answer = paused()
    with WireServer([answer]) as server:
        run(library, main)
