"""Standard output and standard error, each for what it is for: answers on one, everything about them on the other.

What a model writes is shown, not obeyed: on a terminal, control characters (colours, cursor moves, window titles) are taken out; in a
pipe the text goes through as it is. Dimming needs a terminal, no `NO_COLOR`, and a `TERM` that is not `dumb`.
"""

from __future__ import annotations

import io
import os
import re
import sys
from typing import TextIO

__all__ = ["Screen"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""C0 and C1 control characters but tab and line feed."""


class Screen:
    """The two outputs, and where each stands in its line."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._out_terminal = self._out.isatty()
        self._err_terminal = self._err.isatty()
        self._dims = self._err_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._out_at_start = self._err_at_start = True
        for stream in (self._out, self._err):
            if isinstance(stream, io.TextIOWrapper):  # a lone surrogate or a narrow locale must not end an answer
                stream.reconfigure(errors="backslashreplace", encoding=None if stream.isatty() else "utf-8")

    def write(self, text: str) -> None:
        """Answer text, shown at once."""
        if not text:
            return
        if self._out_terminal and not self._err_at_start and self._err_terminal:
            self.end_note()
        self._out_at_start = text.endswith("\n")  # before the write: an interrupt may come right after it
        self._out.write(_CONTROL.sub("", text) if self._out_terminal else text)
        self._out.flush()

    def end_line(self) -> None:
        """Begin a new line of the answer, if the last one is not ended."""
        if not self._out_at_start:
            self.write("\n")

    def note(self, text: str) -> None:
        """Something about the answer, dimmed, shown at once; lines are the caller's."""
        if not text:
            return
        if self._out_terminal and self._err_terminal:
            self.end_line()
        self._err_at_start = text.endswith("\n")
        shown = _CONTROL.sub("", text) if self._err_terminal else text
        self._err.write(f"\x1b[2m{shown}\x1b[0m" if self._dims else shown)
        self._err.flush()

    def end_note(self) -> None:
        """Begin a new line of the notes, if the last one is not ended."""
        if not self._err_at_start:
            self.note("\n")

    def say(self, text: str) -> None:
        """A line for the person at the keyboard: a summary, an error."""
        self.end_note()
        if self._out_terminal and self._err_terminal:
            self.end_line()
        self._err.write((_CONTROL.sub("", text) if self._err_terminal else text) + "\n")
        self._err.flush()
