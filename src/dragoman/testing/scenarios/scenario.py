"""What a fault scenario is: the server's side of it as answers, and the client's side of it as values to compare with.

The expectations are those of a client with three attempts that streams one answer, and with `TIMEOUTS` unless the scenario names
shorter ones. Nothing in a scenario depends on how fast either side is: what shall time out stalls for ever, what shall not has
seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dragoman.errors import Phase, ProviderError
from dragoman.testing.answer import Answer, Close, Reset, Step
from dragoman.testing.anthropic import SSE_HEADERS, anthropic_events, anthropic_stream
from dragoman.testing.connection import RecordedRequest
from dragoman.testing.listener import Accept

__all__ = ["CUTS", "EVENTS", "OK", "TEXT", "TIMEOUTS", "Scenario", "streamed"]

TEXT = "Hello, wörld 🌍!"
"""The text of a good answer, in three deltas of five characters; it has characters of two and of four bytes."""

OK = anthropic_stream(TEXT)
"""A good answer."""

EVENTS: Sequence[bytes] = tuple(anthropic_events(TEXT))
"""Its events: message_start, content_block_start, ping, three deltas, content_block_stop, message_delta, message_stop."""

CUTS: Sequence[tuple[str, Step]] = (("closed", Close()), ("reset", Reset()))
"""The two ways a connection can break, by the word for it."""

TIMEOUTS: Mapping[str, float] = {"connect": 5.0, "first_byte": 5.0, "idle": 5.0}
"""Seconds that a client under test is given where a scenario does not say otherwise."""


def streamed(*body: bytes | Step, **fields: object) -> Answer:
    """A stream with this body."""
    return Answer(headers=SSE_HEADERS, body=body, **fields)  # type: ignore[arg-type]  # the fields of Answer


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One bad day.

    `story`: what the server does. `must`: what a correct client does. `answers`: one per request; the last is repeated.
    `attempts`: how many the client makes; `requests`: how many of them reach the server. `error`: the class that it ends with (None:
    success), and `phase` for a timeout. `text`: the answer's text, or what of it a failed call still has. `waits`: seconds that must
    at least lie before each repetition. `timeouts`: seconds, in place of those of `TIMEOUTS`. `tls`: with a certificate that nobody
    trusts. `accept`: as for `WireServer`.
    """

    name: str
    story: str
    must: str
    answers: Sequence[Answer | Callable[[RecordedRequest], Answer]] = ()
    error: type[ProviderError] | None = None
    phase: Phase | None = None
    attempts: int = 1
    requests: int = field(default=-1)
    text: str = ""
    waits: Sequence[float] = ()
    timeouts: Mapping[str, float] = field(default_factory=dict[str, float])
    tls: bool = False
    accept: Accept = "all"

    def __post_init__(self) -> None:
        if self.requests < 0:
            object.__setattr__(self, "requests", self.attempts)
