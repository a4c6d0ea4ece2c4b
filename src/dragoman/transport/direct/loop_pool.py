"""The connections of one asyncio loop, the buffers that they share, and what it takes to let go of them in time.

The loop itself closes them at its end: an async generator that is waiting in a loop is closed by the loop's `shutdown_asyncgens` (which
`asyncio.run` calls), and ours closes the connections then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable
from itertools import chain

from dragoman.transport import Clocks
from dragoman.transport.direct.loop_connection import LoopConnection
from dragoman.transport.direct.options import READ_SIZE, Options
from dragoman.transport.direct.pool import Pool
from dragoman.transport.direct.tls import plain_buffer

__all__ = ["OfLoop", "call_on", "close_all", "sleep"]


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    """Run `function` on the loop: now, if we are on it, else as soon as it turns. Any thread; nothing happens if it is closed."""
    try:
        here = asyncio.get_running_loop() is loop
    except RuntimeError:
        here = False
    if here:
        function()
        return
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function)


class OfLoop:
    """The connections of one loop, and the buffers that they share. `forget` is called when the loop ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: Options, forget: Callable[[], object]) -> None:
        self.loop = loop
        self.pool: Pool[LoopConnection] = Pool(options)
        self.buffer = memoryview(bytearray(READ_SIZE))
        self.plain = plain_buffer()
        self._keeper = _until_the_loop_ends(self.pool, forget)

    async def begin(self) -> None:
        await anext(self._keeper)

    def close(self) -> None:
        """Close all connections. On the loop."""
        close_all(chain(*self.pool.clear()))

    def discard(self) -> None:
        """The loop is closed."""
        for connection in chain(*self.pool.clear()):
            connection.discard()


async def _until_the_loop_ends(pool: Pool[LoopConnection], forget: Callable[[], object]) -> AsyncGenerator[None, None]:
    """Closes the connections of a loop when it ends, and when nobody has the transport any more: so this must not hold it."""
    try:
        yield
    finally:
        forget()
        close_all(chain(*pool.clear()))
        await asyncio.sleep(0)  # asyncio closes the sockets in its next turn


def close_all(connections: Iterable[LoopConnection]) -> None:
    for connection in connections:
        connection.abort()


async def sleep(seconds: float, clocks: Clocks) -> None:
    """Wait so many seconds, at most until `clocks.abort()`."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def end() -> None:
        if not done.done():
            done.set_result(None)

    timer = loop.call_later(seconds, end)
    clocks.on_abort(lambda: call_on(loop, end))
    try:
        await done
    finally:
        timer.cancel()
