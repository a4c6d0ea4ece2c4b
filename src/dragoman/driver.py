"""The two drivers: they carry out the steps of a `Call`, one blocking, one awaiting. Neither decides anything.

A driver is a `Source` of a stream: `pull` runs the call until there are events to hand out, `abort` ends it at once from wherever. While
a body is read, each piece goes from the transport to the call's `Reading` and comes back as events; the steps of the call are asked again
when that is over. No event loop is imported: the async transport offers what has to be awaited, `sleep` too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Sequence
from threading import Event as Flag
from typing import Any

from dragoman.call import Body, Call, Emit, Head, Release, Send, Sleep, Step
from dragoman.errors import ConnectionFailedError, ProviderError
from dragoman.event import Event
from dragoman.reading import Reading
from dragoman.response import RateLimits, Timing
from dragoman.transport import (
    Arrived,
    AsyncHTTPResponse,
    AsyncTransport,
    HTTPResponse,
    PolledResponse,
    SleepingTransport,
    Transport,
    can_be_polled,
    wait_in_steps,
)

__all__ = ["AsyncCallSource", "CallSource"]


def _mapped(error: OSError, call: Call) -> ProviderError:
    """What a transport let through. Ours map their foreign exceptions themselves; a plug-in may leave those of the system to us."""
    if isinstance(error, TimeoutError):
        mapped: ProviderError = call.clocks.expired()
    else:
        mapped = ConnectionFailedError(type(error).__name__)
    mapped.__cause__ = error
    return mapped


class _SourceBase:
    """What both drivers know."""

    __slots__ = ("_aborted", "_call", "_reading", "_reply", "_steps")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._steps: Generator[Step, Any, None] = call.steps()
        self._reading: Reading | None = None  # while a body is read
        self._reply: Head | ProviderError | None = None  # how the latest step went
        self._aborted = False

    @property
    def timing(self) -> Timing:
        """What the call has measured."""
        return self._call.timing

    @property
    def rate_limits(self) -> RateLimits | None:
        """What the answer's headers said."""
        return self._call.rate_limits

    def _next_step(self) -> Step | None:
        """What to do next; None: the call is over."""
        reply, self._reply = self._reply, None
        try:
            if isinstance(reply, ProviderError):
                return self._steps.throw(reply)
            return self._steps.send(reply)
        except StopIteration:
            return None

    def _came(self, reading: Reading, data: bytes, error: ProviderError | OSError | None = None) -> Sequence[Event]:
        """The wait is over: bytes, the end of the body (no bytes), or an error. The events to hand out."""
        if self._aborted:
            reading.leave()
            return ()
        if data:
            events = reading.take(data)
        else:
            if isinstance(error, OSError):
                error = _mapped(error, self._call)
            events = reading.end(None if error is None else self._call.named(error))
        if reading.over:
            self._reading = None
        return events

    def _gone_on(self, reading: Reading) -> Sequence[Event]:
        """Look at what a read has left. The events to hand out."""
        if self._aborted:
            return ()
        events = reading.go_on()
        if reading.over:
            self._reading = None
        return events


