"""Whatever a peer or a file hands us: only our errors, one end, events by the grammar, the same however the bytes are cut.

The properties are in `fuzz/properties.py`. Here they are driven by hypothesis, over streams that were recorded and then broken and over
generated ones, and by the inputs that once broke something (`fuzz/kept`).
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzz.mutate import mutated
from fuzz.properties import PROPERTIES, STREAM, WIRES, follows_the_grammar
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Accumulator, Message, MessageStart, MessageStop, TextDelta, to_json
from dragoman.errors import ProviderError
from dragoman.testing import anthropic_events, content_thinking, content_tool_use
from tests.shared import exchanges
from tests.strategies import messages

SIZE = 16_000
"""Bytes of a recording that is worth breaking many times over."""

GOOD = [
    b"".join(anthropic_events("Hello, 世界 🦜", content_tool_use("f", {"a": [1, {"b": None}]}), content_thinking("step"), pieces=4)),
    b"".join(anthropic_events(*["x"] * 5, ping=False)),
]
"""Streams that are broken where no recordings are at hand."""

KEPT = Path(__file__).parents[2] / "fuzz" / "kept"


def recorded(dialect: str) -> list[bytes]:
    """Bodies of recorded answers of moderate size."""
    found = [exchange.body for exchange in exchanges(dialect)]
    return [body for body in found if len(body) <= SIZE] or GOOD


def pick(dialect: str, seed: int) -> bytes:
    """A recorded answer of a dialect, broken; events of other dialects may have got into it."""
    random = Random(seed)
    return mutated(random.choice(recorded(dialect)), random, recorded(random.choice(["anthropic", "openai_chat", "openai_responses"])))


seeds = st.integers(0, 2**32)


@given(seeds)
def test_broken_anthropic_streams(seed: int) -> None:
    PROPERTIES["anthropic"](pick("anthropic", seed))


@given(seeds)
def test_broken_chat_streams(seed: int) -> None:
    PROPERTIES["chat"](pick("openai_chat", seed))


@given(seeds)
def test_broken_responses_streams(seed: int) -> None:
    PROPERTIES["responses"](pick("openai_responses", seed))


@given(seeds)
def test_broken_frames(seed: int) -> None:
    PROPERTIES["sse"](pick("anthropic", seed))


LINES = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data: a",
    b"data:b",
    b"data",
    b"event: e",
    b"event:",
    b": c",
    b"id: 1",
    b"\xef\xbb\xbf",
    b" ",
    b"\xff",
]


@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=4), max_size=12).map(b"".join))
def test_any_frames(data: bytes) -> None:
    PROPERTIES["sse"](data)


# ---- generated answers of Anthropic's dialect

WORDS = [
    "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop", "ping", "error",
    "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use", "web_search_tool_result", "document",
    "text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta", "end_turn", "pause_turn",
    "model_context_window_exceeded", "overloaded_error", "\ud83d", "\ude00", "{", '{"a":', "",
]  # fmt: skip
KEYS = [
    "type", "index", "message", "content_block", "delta", "usage", "error", "id", "model", "content", "text", "thinking", "signature",
    "data", "name", "input", "partial_json", "citation", "citations", "stop_reason", "stop_sequence", "stop_details", "input_tokens",
    "output_tokens", "cache_creation", "iterations", "server_tool_use", "source", "tool_use_id", "cost", "details",
]  # fmt: skip
scalars = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(WORDS)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4), max_leaves=8
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=5)


def typed(*keys: str, among: st.SearchStrategy[Any] = values) -> st.SearchStrategy[dict[str, Any]]:
    """An object with a type that may mean something, and some of these keys."""
    return st.fixed_dictionaries({"type": st.sampled_from(WORDS)}, optional=dict.fromkeys(keys, among))


blocks = typed("id", "name", "input", "text", "data", "citations")
pieces = typed("text", "thinking", "partial_json", "signature", "citation", among=st.sampled_from(WORDS) | values)
indexes = st.integers(0, 2)
starts = st.fixed_dictionaries({"type": st.just("content_block_start"), "index": indexes, "content_block": objects | blocks})
deltas = st.fixed_dictionaries({"type": st.just("content_block_delta"), "index": indexes, "delta": pieces})
stops = st.fixed_dictionaries({"type": st.just("content_block_stop"), "index": st.integers(0, 2)})
ends = st.fixed_dictionaries({"type": st.just("message_delta"), "delta": objects, "usage": objects})
frames = starts | deltas | stops | ends | objects


def stream_of(frames: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


@given(st.booleans(), st.lists(frames, max_size=8), st.booleans())
def test_generated_anthropic_streams(begun: bool, inner: list[dict[str, Any]], ended: bool) -> None:
    head, tail = GOOD[1].split(b"\n\n", 1)[0] + b"\n\n", b"".join(anthropic_events("x")[-2:])
    PROPERTIES["anthropic"](head * begun + stream_of(inner) + tail * ended)


@given(values)
def test_generated_anthropic_bodies(value: Any) -> None:
    for body in (value, {"content": value}, {"type": "message", "id": "m", "content": [value], "stop_reason": "end_turn", "usage": value}):
        PROPERTIES["anthropic"](json.dumps(body).encode())


# ---- the stored form, and a tool's input


def stored_values() -> list[bytes]:
    """Answers as they are stored."""
    found: list[bytes] = []
    for data in recorded("anthropic")[:60]:
        accumulator = Accumulator()
        decoder = WIRES["anthropic"].decoder(headers=STREAM)
        for event in [*decoder.feed(data), *decoder.close()]:
            try:
                accumulator.push(event)
            except ProviderError:
                break
        found.append(to_json(accumulator.partial()))
        if accumulator.stop is not None and accumulator.error is None:
            found.append(to_json(accumulator.response()))
    return found


STORED = stored_values()


@given(seeds)
def test_broken_stored_values(seed: int) -> None:
    random = Random(seed)
    PROPERTIES["stored"](mutated(random.choice(STORED), random))


@given(messages, seeds)
def test_broken_generated_messages(message: Message, seed: int) -> None:
    PROPERTIES["stored"](mutated(to_json(message), Random(seed)))


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    for check in PROPERTIES.values():
        check(data)


@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner)), seeds)
def test_broken_tool_inputs(value: Any, seed: int) -> None:
    PROPERTIES["tool-input"](mutated(json.dumps({"input": value}).encode(), Random(seed)))


# ---- what once broke something

KEPT_INPUTS = sorted(KEPT.glob("*/*"))


@pytest.mark.parametrize("path", KEPT_INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_something_does_not_any_more(path: Path) -> None:
    PROPERTIES[path.parent.name](path.read_bytes())


def test_there_are_kept_inputs() -> None:
    assert len(KEPT_INPUTS) >= 6


def test_the_properties_notice_a_broken_decoder() -> None:
    start = MessageStart("m", "c", provider="p", wire="w")
    for events in (
        [],
        [start],
        [start, TextDelta(0, "x"), MessageStop("end_turn")],
        [MessageStop("end_turn")],
        [start, MessageStop("end_turn")] * 2,
    ):
        with pytest.raises((AssertionError, KeyError)):
            follows_the_grammar(events)
