"""What a call returns: an iterator of events that is also a context manager and remembers everything it handed out.

Strategy. A `Stream` pulls batches of events from a source (the HTTP driver, or any iterator of events), hands them out one by one and
folds each into its `Accumulator` as it goes, so `partial()` is always exactly what the consumer has seen. The sync and the async
class differ only in how they pull and close; all else is in `_StreamBase`, once.

Leaving early (`close`, `break` out of a `with`, garbage collection, cancellation) aborts the connection at once and never drains it.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Generic, Self, TypeVar

from msgspec.structs import replace

from dragoman.accumulator import Accumulator
from dragoman.errors import IncompleteStreamError, ProviderError
from dragoman.event import BlockStart, Event, Failed, MessageStart, MessageStop, Retrying, TextDelta, ThinkingDelta, ToolInputDelta
from dragoman.hooks import CallSpan, Unfinished
from dragoman.message import Message, Text
from dragoman.reading import is_content
from dragoman.response import Response, StopReason, Timing, Usage
from dragoman.sources import AsyncSource, PolledSource, Source, can_be_polled

__all__ = ["AsyncStream", "Stream"]

S = TypeVar("S", bound=Source | AsyncSource)


_DELTAS = (TextDelta, ThinkingDelta, ToolInputDelta)
"""The frequent events, of which only the accumulator need know."""


class _StreamBase(Generic[S]):
    """What both streams know and do without I/O."""

    def __init__(self, source: S, *, raises: bool, span: Callable[[], CallSpan | None] | None) -> None:
        # what every event needs comes first: attributes lie in memory in the order in which they are made
        self._batch: Iterator[Event] = iter(())
        self._accumulator = Accumulator()
        self._over = False
        self._opened = False
        self._spans: list[CallSpan] = []  # at most one; popped by the one thread that ends it
        self._source = source
        self._raises = raises
        self._texts: set[int] = set()
        self._id = ""
        self._model = ""
        self._request_id = ""
        self._response: Response | None = None
        self._make_span = span
        self._content_at: float | None = None
        self._left = False

    # ---- what there is

    def partial(self) -> Message:
        """The message as far as it was handed out; at any time, also after a failure."""
        return self._accumulator.partial()

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._accumulator.usage

    @property
    def stop(self) -> StopReason | None:
        """The stop reason, once the stream has ended."""
        return self._accumulator.stop

    @property
    def error(self) -> ProviderError | None:
        """The error that the stream ended in, if it did."""
        return self._accumulator.error

    @property
    def request_id(self) -> str:
        """The provider's id of this call, once it is known."""
        return self._request_id or (self.error.request_id if self.error is not None else "")

    @property
    def timing(self) -> Timing:
        """When things happened, so far."""
        return self._source.timing

    @property
    def closed(self) -> bool:
        """Whether no more events will come."""
        return self._over

    def raising(self) -> Self:
        """This stream, raising its error instead of handing out Failed."""
        self._raises = True
        return self

    def __repr__(self) -> str:
        state = "closed" if self._over else "open" if self._opened else "not started"
        return f"<{type(self).__name__} {self._model or '?'} {state}>"

    # ---- the steps of iteration

    def _open(self) -> None:
        self._opened = True
        make, self._make_span = self._make_span, None
        span = None if make is None else make()
        if span is not None:
            self._spans.append(span)

    def _arrived(self, batch: Sequence[Event]) -> None:
        """Tell the telemetry about a batch, before any of it is handed out."""
        for span in self._spans:
            for event in batch:
                if is_content(event):
                    now = monotonic()
                    if self._content_at is None:
                        span.first_content(self._source.timing)
                    else:
                        span.chunk(now - self._content_at)
                    self._content_at = now
                elif isinstance(event, Retrying):
                    span.retried(event)

    def _broke(self, event: Event, error: ProviderError) -> None:
        """The accumulator raised at an event: it carries the stream's error, or contradicts what came before. Raises it again unless
        it is to be handed out.
        """
        self._over = True
        self._end_failed(error)
        if not isinstance(event, Failed):
            self._source.abort()  # nothing more is read
        elif not self._raises:
            return
        raise error

    def _marked(self, event: Event) -> None:
        """Remember what an event that is no delta says about the stream."""
        if type(event) is MessageStop:
            self._over = True
            self._end_finished()
        elif type(event) is MessageStart:
            self._id, self._model, self._request_id = event.id, event.model, event.request_id or self._request_id
        elif type(event) is BlockStart and type(event.block) is Text:
            self._texts.add(event.index)

    def _piece(self, event: Event, separator: str) -> str:
        """What an event adds to the plain text."""
        if isinstance(event, TextDelta):
            return event.text if event.index in self._texts else ""
        starts = separator and isinstance(event, BlockStart) and isinstance(event.block, Text) and len(self._texts) > 1
        return separator if starts else ""

    # ---- the end, exactly once

    def _take_span(self) -> CallSpan | None:
        """The span, for the one that ends it: `close` may come from another thread at any time, and `pop` is atomic."""
        try:
            return self._spans.pop()
        except IndexError:
            return None

    def _end_finished(self) -> None:
        timing, response = self._source.timing, self._accumulator.response()
        attempts = max(timing.attempts, response.attempts)
        self._response = replace(response, timing=timing, attempts=attempts, rate_limits=self._source.rate_limits)
        span = self._take_span()
        if span is not None:
            span.finished(self._response)

    def _end_failed(self, error: ProviderError) -> None:
        span = self._take_span()
        if span is not None:
            span.failed(error, self._unfinished())

    def _end_cancelled(self) -> None:
        self._over = True
        span = self._take_span()
        if span is not None:
            span.cancelled(self._unfinished())

    def _ended_without_end(self) -> None:
        """The source has no more, and no terminal event was among what it gave (or the stream was closed meanwhile)."""
        if self._left or self._over:
            self._end_cancelled()
        else:
            self._over = True
            self._end_failed(IncompleteStreamError("the events ended without MessageStop or Failed", retryable=False))

    def _unfinished(self) -> Unfinished:
        return Unfinished(
            partial=self._accumulator.partial(),
            usage=self._accumulator.usage,
            timing=self._source.timing,
            id=self._id,
            model=self._model,
            request_id=self.request_id,
            raw_stop=self._accumulator.raw_stop,
        )

    def _finished_response(self) -> Response:
        if self._response is not None:
            return self._response
        if self.error is not None:
            raise self.error
        raise IncompleteStreamError("the stream was closed before its end", partial=self.partial(), usage=self.usage, retryable=False)


