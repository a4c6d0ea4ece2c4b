"""Server-sent events: bytes in, frames out, by the WHATWG rules and only they.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

Strategy. Real streams end every line with LF, so the parser starts in a mode that looks for the blank line `LF LF`. What is complete
nearly always consists of frames of the shape `event: …`, `data: …` and nothing else: one regular expression cuts them all out, and the
number of line ends proves that nothing was left between them; a read that is one such frame, as most are when the reader is quicker than
the stream, is matched whole. Frames of one `data: …` line each are split at once, with the same proof. If the proof fails, each frame is
read line by line. The first CR switches, for good, to a parser that knows LF, CR and CRLF in any mixture, cut anywhere. All of it is
linear in the bytes whatever the chunking: nothing is searched twice, unfinished input is kept in a growing buffer.

Lines end at LF, CR, CRLF and nothing else: U+2028, U+0085 and the like are data, which is why lines are never made with
`str.splitlines`. Data stays bytes; whoever reads it decodes it.

Two departures from the letter, both for the sake of not losing an answer: a last event without its blank line is delivered by
`close` (the letter says: drop), and fields nobody here needs (`id`, `retry`) are skipped.
"""

from __future__ import annotations

import re
from typing import TypeAlias

__all__ = ["EVENT_LIMIT", "EventTooLargeError", "Frame", "SSEParser"]

EVENT_LIMIT = 16 * 1024 * 1024
"""Bytes that one event may have; more is an error, so a peer cannot make us buffer without end."""

_BOM = b"\xef\xbb\xbf"
_CR = 0x0D  # a number: `in` finds it three times as fast as a string of one byte
_LINE_END = re.compile(rb"\r\n|\n|\r")


Frame: TypeAlias = tuple[bytes, bytes]
"""One event: its `event` field, `b""` if it had none, and its data (lines joined by LF)."""

_ONE = re.compile(rb"event: (.*+)\ndata: (.++)\n\n").fullmatch  # `.` is all but LF, and quicker than `[^\n]`
_USUAL = re.compile(rb"(?:(?<=\n\n)|\A)event: (.*+)\ndata: (.++)\n\n")


class EventTooLargeError(ValueError):
    """One event grew beyond the limit."""


class SSEParser:
    """Feed it bytes in any chunks. After EventTooLargeError it must not be used again."""

    __slots__ = ("_bom", "_buffer", "_data", "_event", "_limit", "_line", "_odd", "_size", "_skip_lf", "_split_lines")

    def __init__(self, *, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._odd = True  # one of the next two holds
        self._bom = True  # a byte order mark may still come
        self._split_lines = False  # line mode: a CR was seen
        self._buffer = bytearray()  # LF mode: the unfinished event
        self._line: list[bytes] = []  # line mode: pieces of the unfinished line
        self._skip_lf = False  # line mode: the last byte was CR, so an LF belongs to it
        self._data: list[bytes] = []  # line mode: data lines of the unfinished event
        self._event = b""
        self._size = 0  # line mode: bytes of the unfinished event

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that these bytes complete. Frames without data are not delivered. Raises EventTooLargeError."""
        if self._odd:
            if self._bom:
                chunk = self._strip_bom(chunk)
            if self._split_lines:
                return self._feed_lines(chunk)
        buffer = self._buffer
        if not buffer and (one := _ONE(chunk)) is not None and _CR not in chunk and len(chunk) <= self._limit:
            return [(one[1], one[2])]
        if _CR in chunk:
            self._split_lines = self._odd = True
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
            complete = bytes(memoryview(buffer)[: end + 2])
            del buffer[: end + 2]
        else:
            end = chunk.rfind(b"\n\n")
            if end < 0:
                buffer += chunk
                self._check(len(buffer))
                return []
            complete = chunk[: end + 2]
            buffer += chunk[end + 2 :]
        return self._cut(complete)

    def one(self, chunk: bytes) -> bytes | None:
        """The data of the frame, if these bytes are one of the usual kind and nothing else, as most reads are when the reader is quicker
        than the stream; None: not so, give them to `feed`.
        """
        if self._odd or self._buffer:
            return None
        one = _ONE(chunk)
        return None if one is None or _CR in chunk or len(chunk) > self._limit else one[2]

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
        """Frames of complete events whose lines end in LF."""
        ends = complete.count(b"\n")
        if complete.startswith(b"event: "):
            frames: list[Frame] = _USUAL.findall(complete)
            if len(frames) * 3 == ends:
                return self._checked(frames, complete)
        elif complete.startswith(b"data: "):  # hosts that name no events
            datas = complete[6:-2].split(b"\n\ndata: ")
            if len(datas) * 2 == ends and b"" not in datas:
                return self._checked([(b"", data) for data in datas], complete)
        frames = []
        for block in complete.split(b"\n\n"):
            self._check(len(block))
            frames += self._block(block)
        return frames

    def _checked(self, frames: list[Frame], complete: bytes) -> list[Frame]:
        if len(complete) > self._limit:
            for name, data in frames:
                self._check(len(name) + len(data))
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
            self._size += len(line)
            self._check(self._size)
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)  # noqa: PLW2901
                self._line.clear()
            if line:
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
        frames = [(self._event, data)] if data else []
        self._data.clear()
        self._event = b""
        self._size = 0
        return frames

    # ---- both

    def _strip_bom(self, chunk: bytes) -> bytes:
        """Hold back what may be the start of a byte order mark; strip a whole one."""
        start = chunk
        if self._buffer:
            start = bytes(self._buffer) + chunk
            self._buffer.clear()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._buffer += start
            return b""
        self._bom = False
        self._odd = self._split_lines
        return start.removeprefix(_BOM)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLargeError(f"one event is larger than {self._limit} bytes")
