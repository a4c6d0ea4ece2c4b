"""What holds for every history: what `problems` accepts encodes, `repair` leaves nothing to find, nothing is changed."""

from __future__ import annotations

import enum
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    Base64,
    Image,
    InvalidInputError,
    InvalidToolUse,
    Message,
    Opaque,
    Problem,
    RedactedThinking,
    Refusal,
    Request,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
    problems,
    repair,
    replayable,
)
from dragoman.history import local_problems
from dragoman.validation.media import are_plain, is_plain, not_json
from dragoman.wire import Wire
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire

from .strategies import messages as any_messages

WIRE = AnthropicWire()
WIRES: list[Wire] = [WIRE, OpenAIChatWire(), OpenAIChatWire("openrouter"), OpenAIChatWire("mistral"), OpenAIResponsesWire()]

# few ids and mostly plausible turns, so that calls and results meet in every way
ids = st.sampled_from(["a", "b", "x:1"])
words = st.sampled_from(["", "  ", "hi", "\ud800"])
inputs: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"n": 1}, {"n": float("nan")}])
texts = st.builds(Text, words) | st.builds(Refusal, words)
images = st.builds(Image, st.builds(Base64, st.sampled_from(["image/png", "image/jpeg"]), st.just("/9j/4AAQSkZJRgABAQ==")))
uses = st.builds(ToolUse, ids, st.sampled_from(["f", "g h"]), inputs)
cut = st.builds(InvalidToolUse, ids, st.just("f"), words, reason=st.just("incomplete"))
answers = st.builds(ToolResult, ids, words, is_error=st.booleans())
thinking = st.builds(Thinking, words, signature=st.sampled_from(["", "S"])) | st.builds(RedactedThinking, words)
server = st.builds(ServerToolUse, ids, st.just("web_search"), st.just({})) | st.builds(
    ServerToolResult, ids, st.just([]), kind=st.just("web_search_tool_result")
)
turns = st.one_of(
    st.builds(Message, st.just("user"), st.lists(texts | answers | images, max_size=4)),
    st.builds(Message, st.just("assistant"), st.lists(texts | uses | cut | thinking | server, max_size=4)),
    st.builds(Message, st.just("system"), st.lists(texts, max_size=2)),
    st.builds(
        Message, st.sampled_from(["user", "assistant", "system"]), st.lists(texts | uses | cut | answers | thinking | images, max_size=3)
    ),
)
histories = st.lists(turns, max_size=7)
hoisting = st.sampled_from(["leading", "all"])


def ask(messages: list[Message], **settings: Any) -> Request:
    return Request(messages, model="claude-test-1", **settings)


@given(histories, hoisting)
def test_a_repaired_history_has_no_problems_and_encodes(history: list[Message], hoist: str) -> None:
    request = ask(repair(history).messages, hoist_system=hoist)
    begun = any(message.role != "system" for message in history)
    assert [problem.rule for problem in problems(request, WIRE)] == ([] if begun else ["required"])
    if begun:
        WIRE.encode(request, stream=True)


@given(histories)
def test_a_second_repair_changes_nothing(history: list[Message]) -> None:
    once = repair(history)
    twice = repair(once.messages)
    assert twice.changes == []
    assert all(a is b for a, b in zip(once.messages, twice.messages, strict=True))


@given(histories)
def test_a_history_without_problems_is_not_changed(history: list[Message]) -> None:
    if not problems(ask(history), WIRE):
        assert repair(history).changes == []


@given(histories)
def test_a_repair_without_changes_gives_the_same_messages(history: list[Message]) -> None:
    messages, changes = repair(history)
    if not changes:
        assert all(a is b for a, b in zip(messages, history, strict=True))


@settings(derandomize=True)
@given(st.sampled_from(WIRES), st.lists(any_messages, max_size=5), hoisting, st.sampled_from(["drop", "text"]))
def test_what_has_no_problems_encodes(wire: Wire, history: list[Message], hoist: str, foreign: str) -> None:
    request = ask(history, hoist_system=hoist, foreign_thinking=foreign)
    if not problems(request, wire):
        wire.encode(request, stream=True)


@settings(derandomize=True)
@given(st.sampled_from(WIRES), st.lists(any_messages, max_size=5))
def test_no_history_is_too_strange_and_none_is_mutated(wire: Wire, history: list[Message]) -> None:
    before = repr(history)
    problems(ask(history), wire)
    repair(history)
    for message in history:
        replayable(message)
    assert repr(history) == before


@settings(derandomize=True)
@given(st.lists(any_messages, max_size=5))
def test_what_a_repair_leaves_is_for_others_to_decide(history: list[Message]) -> None:
    once = repair(history)
    assert repair(once.messages).changes == []
    plain = [message for message in once.messages if all(not isinstance(block, Opaque) for block in message.content)]
    if plain == once.messages:  # whether an opaque block is sent is the provider's to say
        told = {problem.rule for problem in problems(ask(once.messages, hoist_system="all"), WIRE)}
        assert told <= {"required", "no_audio", "no_video", "image_type", "document_type", "cache_marks", "cache_order", "empty_turn"}


@given(any_messages)
def test_replayable_is_idempotent(message: Message) -> None:
    once = replayable(message)
    if once is not None:
        assert replayable(once) is once


class Number(enum.IntEnum):
    ONE = 1


json_or_not: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([{1}, (1,), b"x", Number.ONE]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2) | st.just(1), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=2) | st.just(1), json_or_not, max_size=3), max_size=4))
def test_of_many_inputs_each_is_looked_at_as_if_it_were_alone(given_inputs: list[dict[Any, Any]]) -> None:
    assert are_plain(given_inputs) == all(map(is_plain, given_inputs))
    calls = [ToolUse(f"c{j}", "f", value) for j, value in enumerate(given_inputs)]
    history = [Message("user", "q"), Message("assistant", ["a", *calls]), Message("user", ["r", *(ToolResult(c.id, "") for c in calls)])]
    places = [problem.path.removeprefix("messages[1].content[").partition("]")[0] for problem in problems(ask(history), WIRE)]
    told = [str(j + 1) for j, value in enumerate(given_inputs) if not_json(value, "input")]
    assert places == told
    assert unwritable(ask(history)) == problems(ask(history), WIRE)


schemas = st.builds(lambda more: {"type": "object", "x": more}, json_or_not)


@given(st.lists(st.builds(Tool, st.sampled_from(["f", "g"]), input_schema=schemas), max_size=2), histories)
def test_what_is_left_to_the_encoder_is_said_in_the_same_words(tools: list[Tool], history: list[Message]) -> None:
    request = ask(history, tools=tools)
    first = local_problems(request, WIRE)
    if not first:
        assert unwritable(request) == problems(request, WIRE)
    else:
        assert all(problem in problems(request, WIRE) for problem in first)


def unwritable(request: Request) -> list[Problem]:
    """What cannot be encoded."""
    try:
        WIRE.encode(request, stream=True)
    except InvalidInputError as error:
        return error.problems
    return []
