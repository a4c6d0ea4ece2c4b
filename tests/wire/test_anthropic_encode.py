"""Messages on Anthropic's wire: each block, each turn, and the system text, as exact JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

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
    ThinkingConfig,
    Tool,
    ToolResult,
    ToolUse,
    Url,
    Video,
    assistant,
    problems,
    system,
    tool_result,
    user,
)
from tests.wire.anthropic_requests import MODEL, WIRE, body_of, content_of, encode, notices_of, turns_of

GOLDEN = Path(__file__).parents[1] / "golden" / "anthropic" / "requests"
CITATION = {"type": "char_location", "cited_text": "c", "document_index": 0, "start_char_index": 0, "end_char_index": 1}
GEMINI = Origin("google", "gemini-3-pro", "gemini")


# ---- golden bytes

WEATHER = Tool(
    "get_weather",
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}, "at": {"type": "string"}}, "required": ["city"]},
)
PLAIN = Request([user("Why is the sky blue?")], model="claude-sonnet-4-5", system="Answer in one sentence.", max_tokens=1024)
TOOL_LOOP = Request(
    [
        user("Is it raining in Zürich?"),
        assistant(Text("I will look."), ToolUse("toolu_01A", "get_weather", {"city": "Zürich", "at": "now"})),
        user(tool_result("toolu_01A", "8 °C, rain")),
    ],
    model="claude-sonnet-4-5",
    system="Answer in one sentence.",
    tools=[WEATHER],
    max_tokens=1024,
)


@pytest.mark.parametrize(("name", "request_"), [("plain", PLAIN), ("tool_loop", TOOL_LOOP)])
def test_the_bytes_of_a_request_are_exact(name: str, request_: Request) -> None:
    encoded = WIRE.encode(request_, stream=True)
    assert encoded.body == (GOLDEN / f"{name}.json").read_bytes()
    assert (encoded.method, encoded.path, encoded.notices) == ("POST", "/v1/messages", [])


# ---- blocks

BLOCKS: list[tuple[Block, dict[str, Any]]] = [
    (Text("t", citations=[Citation("char_location", CITATION)]), {"type": "text", "text": "t", "citations": [CITATION]}),
    (
        Text("t", citations=[Citation("page_location", {"cited_text": "c"})]),
        {"type": "text", "text": "t", "citations": [{"type": "page_location", "cited_text": "c"}]},
    ),
    (Text("t", cache=CacheControl("1h")), {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    (Text("t", extra={"anthropic": {"new": [1]}}), {"type": "text", "text": "t", "new": [1]}),
    (Image(Base64("image/png", "AA==")), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
    (Image(Base64("image/jpg", "AA==")), {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA=="}}),
    (Image(Url("https://e.org/a")), {"type": "image", "source": {"type": "url", "url": "https://e.org/a"}}),
    (
        Image(FileId("file_1"), cache=CacheControl()),
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}, "cache_control": {"type": "ephemeral"}},
    ),
    (
        Document(Base64("application/pdf", "AA=="), title="T", context="C", cite=True),
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            "title": "T",
            "context": "C",
            "citations": {"enabled": True},
        },
    ),
    (Document(PlainText("p")), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "p"}}),
    (Document(Parts("p")), {"type": "document", "source": {"type": "content", "content": "p"}}),
    (
        Document(Parts(["p", Image(Url("u"))])),
        {
            "type": "document",
            "source": {
                "type": "content",
                "content": [{"type": "text", "text": "p"}, {"type": "image", "source": {"type": "url", "url": "u"}}],
            },
        },
    ),
    (Thinking("th ", signature="S"), {"type": "thinking", "thinking": "th ", "signature": "S"}),
    (Thinking("", signature="S"), {"type": "thinking", "thinking": "", "signature": "S"}),
    (RedactedThinking("R"), {"type": "redacted_thinking", "data": "R"}),
    (ToolUse("toolu_1", "f", {"b": 1, "a": {}}), {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"b": 1, "a": {}}}),
    (
        ToolUse("toolu_1", "f", {}, cache=CacheControl(), extra={"anthropic": {"caller": {"type": "direct"}}}),
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "f",
            "input": {},
            "caller": {"type": "direct"},
            "cache_control": {"type": "ephemeral"},
        },
    ),
    (
        InvalidToolUse("toolu_1", "f", '{"a": ', reason="incomplete"),
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"INVALID_JSON": '{"a": '}},
    ),
    (
        ServerToolUse("srvtoolu_1", "web_search", {"query": "q"}),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    ),
    (
        ServerToolUse("mcptoolu_1", "ask", {}, extra={"anthropic": {"server_name": "wiki"}}),
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "input": {}, "server_name": "wiki"},
    ),
    (
        ServerToolResult("srvtoolu_1", [{"type": "web_search_result", "encrypted_content": "E="}], kind="web_search_tool_result"),
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "encrypted_content": "E="}],
        },
    ),
    (Opaque({"type": "container_upload", "file_id": "f"}, wire="anthropic"), {"type": "container_upload", "file_id": "f"}),
    (Opaque({"type": "compaction", "content": None}, wire="anthropic"), {"type": "compaction", "content": None}),
    (Refusal("no"), {"type": "text", "text": "no"}),
]


@pytest.mark.parametrize(("block", "wire"), BLOCKS, ids=lambda value: value.get("type") if isinstance(value, dict) else None)
def test_a_block_on_the_wire(block: Block, wire: dict[str, Any]) -> None:
    assert content_of("a", block, "b")[1] == wire


RESULTS: list[tuple[ToolResult, dict[str, Any]]] = [
    (ToolResult("t", "ok"), {"content": "ok"}),
    (ToolResult("t", []), {}),
    (ToolResult("t", " "), {}),
    (ToolResult("t", "bad", is_error=True), {"content": "bad", "is_error": True}),
    (ToolResult("t", ["a", "b"]), {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
    (ToolResult("t", [Image(Url("u"))]), {"content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}),
    (
        ToolResult("t", [Opaque({"type": "tool_reference", "tool_name": "n"}, wire="anthropic")]),
        {"content": [{"type": "tool_reference", "tool_name": "n"}]},
    ),
    (ToolResult("t", "ok", extra={"anthropic": {"x": 1}}), {"content": "ok", "x": 1}),
]


@pytest.mark.parametrize(("block", "wire"), RESULTS)
def test_a_tool_result_on_the_wire(block: ToolResult, wire: dict[str, Any]) -> None:
    assert turns_of(user(block))[0]["content"] == [{"type": "tool_result", "tool_use_id": "t", **wire}]


def test_a_result_says_which_toolset_its_call_belongs_to() -> None:
    call = ToolUse("toolu_1", "click", {}, extra={"anthropic": {"toolset_name": "browser"}})
    turns = turns_of("q", assistant(call), user(ToolResult("toolu_1", "ok")))
    assert turns[1]["content"][0]["toolset_name"] == turns[2]["content"][0]["toolset_name"] == "browser"


@pytest.mark.parametrize(
    ("block", "rule"),
    [
        (Audio(Url("u")), "no_audio"),
        (Video(Url("u")), "no_video"),
        (Image(PlainText("p")), "image_source"),
        (Opaque({"type": "input_json_delta", "partial_json": "{"}, wire="anthropic"), "not_a_block"),
        (Opaque({}, wire="anthropic"), "not_a_block"),
        (Text("t", extra={"anthropic": {"index": 0}}), "stream_debris"),
        (ToolUse("t", "f", {"x": float("nan")}), "not_json"),
        (ToolUse("t", "f", {"x": {1, 2}}), "not_json"),
        (ToolUse("t", "f", {"x": {1: 2}}), "not_json"),
        (ToolResult("t", [ToolUse("t", "f", {})]), "block_role"),
        ("not a block", "block_role"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_path(block: Any, rule: str) -> None:
    message = user("a", Text("b"))
    message.content.append(block)  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError) as caught:
        encode(message)
    (problem,) = caught.value.problems
    assert problem.rule == rule
    assert problem.path.startswith("messages[0].content[2]")


def test_all_that_cannot_be_written_is_reported_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode(user(Audio(Url("u"))), assistant("a"), user(ToolResult("t", ["x", Video(Url("u"))])))
    assert [problem.path for problem in caught.value.problems] == ["messages[0].content[0]", "messages[2].content[0].content[1]"]


def test_json_in_an_input_keeps_its_order_and_its_numbers() -> None:
    body = encode("q", assistant(ToolUse("t", "f", {"z": 1e20, "a": 10**25, "m": [True, None, {"k": {}}]})), "r").body
    assert b'{"z":1e20,"a":10000000000000000000000000,"m":[true,null,{"k":{}}]}' in body


def test_a_subclass_of_str_is_text() -> None:
    class Markup(str):
        __slots__ = ()

    assert turns_of(Markup("hi"), user(tool_result("t", Markup("ok"))))[0]["content"][1] == {"type": "text", "text": "hi"}


# ---- turns


def test_one_plain_text_is_a_string_anything_else_a_list() -> None:
    assert turns_of("q")[0]["content"] == "q"
    assert turns_of(user("q", "r"))[0]["content"] == [{"type": "text", "text": "q"}, {"type": "text", "text": "r"}]
    assert turns_of(user(Text("q", cache=CacheControl())))[0]["content"] == [
        {"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}
    ]


def test_same_role_neighbours_are_one_turn_and_results_come_first() -> None:
    turns = turns_of("q", assistant("thinking aloud"), assistant(ToolUse("toolu_1", "f", {})), "stop", user(tool_result("toolu_1", "ok")))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [block["type"] for block in turns[1]["content"]] == ["text", "tool_use"]
    assert turns[2]["content"] == [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}, {"type": "text", "text": "stop"}]


def test_what_is_left_empty_is_not_sent() -> None:
    assert content_of("", " \n", "a", "\u3000") == "a"
    assert turns_of("q", assistant(" "), assistant(Thinking("unsigned")), "r") == [
        {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "text", "text": "r"}]}
    ]


@pytest.mark.parametrize(
    "messages",
    [
        [user(" ")],
        [user("q"), assistant("a"), user("")],
        [user(), assistant("a"), user("q")],
        [user("q"), assistant("a"), user(" "), assistant("b"), user("r")],
        [user("q"), assistant("a"), user(" "), user(""), assistant(" "), assistant("b"), user("r")],
        [user("q"), system("a"), user(" "), system("b"), user("r")],
    ],
)
def test_a_user_turn_left_empty_is_refused(messages: list[Message]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode(*messages)
    assert [problem.rule for problem in caught.value.problems] == ["empty_turn"]
    told = [(problem.path, problem.rule) for problem in problems(Request(messages, model=MODEL), WIRE)]
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == [place for place in told if place[1] != "required"]


def test_an_empty_user_message_beside_another_is_no_problem() -> None:
    assert turns_of(user(""), "q", user(" ")) == [{"role": "user", "content": "q"}]


def test_a_final_assistant_text_loses_its_trailing_white_space_only() -> None:
    assert turns_of("q", assistant("  a \n"))[1]["content"] == "  a"
    assert turns_of("q", assistant("a "), "r")[1]["content"] == "a "
    assert turns_of("q", assistant(Thinking("t ", signature="S"), "a "))[1]["content"][0]["thinking"] == "t "
    cited = Text("a ", citations=[Citation("char_location", CITATION)])
    assert turns_of("q", assistant(cited))[1]["content"] == [{"type": "text", "text": "a", "citations": [CITATION]}]


def test_what_a_message_carries_for_this_dialect_is_sent_and_keeps_it_apart() -> None:
    later = Message("system", "s", extra={"anthropic": {"clear_at": "never"}})
    turns = turns_of("q", later, system("t"))
    assert turns[1:] == [{"role": "system", "content": "s", "clear_at": "never"}, {"role": "system", "content": "t"}]


@pytest.mark.parametrize("messages", [[], [system("s")], [assistant("")]])
def test_a_request_needs_a_message(messages: list[Message]) -> None:
    with pytest.raises(InvalidInputError, match=r"^Anthropic request requires at least one user/assistant message"):
        encode(*messages)


def test_a_request_needs_a_model() -> None:
    with pytest.raises(InvalidInputError, match=r"^Anthropic request requires a model"):
        encode("q", model="")


# ---- system


@pytest.mark.parametrize(
    ("given", "messages", "expected"),
    [
        ("", [], None),
        (" \n", [], None),
        ("a", [], "a"),
        ([Text("a")], [], "a"),
        ("a", [system("b"), system("c")], "a\n\nb\n\nc"),
        ("", [system("b"), system(" "), system("c")], "b\n\nc"),
        ([Text("a"), Text("b")], [], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (
            "a",
            [Message("system", [Text("b", cache=CacheControl())]), system("c")],
            [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "c"},
            ],
        ),
        ([Text("a"), Text(" ")], [], "a"),
    ],
)
def test_system_text_is_hoisted(given: Any, messages: list[Message], expected: Any) -> None:
    assert body_of(*messages, user("q"), system=given).get("system") == expected


def test_a_later_system_message_stays_in_place_unless_all_are_hoisted() -> None:
    history = [system("a"), user("q"), assistant("r"), system("b")]
    assert turns_of(*history)[2] == {"role": "system", "content": "b"}
    assert body_of(*history, hoist_system="all")["system"] == "a\n\nb"
    assert [turn["role"] for turn in turns_of(*history, hoist_system="all")] == ["user", "assistant"]


def test_a_system_message_that_changes_the_tools_is_never_hoisted() -> None:
    added = Opaque({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}, wire="anthropic")
    encoded = encode("q", Message("system", [added]), hoist_system="all")
    assert b'"messages":[{"role":"user","content":"q"},{"role":"system","content":[{"type":"tool_addition"' in encoded.body
    assert encoded.headers["anthropic-beta"] == "mid-conversation-tool-changes-2026-07-01"


def test_a_system_message_with_an_extra_of_its_own_is_never_hoisted() -> None:
    kept = Message("system", "be brief", extra={"anthropic": {"clear_at": "never"}})
    turn = {"role": "system", "content": "be brief", "clear_at": "never"}
    assert turns_of(kept, "q", model="claude-opus-5") == [turn, {"role": "user", "content": "q"}]
    for hoist in ("leading", "all"):
        assert turns_of("q", kept, hoist_system=hoist, model="claude-opus-5") == [{"role": "user", "content": "q"}, turn]
    assert body_of(system("a"), kept, system("b"), "q")["system"] == "a"
    assert [turn["content"] for turn in turns_of(system("a"), kept, system("b"), "q")] == ["be brief", "b", "q"]
    assert body_of(system("a"), kept, system("b"), "q", hoist_system="all")["system"] == "a\n\nb"


def test_validation_knows_which_system_messages_stay() -> None:
    kept = Message("system", "be brief", extra={"anthropic": {"clear_at": "never"}})
    request = Request([kept, system("after"), user("q"), system("later")], model="claude-sonnet-5")
    for hoist, told in (("leading", [0, 1, 3]), ("all", [0])):
        found = problems(request.replace(hoist_system=hoist), WIRE)
        assert [(problem.path, problem.rule) for problem in found] == [(f"messages[{i}]", "system_position") for i in told]
    behind_nothing = Request([assistant(" "), system("later"), user("q")], model="claude-sonnet-5")
    assert [problem.path for problem in problems(behind_nothing, WIRE)] == ["messages[1]"]
    assert [turn["role"] for turn in turns_of(*behind_nothing.messages)] == ["system", "user"]


def test_a_body_with_a_leading_system_turn_comes_back_as_it_was() -> None:
    body = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "system", "content": "be brief", "clear_at": "never"}, {"role": "user", "content": "q"}],
    }
    decoded = WIRE.decode_request(msgspec.json.encode(body))
    assert msgspec.json.decode(WIRE.encode(decoded, stream=False).body) == body


def test_what_a_dropped_message_carries_is_told() -> None:
    foreign = Message("system", "s", extra={"gemini": {"x": 1}})
    assert notices_of(foreign, "q") == [("extra_left_out", "messages[0].extra")]
    assert body_of(foreign, "q") == {"system": "s"}
    empty = Message("system", " ", extra={"anthropic": {"clear_at": "never"}})
    assert notices_of("q", empty) == [("extra_left_out", "messages[1].extra")]


def test_a_first_message_without_a_role_begins_a_turn() -> None:
    assert turns_of(Message("", ["x"]), "q") == [{"role": "", "content": "x"}, {"role": "user", "content": "q"}]  # type: ignore[arg-type]


def test_an_image_in_a_system_message_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode("q", Message("system", [Image(Url("u"))]))
    assert caught.value.problems[0].path == "messages[1].content[0]"


# ---- thinking, and what others wrote


def test_unsigned_thinking_is_left_out_or_text() -> None:
    blocks = (Thinking("hm"), Text("a"))
    assert content_of(*blocks) == "a"
    assert content_of(*blocks, foreign_thinking="text") == [{"type": "text", "text": "hm"}, {"type": "text", "text": "a"}]
    assert notices_of("q", assistant(*blocks), "r") == [("thinking_left_out", "messages[1].content[0]")]


def test_thinking_of_another_dialect_is_left_out_with_all_that_is_its_own() -> None:
    blocks = (
        Thinking("hm", signature="G"),
        RedactedThinking("R"),
        Text("a", citations=[Citation("url_citation", {"url": "u"})], extra={"gemini": {"thoughtSignature": "x"}}),
        ToolUse("functions.ls:0", "ls", {}, extra={"gemini": {"thoughtSignature": "y"}}),
        ServerToolUse("s", "google_search", {}),
        ServerToolResult("s", {}, kind="google_search"),
        Opaque({"executableCode": {}}, wire="gemini"),
    )
    content = content_of(*blocks, origin=GEMINI)
    assert content == [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "dgm1-functions_2els_3a0", "name": "ls", "input": {}}]
    codes = [code for code, _ in notices_of("q", Message("assistant", blocks, origin=GEMINI), "r")]
    assert codes == ["thinking_left_out", "citations_left_out", "extra_left_out", "block_left_out", "block_left_out", "block_left_out"]


def test_a_change_at_many_places_is_one_notice_with_the_first_place() -> None:
    (notice,) = encode("q", assistant(Thinking("a"), Thinking("b"), "x"), "r").notices
    assert (notice.path, notice.message[-9:]) == ("messages[1].content[0]", "(2 times)")


def test_the_next_message_is_not_foreign_because_the_last_one_was() -> None:
    foreign = Message("assistant", [Thinking("g", signature="G"), Text("a")], origin=GEMINI)
    own = Message("assistant", [Thinking("t", signature="S"), Text("b")])
    assert turns_of("q", foreign, "r", own, "s")[3]["content"][0] == {"type": "thinking", "thinking": "t", "signature": "S"}


SIGNED = (Thinking("t", signature="S"), Text("a"))


@pytest.mark.parametrize(
    ("model", "origin", "kept"),
    [
        ("claude-sonnet-4-5", Origin("anthropic", "claude-opus-4-5", "anthropic"), True),  # the API ignores it
        ("claude-opus-5-5", Origin("anthropic", "claude-opus-5-5", "anthropic"), True),
        ("claude-opus-5-5", Origin("anthropic", "claude-opus-5-5-20261001", "anthropic"), True),
        ("claude-opus-5-5", Origin("vertex", "claude-opus-5-5@20261001", "anthropic"), True),
        ("claude-opus-5-5", None, True),
        ("claude-opus-5-5", Origin("anthropic", "claude-sonnet-4-5", "anthropic"), False),  # the API would refuse it
        ("claude-opus-5-5", GEMINI, False),
    ],
)
def test_thinking_of_another_model_is_replayed_where_the_api_takes_it(model: str, origin: Origin | None, kept: bool) -> None:
    content = content_of(*SIGNED, origin=origin, model=model)
    assert (isinstance(content, list) and content[0]["type"] == "thinking") is kept


def test_an_answer_that_a_fallback_model_finished_stays_whole() -> None:
    fallback = Opaque({"type": "fallback", "from": {"model": "claude-opus-5-5"}, "to": {"model": "claude-sonnet-4-5"}}, wire="anthropic")
    origin = Origin("anthropic", "claude-sonnet-4-5", "anthropic")
    assert [b["type"] for b in content_of(fallback, *SIGNED, origin=origin, model="claude-opus-5-5")] == ["fallback", "thinking", "text"]


def test_signed_thinking_with_half_a_character_is_refused_unsigned_text_is_mended() -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode("q", assistant(Thinking("\udcaf", signature="S"), "a"), "r")
    assert [(p.rule, p.path) for p in caught.value.problems] == [("broken_unicode", "messages[1].content[0]")]
    assert turns_of("a\ud83d", assistant(Thinking("\U0001f600", signature="S"), "\ud83d\ude00"), "r\udc97")[::2] == [
        {"role": "user", "content": "a\ufffd"},
        {"role": "user", "content": "r\ufffd"},
    ]


def test_broken_thinking_that_is_not_sent_is_no_problem() -> None:
    foreign = Message("assistant", [Thinking("\udcaf", signature="G"), Text("a")], origin=GEMINI)
    assert turns_of("q\udc97", foreign, "r")[:2] == [{"role": "user", "content": "q\ufffd"}, {"role": "assistant", "content": "a"}]


# ---- tool ids


def test_ids_that_collide_are_rewritten_with_their_results() -> None:
    call = assistant(ToolUse("call_0", "f", {}))
    turns = turns_of(
        "a", call, user(ToolResult("call_0", "1")), call, user(ToolResult("call_0", "2")), call, user(ToolResult("call_0", "3"))
    )
    ids = [block.get("id", block.get("tool_use_id")) for turn in turns[1:] for block in turn["content"]]
    assert ids == ["call_0", "call_0", "dgm2-call_5f0", "dgm2-call_5f0", "dgm3-call_5f0", "dgm3-call_5f0"]


def test_two_calls_of_one_turn_with_one_id_are_answered_in_order() -> None:
    calls = assistant(ToolUse("x", "f", {}), ToolUse("x", "g", {}), InvalidToolUse("", "h", "", reason="incomplete"))
    turns = turns_of("a", calls, user(ToolResult("x", "1"), ToolResult("", "3", is_error=True), ToolResult("x", "2")))
    assert [block["id"] for block in turns[1]["content"]] == ["x", "dgm2-x", "dgm1-"]
    assert [(block["tool_use_id"], block["content"]) for block in turns[2]["content"]] == [("x", "1"), ("dgm1-", "3"), ("dgm2-x", "2")]


def test_a_message_that_is_dropped_parts_no_turn_and_no_ids() -> None:
    first, second = assistant(ToolUse("x", "f", {})), assistant(ToolUse("x", "g", {}))
    turns = turns_of("a", first, system(" "), second, user(ToolResult("x", "1"), ToolResult("x", "2")))
    assert [block["id"] for block in turns[1]["content"]] == ["x", "dgm2-x"]
    assert [(block["tool_use_id"], block["content"]) for block in turns[2]["content"]] == [("x", "1"), ("dgm2-x", "2")]


def test_an_id_that_looks_like_a_rewritten_one_is_told_apart() -> None:
    turns = turns_of(
        "a", assistant(ToolUse(".", "f", {}), ToolUse("dgm1-_2e", "g", {})), user(ToolResult("dgm1-_2e", "2"), ToolResult(".", "1"))
    )
    first, second = (block["id"] for block in turns[1]["content"])
    assert first != second
    assert [(block["tool_use_id"], block["content"]) for block in turns[2]["content"]] == [(second, "2"), (first, "1")]


def test_no_content_is_changed() -> None:
    """What was given is the same after encoding, to the last nested list."""
    request = Request(
        [
            user(Text("", cache=CacheControl()), "q"),
            Message("assistant", [Thinking("u"), ToolUse("a.b", "f", {"x": [1]}), Text("a ")], origin=GEMINI),
            user("r", ToolResult("a.b", ["1", Text("", cache=CacheControl())])),
            assistant(Opaque({"type": "search_result", "content": []}, wire="anthropic"), Text(" ", cache=CacheControl()), "end "),
        ],
        model=MODEL,
        cache="auto",
        tools=[Tool("f")],
        system=[Text("s")],
        thinking=ThinkingConfig.budget(9000, clamp=True),
        max_tokens=2048,
        extra_body={"output_config": {"task_budget": {"type": "tokens", "total": 1}}},
        effort="low",
    )
    before = repr(request)
    first = WIRE.encode(request, stream=True)
    assert repr(request) == before
    assert WIRE.encode(request, stream=True) == first
