"""Leaving a call in every place where it waits, under every loop: at once, in the caller's own words, with nothing left open."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio

from dragoman import (
    Anthropic,
    BlockStart,
    Failed,
    IncompleteStreamError,
    MessageStop,
    OverloadedError,
    Request,
    Response,
    TextDelta,
)
from dragoman.errors import ProviderError
from dragoman.event import Event, Retrying
from dragoman.hooks import CallInfo, Unfinished
from dragoman.provider import ProviderBase
from dragoman.response import Timing
from dragoman.testing import Answer, Stall, WireServer, anthropic_events, anthropic_stream, content_thinking, script, sse
from dragoman.testing.anthropic import SSE_HEADERS

from .calls import ASK, LIBRARIES, PATIENT, WAITS, connect, echo, in_thread, overloaded, run, silent, stalled, transports

pytestmark = pytest.mark.usefixtures("each_transport")

PHASES = pytest.mark.parametrize("phase", WAITS)


class Ends:
    """Telemetry that counts how each call ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.retries = 0

    def started(self, call: CallInfo) -> Ends:
        return self

    def headers(self) -> dict[str, str]:
        return {}

    def retried(self, event: Retrying) -> None:
        self.retries += 1

    def first_content(self, timing: Timing) -> None:
        pass

    def chunk(self, seconds: float) -> None:
        pass

    def finished(self, response: Response) -> None:
        self.ends.append("finished")

    def failed(self, error: ProviderError, call: Unfinished) -> None:
        self.ends.append(error.kind)

    def cancelled(self, call: Unfinished) -> None:
        self.ends.append("cancelled")


@pytest.fixture(autouse=True)
def nothing_unraisable() -> Iterator[None]:
    """No `Task was destroyed`, no `never awaited`, no generator that ignored its end."""
    seen: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda given: seen.append(repr(given.exc_value))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
            gc.collect()
    finally:
        sys.unraisablehook = hook
    assert seen == []


# ---- a deadline of the caller (krafton-ai/KIRA#60)


@PHASES
@LIBRARIES
def test_a_callers_deadline_ends_the_call_wherever_it_waits(library: str, phase: str) -> None:
    telemetry = Ends()

    async def main(provider: Anthropic, server: WireServer) -> None:
        reached = asyncio.Event() if library == "asyncio" else trio.Event()

        async def call() -> None:
            async for event in provider.aevents(ASK):
                if isinstance(event, TextDelta | Retrying):
                    reached.set()

        async def deadline() -> None:
            if phase == "head":
                await in_thread(library, lambda: server.wait_requests(1))
            else:
                await reached.wait()

        if library == "asyncio":
            with pytest.raises(TimeoutError):
                await under_a_deadline(call, deadline)
        else:
            async with trio.open_nursery() as nursery:
                with trio.CancelScope() as cancelled:
                    nursery.start_soon(_then, deadline, cancelled.cancel)
                    await call()
                assert cancelled.cancelled_caught
        if phase != "back-off":
            await in_thread(library, server.wait_closed)
        await provider.aclose()

    with WireServer(WAITS[phase]()) as server:
        provider = connect(server, retry=PATIENT, telemetry=telemetry)
        run(library, lambda: main(provider, server))
        assert len(server.requests) == 1
    assert telemetry.ends == ["cancelled"]


async def under_a_deadline(call: Any, deadline: Any) -> None:
    async with asyncio.timeout(None) as scope:
        waiting = asyncio.create_task(deadline())
        waiting.add_done_callback(lambda _: scope.reschedule(0))
        await call()


async def _then(first: Any, second: Any) -> None:
    await first()
    second()


@PHASES
def test_wait_for_ends_the_call_and_raises_its_own_error(phase: str) -> None:
    async def main(provider: Anthropic) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(provider.acomplete(ASK), 0.5)
        await provider.aclose()

    with WireServer(WAITS[phase]()) as server:
        asyncio.run(main(connect(server, retry=PATIENT)))
        server.wait_closed()
        assert len(server.requests) == 1


