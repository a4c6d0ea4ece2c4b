"""Many calls at once, and a consumer that is slower than the server. `bench/soak.py` does the same at full size, with faults."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman import Anthropic, Request
from dragoman.testing import Answer, WireServer, anthropic_events, anthropic_stream
from dragoman.testing.answer import Gate, Send, Wait
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.testing.connection import RecordedRequest
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

from .calls import ASK, connect, needs_proc, sockets

pytestmark = pytest.mark.usefixtures("each_transport")

STREAMS = 200


def text_for(number: int) -> str:
    """An answer of its own for each question: long, and not ASCII alone."""
    return f"{number}: " + "ein Wort, 言葉, 🦜 " * (5 + number % 20)


def answer_to(request: RecordedRequest) -> Answer:
    """The numbered answer that was asked for, cut into small chunks that split characters."""
    body = b"".join(anthropic_events(text_for(int(request.json()["messages"][0]["content"])), pieces=40))
    return Answer(headers=SSE_HEADERS, body=[body[at : at + 509] for at in range(0, len(body), 509)])


def test_two_hundred_streams_at_once_on_a_loop_have_every_byte_right() -> None:
    async def main(provider: Anthropic) -> list[str]:
        async def ask(number: int) -> str:
            async with provider.astream(Request(str(number))) as stream:
                return "".join([text async for text in stream.text()])

        texts = await asyncio.gather(*map(ask, range(STREAMS)))
        await provider.aclose()
        return texts

    with WireServer(answer_to) as server:
        assert asyncio.run(main(connect(server))) == [text_for(number) for number in range(STREAMS)]
        assert len(server.requests) == STREAMS


def test_two_hundred_streams_that_are_all_open_at_the_same_time() -> None:
    """None is finished before the last has begun."""
    gate = Gate()
    head, *rest = anthropic_events("Hello")

    async def main(provider: Anthropic, server: WireServer) -> None:
        calls = [asyncio.create_task(provider.acomplete(ASK)) for _ in range(STREAMS)]
        await asyncio.to_thread(gate.reached, STREAMS, 60)
        assert len(server.open_connections) == STREAMS
        gate.open()
        assert [(await call).text for call in calls] == ["Hello"] * STREAMS
        await provider.aclose()

    with WireServer(Answer(headers=SSE_HEADERS, body=[head, Wait(gate), *rest])) as server:
        asyncio.run(main(connect(server), server))


def test_streams_of_many_threads_have_every_byte_right() -> None:
    def ask(number: int) -> str:
        with provider.stream(Request(str(number))) as stream:
            return "".join(stream.text())

    with WireServer(answer_to) as server, connect(server) as provider, ThreadPoolExecutor(32) as pool:
        assert list(pool.map(ask, range(STREAMS))) == [text_for(number) for number in range(STREAMS)]
        assert len(server.connections) <= 2 * 32  # one for each thread, and room for one that was given up on a busy machine


@pytest.mark.parametrize("way", ["sync", "async"])
def test_more_calls_than_connections_wait_their_turn(way: str) -> None:
    options: dict[str, Any] = {"max_connections": 4, "trust_env": False}
    with WireServer(answer_to) as server:
        provider = connect(server, transport=HTTPX2Transport(**options), async_transport=AsyncHTTPX2Transport(**options))

        async def main() -> list[str]:
            found = await asyncio.gather(*(provider.acomplete(Request(str(number))) for number in range(60)))
            await provider.aclose()
            return [response.text for response in found]

        if way == "async":
            texts = asyncio.run(main())
        else:
            with ThreadPoolExecutor(16) as pool:
                texts = [found.text for found in pool.map(lambda number: provider.complete(Request(str(number))), range(60))]
            provider.close()
        assert texts == [text_for(number) for number in range(60)]
        assert len(server.connections) <= 4


# ---- a consumer that stops reading

PIECE = 64 * 1024
PIECES = 400
"""25 MB before the gate: far more than the buffers of two sockets hold."""


def flood(gate: Gate) -> Answer:
    """Much text, one delta per chunk, and a gate that the server comes to when it has got rid of nearly all."""
    head = anthropic_events("x")
    delta = head[3].replace(b'"text": "x"', b'"text": "' + b"x" * PIECE + b'"')
    assert len(delta) > PIECE
    return Answer(headers=SSE_HEADERS, body=[*head[:3], *[Send(delta)] * PIECES, Wait(gate), delta, *head[-3:]])


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_consumer_that_stops_reading_stops_the_server(way: str) -> None:
    """What is not asked for stays with the server; what is asked for comes, to the last byte."""
    gate = Gate()

    def not_passed() -> None:
        with pytest.raises(TimeoutError, match="did not reach the gate"):
            gate.reached(timeout=0.3)

    def passed() -> None:
        gate.reached()
        gate.open()

    async def main(provider: Anthropic) -> str:
        async with provider.astream(ASK) as stream:
            texts = stream.text()
            assert len(await anext(texts)) == PIECE
            await asyncio.to_thread(not_passed)  # the loop runs meanwhile, and could read on if it wanted to
            opening = asyncio.create_task(asyncio.to_thread(passed))
            rest = [text async for text in texts]
            await opening
        await provider.aclose()
        return "".join(rest)

    with WireServer(flood(gate)) as server, ThreadPoolExecutor(1) as pool:
        provider = connect(server)
        if way == "async":
            rest = asyncio.run(main(provider))
        else:
            with provider, provider.stream(ASK) as stream:
                texts = stream.text()
                assert len(next(texts)) == PIECE
                not_passed()
                opening = pool.submit(passed)
                rest = "".join(texts)
                opening.result()
        assert rest == "x" * (PIECE * PIECES)


def test_the_server_of_these_tests_does_not_wait_for_acknowledgements() -> None:
    with WireServer(anthropic_stream("Hello")) as server, connect(server) as provider:
        provider.complete(ASK)
        [connection] = server.connections
        sock = connection._transport.get_extra_info("socket")  # pyright: ignore[reportPrivateUsage]
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@needs_proc
def test_a_storm_of_failures_leaves_no_socket() -> None:
    from dragoman.errors import ProviderError
    from dragoman.testing.answer import Reset

    async def main(provider: Anthropic) -> None:
        ends = await asyncio.gather(*(provider.acomplete(ASK) for _ in range(STREAMS)), return_exceptions=True)
        assert all(isinstance(end, ProviderError) for end in ends)
        await provider.aclose()

    before = sockets()
    cut = Answer(headers=SSE_HEADERS, body=[*anthropic_events("Hello")[:4], Reset()])
    with WireServer(cut) as server:
        asyncio.run(main(connect(server)))
    assert sockets() == before
