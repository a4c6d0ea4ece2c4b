"""Streams over real connections: leaving early in every way, sharing a provider between threads, loops and processes."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman import (
    Anthropic,
    Citation,
    CitationDelta,
    IncompleteStreamError,
    InvalidToolUse,
    MessageStop,
    Request,
    RequestTimeoutError,
    RetryPolicy,
    Text,
    TextDelta,
    Timeouts,
)
from dragoman.testing import Answer, Gate, ScriptedProvider, Stall, Wait, WireServer, anthropic_events, anthropic_stream
from dragoman.testing.anthropic import SSE_HEADERS, content_tool_use

ASK = Request("hi")


def connect(server: WireServer, **settings: Any) -> Anthropic:
    return Anthropic(**{"api_key": "test-key-123", "base_url": server.url, "model": "claude-test-1", "telemetry": None, **settings})


def stalled(*content: Any, after: int = 4) -> Answer:
    """A stream that stops coming after so many events (4: up to the first text delta), the connection staying open."""
    return Answer(headers=SSE_HEADERS, body=[*anthropic_events(*content or ("Hello",), pieces=3, ping=False)[: after - 1], Stall()])


def silent() -> Answer:
    """An answer whose head never comes."""
    return Answer(before=[Stall()])


@pytest.fixture
def stalling() -> Iterator[WireServer]:
    with WireServer([stalled()] * 3, repeat=True) as server:
        yield server


# ---- what a stream gives


def test_text_is_the_same_iteration_text_only() -> None:
    with WireServer(anthropic_stream("Hello", "World", content_tool_use("f", {"a": 1}))) as server, connect(server) as provider:
        with provider.stream(ASK) as stream:
            assert "".join(stream.text(separator="\n")) == "Hello\nWorld"
            response = stream.response()
            assert response is stream.response()
        assert response.message.join_text("\n") == "Hello\nWorld"
        assert (response.text, response.stop) == ("HelloWorld", "tool_use")


def test_partial_is_what_was_handed_out() -> None:
    with WireServer(anthropic_stream("Hello")) as server, connect(server) as provider, provider.stream(ASK) as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                break
        assert isinstance(event, TextDelta)
        assert stream.partial().text == event.text != "Hello"
        assert stream.response().text == "Hello"


def test_an_open_call_in_a_partial_answer_is_not_executable() -> None:
    with WireServer(stalled(content_tool_use("f", {"a": "b" * 50}), after=5)) as server, connect(server) as provider:
        with provider.stream(ASK) as stream:
            next(event for event in stream if event.type == "tool_input_delta")
            [call] = stream.partial().content
        assert isinstance(call, InvalidToolUse)
        assert call.reason == "incomplete"


def test_a_stream_may_be_left_and_asked_nothing_more(stalling: WireServer) -> None:
    with connect(stalling) as provider:
        stream = provider.stream(ASK)
        assert next(stream).type == "message_start"
        stream.close()
        stream.close()
        assert stream.closed
        assert list(stream) == []
        with pytest.raises(IncompleteStreamError, match="closed before its end"):
            stream.response()


def test_a_stream_that_was_never_started_opens_nothing() -> None:
    with WireServer(silent()) as server, connect(server) as provider:
        with provider.stream(ASK):
            pass
        provider.stream(ASK)
        gc.collect()
        assert server.connections == []


def test_the_repr_shows_no_content(stalling: WireServer) -> None:
    with connect(stalling) as provider, provider.stream(Request("PROMPT-SECRET")) as stream:
        next(stream)
        assert "SECRET" not in repr(stream) + repr(provider)
        assert repr(stream) == "<Stream claude-test-1 open>"


# ---- leaving early shuts the connection at once


def leave_by_break(provider: Anthropic) -> None:
    with provider.stream(ASK) as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                break


def leave_by_error(provider: Anthropic) -> None:
    with pytest.raises(ZeroDivisionError):
        _divide_at_the_first_text(provider)


def _divide_at_the_first_text(provider: Anthropic) -> None:
    with provider.stream(ASK) as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                raise ZeroDivisionError


def leave_by_on_event(provider: Anthropic) -> None:
    def stop(event: Any) -> None:
        if isinstance(event, TextDelta):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        provider.complete(ASK, on_event=stop)


def leave_by_garbage(provider: Anthropic) -> None:
    stream = provider.stream(ASK)
    next(event for event in stream if isinstance(event, TextDelta))
    held = [stream]
    del stream
    with pytest.warns(ResourceWarning, match="neither read to its end nor closed"):
        held.clear()


def leave_async(how: Callable[[Anthropic], Any]) -> Callable[[Anthropic, WireServer], None]:
    def run(provider: Anthropic, server: WireServer) -> None:
        async def main() -> None:
            await how(provider)
            await asyncio.to_thread(server.wait_closed, 0)
            await provider.aclose()

        asyncio.run(main())

    return run


async def aleave_by_break(provider: Anthropic) -> None:
    async with provider.astream(ASK) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break


async def aleave_by_aclose(provider: Anthropic) -> None:
    stream = provider.astream(ASK)
    async for event in stream:
        if isinstance(event, TextDelta):
            await stream.aclose()
    await stream.aclose()


async def aleave_by_cancelling(provider: Anthropic) -> None:
    read = asyncio.Event()

    async def consume() -> None:
        async for event in provider.astream(ASK):
            if isinstance(event, TextDelta):
                read.set()

    task = asyncio.create_task(consume())
    await read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _run_out_of_time(provider: Anthropic) -> None:
    async with asyncio.timeout(None) as limit:
        async for event in provider.astream(ASK):
            if isinstance(event, TextDelta):
                limit.reschedule(asyncio.get_running_loop().time())


async def aleave_by_timeout(provider: Anthropic) -> None:
    with pytest.raises(TimeoutError):
        await _run_out_of_time(provider)


async def aleave_by_garbage(provider: Anthropic) -> None:
    stream = provider.astream(ASK)
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    held = [stream]
    del stream
    with pytest.warns(ResourceWarning, match="neither read to its end nor closed"):
        held.clear()


def leave_sync(how: Callable[[Anthropic], None]) -> Callable[[Anthropic, WireServer], None]:
    def run(provider: Anthropic, server: WireServer) -> None:
        how(provider)
        server.wait_closed(0)

    return run


WAYS_OUT = {
    "break": leave_sync(leave_by_break),
    "an exception": leave_sync(leave_by_error),
    "an exception in on_event": leave_sync(leave_by_on_event),
    "garbage collection": leave_sync(leave_by_garbage),
    "async break": leave_async(aleave_by_break),
    "aclose": leave_async(aleave_by_aclose),
    "cancellation": leave_async(aleave_by_cancelling),
    "asyncio.timeout": leave_async(aleave_by_timeout),
    "async garbage collection": leave_async(aleave_by_garbage),
}


@pytest.mark.parametrize("way_out", WAYS_OUT.values(), ids=WAYS_OUT.keys())
def test_leaving_early_closes_the_connection_and_repeats_nothing(
    way_out: Callable[[Anthropic, WireServer], None], stalling: WireServer
) -> None:
    with connect(stalling) as provider:
        way_out(provider, stalling)
        assert len(stalling.requests) == 1


def test_cancellation_while_waiting_for_the_head_closes_the_connection() -> None:
    async def main(provider: Anthropic) -> None:
        task = asyncio.create_task(provider.acomplete(ASK))
        await asyncio.to_thread(server.wait_requests, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.wait_closed)
        await provider.aclose()

    with WireServer(silent()) as server:
        asyncio.run(main(connect(server)))
        assert len(server.requests) == 1


def test_cancellation_during_a_back_off_of_30_seconds_ends_it() -> None:
    async def main(provider: Anthropic) -> None:
        waiting = asyncio.Event()

        async def consume() -> None:
            async for event in provider.aevents(ASK):
                if event.type == "retrying":
                    waiting.set()

        task = asyncio.create_task(consume())
        await waiting.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.aclose()

    with WireServer(Answer(status=529)) as server:
        asyncio.run(main(connect(server, retry=RetryPolicy(base=30, jitter="none"))))
        assert len(server.requests) == 1


@pytest.mark.parametrize("moment", ["head", "body", "back-off"])
def test_close_from_another_thread_ends_the_iteration(moment: str) -> None:
    script = {"head": silent(), "body": stalled(), "back-off": Answer(status=529)}[moment]
    with WireServer(script) as server, connect(server, retry=RetryPolicy(base=30, jitter="none")) as provider:
        stream = provider.stream(ASK)
        reached = threading.Event()
        seen: list[str] = []

        def consume() -> None:
            for event in stream:
                seen.append(event.type)
                if event.type in ("text_delta", "retrying", "block_start"):
                    reached.set()

        thread = threading.Thread(target=consume)
        thread.start()
        if moment == "head":
            server.wait_requests(1)
        else:
            assert reached.wait(20)
        stream.close()
        thread.join(20)
        assert not thread.is_alive()
        if moment != "back-off":
            server.wait_closed(0)
        assert len(server.requests) == 1


def test_a_stream_that_another_thread_reads_says_so_and_goes_on() -> None:
    gate = Gate()
    answer = anthropic_events("Hello")
    with WireServer([Answer(headers=SSE_HEADERS, before=[Wait(gate)], body=answer)]) as server, connect(server) as provider:
        with provider.stream(ASK) as stream, ThreadPoolExecutor(1) as pool:
            reading = pool.submit(stream.response)
            gate.reached()
            with pytest.raises(RuntimeError, match=r"<Stream \? open> is being read by another thread"):
                next(stream)
            gate.open()
            assert reading.result(20).text == "Hello"
            assert stream.response().text == "Hello"


@pytest.mark.parametrize("transport", ["direct", "httpx2"])
@pytest.mark.parametrize("begun", [False, True], ids=["from the start", "in the middle"])
def test_a_stream_that_another_task_reads_says_so_and_goes_on(transport: str, begun: bool) -> None:
    gate = Gate()
    head, *rest = anthropic_events("Hello")
    steps = {"body": [head, *rest[:2], Wait(gate), *rest[2:]]} if begun else {"before": [Wait(gate)], "body": [head, *rest]}

    async def main(provider: Anthropic) -> None:
        async with provider.astream(ASK) as stream:
            if begun:
                await anext(stream)
            reading = asyncio.create_task(stream.response())
            await asyncio.to_thread(gate.reached)
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="is being read by another task"):
                await stream.response()
            gate.open()
            assert (await reading).text == "Hello"
            assert (await stream.response()).text == "Hello"
        await provider.aclose()

    with WireServer([Answer(headers=SSE_HEADERS, **steps)]) as server:
        asyncio.run(main(connect(server, transport=transport)))


def test_aclose_from_another_task_ends_the_iteration() -> None:
    async def main(provider: Anthropic) -> None:
        stream = provider.astream(ASK)
        read = asyncio.Event()

        async def consume() -> list[str]:
            seen: list[str] = []
            async for event in stream:
                seen.append(event.type)
                if event.type == "block_start":
                    read.set()
            return seen

        task = asyncio.create_task(consume())
        await read.wait()
        await stream.aclose()
        assert "message_stop" not in await asyncio.wait_for(task, 20)
        await asyncio.to_thread(server.wait_closed)
        await provider.aclose()

    with WireServer(stalled()) as server:
        asyncio.run(main(connect(server)))


def test_the_pool_stays_usable_after_every_way_out() -> None:
    from dragoman.transport.httpx2 import HTTPX2Transport

    with WireServer([stalled(), stalled(), anthropic_stream("one"), anthropic_stream("two")]) as server:
        with connect(server, transport=HTTPX2Transport(max_connections=1)) as provider:
            leave_by_break(provider)
            leave_by_error(provider)
            with provider.stream(ASK) as stream:
                for event in stream:
                    if isinstance(event, MessageStop):
                        break  # the terminal event was seen; nothing asks for more
                assert provider.complete(ASK).text == "two"


# ---- clocks


@pytest.mark.parametrize(
    ("answer", "timeouts", "phase"),
    [
        (silent(), Timeouts(first_byte=0.2), "first_byte"),
        (stalled(), Timeouts(idle=0.2), "idle"),
        (stalled(), Timeouts(idle=None, content_idle=0.2), "content_idle"),
        (stalled(), Timeouts(idle=None, total=0.2), "total"),
        (silent(), Timeouts(first_byte=None, total=0.2), "total"),
    ],
)
@pytest.mark.parametrize("way", ["sync", "async"])
def test_each_clock_ends_the_call_under_its_name(answer: Answer, timeouts: Timeouts, phase: str, way: str) -> None:
    with WireServer(answer) as server:
        provider = connect(server, timeouts=timeouts, retry=RetryPolicy(max_attempts=1))

        async def main() -> None:
            try:
                await provider.acomplete(ASK)
            finally:
                await provider.aclose()

        with pytest.raises(RequestTimeoutError, match=f"^Anthropic request failed: {phase} timeout after 0.2 s") as raised:
            _ = provider.complete(ASK) if way == "sync" else asyncio.run(main())
        provider.close()
        assert raised.value.phase == phase
        if phase != "total":  # that one may run out before anything has come
            assert (raised.value.partial is not None) == (not answer.before)
        server.wait_closed()


# ---- one provider for all


def echo(request: Any) -> Answer:
    """Answers with the caller's own words."""
    return anthropic_stream(request.json()["messages"][0]["content"])


