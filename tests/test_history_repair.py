"""Mending a history, and what of an interrupted answer may be sent back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman import (
    Audio,
    Base64,
    Block,
    CacheControl,
    Citation,
    Document,
    FileId,
    Image,
    InvalidInputError,
    InvalidToolUse,
    Message,
    Opaque,
    Origin,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    Request,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
    assistant,
    problems,
    repair,
    replayable,
    system,
    user,
)
from dragoman.history import Repaired
from dragoman.validation.repair import NOT_RUN, NOTHING_LEFT, UNANSWERED
from dragoman.wire.anthropic import AnthropicWire

JPEG = "/9j/4AAQSkZJRgABAQ=="


def calls(*ids: str) -> Message:
    return assistant(*(ToolUse(call_id, "f", {}) for call_id in ids))


def results(*ids: str) -> Message:
    return user(*(ToolResult(call_id, f"of {call_id}") for call_id in ids))


def missing(call_id: str, text: str = UNANSWERED) -> ToolResult:
    return ToolResult(call_id, text, is_error=True)


def changed(repaired: Repaired) -> list[tuple[str, str]]:
    return [(change.path, change.rule) for change in repaired.changes]


# ---- calls and results


def test_a_history_that_needs_nothing_is_given_back_as_it_is() -> None:
    given = [system("s"), user("q"), calls("a", "b"), results("b", "a"), assistant(" "), assistant("done")]
    repaired = repair(given)

    assert repaired.changes == []
    assert all(ours is theirs for ours, theirs in zip(repaired.messages, given, strict=True))


def test_the_result_can_be_unpacked() -> None:
    messages, changes = repair([user("q")])
    assert (messages, changes) == ([user("q")], [])


def test_unanswered_calls_get_an_error_result_in_the_order_of_the_calls() -> None:
    given = [user("q"), calls("1", "2", "3"), user("by the way", ToolResult("2", "ok")), user("next")]
    repaired = repair(given)

    expected = [missing("1"), ToolResult("2", "ok"), missing("3"), Text("by the way")]
    assert repaired.messages == [user("q"), calls("1", "2", "3"), user(*expected), user("next")]
    assert changed(repaired) == [("messages[2]", "tool_result_missing")] * 2
    assert ["`1`" in repaired.changes[0].message, "`3`" in repaired.changes[1].message] == [True, True]


def test_calls_at_the_end_get_a_user_turn_of_their_own() -> None:
    repaired = repair([user("q"), calls("a")])
    assert repaired.messages == [user("q"), calls("a"), user(missing("a"))]
    assert changed(repaired) == [("messages[1]", "tool_result_missing")]


def test_an_unanswered_call_that_must_not_be_run_is_told_so() -> None:
    cut = assistant(InvalidToolUse("a", "f", '{"x', reason="incomplete"))
    assert repair([user("q"), cut]).messages[-1] == user(missing("a", NOT_RUN))


def test_the_result_of_an_invalid_call_becomes_an_error() -> None:
    cut = assistant(InvalidToolUse("a", "f", '{"x', reason="incomplete"))
    repaired = repair([user("q"), cut, user(ToolResult("a", "ran it"))])
    assert repaired.messages[2] == user(ToolResult("a", "ran it", is_error=True))
    assert changed(repaired) == [("messages[2].content[0].is_error", "invalid_call_result")]


def test_a_result_of_unusual_shape_becomes_an_error_too() -> None:
    cut = assistant(InvalidToolUse("a", "f", '{"x', reason="incomplete"))
    odd = {"type": "tool_result", "tool_use_id": "a", "odd": 1}
    repaired = repair([user("q"), cut, user(Opaque(odd, wire="anthropic"))])
    assert repaired.messages[2] == user(Opaque({**odd, "is_error": True}, wire="anthropic"))
    assert changed(repaired) == [("messages[2].content[0].is_error", "invalid_call_result")]
    assert repair(repaired.messages).changes == []


def test_results_that_answer_no_call_are_left_out() -> None:
    repaired = repair([user("handoff"), results("gone"), user("resume", ToolResult("gone too", "x"))])
    assert repaired.messages == [user("handoff"), user("resume")]
    assert changed(repaired) == [("messages[1].content[0]", "tool_result_orphan"), ("messages[2].content[1]", "tool_result_orphan")]


def test_a_result_two_turns_later_is_left_out_and_its_call_answered_in_place() -> None:
    repaired = repair([user("q"), calls("a"), user("wait"), assistant("ok"), user("here", ToolResult("a", "late"))])
    assert repaired.messages == [user("q"), calls("a"), user(missing("a"), "wait"), assistant("ok"), user("here")]


def test_several_results_of_one_call_become_one() -> None:
    twice = user(ToolResult("a", "first"), ToolResult("a", "second"), ToolResult("a", "second"))
    repaired = repair([user("q"), calls("a"), twice])
    assert repaired.messages[2] == user(ToolResult("a", ["first", "second", "second"]))
    assert changed(repaired) == [("messages[2].content[1]", "tool_result_repeated"), ("messages[2].content[2]", "tool_result_repeated")]


def test_a_result_that_says_the_same_again_is_said_once() -> None:
    repaired = repair([user("q"), calls("a"), results("a"), results("a"), user("next")])
    assert repaired.messages == [user("q"), calls("a"), results("a"), user("next")]


@pytest.mark.parametrize(("first", "second", "merged"), [(True, False, False), (False, True, False), (True, True, True)])
def test_a_merged_result_is_an_error_only_if_all_were(first: bool, second: bool, merged: bool) -> None:
    pair = user(ToolResult("a", "x", is_error=first), ToolResult("a", "y", is_error=second))
    block = repair([user("q"), calls("a"), pair]).messages[2].content[0]
    assert isinstance(block, ToolResult)
    assert block.is_error is merged


def test_calls_of_one_turn_with_the_same_id_are_answered_in_order() -> None:
    repaired = repair([user("q"), calls("c", "c"), results("c")])
    assert repaired.messages[2] == user(ToolResult("c", "of c"), missing("c"))


def test_an_added_result_follows_those_that_answer_earlier_calls_of_its_id() -> None:
    turn = assistant(ToolUse("a", "f", {}), InvalidToolUse("a", "f", "{", reason="incomplete"))
    repaired = repair([user("q"), turn, user("by the way"), results("a")])

    assert repaired.messages == [user("q"), turn, user("by the way"), user(ToolResult("a", "of a"), missing("a", NOT_RUN))]
    assert problems(Request(repaired.messages, model="m"), AnthropicWire()) == []


def test_a_call_of_unusual_shape_is_answered_too() -> None:
    odd = assistant(Opaque({"type": "tool_use", "id": "a", "odd": 1}, wire="anthropic"))
    assert repair([user("q"), odd]).messages[-1] == user(missing("a"))
    orphan = user("q", Opaque({"type": "tool_result", "tool_use_id": "z"}, wire="anthropic"))
    assert repair([orphan]).messages == [user("q")]


# ---- system messages and empty turns


def test_a_system_message_between_a_call_and_its_result_moves_behind_it() -> None:
    repaired = repair([user("q"), calls("a", "b"), system("one"), results("a"), system("two"), results("b"), assistant("ok")])
    assert repaired.messages == [user("q"), calls("a", "b"), results("a"), results("b"), system("one"), system("two"), assistant("ok")]
    assert changed(repaired) == [("messages[2]", "system_position"), ("messages[4]", "system_position")]


def test_a_system_message_behind_the_results_stays() -> None:
    given = [user("q"), calls("a"), results("a"), system("one"), user("go")]
    assert repair(given) == (given, [])


def test_a_call_followed_by_a_system_message_alone_is_answered_before_it() -> None:
    repaired = repair([user("q"), calls("a"), system("stop"), assistant("ok")])
    assert repaired.messages == [user("q"), calls("a"), user(missing("a")), system("stop"), assistant("ok")]


def test_a_user_turn_without_content_is_left_out() -> None:
    repaired = repair([user("q"), assistant("a"), user("  "), user(""), assistant("b"), user("r")])
    assert repaired.messages == [user("q"), assistant("a"), assistant("b"), user("r")]
    assert changed(repaired) == [("messages[2]", "empty_turn")]


def test_a_conversation_of_which_nothing_is_left_says_so() -> None:
    repaired = repair([system("s"), results("gone")])
    assert repaired.messages == [system("s"), user(NOTHING_LEFT)]
    assert changed(repaired)[-1] == ("messages", "required")


@pytest.mark.parametrize("given", [[], [system("s")]])
def test_a_conversation_that_has_not_begun_is_left_alone(given: list[Message]) -> None:
    assert repair(given) == (given, [])


# ---- blocks


@pytest.mark.parametrize(
    "message",
    [
        user("q", ToolUse("a", "f", {})),
        user("q", InvalidToolUse("a", "f", "", reason="incomplete")),
        user("q", Thinking("t", signature="S")),
        user("q", RedactedThinking("x")),
        user("q", ServerToolUse("a", "f", {})),
        assistant("q", ToolResult("a", "x")),
        Message("system", ["q", Image(Base64("image/jpeg", JPEG))]),
    ],
)
def test_a_block_that_cannot_stand_there_is_left_out(message: Message) -> None:
    repaired = repair([user("hi"), message])
    assert repaired.messages[1] == Message(message.role, "q")
    assert changed(repaired) == [("messages[1].content[1]", "block_role")]


def test_what_is_no_block_is_left_out() -> None:
    repaired = repair([Message("user", ["q", {"type": "text"}])])  # type: ignore[list-item]
    assert repaired.messages == [user("q")]
    assert changed(repaired) == [("messages[0].content[1]", "not_a_block")]


def test_an_illegal_tool_name_becomes_a_legal_one() -> None:
    repaired = repair([user("q"), assistant(ToolUse("a", "two words", {}), ToolUse("b", "", {})), results("a", "b")])
    assert [block.name for block in repaired.messages[1].tool_uses] == ["two_words", "tool"]
    assert changed(repaired) == [("messages[1].content[0].name", "tool_name"), ("messages[1].content[1].name", "tool_name")]


def test_a_call_whose_input_is_no_json_becomes_an_invalid_call_and_its_result_an_error() -> None:
    repaired = repair([user("q"), assistant(ToolUse("a", "f", {"x": math.nan})), results("a")])
    assert repaired.messages[1].content == [InvalidToolUse("a", "f", '{"x": NaN}', reason="invalid_json")]
    assert repaired.messages[2] == user(ToolResult("a", "of a", is_error=True))
    assert [rule for _, rule in changed(repaired)] == ["not_json", "invalid_call_result"]


def test_an_input_that_holds_itself_can_be_mended() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    (call,) = repair([user("q"), assistant(ToolUse("a", "f", loop)), results("a")]).messages[1].invalid_tool_uses
    assert "..." in call.raw


def test_signed_thinking_that_cannot_be_sent_unchanged_is_left_out() -> None:
    repaired = repair([user("q"), assistant(Thinking("\udcaf", signature="S"), "a"), user("r")])
    assert repaired.messages[1] == assistant("a")
    assert changed(repaired) == [("messages[1].content[0]", "broken_unicode")]


def test_a_mislabelled_image_is_labelled_as_its_bytes_say() -> None:
    wrong, right = Image(Base64("image/png", JPEG)), Image(Base64("image/jpeg", JPEG))
    repaired = repair([user(wrong), calls("a"), user(ToolResult("a", ["x", wrong]))])
    assert repaired.messages == [user(right), calls("a"), user(ToolResult("a", ["x", right]))]
    assert changed(repaired) == [
        ("messages[0].content[0].source.media_type", "media_mismatch"),
        ("messages[2].content[0].content[1].source.media_type", "media_mismatch"),
    ]
    alias = [user(Image(Base64("image/jpg", JPEG)))]
    assert repair(alias) == (alias, [])


PDF = "JVBERi0xLjQKJeLjz9M="
JPG, PNG_LABEL = Image(Base64("image/jpeg", JPEG)), Image(Base64("image/png", JPEG))
PAPER = Document(Base64("application/pdf", PDF))
BAD = {"x": math.nan}
LOST: dict[str, Any] = dict.fromkeys(["\ud800", "\ud801"], 1)
DELTA = Opaque({"type": "text_delta", "text": "a"}, wire="anthropic")
MARK = CacheControl()

MENDED: list[tuple[Block, Block | None, list[tuple[str, str]]]] = [
    # labels
    (Document(Base64("image/png", PDF), title="t"), replace(PAPER, title="t"), [(".source.media_type", "media_mismatch")]),
    (
        Document(Parts([PNG_LABEL, "a"])),
        Document(Parts([JPG, "a"])),
        [(".source.content[0].source.media_type", "media_mismatch")],
    ),
    (
        Document(Base64("application/pdf", JPEG), cache=MARK),
        replace(JPG, cache=MARK),
        [(".source.media_type", "media_mismatch"), ("", "document_type")],
    ),
    (Document(JPG.source), JPG, [("", "document_type")]),
    (Image(PlainText("a")), Document(PlainText("a")), [("", "image_source")]),
    # where the bytes are
    (Image(Base64("image/png", "")), None, [(".source.data", "base64")]),
    (Image(Base64("image/png", "no base64!")), None, [(".source.data", "base64")]),
    (Document(Base64("application/pdf", "")), None, [(".source.data", "base64")]),
    (Image(Base64("image/jpeg", f"data:image/jpeg;base64,{JPEG}")), JPG, [(".source.data", "base64")]),
    (Image(Url(f"data:;base64,{JPEG}")), JPG, [(".source.url", "url"), (".source.media_type", "media_mismatch")]),
    (Image(Url("data:text/plain,hi")), None, [(".source.url", "url")]),
    (Document(Url(" ")), None, [(".source.url", "url")]),
    # what documents and results hold
    (Document(Parts([DELTA])), None, [(".source.content[0]", "not_a_block")]),
    (Document(Parts([PAPER])), None, [(".source.content[0]", "block_unsupported")]),
    # what is sent as it is
    (DELTA, None, [("", "not_a_block")]),
    (Opaque({"a": 1}, wire="anthropic"), None, [("", "not_a_block")]),
    (Opaque({"type": "x", "a": {1}}, wire="anthropic"), None, [(".data", "not_json")]),
    (Opaque({"type": "x", "a": LOST}, wire="anthropic"), None, [(".data", "broken_unicode")]),
    (Text("a", extra={"anthropic": LOST}), Text("a"), [(".extra.anthropic", "broken_unicode")]),
    (
        Text("a", extra={"anthropic": BAD, "gemini": {"index": 1}}),
        Text("a", extra={"gemini": {"index": 1}}),
        [(".extra.anthropic.x", "not_json")],
    ),
    (
        Text("a", extra={"anthropic": {"index": 0, "caller": 1}}),
        Text("a", extra={"anthropic": {"caller": 1}}),
        [(".extra.anthropic.index", "stream_debris")],
    ),
    (
        Text("a", citations=[Citation("c", {"a": {1}}), Citation("c", {})]),
        Text("a", citations=[Citation("c", {})]),
        [(".citations[0]", "not_json")],
    ),
    (
        Document(Parts(["a", PAPER, Refusal("no")])),
        Document(Parts(["a", "no"])),
        [(".source.content[1]", "block_unsupported"), (".source.content[2]", "block_unsupported")],
    ),
    (
        Image(Base64("image/png", PDF), cache=MARK),
        replace(PAPER, cache=MARK),
        [(".source.media_type", "media_mismatch"), ("", "image_source")],
    ),
]


@pytest.mark.parametrize(("given", "left", "changes"), MENDED)
def test_what_nobody_could_send_is_mended_or_left_out(given: Block, left: Block | None, changes: list[tuple[str, str]]) -> None:
    history = [user("q", given), assistant("a"), user("r")]
    repaired = repair(history)
    assert repaired.messages == [user("q", *([] if left is None else [left])), *history[1:]]
    assert changed(repaired) == [(f"messages[0].content[1]{path}", rule) for path, rule in changes]
    assert problems(Request(history, model="m"), AnthropicWire()) != []
    assert problems(Request(repaired.messages, model="m"), AnthropicWire()) == []
    assert repair(repaired.messages).changes == []


def test_a_tool_result_holds_what_it_can() -> None:
    content: Any = ["x", ToolUse("b", "f", {}), Refusal("no"), Thinking("t", signature="S"), DELTA, {"type": "text"}, PNG_LABEL]
    repaired = repair([user("q"), calls("a"), user(ToolResult("a", content))])
    assert repaired.messages[2] == user(ToolResult("a", ["x", "no", JPG]))
    rules = ["block_role", "block_role", "block_role", "not_a_block", "not_a_block", "media_mismatch"]
    assert [rule for _, rule in changed(repaired)] == rules
    assert changed(repaired)[0] == ("messages[2].content[0].content[1]", "block_role")
    assert problems(Request(repaired.messages, model="m"), AnthropicWire()) == []


@pytest.mark.parametrize(
    ("call", "result", "rule"),
    [
        (ServerToolUse("s", "web_search", BAD), ServerToolResult("s", [], kind="web_search_tool_result"), "tool_result_orphan"),
        (ServerToolUse("s", "web_search", {}), ServerToolResult("s", {1}, kind="web_search_tool_result"), "tool_result_missing"),
    ],
)
def test_what_a_server_side_tool_did_is_left_out_whole(call: Block, result: Block, rule: str) -> None:
    other = ServerToolUse("other", "web_search", {})
    repaired = repair([user("q"), assistant("a", call, other, result), user("r")])
    assert repaired.messages[1] == assistant("a", other)
    assert [told for _, told in changed(repaired)] == ["not_json", rule]


def test_keys_of_an_input_that_would_become_one_make_the_call_invalid() -> None:
    repaired = repair([user("q"), assistant(ToolUse("a", "f", LOST)), results("a")])
    assert repaired.messages[1] == assistant(InvalidToolUse("a", "f", '{"\\ud800": 1, "\\ud801": 1}', reason="invalid_json"))
    assert problems(Request(repaired.messages, model="m"), AnthropicWire()) == []


def test_what_is_no_block_is_left_out_of_sound_too() -> None:
    parts: Any = ["a", {"type": "text"}]
    repaired = repair([user("q", Audio(Parts(parts)), Video(Parts(parts[1:])))])
    assert repaired.messages == [user("q", Audio(Parts(["a"])))]
    assert repair(repaired.messages).changes == []


def test_what_a_message_carries_can_be_written() -> None:
    carried = Message("user", "q", extra={"anthropic": {"a": {1}, "b": 1}})
    repaired = repair([carried])
    assert repaired.messages == [replace(carried, extra={"anthropic": {"b": 1}})]
    assert changed(repaired) == [("messages[0].extra.anthropic.a", "not_json")]


@pytest.mark.parametrize(
    "message",
    [
        user("q", Audio(Base64("audio/wav", "UklGRg=="))),
        user("q", Document(Base64("text/plain", "aGk="))),
        user("q", Image(Base64("image/tiff", "SUkqAA=="))),
        user(Opaque({"type": "x"}, wire="gemini")),
        user(Image(FileId("f")), Document(Url("https://x/y.pdf")), Document(Parts([JPG, "a"]))),
    ],
)
def test_what_the_provider_decides_is_not_touched(message: Message) -> None:
    assert repair([message]) == ([message], [])


@pytest.mark.parametrize("messages", ["hey", user("hey"), ["hey"], iter(["hey"])])
def test_a_string_or_a_message_is_a_history_of_one(messages: Any) -> None:
    assert repair(messages) == ([user("hey")], [])


@pytest.mark.parametrize(
    ("messages", "places"),
    [
        ({"role": "user", "content": "hi"}, [("messages[0]", "not_a_message")]),
        ([user("q"), {"role": "user"}, None], [("messages[1]", "not_a_message"), ("messages[2]", "not_a_message")]),
        ([Message("tool", "x")], [("messages[0].role", "unknown_role")]),  # type: ignore[arg-type]
        ([user("q", ToolResult(5, "x"))], [("messages[0].content[1].tool_use_id", "wrong_type")]),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_or_of_a_wrong_type_is_refused(messages: Any, places: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        repair(messages)
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == places


def test_what_stands_beside_a_change_is_kept() -> None:
    origin, mark = Origin("anthropic", "m", "anthropic"), CacheControl("1h")
    turn = Message("assistant", [Text("a", cache=mark), ToolResult("x", "y")], origin=origin, extra={"anthropic": {"k": 1}})
    (_, mended) = repair([user("q"), turn]).messages
    assert mended == Message("assistant", [Text("a", cache=mark)], origin=origin, extra={"anthropic": {"k": 1}})


def test_nothing_is_mutated() -> None:
    given = [user("q", ToolResult("z", "x")), calls("a", "a"), user(ToolResult("a", "1"), ToolResult("a", "2"), ToolResult("a", "3"))]
    before = repr(given)
    repair(given)
    problems(Request(given, model="claude-test-1"), AnthropicWire())
    assert repr(given) == before


def test_a_bare_string_is_a_user_message() -> None:
    assert repair(["q", assistant("a")]).messages == [user("q"), assistant("a")]


# ---- what may be sent back


def test_a_finished_answer_is_replayable_as_it_is() -> None:
    answer = assistant(Thinking("", signature="S"), RedactedThinking("R"), "text", ToolUse("a", "f", {}))
    assert replayable(answer) is answer


@pytest.mark.parametrize(
    ("partial", "left"),
    [
        ([Thinking("hm", signature="S"), Text("half a sen")], [Thinking("hm", signature="S"), Text("half a sen")]),
        ([Thinking("unsigned"), Text("x")], [Text("x")]),
        ([Text("x"), InvalidToolUse("a", "f", '{"pa', reason="incomplete")], [Text("x")]),
        ([Text("x"), ToolUse("a", "f", {}), InvalidToolUse("b", "f", "", reason="incomplete")], [Text("x"), ToolUse("a", "f", {})]),
        ([Text("x"), ServerToolUse("s", "web_search", {})], [Text("x")]),
        ([Text("x"), Thinking("more", signature="S")], [Text("x")]),
        ([Text("x"), Text("  ")], [Text("x")]),
        ([Text("x"), Refusal("")], [Text("x")]),
        ([Text("x"), Opaque({"type": "new"}, wire="anthropic")], [Text("x"), Opaque({"type": "new"}, wire="anthropic")]),
    ],
)
def test_of_an_interrupted_answer_what_is_whole_is_kept(partial: list[Any], left: list[Any]) -> None:
    assert replayable(Message("assistant", partial)) == Message("assistant", left)


def test_a_server_side_call_is_kept_with_its_result() -> None:
    pair = assistant(ServerToolUse("s", "web_search", {}), ServerToolResult("s", [], kind="web_search_tool_result"))
    assert replayable(pair) is pair


def called_by(id: str) -> dict[str, dict[str, Any]]:
    return {"anthropic": {"caller": {"type": "code_execution_20250825", "tool_id": id}}}


def test_a_server_side_call_is_kept_with_a_call_that_it_made() -> None:
    code = ServerToolUse("srv1", "code_execution", {"code": "await get()"})
    answer = assistant(code, ToolUse("t1", "get", {}, extra=called_by("srv1")))
    assert replayable(answer) is answer
    cut = assistant(code, InvalidToolUse("t1", "get", "{", reason="incomplete", extra=called_by("srv1")), "x")
    assert replayable(cut) == assistant("x")
    odd = assistant(code, Opaque({"type": "tool_use", "caller": {"tool_id": "srv1"}}, wire="anthropic"))
    assert replayable(odd) is odd
    inner = ServerToolUse("srv2", "web_search", {}, extra=called_by("srv1"))
    chain = assistant(code, inner, ServerToolResult("srv2", [], kind="web_search_tool_result"), ServerToolUse("srv3", "web_search", {}))
    assert replayable(chain) == assistant(*chain.content[:3])


@pytest.mark.parametrize("caller", [None, "direct", {"type": "direct"}, {"tool_id": 5}])
def test_a_caller_that_names_no_call_keeps_none(caller: Any) -> None:
    call = ToolUse("t", "f", {}, extra={"anthropic": {"caller": caller}})
    assert replayable(assistant(ServerToolUse("srv1", "code_execution", {}), call)) == assistant(call)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "assistant", "content": "hi"}, ("message", "not_a_message")),
        (Message("assistant", [Text(5)]), ("message.content[0].text", "wrong_type")),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_or_of_a_wrong_type_is_not_replayable(message: Any, place: tuple[str, str]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        replayable(message)
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == [place]


def test_what_is_no_block_is_not_replayed() -> None:
    assert replayable(Message("assistant", ["a", {"type": "text"}])) == assistant("a")  # type: ignore[list-item]


def test_an_invalid_call_that_came_whole_can_be_answered() -> None:
    call = assistant(InvalidToolUse("a", "f", "{who: Bob}", reason="invalid_json"))
    assert replayable(call) is call


def test_empty_text_that_carries_a_signature_is_kept() -> None:
    signed = Message("assistant", [Text("x"), Text("", extra={"gemini": {"thoughtSignature": "S"}})])
    assert replayable(signed) is signed


@pytest.mark.parametrize(
    "partial",
    [
        [],
        [Text(" ")],
        [Thinking("only", signature="S")],
        [Thinking("unsigned")],
        [Thinking("t", signature="S"), InvalidToolUse("a", "f", "", reason="incomplete")],
        [RedactedThinking("R")],
    ],
)
def test_an_answer_of_which_nothing_may_be_sent_is_none(partial: list[Any]) -> None:
    assert replayable(Message("assistant", partial)) is None


def test_what_is_replayable_stays_so() -> None:
    once = replayable(assistant("x", ServerToolUse("s", "f", {}), Thinking("t", signature="S")))
    assert once is not None
    assert replayable(once) is once


def test_a_message_of_the_user_is_replayable() -> None:
    question = user("q")
    assert replayable(question) is question
    assert replayable("q") == question
    assert replayable(user()) is None


def test_an_interrupted_turn_can_go_on() -> None:
    partial = assistant(
        Thinking("hm", signature="S"), "I will look", ToolUse("a", "f", {"x": 1}), InvalidToolUse("b", "f", "{", reason="incomplete")
    )
    turn = replayable(partial)
    assert turn is not None
    messages, _ = repair([user("q"), turn, user("never mind")])
    request = Request(messages, model="claude-test-1")
    assert problems(request, AnthropicWire()) == []
    body = json.loads(AnthropicWire().encode(request, stream=True).body)
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "text"]


@pytest.mark.parametrize("history", [[], [system("s")]])
def test_a_history_in_which_nobody_has_spoken_stays_so(history: list[Message]) -> None:
    messages, changes = repair(history)
    assert (messages, changes) == (history, [])
    assert [problem.rule for problem in problems(Request(messages, model="claude-test-1"), AnthropicWire())] == ["required"]
