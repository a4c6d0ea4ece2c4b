"""Streams that come whole but not as they should: other bytes, other order, other events, other content."""

from __future__ import annotations

from dataclasses import replace

from dragoman.errors import IncompleteStreamError, OverloadedError, ProtocolError, ProviderError, RateLimitedError, ServerError
from dragoman.testing.answer import Answer
from dragoman.testing.anthropic import (
    JSON_HEADERS,
    SSE_HEADERS,
    anthropic_events,
    anthropic_message,
    content_tool_use,
    sse,
)
from dragoman.testing.scenarios.scenario import EVENTS, OK, TEXT, Scenario, streamed

__all__ = ["STREAMS"]

_ALL = b"".join(EVENTS)
_START, _BLOCK, _PING, _ONE, _TWO, _THREE, _STOP, _DELTA, _END = EVENTS
_TOOL = anthropic_events(content_tool_use("get_weather", {"city": "Köln"}))
_OTHER_START = _START.replace(b"msg_test_1", b"msg_test_2")


def _error_event(type: str, message: str = "") -> bytes:
    return sse({"type": "error", "error": {"type": type, "message": message or type}, "request_id": "req_test_1"})


def _fine(name: str, story: str, *body: bytes, must: str = "give the same answer as ever", text: str = TEXT) -> Scenario:
    return Scenario(name=name, story=story, must=must, answers=[streamed(*body)], text=text)


def _broken(name: str, story: str, *body: bytes, text: str = "") -> Scenario:
    return Scenario(
        name=name,
        story=story,
        must="raise ProtocolError with what has arrived, and not repeat",
        answers=[streamed(*body)],
        error=ProtocolError,
        text=text,
    )


def _failing(name: str, story: str, error: type[ProviderError], *body: bytes, text: str = "") -> Scenario:
    return Scenario(
        name=name,
        story=story,
        must=f"raise {error.__name__} with what has arrived, and not repeat what was shown",
        answers=[streamed(*body)],
        error=error,
        text=text,
    )


def _page(name: str, status: int, content_type: str, body: bytes, story: str) -> Scenario:
    return Scenario(
        name=name,
        story=story,
        must="raise ProtocolError that names the status and the content type",
        answers=[Answer(status=status, headers=[("content-type", content_type)], body=body)],
        error=ProtocolError,
    )