def test_eight_threads_each_get_their_own_answer() -> None:
    with WireServer(echo) as server, connect(server) as provider, ThreadPoolExecutor(8) as pool:
        words = [f"word {n}" for n in range(80)]
        assert list(pool.map(lambda word: provider.complete(Request(word)).text, words)) == words


def test_two_hundred_tasks_each_get_their_own_answer() -> None:
    async def main(provider: Anthropic) -> None:
        words = [f"word {n}" for n in range(200)]
        answers = await asyncio.gather(*(provider.acomplete(Request(word)) for word in words))
        assert [answer.text for answer in answers] == words
        await provider.aclose()

    with WireServer(echo) as server:
        asyncio.run(main(connect(server)))


def test_two_event_loops_one_after_the_other_and_at_once() -> None:
    async def main(provider: Anthropic, word: str) -> str:
        text = (await provider.acomplete(Request(word))).text
        await provider.aclose()
        return text

    with WireServer(echo) as server, ThreadPoolExecutor(2) as pool:
        provider = connect(server)
        assert [asyncio.run(main(provider, "a")), asyncio.run(main(provider, "b"))] == ["a", "b"]
        assert list(pool.map(lambda word: asyncio.run(main(provider, word)), ["c", "d"])) == ["c", "d"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_opens_its_own_connections() -> None:
    with WireServer(echo) as server, connect(server) as provider:
        assert provider.complete(Request("parent")).text == "parent"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the server's thread runs; the child does not use it
            child = os.fork()
        if child == 0:
            try:
                ok = provider.complete(Request("child")).text == "child"
            finally:
                os._exit(0 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert provider.complete(Request("parent")).text == "parent"
        assert [request.connection for request in server.requests] == [0, 1, 0]


def test_a_provider_may_be_used_again_after_close() -> None:
    with WireServer(echo) as server:
        provider = connect(server)
        for word in ("a", "b"):
            assert provider.complete(Request(word)).text == word
            provider.close()
            server.wait_closed()


# ---- providers that are only iterators of events


def test_a_provider_of_plain_events_gets_streams_too() -> None:
    provider = ScriptedProvider.of("Hello")
    with provider.stream(ASK) as stream:
        assert "".join(stream.text()) == "Hello"
        assert stream.timing.first_content is not None


def test_citations_are_folded_in() -> None:
    from dragoman import BlockStart, BlockStop, MessageStart

    events = [
        MessageStart("m", "c", provider="p", wire="w"),
        BlockStart(0, Text("")),
        CitationDelta(0, Citation("k", {"url": "u"})),
        TextDelta(0, "x"),
        BlockStop(0),
        MessageStop("end_turn"),
    ]
    response = ScriptedProvider([events]).complete(ASK)
    [text] = response.message.content
    assert isinstance(text, Text)
    assert text.citations[0].url == "u"


def test_a_gate_holds_the_answer_until_it_is_opened() -> None:
    gate = Gate()
    head, *rest = anthropic_events("Hello")
    with WireServer(Answer(headers=SSE_HEADERS, body=[head, Wait(gate), *rest])) as server, connect(server) as provider:
        with provider.stream(ASK) as stream, ThreadPoolExecutor(1) as pool:
            text = pool.submit(lambda: "".join(stream.text()))
            gate.reached()
            assert not text.done()
            gate.open()
            assert text.result(20) == "Hello"
