"""Connections that do not come about, break, or stall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.errors import ConnectionFailedError, IncompleteStreamError, ProtocolError, RequestTimeoutError
from dragoman.testing.answer import After, Answer, Close, Delay, Raw, Repeat, Reset, Stall, Step
from dragoman.testing.anthropic import anthropic_error, anthropic_events, content_tool_use
from dragoman.testing.scenarios.scenario import CUTS, EVENTS, OK, TEXT, Scenario, streamed

__all__ = ["CONNECTIONS"]

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
_SHORT = 0.2
"""Seconds after which a client under test shall give up on something that never comes."""

_HELLO = EVENTS[:4]
"""All up to the first of three deltas."""

_ENDED = EVENTS[:8]
"""All but message_stop: the stop reason has come."""

_BROKEN_PROMISES: Sequence[tuple[str, str, After]] = (
    ("closed", "is closed", "close_silently"),
    ("reset", "is reset", "reset"),
    ("dropped", "is closed when the next request comes", "drop_next"),
)

_TOOL = anthropic_events(content_tool_use("get_weather", {"city": "Köln"}))

_OVERLOADED = anthropic_error(529, "overloaded_error")


def _cut(name: str, where: str, *body: bytes | Step, text: str = "Hello") -> Scenario:
    return Scenario(
        name=name,
        story=f"the connection is closed {where}",
        must="raise IncompleteStreamError with what has arrived, and not repeat what was shown",
        answers=[streamed(*body, Close())],
        error=IncompleteStreamError,
        text=text,
    )


def _utf8_cut() -> bytes:
    """The third delta up to the second byte of the globe's four."""
    delta = EVENTS[5]
    return delta[: delta.index("🌍".encode()) + 2]


