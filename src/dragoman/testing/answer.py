"""What a `WireServer` is told to do: an `Answer`, its head and the steps of its body, and the `Gate` that a test opens.

An answer is a value and may be used any number of times. Its body is bytes (sent with a content-length), or a sequence of bytes and
steps (sent chunked, each bytes one chunk), so every fault is a step at an exact place: stall here, cut there. A step that waits
always ends as well when the client closes the connection, so a script can never hang a server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, Literal, TypeAlias, cast

__all__ = ["WAIT_LIMIT", "After", "Answer", "Close", "Delay", "Framing", "Gate", "Raw", "Repeat", "Reset", "Send", "Stall", "Step", "Wait"]

WAIT_LIMIT = 20.0
"""Seconds that a test waits at most for a signal of the server before it fails."""

After: TypeAlias = Literal["keep", "close", "close_silently", "reset", "drop_next"]

Framing: TypeAlias = Literal["auto", "chunked", "length", "close"]


class Gate:
    """A point in an answer where the server waits until the test says go on. Any thread.

    `reached()` waits until the server stands at the gate, so a test acts at exactly that moment and never sleeps.
    """

    def __init__(self) -> None:
        self._condition = Condition()
        self._open = False
        self._arrivals = 0
        self._callbacks: list[Callable[[], None]] = []

    def open(self) -> None:
        """Let the server pass, now and from now on."""
        with self._condition:
            self._open = True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback()

    def reached(self, count: int = 1, timeout: float = WAIT_LIMIT) -> None:
        """Wait until the server has come to this gate `count` times. Raises TimeoutError after `timeout` seconds."""
        with self._condition:
            if not self._condition.wait_for(lambda: self._arrivals >= count, timeout):
                raise TimeoutError(f"the server did not reach the gate within {timeout:g} s ({self._arrivals} of {count})")

    def arrive(self, on_open: Callable[[], None]) -> None:
        """For the server: note an arrival; call `on_open` once the gate is open, at once if it is."""
        with self._condition:
            self._arrivals += 1
            self._condition.notify_all()
            if not self._open:
                self._callbacks.append(on_open)
                return
        on_open()


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes as one piece (one chunk, if the answer is chunked). The same as the bare bytes."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Raw:
    """Put these bytes on the connection as they are, outside any framing: a broken chunk header, rubbish, half a chunk."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the gate is opened."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing more; end when the client closes the connection."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Send the same piece every `every` seconds, `times` times, or until the client closes the connection."""

    data: bytes = field(repr=False)
    every: float
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection here, cleanly (FIN), whatever was promised."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection here (RST)."""


Step: TypeAlias = Send | Raw | Delay | Wait | Stall | Repeat | Close | Reset


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer of the server.

    `body`: bytes, text, a JSON value (a dict), or a sequence of bytes and steps. `before`: steps before the head's first byte; their
    bytes are sent raw. `framing`: `auto` is content-length for a whole body and chunked for a sequence; with `length` a sequence's
    promised length counts all its bytes unless `length` says otherwise; `close` ends the body by closing. `after`: what happens to
    the connection after a complete answer: `keep` it; `close` it, as the `connection: close` header then says; `close_silently` or
    `reset` it although keep-alive was promised; `drop_next`: keep it, but close it without an answer when the next request has come
    (that request is in `WireServer.dropped`; the script does not advance). `gzip`: compress the body (each piece flushed).
    """

    status: int = 200
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    body: bytes | str | dict[str, Any] | Sequence[bytes | Step] = b""
    before: Sequence[bytes | Step] = ()
    framing: Framing = "auto"
    length: int | None = None
    after: After = "keep"
    gzip: bool = False
    reason: str | None = None

    def __post_init__(self) -> None:
        """Raises TypeError for a step that is none: the server would have to leave it out."""
        _check_steps("before", self.before)
        if not self.whole:
            _check_steps("body", self.body)

    def header_list(self) -> list[tuple[str, str]]:
        """The headers as pairs, in order."""
        return list(self.headers.items()) if isinstance(self.headers, Mapping) else list(self.headers)

    def steps(self) -> list[bytes | Step]:
        """The body as steps."""
        body = self.body
        if isinstance(body, dict):
            body = json.dumps(body, ensure_ascii=False)
        if isinstance(body, str):
            body = body.encode()
        return ([body] if body else []) if isinstance(body, bytes) else list(body)

    @property
    def whole(self) -> bool:
        """Whether the body is one piece rather than a sequence."""
        return isinstance(self.body, bytes | str | dict)


def _check_steps(name: str, steps: object) -> None:
    odd = [steps]
    if isinstance(steps, Sequence) and not isinstance(steps, bytes | str):
        odd = [step for step in cast("Sequence[object]", steps) if not isinstance(step, bytes | Step)]
    if odd:
        raise TypeError(f"Answer.{name} takes bytes and steps in a sequence, not {type(odd[0]).__name__}")
