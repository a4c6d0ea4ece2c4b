"""The event loop that runs here: asyncio's (or uvloop's) or trio's, seen from outside.

An async transport needs three things of its loop that anyio offers only from within: a key for what belongs to it, a way to run
something on it from any thread, and a task that outlives the one that asked for it (to close a connection while its reader is being
cancelled).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    import trio

__all__ = ["AsyncioLoop", "Loop", "TrioLoop", "current_loop"]

_tasks: set[asyncio.Task[None]] = set()
"""asyncio keeps only weak references to its tasks."""


class AsyncioLoop:
    """An asyncio event loop. Only inside it: `spawn`."""

    library = "asyncio"

    def __init__(self, native: asyncio.AbstractEventLoop) -> None:
        self.native = native

    @property
    def closed(self) -> bool:
        """Whether it will never run again."""
        return self.native.is_closed()

    def call(self, function: Callable[[], None]) -> None:
        """Run `function` on the loop: now, if we are on it, else as soon as it turns. Any thread; nothing happens if it is closed."""
        try:
            here = asyncio.get_running_loop() is self.native
        except RuntimeError:
            here = False
        if here:
            function()
            return
        with contextlib.suppress(RuntimeError):
            self.native.call_soon_threadsafe(function)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> anyio.Event:
        """Run `work` in a task of its own; the event is set when it has ended."""
        done = anyio.Event()
        task = self.native.create_task(work())
        _tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            _tasks.discard(task)
            done.set()

        task.add_done_callback(ended)
        return done


class TrioLoop:
    """A trio run. Only inside it: `spawn`."""

    library = "trio"

    def __init__(self, native: trio.lowlevel.TrioToken) -> None:
        self.native = native

    @property
    def closed(self) -> bool:
        """Whether it will never run again."""
        from trio import RunFinishedError

        try:
            self.native.run_sync_soon(lambda: None, idempotent=True)
        except RunFinishedError:
            return True
        return False

    def call(self, function: Callable[[], None]) -> None:
        """As `AsyncioLoop.call`."""
        from trio import RunFinishedError
        from trio.lowlevel import current_trio_token

        try:
            here = current_trio_token() is self.native
        except RuntimeError:
            here = False
        if here:
            function()
            return
        with contextlib.suppress(RunFinishedError):
            self.native.run_sync_soon(function)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> anyio.Event:
        """As `AsyncioLoop.spawn`."""
        from trio.lowlevel import spawn_system_task

        done = anyio.Event()

        async def run() -> None:
            try:
                await work()
            finally:
                done.set()

        spawn_system_task(run)
        return done


Loop = AsyncioLoop | TrioLoop


def current_loop() -> Loop:
    """The loop that runs in this thread. Raises RuntimeError outside of one."""
    if "trio" in sys.modules:
        from trio.lowlevel import current_trio_token, in_trio_task

        if in_trio_task():
            return TrioLoop(current_trio_token())
    return AsyncioLoop(asyncio.get_running_loop())