CONNECTIONS: list[Scenario] = [
    # ---- that do not come about
    Scenario(
        name="refused",
        story="nobody listens on the port",
        must="raise ConnectionFailedError after three attempts",
        accept="refuse",
        error=ConnectionFailedError,
        attempts=3,
        requests=0,
    ),
    Scenario(
        name="full-backlog",
        story="the server's backlog is full: connecting does not finish",
        must="give up connecting when its time is over; raise RequestTimeoutError(connect) after three attempts",
        accept="never",
        error=RequestTimeoutError,
        phase="connect",
        attempts=3,
        requests=0,
        timeouts={"connect": _SHORT},
    ),
    Scenario(
        name="wrong-certificate",
        story="TLS with a certificate that nobody trusts",
        must="send nothing and raise ConnectionFailedError",
        tls=True,
        error=ConnectionFailedError,
        attempts=3,
        requests=0,
    ),
    # ---- that break before the answer
    *(
        scenario
        for name, step in CUTS
        for scenario in (
            Scenario(
                name=f"{name}-before-answer-once",
                story=f"the connection is {name} when the request has come, once",
                must="repeat",
                answers=[Answer(before=[step]), OK],
                attempts=2,
                text=TEXT,
            ),
            Scenario(
                name=f"{name}-before-answer",
                story=f"the connection is {name} when the request has come, every time",
                must="raise ConnectionFailedError after three attempts",
                answers=[Answer(before=[step])],
                error=ConnectionFailedError,
                attempts=3,
            ),
        )
    ),
    Scenario(
        name="closed-within-head",
        story="the connection is closed within the head of the answer, once",
        must="repeat",
        answers=[Answer(before=[Raw(b"HTTP/1.1 200 OK\r\ncontent-ty"), Close()]), OK],
        attempts=2,
        text=TEXT,
    ),
    Scenario(
        name="not-http",
        story="the server speaks another protocol",
        must="raise ProtocolError",
        answers=[Answer(before=[Raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Close()])],
        error=ProtocolError,
    ),
    # ---- keep-alive promised and not kept, seen by the request that follows an error
    *(
        Scenario(
            name=f"keep-alive-{name}",
            story=f"529 on a connection that promises to stay and {words}; then a good answer",
            must="repeat on another connection, and count no more than the two attempts",
            answers=[replace(_OVERLOADED, after=after), OK],
            attempts=2,
            text=TEXT,
        )
        for name, words, after in _BROKEN_PROMISES
    ),
    # ---- that break within the answer
    Scenario(
        name="cut-after-head",
        story="the connection is closed after the head of the answer, every time",
        must="raise IncompleteStreamError after three attempts",
        answers=[streamed(Close())],
        error=IncompleteStreamError,
        attempts=3,
    ),
    Scenario(
        name="cut-after-message-start",
        story="the connection is closed after message_start, once",
        must="repeat, and show one message_start",
        answers=[streamed(EVENTS[0], Close()), OK],
        attempts=2,
        text=TEXT,
    ),
    _cut("cut-after-block-start", "after content_block_start", *EVENTS[:2], text=""),
    _cut("cut-in-text", "between two events", *_HELLO),
    _cut("cut-in-event", "within an event", *_HELLO, EVENTS[4][:40]),
    _cut("cut-in-chunk", "within a chunk", *_HELLO, Raw(b"ff\r\n" + EVENTS[4][:20])),
    _cut("cut-in-utf8", "within a character", *EVENTS[:5], _utf8_cut(), text="Hello, wör"),
    _cut("cut-in-tool-input", "within the input of a tool call", *_TOOL[:5], text=""),
    Scenario(
        name="reset-in-text",
        story="the connection is reset between two events",
        must="raise ConnectionFailedError with what has arrived, and not repeat what was shown",
        answers=[streamed(*_HELLO, Reset())],
        error=ConnectionFailedError,
        text="Hello",
    ),
    Scenario(
        name="broken-chunk",
        story="a chunk's length is no number",
        must="raise ProtocolError with what has arrived",
        answers=[streamed(*_HELLO, Raw(b"zz\r\n"), Stall())],
        error=ProtocolError,
        text="Hello",
    ),
    Scenario(
        name="promised-length-not-kept",
        story="the body is shorter than its content-length",
        must="raise IncompleteStreamError with what has arrived",
        answers=[streamed(*_HELLO, Close(), framing="length", length=100_000)],
        error=IncompleteStreamError,
        text="Hello",
    ),
    *(
        Scenario(
            name=f"{name}-after-stop-reason",
            story=f"the connection is {name} after the stop reason, without message_stop",
            must="take the answer as complete",
            answers=[streamed(*_ENDED, step)],
            text=TEXT,
        )
        for name, step in CUTS
    ),
    Scenario(
        name="end-without-stop-reason",
        story="the body ends cleanly after the text, without a stop reason",
        must="raise IncompleteStreamError with what has arrived",
        answers=[streamed(*EVENTS[:7])],
        error=IncompleteStreamError,
        text=TEXT,
    ),
    # ---- that stall
    Scenario(
        name="no-first-byte",
        story="the answer does not begin, every time",
        must="raise RequestTimeoutError(first_byte) after two attempts: a third might bill a third time",
        answers=[Answer(before=[Stall()])],
        error=RequestTimeoutError,
        phase="first_byte",
        attempts=2,
        timeouts={"first_byte": _SHORT},
    ),
    Scenario(
        name="no-first-byte-once",
        story="the answer does not begin, once",
        must="repeat when its time is over",
        answers=[Answer(before=[Stall()]), OK],
        attempts=2,
        text=TEXT,
        timeouts={"first_byte": _SHORT},
    ),
    Scenario(
        name="slow-first-byte",
        story="the answer begins after 0.2 s",
        must="wait",
        answers=[replace(OK, before=[Delay(0.2)])],
        text=TEXT,
    ),
    Scenario(
        name="stall-after-head",
        story="nothing comes after the head of the answer, once",
        must="repeat when its time is over",
        answers=[streamed(Stall()), OK],
        attempts=2,
        text=TEXT,
        timeouts={"idle": _SHORT},
    ),
    Scenario(
        name="stall-in-text",
        story="nothing comes after the first words",
        must="raise RequestTimeoutError(idle) with what has arrived, and not repeat what was shown",
        answers=[streamed(*_HELLO, Stall())],
        error=RequestTimeoutError,
        phase="idle",
        text="Hello",
        timeouts={"idle": _SHORT},
    ),
    Scenario(
        name="stall-with-pings",
        story="after the first words only pings come",
        must="raise RequestTimeoutError(content_idle) with what has arrived: pings are signs of life, not content",
        answers=[streamed(*_HELLO, Repeat(_PING, every=0.02))],
        error=RequestTimeoutError,
        phase="content_idle",
        text="Hello",
        timeouts={"content_idle": _SHORT},
    ),
    Scenario(
        name="stall-with-comments",
        story="after the first words only comment lines come",
        must="raise RequestTimeoutError(content_idle) with what has arrived",
        answers=[streamed(*_HELLO, Repeat(b": keep-alive\n\n", every=0.02))],
        error=RequestTimeoutError,
        phase="content_idle",
        text="Hello",
        timeouts={"content_idle": _SHORT},
    ),
    Scenario(
        name="pings-then-text",
        story="pings come for longer than the client waits for a byte, then the rest of the text",
        must="wait: each ping is a sign of life",
        answers=[streamed(*_HELLO, Repeat(_PING, every=0.1, times=12), *EVENTS[4:])],
        text=TEXT,
        timeouts={"idle": 1.0},
    ),
    Scenario(
        name="endless",
        story="text comes for ever",
        must="raise RequestTimeoutError(total), and not repeat",
        answers=[streamed(*EVENTS[:3], Repeat(EVENTS[3].replace(b"Hello", b""), every=0.01))],
        error=RequestTimeoutError,
        phase="total",
        timeouts={"total": 0.4},
    ),
    Scenario(
        name="stall-after-stop-reason",
        story="nothing comes after the stop reason",
        must="take the answer as complete when its time is over",
        answers=[streamed(*_ENDED, Stall())],
        text=TEXT,
        timeouts={"idle": _SHORT},
    ),
    Scenario(
        name="stall-after-message-stop",
        story="the body is not ended after message_stop",
        must="hand out the answer at once and let the connection go",
        answers=[streamed(*EVENTS, Stall())],
        text=TEXT,
    ),
]
