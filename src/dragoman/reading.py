"""One answer as it is read: which of its events may be handed out, and when. No I/O, no waiting.

Strategy. Nearly every read of a stream brings a few deltas: after the first content they are decoded and handed out as they are, and
nobody else is asked. All else takes the longer way of `_weighed`: what comes before the first BlockStart is held back, so that a retried
attempt leaves no trace, and the terminal event ends the reading; what to do then is the call's decision. Until content comes, a read is
looked at a few events at a time, so that the first token of a burst does not wait for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dragoman.errors import ERROR_BODY_LIMIT, ProviderError
from dragoman.event import BlockStart, Event, Failed, MessageStop, TextDelta, ThinkingDelta, ToolInputDelta
from dragoman.message import Audio, Refusal, ServerToolUse, Text, Thinking, ToolUse
from dragoman.response import Timing
from dragoman.transport import Clocks
from dragoman.wire.base import Decoder

__all__ = ["FIRST_LOOK", "Meter", "Reading", "is_content"]

FIRST_LOOK = 256
"""Bytes that are looked at at a time until content comes, and the rest of the event in which they end."""

TERMINAL = (MessageStop, Failed)
_CONTENT = (TextDelta, ThinkingDelta, ToolInputDelta)
_EMPTY_SHELLS = (Text, Refusal, Thinking, ToolUse, ServerToolUse, Audio)


def is_content(event: Event) -> bool:
    """Whether an event brings content: a delta of text, thinking or tool input, or a block that comes whole."""
    if type(event) is BlockStart:
        return type(event.block) not in _EMPTY_SHELLS
    return type(event) in _CONTENT


class Meter:
    """What a call measures, over all its attempts: see `Timing`. `now` and `wall` are clocks in seconds, `wall` of Unix time."""

    __slots__ = ("_began", "_now", "_wall", "bytes", "finished", "first_byte", "first_content", "longest_gap", "started")

    def __init__(self, now: Callable[[], float], wall: Callable[[], float]) -> None:
        self._now = now
        self._wall = wall
        self._began = 0.0
        self.started = 0.0
        self.first_byte: float | None = None
        self.first_content: float | None = None
        self.finished: float | None = None
        self.longest_gap = 0.0
        self.bytes = 0

    def begin(self) -> None:
        """The call begins."""
        self._began, self.started = self._now(), self._wall()

    def since(self) -> float:
        """Seconds since the call began."""
        return self._now() - self._began

    def timing(self, attempts: int) -> Timing:
        """What has been measured so far."""
        return Timing(
            started=self.started,
            first_byte=self.first_byte,
            first_content=self.first_content,
            finished=self.finished,
            longest_gap=self.longest_gap,
            attempts=attempts,
            bytes=self.bytes,
        )


class Reading:
    """The body of one answer. The driver starts the clocks, and gives it what it reads, and how reading ended, until `over`.

    `refused`: the status says that the body is an error. `told` may add to the events that are handed out first.
    """

    __slots__ = (
        "_body_of_error",
        "_decoder",
        "_flows",
        "_heeds_content",
        "_meter",
        "_plain",
        "_rest",
        "_told",
        "clocks",
        "events",
        "more",
        "out",
        "over",
    )

    def __init__(
        self, decoder: Decoder, *, refused: bool, clocks: Clocks, meter: Meter, told: Callable[[list[Event]], list[Event]]
    ) -> None:
        self.events: list[Event] = []
        """What was not handed out. When the reading is over, the last of them is the terminal event."""
        self.out = False
        """Whether events have been handed out."""
        self.over = False
        """Whether the answer is at its end: nothing more need be read."""
        self.more = False
        """Whether something has come that was not looked at yet: then `go_on` before the next read."""
        self.clocks = clocks
        """Those of the attempt."""
        self._rest = b"", 0  # where that is
        self._decoder = decoder
        self._heeds_content = clocks.content_idle is not None
        self._meter = meter
        self._told = told
        self._body_of_error = 0 if refused else None  # bytes
        self._flows = False  # content was handed out: from now on nearly all is deltas
        self._plain = False  # and nobody else is to be asked about them

    def take(self, data: bytes) -> Sequence[Event]:
        """The wait has brought these bytes: the events to hand out now."""
        wait = self.clocks.arrived()
        meter = self._meter
        meter.bytes += len(data)
        if self._plain:  # as nearly always: what follows, without the steps
            if wait > meter.longest_gap:
                meter.longest_gap = wait
            events = self._decoder.feed(data)
            return events if events and type(events[-1]) not in TERMINAL else self._weighed(events)
        if meter.first_byte is None:
            meter.first_byte = meter.since()
        elif wait > meter.longest_gap:
            meter.longest_gap = wait
        return self._fed(data) if self._flows or self._body_of_error is not None else self._begun(data)

    def go_on(self) -> Sequence[Event]:
        """Look at what the latest read has left: the events to hand out now."""
        data, begin = self._rest
        self.more, self._rest = False, (b"", 0)
        return self._fed(data[begin:]) if self._flows else self._begun(data, begin)

    def _fed(self, data: bytes) -> Sequence[Event]:
        events = self._decoder.feed(data)
        if events:
            if self._heeds_content:
                self.clocks.content()
            if self._flows and type(events[-1]) not in TERMINAL:
                return events
        elif self._body_of_error is not None:
            self._body_of_error += len(data)
            if self._body_of_error >= ERROR_BODY_LIMIT:
                return self._ended(self._decoder.close())
        return self._weighed(events)

    def _begun(self, data: bytes, begin: int = 0) -> Sequence[Event]:
        """Before there is content, a few events at a time: the first of it does not wait until all that came with it was looked at."""
        events: list[Event] = []
        while begin < len(data) and not self._flows and not self.over:
            end = data.find(b"\n\n", begin + FIRST_LOOK) + 2
            if end < 2:  # no such end, or the rest of it is no whole event
                end = len(data)
            events += self._fed(data[begin:end])
            begin = end
        if begin < len(data) and not self.over:
            self.more, self._rest = True, (data, begin)
        return events

    def end(self, error: ProviderError | None) -> Sequence[Event]:
        """The wait has come to the end of the body, or reading failed: the events to hand out now."""
        self.leave()
        return self._ended(self._decoder.close(error))

    def leave(self) -> None:
        """The wait has ended with nothing."""
        wait = self.clocks.pause()
        if wait > self._meter.longest_gap and self._meter.first_byte is not None:
            self._meter.longest_gap = wait

    def _ended(self, events: list[Event]) -> Sequence[Event]:
        handed_out = self._weighed(events)
        self.over = True
        return handed_out

    def _weighed(self, events: list[Event]) -> Sequence[Event]:
        """Hold back, or hand out."""
        if not events:
            return events
        meter = self._meter
        if meter.first_content is None and any(map(is_content, events)):
            meter.first_content = meter.since()
        self.over = type(events[-1]) in TERMINAL
        if self.over:
            self.events += events
            return ()
        if not self.out:
            self.events += events
            if BlockStart not in map(type, events):
                return ()
            self.out = True
            events, self.events = self._told(self.events), []
        self._flows = meter.first_content is not None
        self._plain = self._flows and not self._heeds_content and self._body_of_error is None
        return events