class Stream(_StreamBase[Source]):
    """The events of one call, blocking. Iterate it, or `text()`, or ask for `response()`; use `with` to be sure it is closed.

    `close()` may be called from any thread; an iteration that waits in another thread then ends.
    """

    def __init__(self, source: Source, *, raises: bool, span: Callable[[], CallSpan | None] | None = None) -> None:
        super().__init__(source, raises=raises, span=span)
        self._pulling = Lock()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        while True:
            for event in self._batch:
                try:
                    self._accumulator.push(event)
                except ProviderError as error:
                    self._broke(event, error)
                if type(event) not in _DELTAS:
                    self._marked(event)
                return event
            if self._over:
                raise StopIteration
            if not self._pulling.acquire(blocking=False):
                raise RuntimeError(f"{self!r} is being read by another thread: read it in one, and hand the events out there")
            try:
                if not self._opened:
                    self._open()
                batch = self._source.pull()
            except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
                self.close()
                raise
            finally:
                self._pulling.release()
            if not batch:
                self._ended_without_end()
                raise StopIteration
            if self._spans:
                self._arrived(batch)
            self._batch = iter(batch)

    def text(self, separator: str = "") -> Iterator[str]:
        """The text as it arrives; `separator` comes before each Text block after the first. The same iteration, text only."""
        for event in self:
            if piece := self._piece(event, separator):
                yield piece

    def response(self) -> Response:
        """The whole answer; reads what is left. May be asked again at any time. Raises the stream's error, or IncompleteStreamError if
        the stream was closed before its end.
        """
        for _ in self:
            pass
        return self._finished_response()

    def close(self) -> None:
        """Leave: abort the connection at once if the stream has not ended. Idempotent, from any thread."""
        self._batch = iter(())
        if not self._over:
            self._left = True
            self._source.abort()
            self._end_cancelled()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_opened", False) and not self._over:
            text = f"{self!r} was neither read to its end nor closed"
            self.close()  # first: the warning may be an error
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)


class AsyncStream(_StreamBase[AsyncSource]):
    """The events of one call, for an event loop. As `Stream`, with `async for`, `async with`, and `await response()`."""

    def __init__(self, source: AsyncSource, *, raises: bool, span: Callable[[], CallSpan | None] | None = None) -> None:
        self._polled: PolledSource | None = None  # if it is one, once the stream is open
        self._pulling = False
        super().__init__(source, raises=raises, span=span)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Event:
        polled = self._polled
        while True:
            for event in self._batch:
                try:
                    self._accumulator.push(event)
                except ProviderError as error:
                    self._broke(event, error)
                if type(event) not in _DELTAS:
                    self._marked(event)
                return event
            if self._over:
                raise StopAsyncIteration
            if self._pulling:
                raise RuntimeError(f"{self!r} is being read by another task: read it in one, and hand the events out there")
            self._pulling = True
            batch: Sequence[Event] | None
            try:
                if polled is not None:
                    batch = polled.poll()
                    while batch is None:
                        batch = polled.woken(await polled.arrival)
                else:
                    if not self._opened:
                        self._open()
                        self._polled = _as_polled(self._source)
                    batch = await self._source.pull()
            except BaseException:  # an interrupt, a cancellation, a bug: shut the connection, pass it on as it is
                await self.aclose()
                raise
            finally:
                self._pulling = False
            if not batch:
                self._ended_without_end()
                raise StopAsyncIteration
            if self._spans:
                self._arrived(batch)
            self._batch = iter(batch)

    def text(self, separator: str = "") -> AsyncIterator[str]:
        """The text as it arrives; `separator` comes before each Text block after the first. The same iteration, text only."""
        return _Texts(self, separator)

    async def response(self) -> Response:
        """The whole answer; reads what is left. Raises as `Stream.response`."""
        async for _ in self:
            pass
        return self._finished_response()

    async def aclose(self) -> None:
        """Leave: abort the connection at once if the stream has not ended. Idempotent."""
        self._batch = iter(())
        if not self._over:
            self._left = True
            self._source.abort()
            self._end_cancelled()
            await self._source.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if getattr(self, "_opened", False) and not self._over:
            text = f"{self!r} was neither read to its end nor closed"
            self._batch = iter(())
            self._left = True
            self._source.abort()
            self._end_cancelled()
            warnings.warn(text, ResourceWarning, source=self, stacklevel=2)


def _as_polled(source: AsyncSource) -> PolledSource | None:
    return source if can_be_polled(source) else None


class _Texts:
    """What `AsyncStream.text` gives. No async generator: an event loop has to close one that is left early, and trio warns of it."""

    def __init__(self, stream: AsyncStream, separator: str) -> None:
        self._stream = stream
        self._separator = separator

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while True:
            event = await anext(self._stream)
            if piece := self._stream._piece(event, self._separator):  # pyright: ignore[reportPrivateUsage]  # two halves of one class
                return piece
