"""`AsyncHTTPX2Transport`, under asyncio, uvloop and trio."""

from __future__ import annotations

import asyncio
import gc
import os
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import anyio.to_thread
import httpx2
import pytest

from dragoman.errors import ConfigError, ConnectionFailedError, IncompleteStreamError, ProtocolError, RequestTimeoutError
from dragoman.testing import Answer, Close, Gate, Raw, Repeat, Reset, Stall, Wait, WireServer, anthropic_stream
from dragoman.testing.certificate import Authority
from dragoman.transport import Clocks
from dragoman.transport.httpx2 import AsyncHTTPX2Transport
from dragoman.transport.loop import current_loop

from .calls import LIBRARIES, PATIENCE, Asked, request_to, run, running, silent_peer

TEXT = Answer(headers=[("content-type", "text/plain")], body=b"whole")

Run: TypeAlias = Callable[[Callable[[], Awaitable[Any]]], Any]


@pytest.fixture(params=LIBRARIES)
def inside(request: pytest.FixtureRequest) -> Run:
    """Runs an async function under each library, and looks for what it left behind."""

    def run_and_collect(main: Callable[[], Awaitable[Any]]) -> Any:
        result = run(request.param, main)
        gc.collect()
        return result

    return run_and_collect


async def in_time(function: Callable[[], Any]) -> Any:
    """Wait for a signal of the server without stopping the loop."""
    return await anyio.to_thread.run_sync(function)


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[AsyncHTTPX2Transport]:
    transport = AsyncHTTPX2Transport(**({"trust_env": False} | options if "client" not in options else options))
    try:
        yield transport
    finally:
        await transport.close()


async def fetch(transport: AsyncHTTPX2Transport, server: WireServer | str, clocks: Clocks | None = None, **headers: str) -> bytes:
    response = await transport.send(request_to(server, **headers), clocks or running())
    return await response.read()


