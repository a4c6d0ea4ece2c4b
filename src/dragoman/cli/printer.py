"""How an answer looks on a terminal: text as it arrives, everything else as dimmed notes, one summary at the end.

Used by every command that shows an answer, live or recorded.
"""

from __future__ import annotations

import msgspec

from dragoman.cli.terminal import Screen
from dragoman.errors import ProviderError
from dragoman.event import BlockStart, BlockStop, Event, Notice, Retrying, TextDelta, ThinkingDelta
from dragoman.message import Block, InvalidToolUse, RedactedThinking, ServerToolUse, Text, Thinking, ToolUse
from dragoman.response import Timing, Usage

__all__ = ["Printer", "describe_error", "summary"]

_TEXT_KINDS = ("text", "refusal", "audio")


class Printer:
    """Shows the events of one answer. `thinking`: show what the model thought, on standard error."""

    def __init__(self, screen: Screen, *, thinking: bool) -> None:
        self._screen = screen
        self._thinking = thinking
        self._last = ""

    def show(self, event: Event) -> None:
        """The next event."""
        match event:
            case TextDelta(_, text):
                self._screen.write(text)
            case ThinkingDelta(_, text):
                if self._thinking:
                    self._screen.note(text)
            case BlockStart(_, block):
                self._begin(block)
            case BlockStop(_, block) if block is not None:
                self._end(block)
            case Retrying(attempt, delay, error):
                self._screen.note(f"attempt {attempt} failed ({error.kind}), trying again in {delay:.1f} s\n")
            case Notice(code, message):
                self._screen.end_note()
                self._screen.note(f"{code}: {message}\n")
            case _:
                pass

    def _begin(self, block: Block) -> None:
        if block.type in _TEXT_KINDS and self._last not in ("", *_TEXT_KINDS):
            self._screen.end_line()
        if isinstance(block, Thinking | RedactedThinking) and self._last != block.type:
            self._screen.end_note()
        if isinstance(block, RedactedThinking) and self._thinking:
            self._screen.note("[redacted thinking]\n")
        self._last = block.type

    def _end(self, block: Block) -> None:
        match block:
            case Thinking(text) if text and self._thinking:
                self._screen.end_note()
            case ToolUse(_, name, input) | ServerToolUse(_, name, input):
                self._call(f"{name} {msgspec.json.encode(input).decode()}")
            case InvalidToolUse(_, name, _):
                self._call(f"{name}: not a valid call ({block.reason})")
            case Text(citations=[_, *_]):
                self._screen.end_note()
                for citation in block.citations:
                    self._screen.note(f"[cites {citation.title or citation.url or citation.kind}]\n")
            case _:
                pass

    def _call(self, text: str) -> None:
        self._screen.end_note()
        self._screen.note(f"[calls {text}]\n")


def summary(stop: str, usage: Usage, timing: Timing | None, request_id: str) -> str:
    """One line: stop reason, usage with its cache parts, time to first token, tokens per second, request id; left out where not known."""
    parts = [stop, _usage(usage)]
    if timing is not None and timing.first_content is not None:
        parts.append(f"first token {timing.first_content:.2f} s")
        seconds = (timing.finished or 0.0) - timing.first_content
        if seconds >= 0.01 and usage.output > 1:  # an answer in one piece has no speed
            parts.append(f"{(usage.output - 1) / seconds:.1f} tokens/s")
        if timing.attempts > 1:
            parts.append(f"{timing.attempts} attempts")
    if request_id:
        parts.append(f"request {request_id}")
    return " · ".join(parts)


def _usage(usage: Usage) -> str:
    written = [
        f"{count:,} written{f' for {ttl}' if ttl else ''}"
        for ttl, count in (("5m", usage.cache_write_5m), ("1h", usage.cache_write_1h), ("", usage.cache_write_other))
        if count
    ]
    cache = [*([f"{usage.cache_read:,} read"] if usage.cache_read else []), *written]
    text = f"input {usage.total_input:,}"
    text += f" (cache: {', '.join(cache)})" if cache else ""
    text += f", output {usage.output:,}"
    return text + (f" (thinking {usage.reasoning:,})" if usage.reasoning else "")


def describe_error(error: ProviderError) -> str:
    """One line for the person at the keyboard: the kind of error, and its text, which may quote the server's answer."""
    return f"error: {type(error).__name__}: {error}"
