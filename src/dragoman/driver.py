"""The two drivers: they carry out the steps of a `Call`, one blocking, one awaiting. Neither decides anything.

A driver is a `Source` of a stream: `pull` runs the call until there are events to hand out, `abort` ends it at once from wherever. No
event loop is imported: the async transport offers what has to be awaited, `sleep` too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from threading import Event as Flag
from typing import Any

from dragoman.call import Call, Emit, Head, Read, Release, Send, Sleep, Step
from dragoman.errors import ConnectionFailedError, ProviderError
from dragoman.event import Event
from dragoman.response import RateLimits, Timing
from dragoman.transport import AsyncHTTPResponse, AsyncTransport, HTTPResponse, SleepingTransport, Transport

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

    def __init__(self, call: Call) -> None:
        self._call = call
        self._steps: Generator[Step, Any, None] = call.steps()
        self._aborted = False

    @property
    def timing(self) -> Timing:
        """What the call has measured."""
        return self._call.timing

    @property
    def rate_limits(self) -> RateLimits | None:
        """What the answer's headers said."""
        return self._call.rate_limits


class CallSource(_SourceBase):
    """The blocking driver. `abort` may come from any thread, at any time."""

    def __init__(self, call: Call, transport: Transport) -> None:
        super().__init__(call)
        self._transport = transport
        self._response: HTTPResponse | None = None
        self._body: Iterator[bytes] = iter(())
        self._wake = Flag()

    def pull(self) -> Sequence[Event]:
        """Carry out steps until there are events. None: the call is over, or was aborted."""
        steps = self._steps
        try:
            step = next(steps)
            while type(step) is not Emit:
                try:
                    answer = self._read() if type(step) is Read else self._carry_out(step)
                except (ProviderError, OSError) as error:
                    if self._aborted:
                        return []
                    step = steps.throw(error if isinstance(error, ProviderError) else _mapped(error, self._call))
                else:
                    if self._aborted:
                        return []
                    step = steps.send(answer)
        except StopIteration:
            return []
        except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
            self.abort()
            raise
        return step.events

    def _carry_out(self, step: Step) -> Head | None:
        match step:
            case Send(request, clocks):
                clocks.resume()
                try:
                    self._response = response = self._transport.send(request, clocks)
                finally:
                    clocks.pause()
                if self._aborted:  # between the answer's head and the line above
                    response.close()
                self._body = iter(response)
                return Head(response.status, response.headers)
            case Release():
                self._release()
            case Sleep(seconds, clocks):
                if isinstance(self._transport, SleepingTransport):
                    self._transport.sleep(seconds, clocks)
                else:
                    self._wake.wait(seconds)
            case Read() | Emit():  # `pull` does these itself
                pass
        return None

    def _read(self) -> bytes:
        clocks = self._call.clocks
        clocks.resume()
        try:
            for data in self._body:
                if data:
                    return data
            return b""
        finally:
            self._call.waited(clocks.pause())

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
    """The driver for an event loop."""

    def __init__(self, call: Call, transport: AsyncTransport) -> None:
        super().__init__(call)
        self._transport = transport
        self._response: AsyncHTTPResponse | None = None
        self._body: AsyncIterator[bytes] | None = None
        self._pulling = False

    async def pull(self) -> Sequence[Event]:
        """Carry out steps until there are events. None: the call is over, or was aborted."""
        steps = self._steps
        self._pulling = True
        try:
            step = next(steps)
            while type(step) is not Emit:
                try:
                    answer = await (self._read() if type(step) is Read else self._carry_out(step))
                except (ProviderError, OSError) as error:
                    if self._aborted:
                        return []
                    step = steps.throw(error if isinstance(error, ProviderError) else _mapped(error, self._call))
                else:
                    if self._aborted:
                        return []
                    step = steps.send(answer)
        except StopIteration:
            return []
        except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
            self.abort()
            raise
        finally:
            self._pulling = False
            if self._aborted:
                await self._release()
        return step.events

    async def _carry_out(self, step: Step) -> Head | None:
        match step:
            case Send(request, clocks):
                clocks.resume()
                try:
                    self._response = response = await self._transport.send(request, clocks)
                finally:
                    clocks.pause()
                self._body = aiter(response)
                return Head(response.status, response.headers)
            case Release():
                await self._release()
            case Sleep(seconds, clocks):
                if hasattr(self._transport, "sleep"):
                    await self._transport.sleep(seconds, clocks)
                else:  # a plug-in that only sends
                    from dragoman.transport.loops import sleep

                    await sleep(seconds, clocks)
            case Read() | Emit():  # `pull` does these itself
                pass
        return None

    async def _read(self) -> bytes:
        clocks = self._call.clocks
        assert self._body is not None
        clocks.resume()
        try:
            async for data in self._body:
                if data:
                    return data
            return b""
        finally:
            self._call.waited(clocks.pause())

    async def _release(self) -> None:
        response, self._response = self._response, None
        if response is not None:
            await response.close()

    def abort(self) -> None:
        """Stop at once, without waiting: the transport shuts the connection."""
        self._aborted = True
        self._call.clocks.abort()

    async def close(self) -> None:
        """Wait until the connection is shut. A pull under way in another task does it itself."""
        if not self._pulling:
            await self._release()
