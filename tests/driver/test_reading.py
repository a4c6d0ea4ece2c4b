"""The body of one answer as it is looked at: the first content does not wait for what came together with it, and nothing is lost."""

from __future__ import annotations

from dragoman import BlockStart, Event, MessageStop, TextDelta
from dragoman.event import MessageStart
from dragoman.reading import FIRST_LOOK, Meter, Reading
from dragoman.testing import anthropic_events
from dragoman.transport import Clocks, Timeouts
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import Decoder


class Watched:
    """A decoder that tells what it was fed."""

    request_id = ""
    rate_limits = None

    def __init__(self, inner: Decoder) -> None:
        self._inner = inner
        self.fed: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        self.fed.append(data)
        return self._inner.feed(data)

    def close(self, error: object = None) -> list[Event]:
        return self._inner.close()


def reading_of(decoder: Decoder, *, refused: bool = False) -> Reading:
    clocks = Clocks(Timeouts(), now=lambda: 0.0)
    clocks.resume()
    return Reading(decoder, refused=refused, clocks=clocks, meter=Meter(lambda: 0.0, lambda: 0.0), told=lambda events: events)


def watched(*, refused: bool = False) -> tuple[Watched, Reading]:
    decoder = Watched(AnthropicWire().decoder(headers={"content-type": "text/event-stream"}))
    return decoder, reading_of(decoder, refused=refused)


def test_the_first_content_does_not_wait_for_what_came_with_it() -> None:
    body = b"".join(anthropic_events("Hello, world", pieces=6))
    decoder, reading = watched()
    first = reading.take(body)
    assert [type(event) for event in first] == [MessageStart, BlockStart, TextDelta]
    assert reading.more
    assert sum(map(len, decoder.fed)) < len(body) / 2
    assert reading.go_on() == ()  # over: the terminal event and what came before it are in `events`
    assert (reading.more, reading.over) == (False, True)
    assert b"".join(decoder.fed) == body
    assert isinstance(reading.events[-1], MessageStop)

    whole = AnthropicWire().decoder(headers={"content-type": "text/event-stream"}).feed(body)
    assert [*first, *reading.events] == whole


def test_once_content_flows_a_read_is_looked_at_in_one_go() -> None:
    events = anthropic_events("Hello, world", pieces=6)
    decoder, reading = watched()
    for event in events[:4]:
        reading.take(event)
        while reading.more:
            reading.go_on()
    before = len(decoder.fed)
    reading.take(b"".join(events[4:7]))
    assert decoder.fed[before:] == [b"".join(events[4:7])]
    assert not reading.more


def test_half_an_event_at_the_end_of_a_read_waits_for_the_next() -> None:
    body = b"".join(anthropic_events("Hello", pieces=1))
    decoder, reading = watched()
    cut = body.index(b"content_block_start") + 5
    assert not reading.take(body[:cut])
    assert not reading.more
    assert [type(event) for event in reading.take(body[cut:])] == [MessageStart, BlockStart, TextDelta]
    assert reading.more
    assert b"".join(decoder.fed) == body[: len(b"".join(decoder.fed))]


def test_the_body_of_an_error_is_not_taken_apart() -> None:
    decoder, reading = watched(refused=True)
    reading.take(b"one\n\ntwo\n\nthree")
    assert decoder.fed == [b"one\n\ntwo\n\nthree"]


def test_blocks_without_content_are_looked_at_once_each() -> None:
    start = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}\n\n'
    stop = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
    body = anthropic_events("x")[0] + b"".join(start % n + stop % n for n in range(1000))
    decoder, reading = watched()
    reading.take(body)
    while reading.more:
        reading.go_on()
    assert b"".join(decoder.fed) == body
    assert len(decoder.fed) <= len(body) / FIRST_LOOK + 1