class CallSource(_SourceBase):
    """The blocking driver. `abort` may come from any thread, at any time."""

    __slots__ = ("_body", "_response", "_transport", "_wake")

    def __init__(self, call: Call, transport: Transport) -> None:
        super().__init__(call)
        self._transport = transport
        self._response: HTTPResponse | None = None
        self._body: Iterator[bytes] = iter(())
        self._wake = Flag()

    def pull(self) -> Sequence[Event]:
        """Go on until there are events. Without any the call is over, or was aborted."""
        try:
            while True:
                reading = self._reading
                if reading is None:
                    step = self._next_step()
                    if step is None:
                        return ()
                    if type(step) is Emit:
                        return step.events
                    self._carry_out(step)
                elif events := self._read(reading):
                    return events
                if self._aborted:
                    return ()
        except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
            if self._reading is not None:
                self._reading.leave()
            self.abort()
            raise

    def _read(self, reading: Reading) -> Sequence[Event]:
        """Read once, or go on with what the latest read has left."""
        if reading.more:
            return self._gone_on(reading)
        data = b""
        reading.clocks.resume()
        try:
            for data in self._body:
                if data:
                    break
            else:
                data = b""
        except (ProviderError, OSError) as error:
            return self._came(reading, b"", error)
        return self._came(reading, data)

    def _carry_out(self, step: Step) -> None:
        """Any step but Emit, which is for `pull`."""
        try:
            if type(step) is Send:
                clocks = step.clocks
                clocks.resume()
                try:
                    self._response = response = self._transport.send(step.request, clocks)
                finally:
                    clocks.pause()
                if self._aborted:  # between the answer's head and the line above
                    response.close()
                self._body = iter(response)
                self._reply = Head(response.status, response.headers)
            elif type(step) is Body:
                self._reading = step.reading
            elif type(step) is Release:
                self._release()
            elif type(step) is Sleep:
                if isinstance(self._transport, SleepingTransport):
                    self._transport.sleep(step.seconds, step.clocks)
                else:
                    wait_in_steps(self._wake, step.seconds)
        except ProviderError as error:
            self._reply = error
        except OSError as error:
            self._reply = _mapped(error, self._call)

    def _release(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            response.close()

    def abort(self) -> None:
        """Stop at once: wake a waiting thread, shut the connection."""
        self._aborted = True
        self._wake.set()
        self._call.clocks.abort()
        self._release()


class AsyncCallSource(_SourceBase):
    """The driver for an event loop. `pull` is made of `poll`, `arrival` and `woken`, which a stream uses itself: where the transport offers
    the same (see `PolledResponse`), nothing but the consumer's own coroutines has to be woken when bytes come.
    """

    __slots__ = ("_body", "_going_on", "_polled", "_ready", "_response", "_transport", "arrival")

    def __init__(self, call: Call, transport: AsyncTransport) -> None:
        super().__init__(call)
        self._transport = transport
        self._response: AsyncHTTPResponse | None = None
        self._body: AsyncIterator[bytes] | None = None
        self._polled: PolledResponse | None = None  # the body, if it can be polled and the call is not aborted
        self.arrival: Awaitable[object]
        """After a `poll` or `woken` that gave None: what to wait for. If the wait is cancelled the source must be aborted and closed."""
        self._ready: Sequence[Event] | None = None  # what `_go_on` has found
        self._going_on = False

    async def pull(self) -> Sequence[Event]:
        """Go on until there are events. Without any the call is over, or was aborted."""
        try:
            events = self.poll()
            while events is None:
                events = self.woken(await self.arrival)
        except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
            self.abort()
            await self.close()
            raise
        return events

    def poll(self) -> Sequence[Event] | None:
        """The events that are there; none: the call is over, or was aborted. None: await `arrival`, and tell `woken`."""
        reading, polled = self._reading, self._polled
        while reading is not None and polled is not None:
            if reading.more:
                if events := self._gone_on(reading):
                    return events
                reading, polled = self._reading, self._polled
                continue
            try:
                data = polled.take()
            except (ProviderError, OSError) as error:
                events = self._came(reading, b"", error)
            else:
                if data is None:
                    reading.clocks.resume()
                    self.arrival = polled.arrival
                    return None
                events = reading.take(data) if data else self._came(reading, data)
                if reading.over:
                    self._reading = None
            if events:
                return events
            reading, polled = self._reading, self._polled
        ready, self._ready = self._ready, None
        if ready is None:
            self.arrival = self._go_on()
        return ready

    def woken(self, arrived: object) -> Sequence[Event] | None:
        """The wait for `arrival` has given this: then as `poll`."""
        reading = self._reading
        if type(arrived) is Arrived and reading is not None and not self._aborted:
            events = reading.take(arrived.data)
            if reading.over:
                self._reading = None
            if events:
                return events
        return self.poll()

    async def _go_on(self) -> None:
        """Carry out steps, and read what cannot be polled, until there are events or a body to poll."""
        self._going_on = True
        try:
            while self._ready is None and not self._aborted:
                reading = self._reading
                if reading is None:
                    step = self._next_step()
                    if step is None:
                        self._ready = ()
                    elif type(step) is Emit:
                        self._ready = step.events
                    else:
                        await self._carry_out(step)
                elif self._polled is not None:
                    return
                else:
                    self._ready = await self._read(reading) or None
        except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
            self.abort()
            raise
        finally:
            self._going_on = False
            if self._aborted:
                self._ready = ()
                await self._release()

    async def _read(self, reading: Reading) -> Sequence[Event]:
        """Read once, or go on with what the latest read has left."""
        if reading.more:
            return self._gone_on(reading)
        body = self._body
        assert body is not None
        data = b""
        reading.clocks.resume()
        try:
            while not data:
                data = await anext(body)
        except StopAsyncIteration:
            pass
        except (ProviderError, OSError) as error:
            return self._came(reading, b"", error)
        return self._came(reading, data)

    async def _carry_out(self, step: Step) -> None:
        """Any step but Emit, which is for `poll`."""
        try:
            if type(step) is Send:
                clocks = step.clocks
                clocks.resume()
                try:
                    self._response = response = await self._transport.send(step.request, clocks)
                finally:
                    clocks.pause()
                self._reply = Head(response.status, response.headers)
                self._polled = self._body = None
                if not can_be_polled(response):
                    self._body = aiter(response)
                elif not self._aborted:
                    self._polled = response
            elif type(step) is Body:
                self._reading = step.reading
            elif type(step) is Release:
                await self._release()
            elif type(step) is Sleep:
                if hasattr(self._transport, "sleep"):
                    await self._transport.sleep(step.seconds, step.clocks)
                else:  # a plug-in that only sends
                    from dragoman.transport.loops import sleep

                    await sleep(step.seconds, step.clocks)
        except ProviderError as error:
            self._reply = error
        except OSError as error:
            self._reply = _mapped(error, self._call)

    async def _release(self) -> None:
        response, self._response, self._polled = self._response, None, None
        if response is not None:
            await response.close()

    def abort(self) -> None:
        """Stop at once, without waiting: the transport shuts the connection."""
        if not self._aborted and self._reading is not None:
            self._reading.leave()
        self._aborted, self._polled = True, None
        self._call.clocks.abort()

    async def close(self) -> None:
        """Wait until the connection is shut. What goes on in another task does it itself."""
        if not self._going_on:
            await self._release()