def test_one_cancelled_task_leaves_the_others_of_its_provider_alone() -> None:
    async def main(provider: Anthropic, server: WireServer) -> None:
        cancelled = asyncio.create_task(provider.acomplete(ASK))
        await asyncio.to_thread(server.wait_requests, 1)
        others = [asyncio.create_task(provider.acomplete(ASK)) for _ in range(5)]
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert [(await other).text for other in others] == ["fine"] * 5
        await provider.aclose()

    with WireServer([silent(), *[anthropic_stream("fine")] * 5]) as server:
        asyncio.run(main(connect(server), server))
        assert len(server.requests) == 6


def test_a_task_that_is_cancelled_while_it_cleans_up_still_cleans_up() -> None:
    async def main(provider: Anthropic, server: WireServer) -> None:
        reached = asyncio.Event()

        async def call() -> None:
            async with provider.astream(ASK) as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        reached.set()

        task = asyncio.create_task(call())
        await reached.wait()
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        assert task.cancelled()
        await asyncio.to_thread(server.wait_closed)
        await provider.aclose()

    with WireServer(stalled()) as server:
        asyncio.run(main(connect(server), server))


# ---- on the way out nothing is yielded (HKUDS/LightRAG#3634)


@LIBRARIES
def test_aclose_after_the_first_thinking_delta_returns_and_ends_the_span_once(library: str) -> None:
    telemetry = Ends()

    async def main(provider: Anthropic, server: WireServer) -> None:
        stream = provider.aevents(ASK)
        async for event in stream:
            if event.type == "thinking_delta":
                break
        await stream.aclose()
        await stream.aclose()
        await in_thread(library, server.wait_closed)
        await provider.aclose()

    events = anthropic_events(content_thinking("step by step"), "text")
    with WireServer(Answer(headers=SSE_HEADERS, body=[*events[:4], Stall()])) as server:
        provider = connect(server, telemetry=telemetry)
        run(library, lambda: main(provider, server))
    assert telemetry.ends == ["cancelled"]


@LIBRARIES
def test_aclose_while_an_error_event_is_being_handled_returns_and_ends_the_span_once(library: str) -> None:
    telemetry = Ends()

    async def main(provider: Anthropic, server: WireServer) -> None:
        stream = provider.astream(ASK)
        try:
            await stream.response()
        except OverloadedError:
            await stream.aclose()
        events = provider.aevents(ASK)
        async for event in events:
            if isinstance(event, Failed):
                await events.aclose()
        assert events.closed
        await in_thread(library, server.wait_closed)
        await provider.aclose()

    error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    with WireServer([Answer(headers=SSE_HEADERS, body=[*anthropic_events("Hello")[:4], error, Stall()])] * 2, repeat=True) as server:
        provider = connect(server, telemetry=telemetry)
        run(library, lambda: main(provider, server))
    assert telemetry.ends == ["overloaded"] * 2


@LIBRARIES
def test_a_generator_of_the_caller_may_be_closed_around_a_stream(library: str) -> None:
    """The generator awaits in its `finally`; ours must let it, and must not yield once more."""

    async def words(provider: Anthropic, cleaned: list[str]) -> AsyncIterator[str]:
        stream = provider.astream(ASK)
        try:
            async with stream:
                async for text in stream.text():
                    yield text
        finally:
            cleaned.append(repr(stream.closed))

    async def main(provider: Anthropic, server: WireServer) -> None:
        cleaned: list[str] = []
        generator = words(provider, cleaned)
        assert await anext(generator) == "He"
        await generator.aclose()  # type: ignore[attr-defined]
        assert cleaned == ["True"]
        await in_thread(library, server.wait_closed)
        await provider.aclose()

    with WireServer(stalled()) as server:
        provider = connect(server)
        run(library, lambda: main(provider, server))


class Impolite(ProviderBase):
    """A provider of someone else whose generator yields on its way out."""

    name = "impolite"

    def events(self, request: Request, **call: Any) -> Iterator[Event]:
        raise NotImplementedError

    async def aevents(self, request: Request, **call: Any) -> AsyncIterator[Event]:  # type: ignore[override]
        try:
            for event in script("Hello"):
                yield event
        finally:
            yield MessageStop("end_turn")


def test_a_generator_that_yields_on_its_way_out_is_named_and_the_stream_is_over_all_the_same() -> None:
    telemetry = Ends()

    async def main() -> None:
        provider = Impolite()
        provider.telemetry = telemetry
        stream = provider.astream(ASK)
        await anext(stream)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            await stream.aclose()
        assert stream.closed
        await stream.aclose()

    asyncio.run(main())
    assert telemetry.ends == ["cancelled"]


