"""One call over either direct transport, for tests that ask the same of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

from dragoman.transport import Clocks
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.wire.base import HTTPRequest
from tests.transport.calls import running

__all__ = ["BOTH", "Fetch", "Got", "fetching"]

BOTH = pytest.mark.parametrize("library", ["threads", "asyncio"])

Got: TypeAlias = tuple[int, list[tuple[str, str]], bytes]
Fetch: TypeAlias = Callable[..., Got]


@contextmanager
def fetching(library: str, **options: Any) -> Iterator[Fetch]:
    """A function that sends a request and reads the whole answer, over one transport with these options."""
    if library == "threads":
        transport = DirectTransport(**options)

        def fetch(request: HTTPRequest, clocks: Clocks | None = None) -> Got:
            response = transport.send(request, clocks or running())
            body = response.read()
            response.close()
            return response.status, list(response.headers), body

        yield fetch
        transport.close()
        return
    with asyncio.Runner() as runner:
        on_a_loop = AsyncDirectTransport(**options)

        async def call(request: HTTPRequest, clocks: Clocks | None) -> Got:
            response = await on_a_loop.send(request, clocks or running())
            body = await response.read()
            await response.close()
            return response.status, list(response.headers), body

        def run(request: HTTPRequest, clocks: Clocks | None = None) -> Got:
            return runner.run(call(request, clocks))

        yield run
        runner.run(on_a_loop.close())
