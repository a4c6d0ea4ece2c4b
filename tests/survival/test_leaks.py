"""Nothing is left behind: after a thousand calls of any kind there are as many sockets, tasks, threads and objects as before.

Counted, never timed. A few calls go first, so that what is made once (pools, caches, imports) is there; after that a count may grow by
what the collector has not seen yet, not by anything that goes with the number of calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import trio

from dragoman import Anthropic, MessageStop, Request, RetryPolicy, ServerError, TextDelta

from .calls import ASK, PATIENT, connect, grown, holdings, in_thread, needs_proc, run, sockets, threads
from .elsewhere import Elsewhere, elsewhere

pytestmark = [needs_proc, pytest.mark.usefixtures("each_transport")]

WARM_UP = 20
CALLS = 1000
FEWER = 200
"""Where the way to the end differs only a little."""
BATCH = 50


def spare(calls: int) -> int:
    """A type that grew by so many objects grew with the calls."""
    return calls // 2


Sync = Callable[[Anthropic], None]
Async = Callable[[Anthropic], Awaitable[None]]


def leave_at_text(provider: Anthropic) -> None:
    with provider.stream(ASK) as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                break


def close_after_the_first_event(provider: Anthropic) -> None:
    stream = provider.events(ASK)
    next(stream)
    stream.close()


async def aleave_at_text(provider: Anthropic) -> None:
    async with provider.astream(ASK) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break


async def cancel_in_the_body(provider: Anthropic) -> None:
    reached = asyncio.Event()

    async def consume() -> None:
        async for event in provider.aevents(ASK):
            if isinstance(event, TextDelta):
                reached.set()

    task = asyncio.create_task(consume())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_in_the_body_under_trio(provider: Anthropic) -> None:
    with trio.CancelScope() as scope:
        async for event in provider.aevents(ASK):
            if isinstance(event, TextDelta):
                scope.cancel()
    assert scope.cancelled_caught


def test_a_thousand_streams_left_early_leave_nothing() -> None:
    with elsewhere("stalled") as server, connect(server) as provider:
        for _ in range(WARM_UP):
            leave_at_text(provider)
        server.wait_closed()
        before, open_before, threads_before = holdings(), sockets(), threads()
        for number in range(CALLS):
            (leave_at_text if number % 2 else close_after_the_first_event)(provider)
        server.wait_closed()
        assert sockets() <= open_before
        assert threads() == threads_before
        assert server.requests == WARM_UP + CALLS
        assert grown(before, holdings(), spare(CALLS)) == {}


@pytest.mark.parametrize(
    ("library", "leave"),
    [("asyncio", aleave_at_text), ("asyncio", cancel_in_the_body), ("trio", aleave_at_text), ("trio", cancel_in_the_body_under_trio)],
)
def test_a_thousand_async_streams_left_early_leave_nothing(library: str, leave: Async) -> None:
    async def many(provider: Anthropic, count: int) -> None:
        if library == "trio":
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(leave, provider)
        else:
            await asyncio.gather(*(leave(provider) for _ in range(count)))

    async def main(provider: Anthropic, server: Elsewhere) -> None:
        await many(provider, WARM_UP)
        await in_thread(library, server.wait_closed)
        before, open_before = holdings(), sockets()
        tasks_before = len(asyncio.all_tasks()) if library == "asyncio" else 0
        for _ in range(CALLS // BATCH):
            await many(provider, BATCH)
        await in_thread(library, server.wait_closed)
        if library == "asyncio":
            assert len(asyncio.all_tasks()) == tasks_before
        assert sockets() <= open_before
        assert grown(before, holdings(), spare(CALLS)) == {}
        await provider.aclose()

    with elsewhere("stalled") as server:
        provider = connect(server)
        run(library, lambda: main(provider, server))
        assert server.requests == WARM_UP + CALLS


def test_a_thousand_calls_cancelled_before_their_head_leave_nothing() -> None:
    async def main(provider: Anthropic, server: Elsewhere) -> None:
        async def many(count: int) -> None:
            seen = server.requests
            tasks = [asyncio.create_task(provider.acomplete(ASK)) for _ in range(count)]
            await asyncio.to_thread(server.wait_requests, seen + count)
            for task in tasks:
                task.cancel()
            assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*tasks, return_exceptions=True))
            await asyncio.to_thread(server.wait_closed)

        await many(WARM_UP)
        before, open_before, tasks_before = holdings(), sockets(), len(asyncio.all_tasks())
        for _ in range(CALLS // BATCH):
            await many(BATCH)
        assert len(asyncio.all_tasks()) == tasks_before
        assert sockets() <= open_before
        assert grown(before, holdings(), spare(CALLS)) == {}
        await provider.aclose()

    with elsewhere("silent") as server:
        asyncio.run(main(connect(server), server))


def test_a_thousand_back_offs_cut_short_leave_nothing() -> None:
    def leave(provider: Anthropic) -> None:
        with provider.stream(ASK) as stream:
            assert next(stream).type == "retrying"

    with elsewhere("529") as server, connect(server, retry=PATIENT) as provider:
        for _ in range(WARM_UP):
            leave(provider)
        before, open_before = holdings(), sockets()
        for _ in range(CALLS):
            leave(provider)
        assert sockets() <= open_before
        assert grown(before, holdings(), spare(CALLS)) == {}


def answered(provider: Anthropic) -> None:
    assert provider.complete(Request("some words")).text == "some words"


def failed(provider: Anthropic) -> None:
    with pytest.raises(ServerError):
        provider.complete(ASK)


def read_to_the_stop(provider: Anthropic) -> None:
    stream = provider.events(Request("some words"))
    while not isinstance(next(stream), MessageStop):
        pass


@pytest.mark.parametrize(
    ("script", "call"),
    [("echo", answered), ("echo", read_to_the_stop), ("500", failed)],
    ids=["answered", "read to the stop", "failed"],
)
def test_requests_in_a_row_share_one_connection_and_leave_nothing(script: str, call: Sync) -> None:
    with elsewhere(script) as server, connect(server, retry=RetryPolicy(max_attempts=1)) as provider:
        for _ in range(WARM_UP):
            call(provider)
        before, open_before, threads_before = holdings(), sockets(), threads()
        for _ in range(CALLS):
            call(provider)
        assert sockets() == open_before
        assert threads() == threads_before
        assert server.connections == 1
        assert grown(before, holdings(), spare(CALLS)) == {}


def test_event_loops_one_after_another_leave_nothing_in_the_provider() -> None:
    async def main(provider: Anthropic) -> None:
        assert (await provider.acomplete(Request("some words"))).text == "some words"

    with elsewhere("echo") as server:
        provider = connect(server)
        for _ in range(WARM_UP):
            asyncio.run(main(provider))
        before, open_before = holdings(), sockets()
        for _ in range(FEWER):
            asyncio.run(main(provider))
        server.wait_closed()
        assert sockets() <= open_before
        assert grown(before, holdings(), spare(CALLS)) == {}


def test_providers_made_and_closed_leave_nothing() -> None:
    def use(server: Elsewhere) -> None:
        with connect(server) as provider:
            answered(provider)

    with elsewhere("echo") as server:
        for _ in range(WARM_UP):
            use(server)
        before, open_before = holdings(), sockets()
        for _ in range(FEWER):
            use(server)
        server.wait_closed()
        assert sockets() <= open_before
        assert grown(before, holdings(), spare(CALLS)) == {}