# ---- the connection after a full read, and after a short one (openai/openai-python#763)


def read_to_the_stop(provider: Anthropic) -> None:
    for event in provider.events(ASK):
        if isinstance(event, MessageStop):
            break


def stop_at_the_first_event(provider: Anthropic) -> None:
    with provider.stream(ASK) as stream:
        next(stream)


def fail_in_the_consumer(provider: Anthropic) -> None:
    def consumer(event: Event) -> None:
        if isinstance(event, BlockStart):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        provider.complete(ASK, on_event=consumer)


def forget_it(provider: Anthropic) -> None:
    held = [provider.stream(ASK)]
    next(held[0])
    with pytest.warns(ResourceWarning):
        held.clear()


@pytest.mark.parametrize("leave", [read_to_the_stop, stop_at_the_first_event, fail_in_the_consumer, forget_it])
def test_with_one_connection_the_next_call_goes_through(leave: Any) -> None:
    complete = anthropic_stream("one")
    first = complete if leave is read_to_the_stop else Answer(headers=SSE_HEADERS, body=[*anthropic_events("one")[:3], Stall()])
    with WireServer([first, anthropic_stream("two")]) as server:
        with connect(server, **transports(max_connections=1)) as provider:
            leave(provider)
            assert provider.complete(ASK).text == "two"
            assert len(server.requests) == 2
            assert len(server.connections) == (1 if leave is read_to_the_stop else 2)


@LIBRARIES
def test_with_one_connection_the_next_call_of_a_loop_goes_through(library: str) -> None:
    async def main(provider: Anthropic) -> None:
        async for event in provider.aevents(ASK):
            if isinstance(event, MessageStop):
                break
        async with provider.astream(ASK) as stream:
            await anext(stream)
        assert (await provider.acomplete(ASK)).text == "three"
        await provider.aclose()

    script = [anthropic_stream("one"), stalled("two"), anthropic_stream("three")]
    with WireServer(script) as server:
        provider = connect(server, **transports(max_connections=1))
        run(library, lambda: main(provider))
        assert [request.connection for request in server.requests] == [0, 0, 1]


# ---- the async driver under trio


@LIBRARIES
def test_a_call_runs_under_either_loop_with_its_retries(library: str) -> None:
    from dragoman import RetryPolicy

    async def main(provider: Anthropic) -> list[str]:
        kinds = [event.type async for event in provider.aevents(Request("again"))]
        await provider.aclose()
        return kinds

    with WireServer([overloaded(), echo]) as server:
        provider = connect(server, retry=RetryPolicy(base=0.001))
        kinds = run(library, lambda: main(provider))
    assert kinds[0] == "retrying"
    assert kinds[-1] == "message_stop"


@LIBRARIES
def test_many_tasks_of_a_loop_each_get_their_own_answer(library: str) -> None:
    words = [f"word {number}" for number in range(20)]
    texts: dict[str, str] = {}

    async def main(provider: Anthropic) -> None:
        async def ask(word: str) -> None:
            texts[word] = (await provider.acomplete(Request(word))).text

        if library == "trio":
            async with trio.open_nursery() as nursery:
                for word in words:
                    nursery.start_soon(ask, word)
        else:
            await asyncio.gather(*map(ask, words))
        await provider.aclose()

    with WireServer(echo) as server:
        provider = connect(server)
        run(library, lambda: main(provider))
    assert texts == {word: word for word in words}


@LIBRARIES
def test_aclose_from_another_task_ends_the_iteration_quietly(library: str) -> None:
    async def main(provider: Anthropic, server: WireServer) -> None:
        stream = provider.astream(ASK)
        ended: list[str] = []

        async def consume() -> None:
            ended.extend([event.type async for event in stream])

        async def close() -> None:
            await in_thread(library, lambda: server.wait_requests(1))
            await stream.aclose()

        if library == "trio":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(consume)
                nursery.start_soon(close)
        else:
            await asyncio.wait_for(asyncio.gather(consume(), close()), 20)
        assert ended == []
        with pytest.raises(IncompleteStreamError, match="closed before its end"):
            await stream.response()
        await in_thread(library, server.wait_closed)
        await provider.aclose()

    with WireServer(silent()) as server:
        provider = connect(server)
        run(library, lambda: main(provider, server))
