"""Events in, message out: the one fold from a stream to an answer, honest at every point.

Strategy. One entry per block, keyed by index. Deltas go to `Fragments` and are joined when someone asks; a finished block
(`BlockStop.block`) replaces them. Every `push` is O(size of the event); `partial()` is O(what is there). The frequent deltas are
tested for first, by class identity (`isinstance` of a Struct goes through ABCMeta, four times as slow); the rest is one `match`.
"""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.errors import IncompleteStreamError, ProtocolError, ProviderError
from dragoman.event import (
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    Failed,
    MessageStart,
    MessageStop,
    Notice,
    Retrying,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    UsageUpdate,
)
from dragoman.fragments import JOIN_EVERY, Fragments, parse_input
from dragoman.message import (
    Audio,
    Block,
    Citation,
    Extra,
    InvalidToolUse,
    Message,
    Origin,
    Refusal,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
)
from dragoman.response import Response, StopReason, Usage

__all__ = ["Accumulator", "merge_extra"]

_DELTAS: dict[type[Event], tuple[type[Block], ...]] = {
    TextDelta: (Text, Refusal, Audio),
    ThinkingDelta: (Thinking,),
    SignatureDelta: (Thinking,),
    ToolInputDelta: (ToolUse, ServerToolUse),
    CitationDelta: (Text,),
}
"""Which block each delta fits."""


_PIECES: dict[type[Block], type[Event]] = {
    **dict.fromkeys((Text, Refusal, Audio), TextDelta),
    Thinking: ThinkingDelta,
    **dict.fromkeys((ToolUse, ServerToolUse), ToolInputDelta),
}
"""Which delta brings the pieces of which block."""


class _Entry:
    """One block: as it started, what came since, and as it ended."""

    __slots__ = ("citations", "done", "fragments", "pieces", "signature", "start", "takes")

    def __init__(self, start: Block) -> None:
        self.start = start
        self.done: Block | None = None
        self.takes: type[Event] | None = _PIECES.get(type(start))
        """The delta that brings more of this block, while it is open."""
        self.fragments = Fragments()
        self.pieces = self.fragments.pieces
        self.signature: list[str] = []
        self.citations: list[Citation] = []

    def block(self, *, stopped: bool) -> Block:
        """The block so far; `stopped` says that no more will come, so a tool's input may be parsed."""
        if self.done is not None:
            return self.done
        match self.start:
            case Text(text):
                return replace(self.start, text=text + self.fragments.text(), citations=[*self.start.citations, *self.citations])
            case Refusal(text):
                return replace(self.start, text=text + self.fragments.text())
            case Audio():
                return replace(self.start, transcript=self.start.transcript + self.fragments.text())
            case Thinking(text):
                signature = self.start.signature + "".join(self.signature)
                return replace(self.start, text=text + self.fragments.text(), signature=signature)
            case ToolUse(id, name) | ServerToolUse(id, name):
                raw = self.fragments.text()
                value = (parse_input(raw) if raw else self.start.input) if stopped else "incomplete"
                if isinstance(value, dict):
                    return replace(self.start, input=value)
                extra = self.start.extra
                if isinstance(self.start, ServerToolUse):
                    extra = {**extra, "dragoman": {"server_tool": True}}  # nobody has to answer it
                return InvalidToolUse(id, name, raw, reason=value, extra=extra)
            case block:
                return block


