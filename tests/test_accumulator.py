"""The fold from events to a message: the grammar's rules, and an honest answer at every point."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Accumulator,
    Audio,
    Block,
    BlockStart,
    BlockStop,
    Citation,
    CitationDelta,
    Event,
    Failed,
    FileId,
    Image,
    IncompleteStreamError,
    InvalidToolUse,
    Message,
    MessageStart,
    MessageStop,
    Notice,
    Opaque,
    OpaqueEvent,
    Origin,
    OverloadedError,
    ProtocolError,
    RateLimitedError,
    RedactedThinking,
    Refusal,
    Response,
    Retrying,
    ServerToolResult,
    ServerToolUse,
    SignatureDelta,
    StopDetails,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolUse,
    Url,
    Usage,
    UsageUpdate,
    assistant,
)
from dragoman.accumulator import merge_extra

START = MessageStart("msg_1", "claude-test-1", provider="anthropic", wire="anthropic", request_id="req_1", usage=Usage(input=9))
ORIGIN = Origin("anthropic", "claude-test-1", "anthropic")
CITATION = Citation("char_location", {"cited_text": "cold"})


def folded(*events: Event) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.push(event)
    return accumulator


def written(*content: Block | str, extra: Any = None) -> Message:
    """A message of the answer that START begins."""
    return Message("assistant", content, origin=ORIGIN, extra=extra or {})


# ---- a whole answer


def test_an_answer_is_folded() -> None:
    accumulator = folded(
        START,
        BlockStart(0, Thinking("")),
        ThinkingDelta(0, "Hm"),
        ThinkingDelta(0, "m."),
        SignatureDelta(0, "Eq"),
        SignatureDelta(0, "QB"),
        BlockStop(0),
        BlockStart(1, Text("")),
        TextDelta(1, "It is "),
        CitationDelta(1, CITATION),
        TextDelta(1, "cold."),
        BlockStop(1),
        BlockStart(2, ToolUse("toolu_1", "weather", {})),
        ToolInputDelta(2, '{"city": '),
        ToolInputDelta(2, '"Omsk"}'),
        BlockStop(2),
        MessageStop("tool_use", raw_stop="tool_use", usage=Usage(input=9, output=7)),
    )
    message = written(
        Thinking("Hmm.", signature="EqQB"), Text("It is cold.", citations=[CITATION]), ToolUse("toolu_1", "weather", {"city": "Omsk"})
    )
    assert accumulator.message() == accumulator.partial() == message
    assert accumulator.response() == Response(
        message=message,
        stop="tool_use",
        raw_stop="tool_use",
        usage=Usage(input=9, output=7),
        id="msg_1",
        model="claude-test-1",
        request_id="req_1",
    )


def test_the_response_holds_what_the_events_told() -> None:
    details = StopDetails("refusal", category="bio")
    response = folded(
        Retrying(1, 0.5, OverloadedError("busy")),
        Retrying(2, 1.0, OverloadedError("busy")),
        MessageStart("m", "x", provider="p", wire="w", extra={"w": {"container": 1, "a": 1}}),
        Notice("odd", "something odd"),
        OpaqueEvent({"type": "future"}, wire="w", kind="future"),
        UsageUpdate(Usage(output=3)),
        MessageStop(
            "refusal",
            raw_stop="refusal",
            stop_sequence="###",
            stop_details=details,
            extra={"w": {"a": 2}, "x": {"b": 3}},
            message_extra={"w": {"grounding": []}},
        ),
    ).response()
    assert response == Response(
        message=Message("assistant", [], origin=Origin("p", "x", "w"), extra={"w": {"grounding": []}}),
        stop="refusal",
        raw_stop="refusal",
        stop_sequence="###",
        stop_details=details,
        usage=Usage(output=3),
        id="m",
        model="x",
        attempts=3,
        notices=[Notice("odd", "something odd")],
        extra={"w": {"container": 1, "a": 2}, "x": {"b": 3}},
    )


def test_a_script_without_message_start_has_no_origin() -> None:
    accumulator = folded(BlockStart(0, Text("")), TextDelta(0, "a"), BlockStop(0), MessageStop("end_turn"))
    assert accumulator.message() == assistant("a")
    assert (accumulator.response().id, accumulator.response().model) == ("", "")


def test_extras_merge_per_wire_and_the_later_wins() -> None:
    first, second = {"a": {"x": 1, "y": 1}, "b": {"z": 1}}, {"a": {"y": 2}, "c": {"w": 1}}
    assert merge_extra(first, second) == {"a": {"x": 1, "y": 2}, "b": {"z": 1}, "c": {"w": 1}}
    assert (first, second) == ({"a": {"x": 1, "y": 1}, "b": {"z": 1}}, {"a": {"y": 2}, "c": {"w": 1}})


# ---- blocks


@pytest.mark.parametrize(
    ("start", "deltas", "open_", "stopped"),
    [
        (Text(""), [TextDelta(0, "a"), TextDelta(0, "b")], Text("ab"), Text("ab")),
        (Text("pre"), [TextDelta(0, "fix")], Text("prefix"), Text("prefix")),
        (Text("", citations=[CITATION]), [CitationDelta(0, CITATION)], *[Text("", citations=[CITATION, CITATION])] * 2),
        (Text("", extra={"w": {}}), [], Text("", extra={"w": {}}), Text("", extra={"w": {}})),
        (Refusal(""), [TextDelta(0, "no")], Refusal("no"), Refusal("no")),
        (Audio(FileId("f")), [TextDelta(0, "la")], *[Audio(FileId("f"), transcript="la")] * 2),
        (Thinking(""), [ThinkingDelta(0, "hm")], Thinking("hm"), Thinking("hm")),
        (Thinking(""), [SignatureDelta(0, "s")], Thinking("", signature="s"), Thinking("", signature="s")),
        (Thinking("a", signature="s"), [ThinkingDelta(0, "b"), SignatureDelta(0, "t")], *[Thinking("ab", signature="st")] * 2),
        (ToolUse("i", "n", {}), [], InvalidToolUse("i", "n", "", reason="incomplete"), ToolUse("i", "n", {})),
        (ToolUse("i", "n", {"a": 1}), [], InvalidToolUse("i", "n", "", reason="incomplete"), ToolUse("i", "n", {"a": 1})),
        (
            ToolUse("i", "n", {}, extra={"w": {}}),
            [ToolInputDelta(0, '{"a":'), ToolInputDelta(0, "1}")],
            InvalidToolUse("i", "n", '{"a":1}', reason="incomplete", extra={"w": {}}),
            ToolUse("i", "n", {"a": 1}, extra={"w": {}}),
        ),
        (
            ServerToolUse("i", "n", {}),
            [ToolInputDelta(0, "{}")],
            InvalidToolUse("i", "n", "{}", reason="incomplete", extra={"dragoman": {"server_tool": True}}),
            ServerToolUse("i", "n", {}),
        ),
        *[
            (block, [], block, block)
            for block in (
                RedactedThinking("d"),
                Image(Url("u")),
                ServerToolResult("i", [], kind="k"),
                Opaque({"type": "x"}, wire="w"),
            )
        ],
    ],
)
def test_a_block_is_what_its_deltas_say(start: Block, deltas: list[Event], open_: Block, stopped: Block) -> None:
    accumulator = folded(START, BlockStart(0, start), *deltas)
    assert accumulator.block(0) == open_
    assert accumulator.partial() == written(open_)
    accumulator.push(BlockStop(0))
    assert accumulator.block(0) == stopped


@pytest.mark.parametrize(
    ("raw", "reason"),
    [('{"a":', "incomplete"), ('{"a":-', "incomplete"), ('{"a":NaN}', "invalid_json"), ("{}{}", "invalid_json"), ("[]", "not_an_object")],
)
def test_an_input_that_is_no_object_is_never_executable(raw: str, reason: Any) -> None:
    accumulator = folded(START, BlockStart(0, ToolUse("i", "n", {}, extra={"w": {}})), ToolInputDelta(0, raw), BlockStop(0))
    accumulator.push(MessageStop("tool_use"))
    assert accumulator.message().content == [InvalidToolUse("i", "n", raw, reason=reason, extra={"w": {}})]
    assert accumulator.response().tool_uses == []


def test_a_server_call_without_an_object_says_whose_it_is() -> None:
    accumulator = folded(START, BlockStart(0, ServerToolUse("i", "n", {}, extra={"w": {"a": 1}})), ToolInputDelta(0, "[]"), BlockStop(0))
    extra = {"w": {"a": 1}, "dragoman": {"server_tool": True}}
    assert accumulator.block(0) == InvalidToolUse("i", "n", "[]", reason="not_an_object", extra=extra)


def test_the_finished_block_wins_over_the_deltas() -> None:
    finished = ToolUse("i", "n", {"b": 2}, extra={"w": {"caller": 1}})
    accumulator = folded(START, BlockStart(0, ToolUse("i", "n", {})), ToolInputDelta(0, '{"a": 1'), BlockStop(0, finished))
    assert accumulator.block(0) == finished


def test_a_block_may_be_finished_as_one_of_another_type() -> None:
    assert folded(START, BlockStart(0, Text("")), BlockStop(0, Refusal("no"))).partial() == written(Refusal("no"))


def test_blocks_may_interleave() -> None:
    accumulator = folded(
        START,
        BlockStart(0, Text("")),
        BlockStart(1, ToolUse("a", "n", {})),
        BlockStart(2, ToolUse("b", "n", {})),
        ToolInputDelta(2, '{"b"'),
        TextDelta(0, "x"),
        ToolInputDelta(1, '{"a"'),
        ToolInputDelta(2, ":2}"),
        BlockStop(2),
        ToolInputDelta(1, ":1}"),
        TextDelta(0, "y"),
        BlockStop(0),
        BlockStop(1),
        MessageStop("tool_use"),
    )
    assert accumulator.message() == written("xy", ToolUse("a", "n", {"a": 1}), ToolUse("b", "n", {"b": 2}))


def test_a_block_that_has_not_started_is_unknown() -> None:
    with pytest.raises(KeyError):
        folded(START).block(0)


def test_blocks_left_open_are_closed_by_the_end_and_a_call_is_incomplete() -> None:
    accumulator = folded(
        START,
        BlockStart(0, Text("")),
        TextDelta(0, "a"),
        BlockStart(1, ToolUse("i", "n", {})),
        ToolInputDelta(1, '{"a":1}'),
        MessageStop("tool_use"),
    )
    assert accumulator.message() == written("a", InvalidToolUse("i", "n", '{"a":1}', reason="incomplete"))


# ---- partial


def test_partial_answers_at_every_point() -> None:
    events: list[Event] = [
        START,
        BlockStart(0, Text("")),
        TextDelta(0, "a"),
        BlockStop(0),
        BlockStart(1, ToolUse("i", "n", {})),
        ToolInputDelta(1, "{}"),
        BlockStop(1),
        MessageStop("tool_use"),
    ]
    accumulator = Accumulator()
    partials = [accumulator.partial()]
    for event in events:
        accumulator.push(event)
        partials.append(accumulator.partial())
    assert partials == [
        assistant(),
        written(),
        written(""),
        written("a"),
        written("a"),
        written("a", InvalidToolUse("i", "n", "", reason="incomplete")),
        written("a", InvalidToolUse("i", "n", "{}", reason="incomplete")),
        written("a", ToolUse("i", "n", {})),
        written("a", ToolUse("i", "n", {})),
    ]


def test_asking_changes_nothing() -> None:
    accumulator = folded(START, BlockStart(0, Text("")))
    for _ in range(3):
        accumulator.push(TextDelta(0, "ab"))
        assert accumulator.partial() == accumulator.partial()
    assert accumulator.partial() == written("ababab")


def test_an_answer_already_given_stays_as_it_was() -> None:
    accumulator = folded(START, BlockStart(0, Text("")), TextDelta(0, "a"))
    before = accumulator.partial()
    accumulator.push(CitationDelta(0, CITATION))
    accumulator.push(TextDelta(0, "b"))
    assert before == written("a")


@given(st.lists(st.text(max_size=4), max_size=30), st.lists(st.integers(0, 29), max_size=5))
def test_text_is_its_deltas_whenever_asked(pieces: list[str], asked: list[int]) -> None:
    accumulator = folded(START, BlockStart(0, Text("")))
    for index, piece in enumerate(pieces):
        accumulator.push(TextDelta(0, piece))
        if index in asked:
            assert accumulator.partial().text == "".join(pieces[: index + 1])
    accumulator.push(BlockStop(0))
    assert accumulator.partial().text == "".join(pieces)


def test_a_hundred_thousand_deltas_are_held_in_few_objects() -> None:
    accumulator = folded(START, BlockStart(0, Text("")), BlockStart(1, ToolUse("i", "n", {})))
    for index in range(100_000):
        accumulator.push(TextDelta(0, "ab"))
        accumulator.push(ToolInputDelta(1, "[[," if index else '{"a":'))
    for entry in accumulator._entries.values():
        assert len(entry.fragments.pieces) + len(entry.fragments._joined) < 1000
    assert accumulator.block(0) == Text("ab" * 100_000)


# ---- the end


def test_before_the_end_there_is_no_message() -> None:
    accumulator = folded(START, BlockStart(0, Text("")), TextDelta(0, "a"))
    for ask in (accumulator.message, accumulator.response):
        with pytest.raises(IncompleteStreamError, match="has not ended") as caught:
            ask()
        assert (caught.value.partial, caught.value.usage) == (written("a"), Usage(input=9))


LATE: list[Event] = [
    START,
    TextDelta(0, "b"),
    ThinkingDelta(0, "b"),
    ToolInputDelta(0, "b"),
    BlockStart(1, Text("")),
    BlockStop(0),
    UsageUpdate(Usage()),
    Notice("c", "m"),
    OpaqueEvent({}, wire="w", kind="k"),
    MessageStop("end_turn"),
    Failed(OverloadedError("busy")),
    Retrying(1, 0.0, OverloadedError("busy")),
]


@pytest.mark.parametrize("late", LATE, ids=lambda event: event.type)
@pytest.mark.parametrize("end", [MessageStop("end_turn"), Failed(OverloadedError("busy"))], ids=lambda event: event.type)
def test_nothing_may_follow_the_end(end: Event, late: Event) -> None:
    accumulator = folded(START, BlockStart(0, Text("")), TextDelta(0, "a"))
    if isinstance(end, Failed):
        with pytest.raises(OverloadedError):
            accumulator.push(end)
    else:
        accumulator.push(end)
    with pytest.raises(RuntimeError, match="the stream has ended"):
        accumulator.push(late)
    assert accumulator.partial() == written("a")


def test_a_failure_is_raised_and_what_had_arrived_is_kept() -> None:
    error = RateLimitedError("slow down", status=429)
    accumulator = folded(START, BlockStart(0, Text("")), TextDelta(0, "a"), BlockStart(1, ToolUse("i", "n", {})))
    with pytest.raises(RateLimitedError) as caught:
        accumulator.push(Failed(error, stop="context_exceeded", raw_stop="full", usage=Usage(input=9, output=1)))
    assert caught.value is accumulator.error is error
    partial = written("a", InvalidToolUse("i", "n", "", reason="incomplete"))
    assert (error.partial, error.usage) == (partial, Usage(input=9, output=1))
    assert accumulator.partial() == partial
    assert (accumulator.usage, accumulator.stop, accumulator.raw_stop) == (Usage(input=9, output=1), "context_exceeded", "full")
    for ask in (accumulator.message, accumulator.response):
        with pytest.raises(RateLimitedError) as again:
            ask()
        assert again.value is error


def test_a_failure_before_the_first_byte_has_no_partial() -> None:
    error = OverloadedError("busy")
    with pytest.raises(OverloadedError):
        folded(Failed(error))
    assert (error.partial, error.usage) == (None, None)


def test_an_error_used_twice_holds_the_partial_of_the_latest_call() -> None:
    error = OverloadedError("busy")
    for text in ("a", "b"):
        with pytest.raises(OverloadedError):
            folded(START, BlockStart(0, Text("")), TextDelta(0, text), Failed(error))
        assert error.partial == written(text)


# ---- usage and stop


def test_usage_is_replaced_and_never_added() -> None:
    accumulator = folded(START)
    seen = [accumulator.usage]
    for event in (UsageUpdate(Usage(input=9, output=1)), UsageUpdate(Usage(input=9, output=5)), MessageStop("end_turn")):
        accumulator.push(event)
        seen.append(accumulator.usage)
    assert seen == [Usage(input=9), Usage(input=9, output=1), Usage(input=9, output=5), Usage(input=9, output=5)]


def test_what_is_asked_before_anything_came() -> None:
    accumulator = Accumulator()
    assert (accumulator.usage, accumulator.stop, accumulator.raw_stop, accumulator.error) == (Usage(), None, "", None)
    assert accumulator.partial() == assistant()


# ---- events that contradict each other


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([START], "a second message_start"),
        ([BlockStart(1, Text(""))], "block_start 1 out of order: the next index is 0"),
        ([BlockStart(-1, Text(""))], "block_start -1 out of order"),
        ([BlockStart(0, Text("")), BlockStart(0, Text(""))], "the next index is 1"),
        ([BlockStop(0)], "block_stop for block 0, which is not open"),
        ([BlockStart(0, Text("")), BlockStop(0), BlockStop(0)], "which is not open"),
        ([TextDelta(0, "a")], "text_delta for block 0: no such block was started"),
        ([ToolInputDelta(0, "a")], "tool_input_delta for block 0: no such block was started"),
        ([SignatureDelta(0, "a")], "signature_delta for block 0: no such block was started"),
        ([CitationDelta(0, CITATION)], "citation_delta for block 0: no such block was started"),
        ([BlockStart(0, Text("")), BlockStop(0), TextDelta(0, "a")], "the block is of type text and finished"),
        ([BlockStart(0, Text("")), ThinkingDelta(0, "a")], "thinking_delta for block 0: the block is of type text"),
        ([BlockStart(0, Text("")), ToolInputDelta(0, "a")], "the block is of type text"),
        ([BlockStart(0, Text("")), SignatureDelta(0, "a")], "the block is of type text"),
        ([BlockStart(0, Thinking("")), TextDelta(0, "a")], "the block is of type thinking"),
        ([BlockStart(0, Refusal("")), CitationDelta(0, CITATION)], "the block is of type refusal"),
        ([BlockStart(0, ToolUse("i", "n", {})), TextDelta(0, "a")], "the block is of type tool_use"),
        ([BlockStart(0, Image(Url("u"))), TextDelta(0, "a")], "the block is of type image"),
    ],
)
def test_events_that_contradict_each_other_are_a_protocol_error(events: list[Event], text: str) -> None:
    accumulator = folded(START, *events[:-1])
    before = accumulator.partial()
    with pytest.raises(ProtocolError, match=text):
        accumulator.push(events[-1])
    assert accumulator.partial() == before


def test_after_a_contradiction_the_stream_may_go_on() -> None:
    accumulator = folded(START, BlockStart(0, Text("")))
    with pytest.raises(ProtocolError):
        accumulator.push(BlockStop(7))
    accumulator.push(TextDelta(0, "a"))
    accumulator.push(MessageStop("end_turn"))
    assert accumulator.message() == written("a")
