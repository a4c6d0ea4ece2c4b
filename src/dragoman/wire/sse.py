"""Server-sent events: bytes in, frames out, by the WHATWG rules and only they.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

Strategy. Real streams end every line with LF, so the parser starts in a mode that looks for the blank line `LF LF` and cuts frames out
of the buffer by position; the shape `event: …`, `data: …` of nearly every frame is recognised by two comparisons. The first CR
switches, for good, to a parser that goes line by line and knows LF, CR and CRLF in any mixture, cut anywhere. Both are linear
in the bytes whatever the chunking: nothing is searched twice, unfinished input is kept in a growing buffer.

Lines end at LF, CR, CRLF and nothing else: U+2028, U+0085 and the like are data, which is why lines are never made with
`str.splitlines`. Data stays bytes; whoever reads it decodes it.

Two departures from the letter, both for the sake of not losing an answer: a last event without its blank line is delivered by
`close` (the letter says: drop), and fields nobody here needs (`id`, `retry`) are skipped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["EVENT_LIMIT", "EventTooLargeError", "Frame", "SSEParser"]

EVENT_LIMIT = 16 * 1024 * 1024
"""Bytes that one event may have; more is an error, so a peer cannot make us buffer without end."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Frame(NamedTuple):
    """One event: its data (lines joined by LF) and its `event` field, `b""` if it had none."""

    data: bytes
    event: bytes


class EventTooLargeError(ValueError):
    """One event grew beyond the limit."""


class SSEParser:
    """Feed it bytes in any chunks. After EventTooLargeError it must not be used again."""

    __slots__ = ("_bom", "_buffer", "_data", "_event", "_limit", "_line", "_size", "_skip_lf", "_split_lines")

    def __init__(self, *, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._bom = True  # a byte order mark may still come
        self._buffer = bytearray()  # LF mode: the unfinished event
        self._split_lines = False  # line mode: a CR was seen
        self._line: list[bytes] = []  # line mode: pieces of the unfinished line
        self._skip_lf = False  # line mode: the last byte was CR, so an LF belongs to it
        self._data: list[bytes] = []  # line mode: data lines of the unfinished event
        self._event = b""
        self._size = 0  # line mode: bytes of the unfinished event

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that these bytes complete. Frames without data are not delivered. Raises EventTooLargeError."""
        if self._bom:
            chunk = self._strip_bom(chunk)
        if self._split_lines:
            return self._feed_lines(chunk)
        buffer = self._buffer
        if b"\r" in chunk:
            self._split_lines = True
            chunk = bytes(buffer) + chunk
            buffer.clear()
            return self._feed_lines(chunk)
        if buffer:
            searched = len(buffer) - 1  # the last byte may be the first LF of the pair
            buffer += chunk
            end = buffer.rfind(b"\n\n", max(searched, 0))
            if end < 0:
                self._check(len(buffer))
                return []
            complete = bytes(memoryview(buffer)[:end])
            del buffer[: end + 2]
        else:
            end = chunk.rfind(b"\n\n")
            if end < 0:
                buffer += chunk
                self._check(len(buffer))
                return []
            complete = chunk[:end]
            buffer += chunk[end + 2 :]
        return self._cut(complete)

    def close(self) -> list[Frame]:
        """The frame that was still open at the end of input, if it has data."""
        if self._bom:  # an incomplete mark is data after all
            self._bom = False
        if not self._split_lines:
            block = bytes(self._buffer)
            self._buffer.clear()
            return self._block(block)
        if self._line:
            self._end_line(b"".join(self._line))
            self._line.clear()
        return self._end_event()

    # ---- LF mode

    def _cut(self, complete: bytes) -> list[Frame]:
        """Frames of complete events whose lines end in LF; the last one's own LF and blank line are cut off."""
        frames: list[Frame] = []
        check = len(complete) > self._limit
        for block in complete.split(b"\n\n"):
            if check:
                self._check(len(block))
            if block.startswith(b"event: "):
                end = block.find(b"\n")
                if end > 0 and block.startswith(b"data: ", end + 1) and len(block) > end + 7 and block.find(b"\n", end + 7) < 0:
                    frames.append(Frame(block[end + 7 :], block[7:end]))
                    continue
            elif len(block) > 6 and block.startswith(b"data: ") and block.find(b"\n", 6) < 0:
                frames.append(Frame(block[6:], b""))
                continue
            frames += self._block(block)
        return frames

    def _block(self, block: bytes) -> list[Frame]:
        for line in block.split(b"\n"):
            self._end_line(line)
        return self._end_event()

    # ---- line mode

    def _feed_lines(self, chunk: bytes) -> list[Frame]:
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if chunk.endswith(b"\r"):
            self._skip_lf = True
        frames: list[Frame] = []
        lines = _LINE_END.split(chunk)
        rest = lines.pop()
        for line in lines:
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)  # noqa: PLW2901
                self._line.clear()
            if line:
                self._size += len(line)
                self._check(self._size)
                self._end_line(line)
            else:
                frames += self._end_event()
        if rest:
            self._size += len(rest)
            self._check(self._size)
            self._line.append(rest)
        return frames

    def _end_line(self, line: bytes) -> None:
        if line.startswith(b"data"):
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value[1:] if value.startswith(b" ") else value)
        elif line.startswith(b"event"):
            name, _, value = line.partition(b":")
            if name == b"event":
                self._event = value[1:] if value.startswith(b" ") else value

    def _end_event(self) -> list[Frame]:
        data = b"\n".join(self._data)
        frames = [Frame(data, self._event)] if data else []
        self._data.clear()
        self._event = b""
        self._size = 0
        return frames

    # ---- both

    def _strip_bom(self, chunk: bytes) -> bytes:
        """Hold back what may be the start of a byte order mark; strip a whole one."""
        start = bytes(self._buffer) + chunk
        self._buffer.clear()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._buffer += start
            return b""
        self._bom = False
        return start.removeprefix(_BOM)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLargeError(f"one event is larger than {self._limit} bytes")