class Accumulator:
    """Folds the events of one call. Not thread-safe; one per call.

    `usage`, `stop`, `raw_stop` and `error` may be read at any time.
    """

    __slots__ = (
        "__weakref__",
        "_attempts",
        "_end",
        "_entries",
        "_latest",
        "_latest_index",
        "_notices",
        "_over",
        "_start",
        "_usage",
        "error",
        "raw_stop",
        "stop",
    )

    def __init__(self) -> None:
        self._usage: Usage | None = None
        self.stop: StopReason | None = None
        self.raw_stop = ""
        self.error: ProviderError | None = None
        self._entries: dict[int, _Entry] = {}
        self._latest: _Entry | None = None  # of `_entries`: most deltas are for the block that started last
        self._latest_index = -1
        self._start: MessageStart | None = None
        self._end: MessageStop | None = None
        self._notices: list[Notice] = []
        self._attempts = 1
        self._over = False

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._usage or Usage()

    def push(self, event: Event) -> None:
        """Take the next event.

        Raises the error that a Failed event carries (its `partial` and `usage` filled in), ProtocolError for an event that contradicts
        what came before, RuntimeError after the end. What had arrived is kept in every case.
        """
        if self._over:
            raise RuntimeError("the stream has ended: push takes no event after MessageStop or Failed")
        if type(event) is TextDelta:
            piece = event.text
        elif type(event) is ToolInputDelta:
            piece = event.json
        elif type(event) is ThinkingDelta:
            piece = event.text
        else:
            self._push(event)
            return
        entry = self._latest if event.index == self._latest_index else self._entries.get(event.index)
        if entry is None or entry.takes is not event.__class__:
            entry = self._open(event)
        pieces = entry.pieces
        pieces.append(piece)
        if len(pieces) >= JOIN_EVERY:
            entry.fragments.join()

    def _push(self, event: Event) -> None:
        # by the exact class: `isinstance` of a Struct that it is not goes through ABCMeta
        if type(event) is BlockStart:
            if event.index != len(self._entries):
                raise ProtocolError(f"block_start {event.index} out of order: the next index is {len(self._entries)}")
            self._entries[event.index] = self._latest = _Entry(event.block)
            self._latest_index = event.index
        elif type(event) is BlockStop:
            entry = self._entries.get(event.index)
            if entry is None or entry.done is not None:
                raise ProtocolError(f"block_stop for block {event.index}, which is not open")
            entry.done = event.block if event.block is not None else entry.block(stopped=True)
            entry.takes = None
            entry.fragments = Fragments()
            entry.pieces = entry.fragments.pieces
        elif type(event) is MessageStart:
            if self._start is not None:
                raise ProtocolError("a second message_start")
            self._start = event
            self._usage = event.usage or self._usage
        elif type(event) is SignatureDelta:
            self._open(event).signature.append(event.signature)
        elif type(event) is CitationDelta:
            self._open(event).citations.append(event.citation)
        elif type(event) is UsageUpdate:
            self._usage = event.usage
        elif type(event) is MessageStop:
            self._finish(event)
            for entry in self._entries.values():
                entry.done = entry.block(stopped=False)
            self._end = event
        elif type(event) is Failed:
            self._finish(event)
            self.error = error = event.error
            if self._start is not None:  # what this call gave: a scripted error may have been raised by an earlier one
                error.partial, error.usage = self.partial(), self.usage
            raise error
        elif type(event) is Notice:
            self._notices.append(event)
        elif type(event) is Retrying:
            self._attempts = event.attempt + 1
        # else OpaqueEvent, and kinds still to come

    def _finish(self, event: MessageStop | Failed) -> None:
        self._over = True
        self.stop = event.stop
        self.raw_stop = event.raw_stop
        self._usage = event.usage or self._usage

    def _open(self, event: TextDelta | ThinkingDelta | ToolInputDelta | SignatureDelta | CitationDelta) -> _Entry:
        entry = self._entries.get(event.index)
        if entry is not None and entry.done is None and isinstance(entry.start, _DELTAS[type(event)]):
            return entry
        if entry is None:
            block = "no such block was started"
        else:
            block = f"the block is of type {entry.start.type}" + " and finished" * (entry.done is not None)
        raise ProtocolError(f"{event.type} for block {event.index}: {block}")

    # ---- what there is

    def block(self, index: int) -> Block:
        """Block `index` so far. Raises KeyError if it has not started."""
        return self._entries[index].block(stopped=False)

    def partial(self) -> Message:
        """The message so far, at any time: finished blocks whole, open text as it stands, an open call as InvalidToolUse."""
        return Message(
            "assistant",
            [entry.block(stopped=False) for entry in list(self._entries.values())],  # a copy: another thread may close the stream
            origin=self._origin(),
            extra=self._end.message_extra if self._end is not None else {},
        )

    def message(self) -> Message:
        """The finished message. Raises the stream's error if it failed, IncompleteStreamError before the end."""
        if self._end is None:
            if self.error is not None:
                raise self.error
            raise IncompleteStreamError("the stream has not ended", partial=self.partial(), usage=self.usage)
        return self.partial()

    def response(self) -> Response:
        """The finished response. Raises as `message()`."""
        message = self.message()
        end, start = self._end, self._start or MessageStart("", "", provider="", wire="")
        assert end is not None
        return Response(
            message=message,
            stop=end.stop,
            raw_stop=end.raw_stop,
            stop_sequence=end.stop_sequence,
            stop_details=end.stop_details,
            usage=self.usage,
            id=start.id,
            model=start.model,
            request_id=start.request_id,
            attempts=self._attempts,
            notices=self._notices,
            extra=merge_extra(start.extra, end.extra),
        )

    def _origin(self) -> Origin | None:
        start = self._start
        return None if start is None else Origin(start.provider, start.model, start.wire)


def merge_extra(first: Extra, second: Extra) -> Extra:
    """Both, the second's keys winning within each wire's table."""
    return {wire: {**first.get(wire, {}), **second.get(wire, {})} for wire in [*first, *(w for w in second if w not in first)]}
