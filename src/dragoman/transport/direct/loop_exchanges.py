"""Sends over the running loop's own connections. Each loop has its own, see `loop_pool.py`.

A loop that was closed without its last step (`shutdown_asyncgens`) is found by the next call from another loop, and its sockets are
dropped silently.
"""

from __future__ import annotations

import asyncio
import warnings
from threading import Lock
from weakref import ref

from dragoman.errors import ConfigError
from dragoman.transport import Clocks
from dragoman.transport.direct.loop_exchange import LoopExchange
from dragoman.transport.direct.loop_pool import OfLoop
from dragoman.transport.direct.options import Options
from dragoman.transport.direct.request import Heads
from dragoman.wire.base import HTTPRequest

__all__ = ["LoopExchanges"]


class LoopExchanges:
    """Sends over the running loop's own connections."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._heads = Heads()
        self._lock = Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, OfLoop] = {}

    async def send(self, request: HTTPRequest, clocks: Clocks) -> LoopExchange:
        """See `Transport.send`."""
        outgoing = self._heads.of(request)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError as error:
            raise ConfigError("the direct transport needs asyncio: use AsyncHTTPX2Transport with other event loops") from error
        here = self._by_loop.get(loop) or await self._new(loop)
        exchange = LoopExchange(here, outgoing, self._options, clocks)
        await exchange.send()
        return exchange

    async def close(self) -> None:
        """Close this loop's connections. Other loops may be in the middle of calls: they close theirs at their end."""
        here = self._by_loop.get(asyncio.get_running_loop())
        if here is not None:
            here.close()
            await asyncio.sleep(0)

    def forget(self, loop: asyncio.AbstractEventLoop) -> None:
        """A loop has ended."""
        self._by_loop.pop(loop, None)

    async def _new(self, loop: asyncio.AbstractEventLoop) -> OfLoop:
        with self._lock:
            by_loop = self._by_loop
            this: ref[LoopExchanges] = ref(self)
            here = by_loop[loop] = OfLoop(loop, self._options, lambda: None if (owner := this()) is None else owner.forget(loop))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                for stale in [other for other in by_loop if other.is_closed()]:
                    by_loop.pop(stale).discard()
        await here.begin()
        return here
