"""Framing: fragments under keys become events in the one order that every consumer relies on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.accumulator import Accumulator
from dragoman.event import (
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    MessageStart,
    MessageStop,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from dragoman.message import (
    Audio,
    Base64,
    Block,
    Citation,
    InvalidToolUse,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
)
from dragoman.wire.framing import Framing, escape_json


def framing() -> tuple[Framing, list[Event]]:
    events: list[Event] = []
    return Framing(events.append, wire="w", response_id="r1"), events


def folded(events: list[Event]) -> list[Block]:
    accumulator = Accumulator()
    for event in [MessageStart("r1", "m", provider="p", wire="w"), *events, MessageStop("end_turn")]:
        accumulator.push(event)
    return list(accumulator.message().content)


def test_the_first_fragment_opens_a_block_that_starts_empty() -> None:
    f, events = framing()
    f.text("t", "Hel")
    f.text("t", "lo")
    f.stop_all()
    assert events == [BlockStart(0, Text("")), TextDelta(0, "Hel"), TextDelta(0, "lo"), BlockStop(0, Text("Hello"))]


def test_an_empty_fragment_neither_opens_a_block_nor_makes_an_event() -> None:
    f, events = framing()
    f.text("t", "")
    f.refusal("r", "")
    f.thinking("k", "")
    f.signature("k", "")
    assert events == []
    assert f.count == 0


def test_a_block_that_shall_exist_though_empty_is_opened_by_start() -> None:
    f, events = framing()
    assert f.start("t", Text("")) == 0
    assert f.start("t", Text("")) == 0
    f.stop("t")
    assert events == [BlockStart(0, Text("")), BlockStop(0, Text(""))]


def test_text_stays_open_across_calls_and_indexes_follow_the_starts() -> None:
    f, events = framing()
    f.text("t", "a")
    f.tool(("tool", 0), "c1", "look")
    f.text("t", "b")
    f.tool_input(("tool", 0), '{"x":')
    f.tool(("tool", 1), "c2", "look")
    f.tool_input(("tool", 0), "1}")
    f.stop_all()
    assert [e.index for e in events if isinstance(e, BlockStart)] == [0, 1, 2]
    assert [e.block for e in events if isinstance(e, BlockStop)] == [Text("ab"), ToolUse("c1", "look", {"x": 1}), ToolUse("c2", "look", {})]
    assert folded(events) == [Text("ab"), ToolUse("c1", "look", {"x": 1}), ToolUse("c2", "look", {})]


def test_a_key_that_was_stopped_opens_a_new_block() -> None:
    f, events = framing()
    f.text("t", "a")
    assert f.stop("t") == Text("a")
    assert f.stop("t") is None
    f.text("t", "b")
    f.stop_all()
    assert folded(events) == [Text("a"), Text("b")]


@pytest.mark.parametrize(
    ("raw", "reason"), [('{"a": "b', "incomplete"), ('{"a": b}', "invalid_json"), ("[1]", "not_an_object"), ("null", "not_an_object")]
)
def test_a_call_whose_input_is_no_object_is_never_executable(raw: str, reason: str) -> None:
    f, _ = framing()
    f.tool("c", "id", "n")
    f.tool_input("c", raw)
    assert f.stop("c") == InvalidToolUse("id", "n", raw, reason=reason)  # type: ignore[arg-type]


def test_a_call_without_input_is_empty_unless_the_answer_was_cut() -> None:
    f, _ = framing()
    f.tool("a", "id", "n")
    f.tool("b", "id2", "n")
    assert f.stop("a") == ToolUse("id", "n", {})
    assert f.stop("b", cut=True) == InvalidToolUse("id2", "n", "", reason="incomplete")


def test_a_server_call_that_is_invalid_says_that_nobody_must_answer_it() -> None:
    f, _ = framing()
    f.start("s", ServerToolUse("id", "search", {}))
    f.tool_input("s", "{")
    assert f.stop("s") == InvalidToolUse("id", "search", "{", reason="incomplete", extra={"dragoman": {"server_tool": True}})


def test_a_call_without_an_id_gets_one_from_response_and_index_and_remembers_it() -> None:
    f, events = framing()
    f.text("t", "x")
    f.tool("c", "", "n", extra={"kind": "custom"})
    f.stop_all()
    assert folded(events)[1] == ToolUse("call_r1_1", "n", {}, extra={"w": {"kind": "custom", "synthetic_id": True}})


def test_free_text_input_is_the_escaped_field_of_an_object() -> None:
    f, events = framing()
    f.tool("c", "id", "n")
    f.tool_string("c", 'say "')
    f.tool_string("c", '4 + 4"\n')
    assert f.stop("c") == ToolUse("id", "n", {"input": 'say "4 + 4"\n'})
    assert "".join(e.json for e in events if isinstance(e, ToolInputDelta)) == '{"input":"say \\"4 + 4\\"\\n"}'


def test_free_text_input_that_was_cut_stays_unfinished() -> None:
    f, _ = framing()
    f.tool("c", "id", "n")
    f.tool_string("c", "4 +", field="code")
    assert f.stop("c", cut=True) == InvalidToolUse("id", "n", '{"code":"4 +', reason="incomplete")


def test_extra_gathered_on_the_way_is_on_the_finished_block() -> None:
    f, events = framing()
    f.start("t", Text("", extra={"w": {"id": "i1"}}))
    f.remember("t", logprobs=[1])
    f.text("t", "x")
    f.stop("t")
    assert events[0] == BlockStart(0, Text("", extra={"w": {"id": "i1"}}))
    assert events[-1] == BlockStop(0, Text("x", extra={"w": {"id": "i1", "logprobs": [1]}}))


def test_a_finished_block_given_whole_wins_and_keeps_what_was_gathered() -> None:
    f, _ = framing()
    f.text("t", "x")
    f.remember("t", a=1)
    assert f.stop("t", block=Text("xyz", extra={"w": {"b": 2}})) == Text("xyz", extra={"w": {"a": 1, "b": 2}})


def test_audio_starts_empty_and_its_source_comes_at_the_stop() -> None:
    f, events = framing()
    f.start("a", Audio(Base64("audio/wav", "")))
    f.text("a", "hello")
    f.stop("a", source=Base64("audio/wav", "AAAA"))
    assert events == [
        BlockStart(0, Audio(Base64("audio/wav", ""))),
        TextDelta(0, "hello"),
        BlockStop(0, Audio(Base64("audio/wav", "AAAA"), transcript="hello")),
    ]


def test_a_pair_cut_over_two_fragments_is_rejoined_also_across_other_blocks() -> None:
    f, events = framing()
    f.text("t", "a\ud83d")
    f.thinking("k", "x")
    f.text("t", "\ude00b")
    f.stop_all()
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["a", "😀b"]


def test_lone_halves_become_replacement_characters_except_in_thinking() -> None:
    f, events = framing()
    f.text("t", "a\ud83d")
    f.text("t", "b\ude00")
    f.text("t", "\ud83d")
    f.thinking("k", "\ud83d")
    f.thinking("k", "\ude00\ude00\ud83d")
    f.tool("c", "id", "n")
    f.tool_input("c", '{"a":"\ud83d')
    f.tool_input("c", '"}')
    f.stop_all()
    assert folded(events) == [Text("a\ufffdb\ufffd\ufffd"), Thinking("😀\ude00\ud83d"), ToolUse("id", "n", {"a": "\ufffd"})]


def test_a_held_half_is_let_go_before_the_signature() -> None:
    f, events = framing()
    f.thinking("k", "a\ud83d")
    f.signature("k", "sig")
    f.stop_all()
    assert events[1:] == [
        ThinkingDelta(0, "a"),
        ThinkingDelta(0, "\ud83d"),
        SignatureDelta(0, "sig"),
        BlockStop(0, Thinking("a\ud83d", signature="sig")),
    ]


def test_citations_come_as_deltas_and_open_a_text() -> None:
    f, events = framing()
    citation = Citation("url_citation", {"url": "https://example.com"})
    f.citation("t", citation)
    f.text("t", "see")
    f.stop_all()
    assert events == [
        BlockStart(0, Text("")),
        CitationDelta(0, citation),
        TextDelta(0, "see"),
        BlockStop(0, Text("see", citations=[citation])),
    ]


WHOLE: list[Block] = [
    Text("hi", citations=[Citation("c", {"url": "u"})], extra={"w": {"a": 1}}),
    Refusal("no"),
    Audio(Base64("audio/wav", "AA"), transcript="t"),
    Thinking("hm", signature="s"),
    Thinking("", signature="s"),
    ToolUse("id", "n", {"a": [1]}),
    ToolUse("id", "n", {}),
    ServerToolUse("id", "n", {"q": "x"}),
    RedactedThinking("zz"),
    Opaque({"type": "x"}, wire="w"),
]


@pytest.mark.parametrize("block", WHOLE, ids=lambda b: type(b).__name__)
def test_a_whole_block_comes_as_start_deltas_and_stop(block: Block) -> None:
    f, events = framing()
    assert f.put(block) == 0
    assert isinstance(events[0], BlockStart)
    assert events[-1] == BlockStop(0, block)
    assert folded(events) == [block]
    assert folded([BlockStop(e.index) if isinstance(e, BlockStop) else e for e in events]) == [block]


def test_calls_counts_what_the_caller_must_run() -> None:
    f, _ = framing()
    f.tool("a", "1", "n")
    f.start("s", ServerToolUse("2", "search", {}))
    assert (f.calls, f.count, f.open_keys, f.index("s"), f.index("zz")) == (1, 2, ["a", "s"], 1, None)


@given(st.lists(st.tuples(st.sampled_from(["text", "thinking", "tool"]), st.text(st.characters(codec=None), max_size=4)), max_size=30))
def test_the_fold_of_deltas_is_the_finished_block(pieces: list[tuple[str, str]]) -> None:
    f, events = framing()
    for kind, piece in pieces:
        if kind == "text":
            f.text("t", piece)
        elif kind == "thinking":
            f.thinking("k", piece)
        else:
            f.tool("c", "id", "n")
            f.tool_input("c", piece)
    f.stop_all()
    assert folded(events) == folded([BlockStop(e.index) if isinstance(e, BlockStop) else e for e in events])


@given(st.text(), st.data())
def test_however_a_text_is_cut_into_utf16_halves_it_comes_out_whole(text: str, data: st.DataObject) -> None:
    raw = text.encode("utf-16-be")
    units = [raw[i : i + 2].decode("utf-16-be", "surrogatepass") for i in range(0, len(raw), 2)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units)))))
    f, events = framing()
    for a, b in zip([0, *cuts], [*cuts, len(units)], strict=True):
        f.text("t", "".join(units[a:b]))
        f.tool("c", "id", "n")
        f.tool_string("c", "".join(units[a:b]))
    f.stop_all()
    content = folded(events)
    assert [b.text for b in content if isinstance(b, Text)] == [text] * bool(text)
    assert [b for b in content if isinstance(b, ToolUse)] == [ToolUse("id", "n", {"input": text})]


def test_escape_json_is_the_inside_of_a_json_string() -> None:
    assert escape_json('a"\\\n\ud800é') == 'a\\"\\\\\\n\ufffdé'
