"""What holds for every request: it encodes or is refused with paths, nothing is changed, and a second round trip is the identity."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    InvalidInputError,
    Message,
    ProviderTool,
    Request,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    assistant,
    from_json,
    to_json,
    user,
)
from dragoman.validation.marks import CARRIERS
from dragoman.wire.anthropic.tool_ids import ToolIds, original_id
from tests.strategies import blocks, caches, extras, json_objects, messages, texts, words
from tests.wire.anthropic_requests import WIRE

MODELS = st.sampled_from(["claude-test-1", "claude-sonnet-4-5", "claude-opus-5-5", "claude-sonnet-5-5", "claude-2"])
THINKING = st.sampled_from(
    [None, ThinkingConfig.off(), ThinkingConfig.adaptive(), ThinkingConfig.auto(), ThinkingConfig.budget(500, clamp=True)]
)
TOOLS = st.builds(Tool, words, texts, json_objects, strict=st.booleans(), cache=caches, extra=extras) | st.builds(
    ProviderTool, words, words, json_objects, cache=caches
)
TEXTS = st.builds(Text, texts, cache=caches)
SETTINGS: dict[str, Any] = {
    "model": MODELS,
    "system": texts | st.lists(TEXTS, max_size=3),
    "tools": st.lists(TOOLS, max_size=3),
    "tool_choice": st.sampled_from([None, "auto", "none", "required", "required_if_allowed", ToolNamed("a")]),
    "parallel_tools": st.booleans(),
    "max_tokens": st.none() | st.integers(0, 10**6),
    "temperature": st.none() | st.floats(0, 1),
    "stop_sequences": st.lists(texts, max_size=2),
    "thinking": THINKING,
    "effort": st.sampled_from([None, "minimal", "high"]),
    "cache": st.sampled_from([None, "explicit", "auto", "provider", "off"]),
    "metadata": st.dictionaries(st.just("user_id") | words, texts, max_size=2),
    "betas": st.lists(st.sampled_from(["a-2025-01-01", "b,c", ""]), max_size=2),
    "extra_body": json_objects,
    "hoist_system": st.sampled_from(["leading", "all"]),
    "foreign_thinking": st.sampled_from(["drop", "text"]),
}
REQUESTS = st.builds(Request, st.lists(messages, max_size=5), **SETTINGS)

CALLS = st.builds(ToolUse, words, words, json_objects, cache=caches)
RESULTS = st.builds(ToolResult, words, st.lists(TEXTS, max_size=2), is_error=st.booleans(), cache=caches)
SENDABLE = st.builds(
    Request,
    st.lists(
        st.builds(lambda part, more: user(*more, part, "u"), TEXTS | RESULTS, st.lists(TEXTS | RESULTS, max_size=2))
        | st.builds(
            lambda part, more: assistant("a", part, *more), TEXTS | CALLS, st.lists(CALLS | st.builds(Thinking, texts), max_size=2)
        ),
        min_size=1,
        max_size=5,
    ),
    **{**SETTINGS, "extra_body": st.just({}), "tools": st.lists(st.builds(Tool, words, texts, cache=caches), max_size=2)},
)
"""Requests of which something is left to send."""


def encoded(request: Request) -> bytes | None:
    """The body, or None where the request is refused."""
    try:
        return WIRE.encode(request, stream=True).body
    except InvalidInputError as error:
        refused = error.problems
    assert refused
    assert all(problem.path and problem.message for problem in refused)
    return None


@given(REQUESTS)
@settings(max_examples=150, deadline=None)
def test_a_request_encodes_or_is_refused_and_is_never_changed(request: Request) -> None:
    before = to_json(request)
    body = encoded(request)
    assert to_json(request) == before
    assert encoded(from_json(before, Request)) == body
    if body is not None:
        json.loads(body)


@given(SENDABLE)
@settings(max_examples=150, deadline=None)
def test_the_rules_of_the_api_hold_whatever_is_sent(request: Request) -> None:
    body = encoded(request)
    assert body is not None
    value = json.loads(body)
    turns = value["messages"]
    assert all(a["role"] != b["role"] for a, b in itertools.pairwise(turns))
    for turn in turns:
        assert turn["content"]
        content = turn["content"] if isinstance(turn["content"], list) else [{"type": "text", "text": turn["content"]}]
        kinds = [block["type"] for block in content]
        assert all(block["text"].strip() for block in content if block["type"] == "text")
        assert not {"thinking"} & set(kinds)  # none of it is signed
        if turn["role"] == "user":
            assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result")
    ids = [block["id"] for turn in turns for block in turn["content"] if isinstance(block, dict) and block["type"] == "tool_use"]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", id) for id in ids)
    assert all(
        block.get("type") in CARRIERS
        for blocks in (turn["content"] for turn in turns)
        for block in blocks
        if isinstance(block, dict) and "cache_control" in block
    )


@given(SENDABLE)
@settings(max_examples=100, deadline=None)
def test_what_was_encoded_decodes_to_what_encodes_the_same(request: Request) -> None:
    body = encoded(request.replace(metadata={}))
    assert body is not None
    assert encoded(WIRE.decode_request(body)) == body


@given(st.lists(blocks, max_size=4))
@settings(max_examples=100, deadline=None)
def test_auto_never_makes_more_than_four_marks_of_fewer(content: list[Any]) -> None:
    explicit = encoded(Request(["q", Message("assistant", ["a", *content]), "r"], model="m"))
    auto = encoded(Request(["q", Message("assistant", ["a", *content]), "r"], model="m", cache="auto"))
    if explicit is not None and auto is not None:
        callers = explicit.count(b'"cache_control":{')
        assert auto.count(b'"cache_control":{') <= max(4, callers)


@given(st.lists(st.lists(texts | words, max_size=4), max_size=5))
@settings(deadline=None)
def test_rewritten_ids_are_legal_unique_and_reversible(turns: list[list[str]]) -> None:
    ids = ToolIds()
    sent: list[str] = []
    for calls in turns:
        ids.turn += 1
        wire = [ids.call(call) for call in calls]
        assert [original_id(id) for id in wire] == calls
        assert [ids.result(call) for call in calls] == wire
        sent += wire
    assert len(sent) == len(set(sent))
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", id) for id in sent)


@given(json_objects)
@settings(deadline=None)
def test_any_json_is_read_or_refused(body: dict[str, Any]) -> None:
    for given_ in (body, {**body, "messages": [body]}, {**body, "messages": [{"role": "user", "content": [body]}], "tools": [body]}):
        try:
            request = WIRE.decode_request(json.dumps(given_).encode())
        except InvalidInputError as error:
            refused = error.problems
        else:
            encoded(request.replace(model="m"))
            continue
        assert refused