STREAMS: list[Scenario] = [
    # ---- the same events in other bytes
    Scenario(name="good", story="a good answer", must="give it", answers=[OK], text=TEXT),
    _fine("byte-by-byte", "each byte comes in a chunk of its own", *(bytes([byte]) for byte in _ALL)),
    _fine("split-characters", "the chunks are of three bytes and split characters", *(_ALL[at : at + 3] for at in range(0, len(_ALL), 3))),
    _fine("one-chunk", "all comes in one chunk", _ALL),
    Scenario(name="close-delimited", story="the body ends by closing", must="take it", answers=[replace(OK, framing="close")], text=TEXT),
    Scenario(name="gzip", story="the stream is compressed", must="decode it", answers=[replace(OK, gzip=True)], text=TEXT),
    _fine("crlf", "lines end with CR LF", _ALL.replace(b"\n", b"\r\n")),
    _fine("cr", "lines end with CR", _ALL.replace(b"\n", b"\r")),
    _fine("byte-order-mark", "the stream begins with a byte order mark", b"\xef\xbb\xbf" + _ALL),
    _fine("no-event-names", "the events have no names", *(event.split(b"\n", 1)[1] for event in EVENTS)),
    _fine("no-last-blank-line", "the last event has no blank line after it", _ALL.removesuffix(b"\n")),
    _fine("comments", "comment lines stand between the events", *(b": OPENROUTER PROCESSING\n\n" + event for event in EVENTS)),
    _fine("empty-data", "events without data stand between the events", *(b"data:\n\n" + event for event in EVENTS)),
    # ---- error events
    Scenario(
        name="error-event-first-once",
        story="a 200 whose first event is an overload, once",
        must="wait and repeat",
        answers=[streamed(_error_event("overloaded_error")), OK],
        attempts=2,
        text=TEXT,
    ),
    Scenario(
        name="error-event-first",
        story="a 200 whose first event is an overload, every time",
        must="raise OverloadedError after three attempts",
        answers=[streamed(_error_event("overloaded_error"))],
        error=OverloadedError,
        attempts=3,
    ),
    Scenario(
        name="error-event-after-message-start",
        story="an overload after message_start, once",
        must="wait and repeat, and show one message_start",
        answers=[streamed(_START, _error_event("overloaded_error")), OK],
        attempts=2,
        text=TEXT,
    ),
    _failing(
        "error-event-after-block-start",
        "an overload after content_block_start",
        OverloadedError,
        _START,
        _BLOCK,
        _error_event("overloaded_error"),
    ),
    _failing(
        "error-event-in-text", "an overload within the text", OverloadedError, *EVENTS[:4], _error_event("overloaded_error"), text="Hello"
    ),
    _failing(
        "error-event-rate-limit",
        "a rate limit within the text",
        RateLimitedError,
        *EVENTS[:4],
        _error_event("rate_limit_error"),
        text="Hello",
    ),
    _failing(
        "error-event-unknown",
        "an error of an unknown type within the text",
        ServerError,
        *EVENTS[:4],
        _error_event("new_error"),
        text="Hello",
    ),
    _fine(
        "error-event-after-stop-reason",
        "an overload after the stop reason",
        *EVENTS[:8],
        _error_event("overloaded_error"),
        must="take the answer as complete: the stop reason came",
    ),
    # ---- events doubled, swapped, lost, mixed up
    _fine("message-start-twice", "message_start comes twice", _START, *EVENTS),
    _fine("message-stop-twice", "message_stop comes twice", *EVENTS, _END),
    _fine("block-stop-twice", "content_block_stop comes twice", *EVENTS[:7], _STOP, *EVENTS[7:], must="ignore the second one"),
    _fine("ping-everywhere", "a ping stands between any two events", *(_PING + event for event in EVENTS)),
    _fine("no-block-stop", "content_block_stop is missing", *EVENTS[:6], *EVENTS[7:], must="close the block at the end"),
    _fine("no-message-stop", "message_stop is missing", *EVENTS[:8], must="take the answer as complete: the stop reason came"),
    _fine("unknown-event", "an event of an unknown type", *EVENTS[:4], sse({"type": "brand_new", "x": 1}), *EVENTS[4:], must="pass it on"),
    _fine(
        "unknown-delta",
        "a delta of an unknown type",
        *EVENTS[:4],
        sse({"type": "content_block_delta", "index": 0, "delta": {"type": "brand_new_delta", "x": 1}}),
        *EVENTS[4:],
        must="pass it on and keep the text",
    ),
    _fine(
        "unknown-block",
        "a block of an unknown type",
        *EVENTS[:7],
        sse({"type": "content_block_start", "index": 1, "content_block": {"type": "brand_new", "x": 1}}),
        sse({"type": "content_block_stop", "index": 1}),
        *EVENTS[7:],
        must="keep it as it is",
    ),
    Scenario(
        name="no-message-delta",
        story="message_stop without a stop reason before it",
        must="raise IncompleteStreamError with what has arrived",
        answers=[streamed(*EVENTS[:7], _END)],
        error=IncompleteStreamError,
        text=TEXT,
    ),
    _broken("delta-without-block", "a delta for a block that was never started", _START, _ONE, *EVENTS[6:]),
    _broken("delta-before-block-start", "a delta and the start of its block have changed places", _START, _ONE, _BLOCK, *EVENTS[4:]),
    _fine("stop-reason-before-last-delta", "the stop reason comes before the last words", *EVENTS[:5], _DELTA, _THREE, _STOP, _END),
    _broken(
        "block-skipped",
        "a delta for block 1 while only block 0 is open",
        *EVENTS[:4],
        _ONE.replace(b'"index": 0', b'"index": 1'),
        text="Hello",
    ),
    _broken("spliced-answers", "message_start of another answer within this one", *EVENTS[:4], _OTHER_START, *EVENTS[1:], text="Hello"),
    _broken("text-in-tool-call", "a text delta for a tool call", *_TOOL[:3], _ONE, *_TOOL[3:]),
    _broken(
        "broken-json",
        "an event whose data is not JSON",
        *EVENTS[:4],
        b'event: content_block_delta\ndata: {"type":\n\n',
        *EVENTS[4:],
        text="Hello",
    ),
    # ---- other content
    Scenario(
        name="json-instead-of-stream",
        story="a whole message where a stream was asked for",
        must="give its content as events",
        answers=[anthropic_message(TEXT)],
        text=TEXT,
    ),
    Scenario(
        name="error-json-with-status-200",
        story="200 with an error as its JSON body, once",
        must="wait and repeat, as if it were an event",
        answers=[
            Answer(headers=JSON_HEADERS, body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            OK,
        ],
        attempts=2,
        text=TEXT,
    ),
    Scenario(
        name="empty-stream",
        story="200 and a stream without a single event, every time",
        must="raise IncompleteStreamError after three attempts",
        answers=[Answer(headers=SSE_HEADERS)],
        error=IncompleteStreamError,
        attempts=3,
    ),
    _page(
        "html",
        200,
        "text/html; charset=utf-8",
        b"<html><title>Access check</title><body>Request blocked</body></html>",
        "200 with an HTML page",
    ),
    _page("plain-text", 200, "text/plain", b"upstream connect error", "200 with plain text"),
]
