"""Whatever a peer sends: no exception, one terminal event, and events that the accumulator takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Accumulator, Failed, InvalidInputError, MessageStop, ProviderError
from dragoman.wire.openai_chat import OpenAIChatWire
from tests.wire.openai_chat.build import DONE, JSON, STREAM, call, chunk, event

KEYS = [
    "id", "model", "choices", "index", "delta", "message", "content", "role", "reasoning", "reasoning_content", "reasoning_details", "type",
    "text", "summary", "data", "signature", "refusal", "tool_calls", "function", "custom", "name", "arguments", "input", "function_call",
    "audio", "transcript", "annotations", "url_citation", "images", "image_url", "url", "finish_reason", "finish_details", "logprobs",
    "usage", "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details", "cached_tokens",
    "cost", "x_groq", "error", "code", "metadata", "raw", "status", "service_tier", "content_filter_results", "stop_reason", "channel",
]  # fmt: skip
WORDS = ["stop", "length", "tool_calls", "function", "custom", "thinking", "text", "reasoning.text", "reasoning.encrypted", "429", "", "x"]
scalars = st.none() | st.booleans() | st.integers(-2, 600) | st.floats(allow_nan=False) | st.sampled_from(WORDS) | st.text(max_size=3)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4), max_leaves=12
)
deltas = st.dictionaries(st.sampled_from(KEYS), anything, max_size=4)
choices = st.fixed_dictionaries({"delta": deltas}, optional=dict.fromkeys(("index", "finish_reason", "logprobs", "error"), anything))
chunks = st.one_of(
    anything,
    st.dictionaries(st.sampled_from(KEYS), anything, max_size=5),
    st.fixed_dictionaries({"id": st.just("c"), "choices": st.lists(choices, max_size=2)}, optional={"usage": anything, "error": anything}),
)


def drive(data: bytes, headers: dict[str, str], dialect: str) -> None:
    decoder = OpenAIChatWire(dialect).decoder(headers=headers)
    found = [*decoder.feed(data), *decoder.close()]
    assert isinstance(found[-1], MessageStop | Failed)
    assert not any(isinstance(one, MessageStop | Failed) for one in found[:-1])
    accumulator = Accumulator()
    for one in found:
        try:
            accumulator.push(one)
        except ProviderError as error:
            assert isinstance(one, Failed)
            assert error is one.error  # noqa: PT017
    accumulator.partial()


@given(st.lists(chunks, max_size=6), st.sampled_from(["openai", "openrouter", "mistral", "google"]))
def test_any_stream(values: list[Any], dialect: str) -> None:
    drive(b"".join(event(value) for value in values), STREAM, dialect)


@given(st.lists(deltas, max_size=6))
def test_any_deltas_of_an_answer_that_goes_well(values: list[Any]) -> None:
    drive(chunk({"content": "a"}) + b"".join(chunk(value) for value in values) + chunk({}, "stop") + DONE, STREAM, "openai")


@given(anything | st.fixed_dictionaries({"choices": st.lists(st.fixed_dictionaries({"message": deltas, "finish_reason": anything}))}))
def test_any_body(value: Any) -> None:
    drive(json.dumps(value).encode(), JSON, "openai")


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    for headers in (STREAM, JSON, {}):
        drive(data, headers, "openai")


@given(st.binary(max_size=40) | anything.map(lambda value: json.dumps(value).encode()), st.sampled_from([400, 404, 429, 500, 503, 302]))
def test_any_error_body(body: bytes, status: int) -> None:
    assert OpenAIChatWire().decode_error(status, {}, body).status == status


@given(anything, st.sampled_from(["openai", "openrouter", "mistral"]))
def test_any_request_is_read_or_refused(value: Any, dialect: str) -> None:
    bodies = [value, {"messages": value}, {"messages": [{"role": "user", "content": value}], "tools": value}]
    bodies += [{"messages": [{"role": role, "content": value, "tool_calls": value}]} for role in ("assistant", "tool", "system")]
    for body in bodies:
        try:
            OpenAIChatWire(dialect).decode_request(json.dumps(body).encode())
        except InvalidInputError as error:
            assert error.problems  # noqa: PT017


def test_a_very_deep_chunk_is_no_crash() -> None:
    deep = b'{"id":"x","choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    drive(chunk({"content": "a"}) + b"data: " + deep + b"\n\n", STREAM, "openai")
    drive(deep, JSON, "openai")


@pytest.mark.parametrize("pieces", [2_000])
def test_many_pieces_take_linear_time(pieces: int) -> None:
    """Counted, not timed: each piece is handed over once."""
    starts = b"".join(chunk(call(index, f"c{index}", "f", "")) for index in range(pieces))
    ends = b"".join(chunk(call(index, None, None, "{}")) for index in range(pieces))
    drive(starts + ends + chunk({}, "tool_calls") + DONE, STREAM, "openai")