class TestAnswer:
    def test_has_status_headers_and_body(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                response = await transport.send(request_to(server), running())
                assert response.status == 418
                assert ("x-two", "b") in list(response.headers)
                assert [data async for data in response] == [b"ab", b"c"]

        gate = Gate()
        with WireServer([Answer(status=418, headers=[("x-two", "a"), ("x-two", "b")], body=[b"ab", Wait(gate), b"c"])]) as server:
            gate.open()
            inside(main)

    def test_request_arrives_as_given(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                response = await transport.send(request_to(server, bytes(1 << 21), "/a?b=1", **{"x-api-key": "k"}), running())
                await response.read()

        with WireServer(TEXT) as server:
            inside(main)
            request = server.requests[0]
        assert (request.path, request.body, request.header("x-api-key")) == ("/a?b=1", bytes(1 << 21), "k")

    def test_compressed_body_is_decoded_piece_by_piece(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                response = await transport.send(request_to(server), running())
                assert await anext(aiter(response)) == b"one"
                gate.open()
                assert await response.read() == b"two"

        gate = Gate()
        with WireServer([Answer(gzip=True, body=[b"one", Wait(gate), b"two"])]) as server:
            inside(main)

    def test_redirects_are_handed_out_not_followed(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                response = await transport.send(request_to(server), running())
                assert response.status == 308
                await response.close()

        with WireServer([Answer(status=308, headers=[("location", "/elsewhere")])]) as server:
            inside(main)
            assert len(server.requests) == 1


class TestConnection:
    def test_is_used_again_within_a_loop_and_closed_at_its_end(self, inside: Run) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)  # never closed: each loop closes what is its own

        async def main() -> None:
            for _ in range(2):
                await fetch(transport, server)

        with WireServer(TEXT) as server:
            inside(main)
            server.wait_closed(0)
            inside(main)
            server.wait_closed(1)
            assert [request.connection for request in server.requests] == [0, 0, 1, 1]

    def test_belongs_to_its_loop_when_several_run_at_once(self) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)
        results: list[bytes] = []

        async def main() -> None:
            results.extend([await fetch(transport, server) for _ in range(5)])

        with WireServer(TEXT) as server:
            threads = [Thread(target=run, args=(library, main)) for library in (*LIBRARIES, *LIBRARIES)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
            assert results == [b"whole"] * 30
            server.wait_closed()
            assert len(server.connections) == 6

    def test_of_a_loop_that_was_closed_without_clean_up_is_dropped_silently(self) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)
        with WireServer(TEXT) as server:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(fetch(transport, server))
            loop.close()
            del loop
            assert run("asyncio", partial(fetch, transport, server)) == b"whole"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # what asyncio says of a loop that was left like this
                gc.collect()

    def test_forked_child_opens_its_own(self) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)
        with WireServer(TEXT) as server, asyncio.Runner() as runner:
            runner.run(fetch(transport, server))
            pid = os.fork()
            if pid == 0:
                try:
                    os._exit(0 if asyncio.new_event_loop().run_until_complete(fetch(transport, server)) == b"whole" else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(pid, 0)[1] == 0
            runner.run(fetch(transport, server))
            assert [request.connection for request in server.requests] == [0, 1, 0]

    def test_closing_in_one_loop_leaves_the_calls_of_another_alone(self) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)
        with WireServer(TEXT) as server, asyncio.Runner() as other:
            other.run(fetch(transport, server))

            async def main() -> None:
                await fetch(transport, server)
                await transport.close()

            asyncio.run(main())
            server.wait_closed(1)
            other.run(fetch(transport, server))
            assert [request.connection for request in server.requests] == [0, 1, 0]
            other.run(transport.close())
            server.wait_closed(0)

    def test_is_closed_with_a_transport_that_nobody_has_any_more(self, inside: Run) -> None:
        async def main() -> None:
            transport = AsyncHTTPX2Transport(trust_env=False)
            await fetch(transport, server)
            del transport
            await in_time(partial(server.wait_closed, 0))

        with WireServer(TEXT) as server:
            inside(main)

    def test_of_an_answer_outlives_its_transport(self, inside: Run) -> None:
        async def main() -> None:
            transport = AsyncHTTPX2Transport(trust_env=False)
            response = await transport.send(request_to(server), running())
            del transport
            gate.open()
            assert await response.read() == b"xy"
            del response
            await in_time(partial(server.wait_closed, 0))

        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate), b"y"])]) as server:
            inside(main)

    def test_loop_is_forgotten_at_its_end(self, inside: Run) -> None:
        transport = AsyncHTTPX2Transport(trust_env=False)

        async def main() -> weakref.ref[Any]:
            await fetch(transport, server)
            return weakref.ref(current_loop().native)

        with WireServer(TEXT) as server:
            assert inside(main)() is None

    def test_is_shut_at_once_when_the_answer_is_left_early(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                response = await transport.send(request_to(server), running())
                await anext(aiter(response))
                await response.close()
                await in_time(partial(server.wait_closed, 0))
                await response.close()
                assert [data async for data in response] == []

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            inside(main)

    def test_is_kept_if_the_end_of_a_complete_message_comes_in_a_moment(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                clocks = running()
                response = await transport.send(request_to(server), clocks)
                assert await anext(aiter(response)) == b"message"
                gate.open()
                clocks.complete = True
                await response.close()
                await fetch(transport, server)

        gate = Gate()
        with WireServer([Answer(body=[b"message", Wait(gate)]), TEXT]) as server:
            inside(main)
            assert [request.connection for request in server.requests] == [0, 0]

    def test_is_shut_if_the_end_of_a_complete_message_does_not_come(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                clocks = running()
                response = await transport.send(request_to(server), clocks)
                await anext(aiter(response))
                clocks.complete = True
                await response.close()
                await in_time(partial(server.wait_closed, 0))

        with WireServer([Answer(body=[b"message", Stall()])]) as server:
            inside(main)

    def test_is_shut_if_a_complete_message_is_followed_by_much_more(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                clocks = running()
                response = await transport.send(request_to(server), clocks)
                await anext(aiter(response))
                clocks.complete = True
                await response.close()
                await in_time(partial(server.wait_closed, 0))

        with WireServer([Answer(body=[b"message", b"x" * (1 << 20)])]) as server:
            inside(main)

    def test_no_more_than_the_limit_are_open_at_once(self, inside: Run) -> None:
        async def main() -> None:
            async with opened(max_connections=2) as transport, anyio.create_task_group() as tasks:
                for _ in range(40):
                    tasks.start_soon(fetch, transport, server)

        with WireServer(TEXT) as server:
            inside(main)
            assert len(server.connections) <= 2
            assert len(server.requests) == 40

    def test_two_hundred_at_once(self, inside: Run) -> None:
        bodies: set[bytes] = set()

        async def main() -> None:
            async def call(number: int) -> None:
                response = await transport.send(request_to(server, b"%d" % number), running())
                bodies.add(await response.read())

            async with opened() as transport, anyio.create_task_group() as tasks:
                for number in range(200):
                    tasks.start_soon(call, number)

        with WireServer(lambda request: Answer(body=[request.body])) as server:
            inside(main)
        assert bodies == {b"%d" % number for number in range(200)}

    @pytest.mark.parametrize("after", ["close_silently", "reset", "drop_next"])
    def test_from_the_pool_is_replaced_unseen_if_dead(self, inside: Run, after: Any) -> None:
        async def main() -> None:
            async with opened() as transport:
                assert await fetch(transport, server) == b"one"
                assert await fetch(transport, server) == b"whole"

        with WireServer([Answer(body=b"one", after=after), TEXT]) as server:
            inside(main)
            assert [request.connection for request in server.requests] == [0, 1]


class TestTimeout:
    @pytest.mark.parametrize(
        ("answer", "timeouts", "phase"),
        [
            (Answer(before=[Stall()]), {"first_byte": 0.05}, "first_byte"),
            (Answer(body=[b"x", Stall()]), {"first_byte": PATIENCE, "idle": 0.05}, "idle"),
            (Answer(body=[b"x", Repeat(b": ping\n\n", every=0.01)]), {"idle": PATIENCE, "content_idle": 0.1}, "content_idle"),
            (Answer(before=[Stall()]), {"total": 0.5}, "total"),
            (Answer(body=[b"x", Stall()]), {"idle": PATIENCE, "total": 0.5}, "total"),
            (Answer(body=[Repeat(b"x", every=0.01)]), {"idle": PATIENCE, "total": 0.5}, "total"),
        ],
    )
    @pytest.mark.parametrize("own", [False, True], ids=["our pool", "own client"])
    def test_names_its_phase(self, inside: Run, answer: Answer, timeouts: dict[str, float], phase: str, own: bool) -> None:
        async def main() -> None:
            async with httpx2.AsyncClient(trust_env=False) as client, opened(**({"client": client} if own else {})) as transport:
                with pytest.raises(RequestTimeoutError) as caught:
                    await fetch(transport, server, running(**timeouts))
                assert (caught.value.phase, caught.value.retryable) == (phase, phase != "total")
                await in_time(partial(server.wait_closed, 0))

        with WireServer(answer) as server:
            inside(main)

    def test_connect(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(RequestTimeoutError) as caught:
                    await fetch(transport, server, running(connect=0.05))
                assert caught.value.phase == "connect"

        with WireServer(accept="never") as server:
            inside(main)

    def test_connect_covers_the_tls_handshake(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(RequestTimeoutError) as caught:
                    await fetch(transport, f"https://127.0.0.1:{peer.port}", running(connect=0.5))
                assert caught.value.phase == "connect"
                assert await in_time(peer.received) != b""

        with silent_peer() as peer:
            inside(main)

    def test_waiting_for_a_free_connection_is_connecting(self, inside: Run) -> None:
        async def main() -> None:
            async with opened(max_connections=1) as transport:
                held = await transport.send(request_to(server), running())
                with pytest.raises(RequestTimeoutError) as caught:
                    await fetch(transport, server, running(connect=0.05))
                assert caught.value.phase == "connect"
                await held.close()

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            inside(main)

    def test_idle_begins_anew_with_every_byte_within_a_chunk(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                assert await fetch(transport, server, running(idle=1.0)) == b".........."

        pieces = [Raw(b"a\r\n"), *(step for _ in range(10) for step in (Raw(b"."), Repeat(b"", every=0.11, times=1)))]
        with WireServer([Answer(body=[*pieces, Raw(b"\r\n")])]) as server:
            inside(main)


Phase: TypeAlias = tuple[str, Callable[[Gate], Answer], bool]

PHASES: list[Phase] = [
    ("while waiting for the head", lambda gate: Answer(before=[Wait(gate)]), False),
    ("while waiting for the head on a connection from the pool", lambda gate: Answer(before=[Wait(gate)]), True),
    ("while reading", lambda gate: Answer(body=[b"x", Wait(gate)]), False),
    ("while reading a body that ends by closing", lambda gate: Answer(body=[b"x", Wait(gate)], framing="close"), False),
]
at_each_phase = pytest.mark.parametrize(("answer", "warm"), [phase[1:] for phase in PHASES], ids=[phase[0] for phase in PHASES])


class TestCancellation:
    """The task is cancelled: the connection closes at once, and the cancellation passes."""

    @at_each_phase
    def test_of_a_scope(self, inside: Run, answer: Callable[[Gate], Answer], warm: bool) -> None:
        async def main() -> None:
            async with opened(max_connections=1) as transport:
                if warm:
                    await fetch(transport, server)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(fetch, transport, server)
                    await in_time(gate.reached)
                    tasks.cancel_scope.cancel()
                await in_time(partial(server.wait_closed, 0))
                assert await fetch(transport, server) == b"whole"

        gate = Gate()
        with WireServer([TEXT] * warm + [answer(gate), TEXT]) as server:
            inside(main)
            assert len(server.requests) == warm + 2

    @at_each_phase
    def test_of_an_asyncio_task(self, answer: Callable[[Gate], Answer], warm: bool) -> None:
        async def main() -> None:
            async with opened() as transport:
                if warm:
                    await fetch(transport, server)
                task = asyncio.create_task(fetch(transport, server))
                await in_time(gate.reached)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await in_time(partial(server.wait_closed, 0))

        gate = Gate()
        with WireServer([TEXT] * warm + [answer(gate)]) as server:
            asyncio.run(main())
        gc.collect()

    @at_each_phase
    def test_by_asyncio_timeout(self, answer: Callable[[Gate], Answer], warm: bool) -> None:
        async def main() -> None:
            async with opened() as transport:
                if warm:
                    await fetch(transport, server)
                timeout = asyncio.timeout(None)
                ending = asyncio.create_task(end(timeout))
                with pytest.raises(TimeoutError):
                    await within(timeout, fetch(transport, server))
                await ending
                await in_time(partial(server.wait_closed, 0))

        async def within(scope: asyncio.Timeout, fetching: Awaitable[bytes]) -> None:
            async with scope:
                await fetching

        async def end(scope: asyncio.Timeout) -> None:
            await in_time(gate.reached)
            scope.reschedule(0)

        gate = Gate()
        with WireServer([TEXT] * warm + [answer(gate)]) as server:
            asyncio.run(main())

    def test_while_connecting(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with anyio.move_on_after(0.05) as scope:
                    await fetch(transport, server)
                assert scope.cancelled_caught

        with WireServer(accept="never") as server:
            inside(main)

    def test_during_the_tls_handshake(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                async with anyio.create_task_group() as group:
                    group.start_soon(fetch, transport, f"https://127.0.0.1:{peer.port}")
                    await in_time(peer.spoken_to)
                    group.cancel_scope.cancel()
                await in_time(peer.received)

        with silent_peer() as peer:
            inside(main)

    def test_close_during_cancellation_really_closes(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with anyio.CancelScope() as scope:
                    response = await transport.send(request_to(server), running())
                    await anext(aiter(response))
                    scope.cancel()
                    try:
                        await anyio.sleep(PATIENCE)
                    finally:
                        await response.close()
                await in_time(partial(server.wait_closed, 0))

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            inside(main)

    def test_close_cancelled_twice_really_closes(self) -> None:
        async def work(transport: AsyncHTTPX2Transport) -> None:
            response = await transport.send(request_to(server), running())
            try:
                await response.read()
            finally:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await response.close()

        async def main() -> None:
            async with opened(max_connections=1) as transport:
                task = asyncio.create_task(work(transport))
                await in_time(gate.reached)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await in_time(partial(server.wait_closed, 0))
                assert await fetch(transport, server) == b"whole"

        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate)]), TEXT]) as server:
            asyncio.run(main())
        gc.collect()

    def test_a_hundred_leave_no_task_and_no_open_connection(self) -> None:
        async def main() -> None:
            async with opened() as transport:
                for count in range(100):
                    task = asyncio.create_task(fetch(transport, server))
                    if count % 2:
                        await in_time(partial(server.wait_requests, count // 2 + 1))
                    else:
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.wait([task])
                await in_time(lambda: server.wait_for(lambda: not server.open_connections))
                assert asyncio.all_tasks() == {asyncio.current_task()}

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            asyncio.run(main())
        gc.collect()


class TestAbort:
    """`Clocks.abort`, from any thread."""

    @at_each_phase
    @pytest.mark.parametrize("own", [False, True], ids=["our pool", "own client"])
    def test_ends_the_wait(self, inside: Run, answer: Callable[[Gate], Answer], warm: bool, own: bool) -> None:
        async def main() -> None:
            async with httpx2.AsyncClient(trust_env=False) as client, opened(**({"client": client} if own else {})) as transport:
                if warm:
                    await fetch(transport, server)
                clocks = running()
                other = Thread(target=lambda: (gate.reached(), clocks.abort()))
                other.start()
                with pytest.raises(ConnectionFailedError, match="aborted by the caller") as caught:
                    await fetch(transport, server, clocks)
                assert not caught.value.retryable
                await in_time(other.join)
                await in_time(partial(server.wait_closed, 0))

        gate = Gate()
        with WireServer([TEXT] * warm + [answer(gate)]) as server:
            inside(main)

    def test_ends_connecting(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                asked = Asked()
                clocks = running(asked)
                asked.arm()
                other = Thread(target=lambda: (asked.wait(), clocks.abort()))
                other.start()
                with pytest.raises(ConnectionFailedError, match="aborted"):
                    await fetch(transport, server, clocks)
                other.join()

        with WireServer(accept="never") as server:
            inside(main)

    @pytest.mark.parametrize("elsewhere", [False, True], ids=["on the loop", "from another thread"])
    def test_shuts_the_connection_also_if_nobody_waits(self, inside: Run, elsewhere: bool) -> None:
        async def main() -> None:
            async with opened(max_connections=1) as transport:
                clocks = running()
                response = await transport.send(request_to(server), clocks)
                await anext(aiter(response))
                await (in_time(clocks.abort) if elsewhere else anyio.lowlevel.checkpoint())
                clocks.abort()
                with pytest.raises(ConnectionFailedError, match="aborted"):
                    await anext(response)
                del response
                await in_time(partial(server.wait_closed, 0))
                assert await fetch(transport, server) == b"whole"

        with WireServer([Answer(body=[b"x", Stall()]), TEXT]) as server:
            inside(main)

    def test_before_the_call_nothing_is_sent(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                clocks = running()
                clocks.abort()
                with pytest.raises(ConnectionFailedError, match="aborted"):
                    await fetch(transport, server, clocks)

        with WireServer(TEXT) as server:
            inside(main)
            assert server.connections == []

    def test_after_the_answer_the_connection_is_left_alone(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                clocks = running()
                await fetch(transport, server, clocks)
                clocks.abort()
                await fetch(transport, server)

        with WireServer(TEXT) as server:
            inside(main)
            assert [request.connection for request in server.requests] == [0, 0]

    def test_after_the_loop_has_ended_does_nothing(self, inside: Run) -> None:
        clocks = running()

        async def main() -> None:
            async with opened() as transport:
                await fetch(transport, server, clocks)

        with WireServer(TEXT) as server:
            inside(main)
            clocks.abort()

    @pytest.mark.parametrize("aborted", [True, False], ids=["after abort", "alone"])
    def test_close_ends_the_iteration_of_another_task(self, inside: Run, aborted: bool) -> None:
        async def main() -> None:
            async with opened() as transport, anyio.create_task_group() as tasks:
                clocks = running()
                response = await transport.send(request_to(server), clocks)

                async def read() -> None:
                    with pytest.raises(ConnectionFailedError, match="aborted"):
                        await response.read()

                tasks.start_soon(read)
                await in_time(gate.reached)
                await anyio.lowlevel.checkpoint()
                if aborted:
                    clocks.abort()
                await response.close()
                await in_time(partial(server.wait_closed, 0))

        gate = Gate()
        with WireServer([Answer(body=[b"x", Wait(gate)])]) as server:
            inside(main)

    def test_ends_sleep(self, inside: Run) -> None:
        async def main() -> None:
            clocks = running()
            other = Thread(target=clocks.abort)
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(AsyncHTTPX2Transport().sleep, 1000, clocks)
                    await anyio.lowlevel.checkpoint()
                    other.start()
            other.join()

        inside(main)

    def test_sleep_after_it_returns_at_once(self, inside: Run) -> None:
        async def main() -> None:
            clocks = running()
            clocks.abort()
            with anyio.fail_after(PATIENCE):
                await AsyncHTTPX2Transport().sleep(1000, clocks)

        inside(main)

    def test_sleep_takes_its_time(self, inside: Run) -> None:
        async def main() -> None:
            before = anyio.current_time()
            await AsyncHTTPX2Transport().sleep(0.02, running())
            assert anyio.current_time() - before >= 0.01  # uvloop counts in whole milliseconds

        inside(main)


class TestFailure:
    @pytest.mark.parametrize(
        ("answer", "expected", "text"),
        [
            (Answer(before=[Close()]), ConnectionFailedError, "closed the connection without an answer"),
            (Answer(body=[b"x", Close()]), IncompleteStreamError, "before the end of its answer"),
            (Answer(body=[b"x", Reset()]), ConnectionFailedError, "broken by 127.0.0.1"),
            (Answer(body=[b"x", Raw(b"zz\r\n"), Stall()]), ProtocolError, "is not HTTP"),
            (Answer(headers=[("content-encoding", "gzip")], body=b"plain"), ProtocolError, "content encoding"),
        ],
    )
    def test_of_an_answer(self, inside: Run, answer: Answer, expected: type[Exception], text: str) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(expected, match=text):
                    await fetch(transport, server)
                await in_time(partial(server.wait_closed, 0))

        with WireServer([answer]) as server:
            inside(main)

    def test_refused_port(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(ConnectionFailedError, match=f"cannot connect to 127.0.0.1:{server.port}"):
                    await fetch(transport, server)

        with WireServer(accept="refuse") as server:
            inside(main)

    def test_certificate(self, inside: Run) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(ConnectionFailedError, match="certificate verify failed: unable to get local issuer"):
                    await fetch(transport, server)

        with WireServer(anthropic_stream("x"), tls=Authority().server_context()) as server:
            inside(main)
            assert server.requests == []

    def test_trusted_certificate_is_accepted_and_reused(self, inside: Run) -> None:
        async def main() -> None:
            async with opened(verify=authority.client_context()) as transport:
                assert await fetch(transport, server) == await fetch(transport, server) != b""

        authority = Authority()
        with WireServer(anthropic_stream("x"), tls=authority.server_context()) as server:
            inside(main)
            assert [request.connection for request in server.requests] == [0, 0]

    @pytest.mark.parametrize("value", ["sk-secret\n", "sk-sécret"])
    def test_header_that_cannot_be_sent_is_named_but_not_quoted(self, inside: Run, value: str) -> None:
        async def main() -> None:
            async with opened() as transport:
                with pytest.raises(ConfigError, match="the header 'x-api-key'") as caught:
                    await fetch(transport, "http://127.0.0.1:1", **{"x-api-key": value})
                assert "cret" not in str(caught.value)

        inside(main)


class TestOwnClient:
    def test_is_used_as_it_is_and_never_closed(self, inside: Run) -> None:
        async def main() -> None:
            async with httpx2.AsyncClient(trust_env=False, headers={"x-mine": "1"}, follow_redirects=True) as client:
                transport = AsyncHTTPX2Transport(client=client)
                response = await transport.send(request_to(server), running())
                assert response.status == 302
                await response.close()
                assert await fetch(transport, server) == b"whole"
                await transport.close()
                assert not client.is_closed

        with WireServer([Answer(status=302, headers=[("location", "/x")]), TEXT]) as server:
            inside(main)
            assert [request.header("x-mine") for request in server.requests] == ["1", "1"]

    def test_connection_is_shut_when_the_answer_is_left_early(self, inside: Run) -> None:
        async def main() -> None:
            async with httpx2.AsyncClient(trust_env=False) as client:
                response = await AsyncHTTPX2Transport(client=client).send(request_to(server), running())
                await anext(aiter(response))
                await response.close()
                await in_time(partial(server.wait_closed, 0))

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            inside(main)

    def test_abort_while_nobody_reads_leaves_nothing_to_the_garbage_collector(self, inside: Run) -> None:
        async def main() -> None:
            async with httpx2.AsyncClient(trust_env=False) as client:
                clocks = running()
                response = await AsyncHTTPX2Transport(client=client).send(request_to(server), clocks)
                await anext(aiter(response))
                clocks.abort()
                await response.close()
                await in_time(partial(server.wait_closed, 0))

        with WireServer(Answer(body=[b"x", Stall()])) as server:
            inside(main)  # a generator that is left open is a ResourceWarning under trio
