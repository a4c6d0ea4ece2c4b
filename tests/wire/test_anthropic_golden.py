"""Golden streams of our own: exact bytes in, exact events and message out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import Accumulator, Event, ProviderError, ProviderTool, Request, from_json, to_json
from dragoman.wire.anthropic import AnthropicWire

GOLDEN = Path(__file__).parents[1] / "golden" / "anthropic" / "streams"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.sse"))
HEADERS = {"content-type": "text/event-stream", "request-id": "req_01golden"}
HOSTED = [ProviderTool("web_search_20250305", "web_search")]


def events_of(name: str, size: int) -> list[Event]:
    request = Request("q", model="claude-sonnet-5-5", tools=HOSTED if name == "pause_turn" else [])
    decoder = AnthropicWire().decoder(request, headers=HEADERS)
    data = (GOLDEN / f"{name}.sse").read_bytes()
    return [event for at in range(0, len(data), size) for event in decoder.feed(data[at : at + size])] + decoder.close()


def test_the_golden_streams_are_there() -> None:
    assert {"text", "tool_use", "thinking", "redacted", "context_exceeded", "pause_turn", "cache_5m_and_1h"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_stream_gives_exactly_these_events(name: str, size: int) -> None:
    expected = (GOLDEN / f"{name}.events.jsonl").read_bytes().splitlines()
    assert [to_json(event) for event in events_of(name, size)] == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_gives_exactly_this_message(name: str) -> None:
    accumulator = Accumulator()
    for event in events_of(name, 1 << 20):
        try:
            accumulator.push(event)
        except ProviderError:
            assert event.type == "failed"
    assert to_json(accumulator.partial()) + b"\n" == (GOLDEN / f"{name}.message.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_events_can_be_read_back(name: str) -> None:
    for line in (GOLDEN / f"{name}.events.jsonl").read_bytes().splitlines():
        assert to_json(from_json(line, Event)) == line
