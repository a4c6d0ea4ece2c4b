"""Cache marks are counted, and put in order, where the encoder puts them: not one more, not one less."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import (
    Audio,
    CacheControl,
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
    ProviderTool,
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
    Url,
    assistant,
    problems,
    user,
)
from dragoman.wire.anthropic import AnthropicWire

WIRE = AnthropicWire()
SHORT, LONG = CacheControl(), CacheControl("1h")
RAW_SHORT: dict[str, Any] = {"type": "ephemeral"}
RAW_LONG: dict[str, Any] = {"type": "ephemeral", "ttl": "1h"}
CALL = ToolUse("t", "f", {})
MODEL = "claude-test-1"


def kept(mark: Any) -> dict[str, Any]:
    """A mark where `decode_request` keeps one that no field holds."""
    return {"anthropic": {"cache_control": mark}}


def found(*messages: Message | str, **fields: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.rule) for problem in problems(Request(messages, model=MODEL, **fields), WIRE)]


def sent(request: Request) -> list[str]:
    """The lifetimes of all marks in the body, in the order of the prefix, the top-level one last."""
    body = json.loads(WIRE.encode(request, stream=False).body)
    marks: list[str] = []

    def look(blocks: Any) -> None:
        for block in blocks if isinstance(blocks, list) else ():
            look(block.get("content", block.get("source", {}).get("content")))
            if block.get("cache_control"):
                marks.append(block["cache_control"].get("ttl", "5m"))

    look(body.get("tools"))
    look(body.get("system"))
    for turn in body["messages"]:
        look(turn["content"])
    look([{key: value for key, value in body.items() if key == "cache_control"}])
    return marks


# ---- results come first in a user turn


def test_a_mark_on_a_result_comes_before_those_of_the_turn_s_other_blocks() -> None:
    def ask(of_text: CacheControl, of_result: CacheControl) -> list[tuple[str, str]]:
        return found("q", assistant(CALL), user(Text("x", cache=of_text), ToolResult("t", "r", cache=of_result)))

    assert ask(SHORT, LONG) == []
    assert ask(LONG, SHORT) == [("messages[2].content[0]", "cache_order")]


def test_a_mark_that_moves_lands_behind_the_results() -> None:
    turn = user("qa", ToolResult("t", "r", cache=SHORT))
    assert found("q", assistant(CALL), turn, user(Text("", cache=LONG))) == [("messages[2].content[0]", "cache_order")]
    assert found("q", assistant(CALL), turn, user(Text("", cache=SHORT))) == []


# ---- what carries a mark


@pytest.mark.parametrize(
    "carrier", [InvalidToolUse("t", "f", "{", reason="invalid_json"), Refusal("no"), CALL, Image(Url("https://x.test"))]
)
def test_whatever_carries_a_mark_for_the_encoder_does_so_here(carrier: Any) -> None:
    answer = user(ToolResult("t", "r", is_error=True)) if isinstance(carrier, ToolUse | InvalidToolUse) else user("go on")
    messages = [user(Text("q", cache=SHORT)), assistant(carrier, Text(" ", cache=LONG)), answer]
    assert found(*messages) == [("messages[1].content[0]", "cache_order")]


def test_a_string_as_system_carries_a_mark() -> None:
    tools = [Tool("f", cache=SHORT)]
    assert found(user(Text("", cache=LONG), "q"), system="s", tools=tools) == [("system", "cache_order")]
    assert found(user(Text("", cache=LONG), "q"), system=" ", tools=tools) == []  # it meets the mark of the tool


def test_the_mark_of_an_empty_part_moves_to_its_result() -> None:
    def ask(result: ToolResult) -> list[tuple[str, str]]:
        first = assistant(ToolUse("t", "f", {}, cache=SHORT))
        return found(user(Text("q", cache=SHORT)), first, user(result, Text("go", cache=SHORT)), system=[Text("s", cache=SHORT)])

    assert ask(ToolResult("t", [Text("")])) == []
    assert ask(ToolResult("t", [Text("", cache=SHORT)])) == [("messages[2].content[1]", "cache_marks")]
    assert ask(ToolResult("t", [Text("a"), Text("", cache=LONG)])) == [
        ("messages[2].content[1]", "cache_marks"),
        ("messages[2].content[0].content[0]", "cache_order"),
    ]


@pytest.mark.parametrize(
    "block",
    [
        Thinking("t", signature="S", extra=kept(RAW_LONG)),
        RedactedThinking("d", extra=kept(RAW_LONG)),
        ServerToolUse("s", "web_search", {}, extra=kept(RAW_LONG)),
        ServerToolResult("s", [], kind="web_search_tool_result", extra=kept(RAW_LONG)),
        ServerToolResult("s", [{"type": "text", "text": "x", "cache_control": RAW_LONG}], kind="web_search_tool_result"),
        Refusal("no", extra=kept(RAW_LONG)),
        Text("x", extra=kept(RAW_LONG)),
        Opaque({"type": "search_result", "content": [{"type": "text", "text": "x", "cache_control": RAW_LONG}]}, wire="anthropic"),
        Opaque({"type": "x", "source": {"content": [{"type": "text", "text": "x", "cache_control": RAW_LONG}]}}, wire="anthropic"),
    ],
    ids=lambda block: type(block).__name__,
)
def test_a_mark_in_the_wires_own_words_counts(block: Any) -> None:
    messages = [user(Text("q", cache=SHORT)), assistant("a", block, "b"), "go on"]
    assert [rule for _, rule in found(*messages)] == ["cache_order"]
    four = [Text(str(i), cache=LONG) for i in range(4)]
    assert [rule for _, rule in found(user(*four), assistant("a", block, "b"), "go on")] == ["cache_marks"]
    assert found(*messages, cache="off") == []


def test_a_mark_in_the_wires_own_words_counts_on_a_tool() -> None:
    for tool in (Tool("f", extra=kept(RAW_SHORT)), ProviderTool("memory_20250818", "m", {"cache_control": RAW_SHORT})):
        assert found("q", tools=[tool], system=[Text("s", cache=LONG)]) == [("system[0]", "cache_order")]


def test_what_is_no_mark_or_not_sent_does_not_count() -> None:
    elsewhere = Origin("google", "gemini-9", "gemini")
    dropped = ServerToolUse("s", "search", {}, extra=kept(RAW_LONG))
    foreign = Opaque({"type": "text", "cache_control": RAW_LONG}, wire="gemini")
    answer = Message("assistant", [dropped, foreign, Text("a"), Refusal("", extra=kept(RAW_LONG))], origin=elsewhere)
    assert found(user(Text("q", cache=SHORT)), answer, user(Text("go on", extra=kept(None)))) == []
    assert found(user(Text("q", cache=SHORT), Text("x", extra=kept("1h")))) == []


def test_a_value_that_holds_itself_is_named_and_not_searched_for_marks() -> None:
    loop: dict[str, Any] = {"type": "search_result"}
    loop["content"] = [loop, loop]
    assert [rule for _, rule in found(user(Opaque(loop, wire="anthropic")))] == ["not_json"]
    result = ServerToolResult("s", [loop], kind="web_search_tool_result")
    marked = user(*[Text("q", cache=SHORT)] * 5)
    assert [rule for _, rule in found(marked, assistant(result, "a"), "r")] == ["not_json", "cache_marks"]


# ---- the top-level mark


def test_the_top_level_mark_counts_as_it_is_sent() -> None:
    """`cache="provider"` wins over what `extra_body` says, but where the model caches nothing."""
    body = {"cache_control": RAW_LONG}
    marked = user(Text("q", cache=SHORT))
    assert found(marked, extra_body=body) == [("extra_body.cache_control", "cache_order")]
    assert found(marked, extra_body=body, cache="provider") == []
    assert sent(Request([marked], model=MODEL, extra_body=body, cache="provider")) == ["5m", "5m"]


# ---- the same as the encoder's, whatever is asked

CACHES = st.sampled_from([None, None, SHORT, LONG])
EXTRAS = st.sampled_from([{}, {}, {}, kept(RAW_SHORT), kept(RAW_LONG), kept(None)])
WORDS = st.sampled_from(["a", "b", " ", ""])
TEXTS = st.builds(Text, WORDS, cache=CACHES, extra=EXTRAS)
RAW_MARKS = st.sampled_from([{}, {"cache_control": RAW_SHORT}, {"cache_control": RAW_LONG}])
RAW_TEXTS = RAW_MARKS.map(lambda mark: {"type": "text", "text": "x", **mark})
RAW_HOLDERS = st.one_of(
    st.just({}),
    st.lists(RAW_TEXTS, max_size=2).map(lambda parts: {"content": parts}),
    st.lists(RAW_TEXTS, max_size=2).map(lambda parts: {"source": {"type": "content", "content": parts}}),
)
OPAQUES = st.builds(
    lambda kind, mark, holder, wire: Opaque({"type": kind, **mark, **holder}, wire=wire),
    st.sampled_from(["search_result", "compaction", "container_upload"]),
    RAW_MARKS,
    RAW_HOLDERS,
    st.sampled_from(["anthropic", "anthropic", "gemini"]),
)
IMAGES = st.builds(Image, st.just(Url("https://x.test/a.png")), cache=CACHES, extra=EXTRAS)
PARTS = st.lists(st.one_of(TEXTS, IMAGES, OPAQUES), max_size=3)
DOCUMENTS = st.builds(Document, st.just(PlainText("d")) | PARTS.map(Parts), cache=CACHES, extra=EXTRAS)
RESULTS = st.builds(ToolResult, st.sampled_from("tuv"), st.just("r") | PARTS, cache=CACHES, extra=EXTRAS)
REFUSALS = st.builds(Refusal, WORDS, extra=EXTRAS)
OF_USER = st.one_of(TEXTS, TEXTS, RESULTS, RESULTS, DOCUMENTS, OPAQUES, REFUSALS, IMAGES)
OF_ASSISTANT = st.one_of(
    TEXTS,
    TEXTS,
    st.builds(ToolUse, st.sampled_from("tuv"), st.just("f"), st.just({}), cache=CACHES, extra=EXTRAS),
    st.builds(InvalidToolUse, st.just("i"), st.just("f"), st.just("{"), reason=st.just("invalid_json"), extra=EXTRAS),
    st.builds(Thinking, WORDS, signature=st.sampled_from(["", "S"]), extra=EXTRAS),
    st.builds(RedactedThinking, st.just("d"), extra=EXTRAS),
    st.builds(ServerToolUse, st.just("s"), st.just("web_search"), st.just({}), extra=EXTRAS),
    st.builds(ServerToolResult, st.just("s"), st.lists(RAW_TEXTS, max_size=2), kind=st.just("web_search_tool_result"), extra=EXTRAS),
    DOCUMENTS,
    OPAQUES,
    REFUSALS,
)
ORIGINS = st.sampled_from([None, None, Origin("anthropic", "m", "anthropic"), Origin("google", "m", "gemini")])
OWN = st.sampled_from([{}, {}, {}, {"anthropic": {"k": 1}}])
VOICE = st.builds(Audio, st.just(FileId("f")), transcript=WORDS)
MESSAGES = st.one_of(
    st.builds(Message, st.just("user"), st.lists(OF_USER, max_size=4), extra=OWN),
    st.builds(Message, st.just("assistant"), st.lists(OF_ASSISTANT, max_size=4), origin=ORIGINS, extra=OWN),
    st.builds(Message, st.just("assistant"), st.lists(VOICE | TEXTS, max_size=2), origin=st.just(Origin("google", "m", "gemini"))),
    st.builds(Message, st.just("system"), st.lists(TEXTS, max_size=2), extra=OWN),
)
TOOLS = st.builds(Tool, st.just("f"), cache=CACHES, extra=EXTRAS) | st.builds(
    ProviderTool, st.just("p_1"), st.just("g"), RAW_MARKS, cache=CACHES, extra=EXTRAS
)
REQUESTS = st.builds(
    Request,
    st.lists(MESSAGES, min_size=1, max_size=5),
    model=st.just(MODEL),
    system=st.sampled_from(["", "s"]) | st.lists(TEXTS, max_size=2),
    tools=st.lists(TOOLS, max_size=2),
    cache=st.sampled_from([None, "provider"]),
    extra_body=st.sampled_from([{}, {}, {"cache_control": RAW_LONG}]),
    hoist_system=st.sampled_from(["leading", "all"]),
    foreign_thinking=st.sampled_from(["drop", "text"]),
)


@given(REQUESTS)
@settings(max_examples=500, deadline=None)
def test_what_is_counted_is_what_is_sent(request: Request) -> None:
    try:
        marks = sent(request)
    except InvalidInputError:  # a turn of which nothing is left
        return
    rules = {problem.rule for problem in problems(request, WIRE)}
    assert ("cache_marks" in rules) is (len(marks) > 4)
    assert ("cache_order" in rules) is (("5m", "1h") in pairwise(marks))


@given(REQUESTS)
@settings(max_examples=200, deadline=None)
def test_off_leaves_no_mark_and_auto_makes_none_too_many(request: Request) -> None:
    try:
        before = sent(request.replace(cache="explicit"))
    except InvalidInputError:
        return
    assert sent(request.replace(cache="off", extra_body={})) == []
    assert len(sent(request.replace(cache="auto"))) <= max(4, len(before))
