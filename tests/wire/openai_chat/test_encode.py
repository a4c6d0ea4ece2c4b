"""Requests as chat completions calls: what each field writes, per dialect, and what is refused or reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    Audio,
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
    OutputFormat,
    Parts,
    PlainText,
    ProviderTool,
    RedactedThinking,
    Refusal,
    Request,
    ServerToolUse,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    Url,
    Video,
    assistant,
    system,
    user,
)
from dragoman.message import Base64, Block
from dragoman.wire.base import HTTPRequest
from dragoman.wire.openai_chat import DIALECTS, OpenAIChatWire

HERE = Origin("openai", "m", "openai-chat")
CLAUDE = Origin("anthropic", "claude", "anthropic")
WEATHER = Tool("weather", "Tells it.", {"type": "object", "properties": {"city": {"type": "string"}}})


def send(request: Request, dialect: str = "openai", *, stream: bool = False) -> HTTPRequest:
    return OpenAIChatWire(dialect).encode(request if request.model else request.replace(model="m"), stream=stream)


def body(request: Request, dialect: str = "openai", *, stream: bool = False) -> dict[str, Any]:
    return json.loads(send(request, dialect, stream=stream).body)  # type: ignore[no-any-return]


def messages(*given: Message, dialect: str = "openai", **fields: Any) -> list[dict[str, Any]]:
    return body(Request(list(given), **fields), dialect)["messages"]  # type: ignore[no-any-return]


def codes(request: Request, dialect: str = "openai") -> list[str]:
    return [notice.code for notice in send(request, dialect).notices]


def problems(request: Request, dialect: str = "openai") -> list[tuple[str, str]]:
    with pytest.raises(InvalidInputError) as caught:
        send(request, dialect)
    return [(problem.path, problem.rule) for problem in caught.value.problems]


# ---- the call


def test_the_smallest_request() -> None:
    http = send(Request("hi", model="gpt-test"), stream=False)
    assert (http.method, http.path) == ("POST", "/chat/completions")
    assert http.headers == {"content-type": "application/json", "accept": "application/json"}
    assert http.body == b'{"model":"gpt-test","messages":[{"role":"user","content":"hi"}]}'


def test_a_stream_asks_for_usage_where_the_host_takes_that() -> None:
    http = send(Request("hi"), stream=True)
    assert http.headers["accept"] == "text/event-stream"
    assert json.loads(http.body)["stream_options"] == {"include_usage": True}
    assert body(Request("hi"), "mistral", stream=True).keys() == {"model", "messages", "stream"}


def test_callers_stream_options_stand() -> None:
    given = {"stream_options": {"include_obfuscation": False}}
    assert body(Request("hi", extra_body=given), stream=True)["stream_options"] == given["stream_options"]


def test_the_same_request_is_the_same_bytes() -> None:
    request = Request(
        [user("a"), assistant("b", ToolUse("x" * 60, "f", {"b": 1, "a": 2})), user(ToolResult("x" * 60, "r"))], tools=[WEATHER]
    )
    assert len({send(request).body for _ in range(3)}) == 1


def test_nothing_given_is_changed() -> None:
    extra: dict[str, Any] = {"seed": 1}
    blocks: list[Block] = [Text("a", extra={"openai-chat": {"x": 1}})]
    request = Request([Message("user", blocks)], extra_body=extra, model="m")
    before = repr(request)
    send(request, stream=True)
    assert repr(request) == before


def test_a_model_and_a_message_are_required() -> None:
    with pytest.raises(InvalidInputError, match=r"^OpenAI request requires a model"):
        OpenAIChatWire().encode(Request("hi"), stream=False)
    with pytest.raises(InvalidInputError, match=r"^Groq request requires at least one user/assistant message"):
        OpenAIChatWire("groq").encode(Request([system("s")], model="m"), stream=False)


def test_headers_of_the_request_are_sent_in_lower_case() -> None:
    assert send(Request("hi", extra_headers={"HTTP-Referer": "x"})).headers["http-referer"] == "x"


def test_what_was_settled_is_told() -> None:
    assert send(Request("hi", max_tokens=5, effort="low")).settled == {"max_tokens": 5, "effort": "low"}
    given = {"temperature": 0.5, "top_p": "high", "stop": "END"}
    told = {"max_tokens": None, "effort": None, "temperature": 0.5, "stop_sequences": ["END"]}
    assert send(Request("hi", extra_body=given)).settled == told
    assert send(Request("hi", temperature=0.5, stop_sequences=["END"])).settled == {"max_tokens": None, "effort": None}


@pytest.mark.parametrize("dialect", ["openai", "openrouter", "deepseek", "vllm"])
def test_the_effort_that_was_sent_is_told_whichever_key_the_host_has_for_it(dialect: str) -> None:
    thinks = Request("hi", effort="low", thinking=ThinkingConfig.adaptive())
    assert send(thinks, dialect).settled == {"max_tokens": None, "effort": "low"}
    assert send(thinks.replace(thinking=ThinkingConfig.off()), dialect).settled == {"max_tokens": None, "effort": None}


# ---- parameters


@pytest.mark.parametrize(
    ("dialect", "key"), [("openai", "max_completion_tokens"), ("xai", "max_completion_tokens"), ("generic", "max_tokens")]
)
def test_the_token_limit_has_the_hosts_name(dialect: str, key: str) -> None:
    assert body(Request("hi", max_tokens=7), dialect)[key] == 7


def test_sampling_and_stop() -> None:
    found = body(Request("hi", temperature=0.0, top_p=0.5, top_k=3, stop_sequences=["END"]), "generic")
    assert (found["temperature"], found["top_p"], found["top_k"], found["stop"]) == (0.0, 0.5, 3, ["END"])


def test_top_k_is_refused_where_the_host_has_none() -> None:
    assert problems(Request("hi", top_k=3)) == [("top_k", "top_k")]


def test_extra_body_adds_and_never_replaces() -> None:
    request = Request("hi", temperature=0.5, extra_body={"seed": 1, "temperature": 9})
    assert {key: body(request)[key] for key in ("seed", "temperature")} == {"seed": 1, "temperature": 0.5}
    assert codes(request) == ["extra_body_ignored"]
    request = Request("hi", metadata={"task": "t"}, extra_body={"metadata": {"task": "u", "more": "v"}})
    assert body(request)["metadata"] == {"task": "t", "more": "v"}
    assert codes(request) == ["extra_body_ignored"]
    assert codes(request.replace(extra_body={"metadata": {"task": "t", "more": "v"}})) == []


@pytest.mark.parametrize("stream", [False, True])
def test_whether_to_stream_is_not_for_extra_body_to_say(stream: bool) -> None:
    request = OpenAIChatWire().encode(Request("hi", model="m", extra_body={"stream": not stream}), stream=stream)
    assert json.loads(request.body).get("stream", False) is stream
    assert [notice.path for notice in request.notices] == ["extra_body.stream"]


def test_metadata() -> None:
    request = Request("hi", metadata={"user_id": "u", "task": "t"})
    assert {key: body(request)[key] for key in ("user", "metadata")} == {"user": "u", "metadata": {"task": "t"}}
    assert "metadata" not in body(request, "groq")
    assert codes(request, "groq") == ["metadata_left_out"]


def test_betas_mean_nothing_here() -> None:
    assert codes(Request("hi", betas=["b"])) == ["betas_left_out"]


def test_structured_output() -> None:
    found = body(Request("hi", output=OutputFormat({"type": "object"}, name="x")))["response_format"]
    assert found == {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True}}


# ---- thinking


@pytest.mark.parametrize(
    ("dialect", "thinking", "effort", "expected"),
    [
        ("openai", None, "low", {"reasoning_effort": "low"}),
        ("openai", None, "max", {"reasoning_effort": "max"}),
        ("openrouter", None, "max", {"reasoning_effort": "xhigh"}),
        ("openai", ThinkingConfig.off(), None, {"reasoning_effort": "none"}),
        ("openai", ThinkingConfig.adaptive(), "high", {"reasoning_effort": "high"}),
        ("openai", ThinkingConfig.adaptive(), None, {}),
        ("openai", ThinkingConfig.budget(5000), None, {"reasoning_effort": "medium"}),
        ("openai", ThinkingConfig.budget(60000), None, {"reasoning_effort": "xhigh"}),
        ("openrouter", ThinkingConfig.off(), None, {"reasoning": {"enabled": False}}),
        ("openrouter", ThinkingConfig.budget(2000), None, {"reasoning": {"max_tokens": 2000}}),
        ("openrouter", ThinkingConfig.adaptive(), None, {"reasoning": {"enabled": True}}),
        ("openrouter", ThinkingConfig.auto(display="omitted"), "low", {"reasoning": {"effort": "low", "exclude": True}}),
        ("deepseek", ThinkingConfig.off(), None, {"thinking": {"type": "disabled"}}),
        ("deepseek", ThinkingConfig.adaptive(), "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("vllm", ThinkingConfig.off(), None, {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_thinking(dialect: str, thinking: ThinkingConfig | None, effort: Any, expected: dict[str, Any]) -> None:
    found = body(Request("hi", thinking=thinking, effort=effort), dialect)
    assert {key: value for key, value in found.items() if key not in ("model", "messages")} == expected


@pytest.mark.parametrize(
    ("dialect", "thinking", "effort", "code"),
    [
        ("openai", ThinkingConfig.budget(5000), None, "thinking_budget_as_effort"),
        ("deepseek", ThinkingConfig.budget(5000), None, "thinking_budget_left_out"),
        ("openrouter", ThinkingConfig.budget(5000), "low", "effort_left_out"),
        ("openai", ThinkingConfig.adaptive(display="omitted"), None, "thinking_display_left_out"),
    ],
)
def test_what_of_thinking_cannot_be_said_is_reported(dialect: str, thinking: ThinkingConfig, effort: Any, code: str) -> None:
    assert codes(Request("hi", thinking=thinking, effort=effort), dialect) == [code]


# ---- tools


def test_tools() -> None:
    found = body(Request("hi", tools=[WEATHER, Tool("now", strict=True)]))["tools"]
    assert found == [
        {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": WEATHER.input_schema}},
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}, "strict": True}},
    ]


def test_custom_and_provider_tools() -> None:
    custom = Tool("sql", "Runs it.", extra={"openai-chat": {"custom": {"format": {"type": "text"}}}})
    search = ProviderTool("openrouter:web_search", "web_search", {"parameters": {"max_results": 3}})
    found = body(Request("hi", tools=[custom, search], tool_choice=ToolNamed("sql")))
    assert found["tools"] == [
        {"type": "custom", "custom": {"name": "sql", "description": "Runs it.", "format": {"type": "text"}}},
        {"type": "openrouter:web_search", "parameters": {"max_results": 3}},
    ]
    assert found["tool_choice"] == {"type": "custom", "custom": {"name": "sql"}}


@pytest.mark.parametrize(
    ("choice", "dialect", "expected"),
    [
        ("auto", "openai", "auto"),
        ("none", "openai", "none"),
        ("required", "openai", "required"),
        ("required", "mistral", "any"),
        ("required_if_allowed", "openai", "required"),
        (ToolNamed("weather"), "openai", {"type": "function", "function": {"name": "weather"}}),
        (None, "openai", None),
    ],
)
def test_tool_choice(choice: Any, dialect: str, expected: Any) -> None:
    assert body(Request("hi", tools=[WEATHER], tool_choice=choice), dialect).get("tool_choice") == expected


def test_without_tools_no_choice_is_sent() -> None:
    assert body(Request("hi", tool_choice="auto", parallel_tools=False)).keys() == {"model", "messages"}


def test_parallel_calls_can_be_forbidden() -> None:
    assert body(Request("hi", tools=[WEATHER], parallel_tools=False))["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(Request("hi", tools=[WEATHER], parallel_tools=False, tool_choice="none"))


# ---- system


def test_leading_system_messages_join_the_system_text() -> None:
    found = messages(system("b"), user("hi"), system("later"), system="a")
    assert found == [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "hi"}, {"role": "system", "content": "later"}]


def test_all_system_messages_can_be_hoisted() -> None:
    assert messages(user("hi"), system("later"), hoist_system="all")[0] == {"role": "system", "content": "later"}


@pytest.mark.parametrize(("model", "role"), [("gpt-5-mini", "developer"), ("o3-mini", "developer"), ("gpt-4o", "system")])
def test_the_role_of_the_system_text_depends_on_the_model(model: str, role: str) -> None:
    assert body(Request("hi", model=model, system="s"))["messages"][0]["role"] == role
    assert body(Request("hi", model=model, system="s"), "generic")["messages"][0]["role"] == "system"


def test_marked_system_texts_are_parts() -> None:
    marked = [Text("a", cache=CacheControl("1h")), Text("b")]
    found = messages(user("hi"), system=marked, dialect="openrouter")[0]["content"]
    assert found == [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}, {"type": "text", "text": "b"}]
    assert "cache_control" not in json.dumps(messages(user("hi"), system=marked))
    assert "cache_control" not in json.dumps(messages(user("hi"), system=marked, dialect="openrouter", cache="off"))


def marked(request: Request, dialect: str = "openrouter") -> list[list[bool]]:
    """Which parts of which message carry a mark."""
    contents = [message["content"] for message in body(request, dialect)["messages"]]
    return [["cache_control" in part for part in content] if isinstance(content, list) else [] for content in contents]


def test_asked_for_marks_stand_at_the_ends_of_system_text_and_conversation() -> None:
    conversation = [user("a"), assistant("b"), user("c", "d")]
    assert marked(Request(conversation, system="s", cache="auto")) == [[True], [], [], [False, True]]
    assert marked(Request(conversation, system="s")) == [[], [], [], [False, False]]
    assert marked(Request(conversation, system="s", cache="auto"), "openai") == [[], [], [], [False, False]]


def test_asked_for_marks_leave_the_callers_alone_and_never_exceed_four() -> None:
    own = [Text(str(n), cache=CacheControl()) for n in range(3)]
    assert marked(Request([user(*own), user("z")], system="s", cache="auto")) == [[True], [True, True, True], []]
    assert marked(Request([user(own[0])], cache="auto")) == [[True]]
    assert marked(Request([user("a", Image(Url("https://example.com/a.png")))], cache="auto")) == [[False, False]]


# ---- user turns


def test_parts_of_a_user_turn() -> None:
    found = messages(
        user(
            "see",
            Image(Base64("image/jpg", "AAAA"), extra={"openai-chat": {"detail": "high"}}),
            Image(Url("https://example.com/a.png")),
            Audio(Base64("audio/mpeg", "BBBB")),
            Document(Base64("application/pdf", "CCCC"), title="a.pdf"),
            Document(FileId("file_1")),
            Document(PlainText("hi")),
            Video(Url("https://example.com/a.mp4")),
        )
    )[0]["content"]
    assert found == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,CCCC"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "file", "file": {"filename": "document.txt", "file_data": "data:text/plain;base64,aGk="}},
        {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
    ]


def test_a_document_by_url_is_for_hosts_that_fetch_it() -> None:
    request = Request([user(Document(Url("https://example.com/a.pdf")))])
    assert problems(request) == [("messages[0].content[0]", "source")]
    found = body(request, "openrouter")["messages"][0]["content"][0]
    assert found == {"type": "file", "file": {"filename": "a.pdf", "file_data": "https://example.com/a.pdf"}}


@pytest.mark.parametrize(
    "block",
    [
        Image(FileId("f")),
        Audio(Url("https://example.com/a.wav")),
        Document(Parts("x")),
        Document(PlainText("x"), context="c"),
        ToolUse("a", "f", {}),
    ],
    ids=lambda block: f"{block.type}",
)
def test_what_cannot_be_written_is_a_problem_with_its_path(block: Block) -> None:
    assert [path for path, _ in problems(Request([user("a", block)]))] == ["messages[0].content[1]"]


def test_a_user_turn_of_nothing_is_a_problem() -> None:
    assert problems(Request([user("a"), Message("user", [])])) == [("messages[1]", "empty")]
    assert problems(Request([user("a"), user(Opaque({"type": "x"}, wire="gemini"))])) == [("messages[1]", "empty")]


def test_an_empty_text_is_a_text() -> None:
    assert messages(user("")) == [{"role": "user", "content": ""}]


def test_opaque_blocks_go_to_their_own_wire_only() -> None:
    ours, other = Opaque({"type": "reference", "ids": [1]}, wire="openai-chat"), Opaque({"type": "x"}, wire="gemini")
    request = Request([user("a", ours, other)])
    assert body(request)["messages"][0]["content"] == [{"type": "text", "text": "a"}, {"type": "reference", "ids": [1]}]
    assert codes(request) == ["block_left_out"]


def test_extra_of_another_dialect_is_left_out_and_reported_once() -> None:
    blocks = [Text("a", extra={"gemini": {"thoughtSignature": "s"}}), Text("b", extra={"gemini": {"thoughtSignature": "t"}})]
    (notice,) = send(Request([user(*blocks)])).notices
    assert (notice.code, notice.path) == ("extra_left_out", "messages[0].content[0]")
    assert "2 times" in notice.message


def test_extra_of_this_dialect_is_sent() -> None:
    text = Text("a", extra={"openai-chat": {"prompt_cache_breakpoint": {"mode": "explicit"}}})
    assert messages(user(text))[0]["content"] == [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}]
    named = Message("user", "hi", extra={"openai-chat": {"name": "ann"}})
    assert messages(named) == [{"role": "user", "content": "hi", "name": "ann"}]


# ---- tool results


PICTURE = Image(Url("https://example.com/a.png"))
PICTURE_PART = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def turn(*blocks: Block) -> list[Message]:
    return [user("q"), assistant(*blocks)]


def test_results_come_before_what_else_the_turn_holds() -> None:
    found = messages(*turn(ToolUse("a", "f", {}), ToolUse("b", "g", {})), user("and", ToolResult("a", "1"), ToolResult("b", "2")))[2:]
    assert found == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and"},
    ]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("a", "no", is_error=True), "Error: no"),
        (ToolResult("a", [], is_error=True), "Error: "),
        (ToolResult("a", []), ""),
        (
            ToolResult("a", ["x", "y"], is_error=True),
            [{"type": "text", "text": "Error: "}, {"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
        ),
    ],
)
def test_an_error_is_said_in_words(result: ToolResult, content: Any) -> None:
    assert messages(*turn(ToolUse("a", "f", {})), user(result))[2]["content"] == content


def test_a_picture_in_a_result_is_written_and_reported_where_no_host_was_seen_to_take_it() -> None:
    request = Request([*turn(ToolUse("a", "f", {})), user(ToolResult("a", [PICTURE]))])
    assert body(request, "groq")["messages"][2]["content"] == [PICTURE_PART]
    assert codes(request, "groq") == ["tool_media"]
    assert codes(request, "llamacpp") == []


@pytest.mark.parametrize("dialect", ["openai", "azure"])
def test_a_picture_in_a_result_goes_to_the_user_message_after_all_results_where_the_host_takes_text_only(dialect: str) -> None:
    calls = [ToolUse("a", "f", {}), ToolUse("b", "f", {})]
    first, second = ToolResult("a", ["x", PICTURE], is_error=True), ToolResult("b", [PICTURE])
    moved = [
        {"type": "text", "text": "From the result of a:"},
        PICTURE_PART,
        {"type": "text", "text": "From the result of b:"},
        PICTURE_PART,
    ]
    results = [
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "Error: "}, {"type": "text", "text": "x"}]},
        {"role": "tool", "tool_call_id": "b", "content": "See the user message that follows."},
    ]
    said = [*moved, {"type": "text", "text": "Go on"}]
    for end in ([user(first, second, "Go on")], [user(first), user(second), user("Go on")]):
        assert messages(*turn(*calls), *end, dialect=dialect)[2:] == [*results, {"role": "user", "content": said}]
    for end in ([user(first, second)], [user(first), user(second)]):
        assert messages(*turn(*calls), *end, dialect=dialect)[2:] == [*results, {"role": "user", "content": moved}]
    sent = messages(*turn(*calls), user(first), user(second), assistant("Seen"), user("Go on"), dialect=dialect)
    assert [message["role"] for message in sent[2:]] == ["tool", "tool", "user", "assistant", "user"]
    assert codes(Request([*turn(*calls), user(first, second)]), dialect) == ["tool_media_moved"]


def test_a_moved_picture_of_a_call_without_an_id_is_known_by_the_tool() -> None:
    call = ToolUse("a", "f", {}, extra={"openai-chat": {"kind": "function_call"}})
    sent = messages(*turn(call), user(ToolResult("a", [PICTURE])))
    assert sent[3]["content"] == [{"type": "text", "text": "From the result of f:"}, PICTURE_PART]


# ---- assistant turns


def test_text_and_calls() -> None:
    found = messages(*turn(Text("a"), ToolUse("c", "f", {"x": "é"}), ToolUse("d", "g", {})))[1]
    assert found == {
        "role": "assistant",
        "content": "a",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x":"é"}'}},
            {"id": "d", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


@pytest.mark.parametrize(("dialect", "expected"), [("openai", None), ("mistral", ""), ("llamacpp", "absent")])
def test_no_text_beside_calls_in_the_hosts_own_form(dialect: str, expected: Any) -> None:
    assert messages(*turn(ToolUse("abcdefghi", "f", {})), dialect=dialect)[1].get("content", "absent") == expected


def test_several_texts_are_parts() -> None:
    assert messages(*turn(Text("a"), Text("b")))[1]["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def test_an_assistant_turn_of_nothing_is_left_out() -> None:
    assert [m["role"] for m in messages(*turn(Opaque({"type": "x"}, wire="gemini")), user("b"))] == ["user", "user"]


def test_an_unusable_call_is_sent_under_a_key_that_says_so() -> None:
    (call,) = messages(*turn(InvalidToolUse("c", "f", '{"a": "b', reason="incomplete")))[1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"INVALID_JSON": '{"a": "b'}


def test_a_custom_call_goes_back_as_text() -> None:
    call = ToolUse("c", "sql", {"input": "select 1"}, extra={"openai-chat": {"kind": "custom"}})
    found = messages(*turn(call))[1]["tool_calls"]
    assert found == [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}]


def test_the_old_form_goes_back_in_the_old_form() -> None:
    call = ToolUse("call_x_0", "f", {}, extra={"openai-chat": {"kind": "function_call", "synthetic_id": True}})
    found = messages(*turn(call), user(ToolResult("call_x_0", "r")))
    assert found[1] == {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert found[2] == {"role": "function", "name": "f", "content": "r"}


def test_an_id_that_we_made_is_left_out_for_its_own_host_and_used_for_any_other() -> None:
    call = ToolUse("call_x_0", "f", {}, extra={"openai-chat": {"synthetic_id": True}})
    conversation = [user("q"), Message("assistant", [call], origin=HERE), user(ToolResult("call_x_0", "r"))]
    found = messages(*conversation)
    assert "id" not in found[1]["tool_calls"][0]
    assert found[2] == {"role": "tool", "name": "f", "content": "r"}
    elsewhere = messages(*conversation, dialect="groq")
    assert elsewhere[1]["tool_calls"][0]["id"] == elsewhere[2]["tool_call_id"] == "call_x_0"


def test_what_else_a_call_carried_goes_back_to_its_host_only() -> None:
    call = ToolUse("c", "f", {}, extra={"openai-chat": {"extra_content": {"google": {"thought_signature": "s"}}}})
    answer = Message("assistant", [call], origin=Origin("google", "m", "openai-chat"))
    assert messages(user("q"), answer, dialect="google")[1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "extra_content" not in messages(user("q"), answer)[1]["tool_calls"][0]


def test_refusals_go_back_as_refusals_or_as_words() -> None:
    assert messages(*turn(Refusal("no")))[1] == {"role": "assistant", "content": None, "refusal": "no"}
    assert messages(*turn(Refusal("no")), dialect="generic")[1] == {"role": "assistant", "content": "no"}


def test_spoken_answers_go_back_by_id_or_as_their_words() -> None:
    audio = Audio(Base64("audio/wav", "AAAA"), transcript="hello", extra={"openai-chat": {"id": "audio_1", "expires_at": 1}})
    own = Message("assistant", [audio], origin=HERE)
    assert messages(user("q"), own)[1] == {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    assert messages(user("q"), own, dialect="groq")[1] == {"role": "assistant", "content": "hello"}


def test_citations_go_back_where_the_host_takes_them() -> None:
    own, foreign = Citation("url_citation", {"url": "u"}), Citation("char_location", {"document_index": 0})
    answer = assistant(Text("a", citations=[own, foreign]))
    assert messages(user("q"), answer)[1]["annotations"] == [{"type": "url_citation", "url_citation": {"url": "u"}}]
    assert "annotations" not in messages(user("q"), answer, dialect="groq")[1]


def test_an_answers_logprobs_and_sources_do_not_go_back() -> None:
    text = Text("a", extra={"openai-chat": {"logprobs": [{"token": "a"}]}})
    extra = {"openai-chat": {"citations": ["u"], "thought_signature": "s"}}
    found = messages(user("q"), Message("assistant", [text], origin=HERE, extra=extra))[1]
    assert found == {"role": "assistant", "content": "a", "thought_signature": "s"}


def test_what_ran_on_another_providers_side_is_left_out_and_reported() -> None:
    request = Request([*turn(Text("a"), ServerToolUse("s", "web_search", {"q": "x"})), user("b")])
    assert body(request)["messages"][1] == {"role": "assistant", "content": "a"}
    assert codes(request) == ["block_left_out"]


# ---- thinking in history


@pytest.mark.parametrize(
    ("dialect", "extra", "key"),
    [
        ("deepseek", {}, "reasoning_content"),
        ("groq", {}, "reasoning"),
        ("generic", {"openai-chat": {"field": "reasoning"}}, "reasoning"),
        ("openai", {}, None),
        ("xai", {}, None),
    ],
)
def test_own_thinking_goes_back_under_the_hosts_key(dialect: str, extra: dict[str, Any], key: str | None) -> None:
    found = messages(*turn(Thinking("hm", extra=extra), Text("a")), dialect=dialect)[1]
    assert {name: value for name, value in found.items() if name not in ("role", "content")} == ({key: "hm"} if key else {})


def test_mistrals_thinking_goes_back_into_the_content() -> None:
    found = messages(*turn(Thinking("hm"), Text("a")), dialect="mistral")[1]["content"]
    assert found == [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "a"}]


def test_reasoning_details_go_back_whole_and_in_order() -> None:
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    summary = {"type": "reasoning.summary", "index": 1}
    encrypted = {"type": "reasoning.encrypted", "id": "rs", "index": 2}
    blocks = [
        Thinking("a", signature="s", extra={"openai-chat": {"detail": text}}),
        Thinking("b", extra={"openai-chat": {"detail": summary}}),
        RedactedThinking("zz", extra={"openai-chat": {"detail": encrypted}}),
        Text("c"),
    ]
    found = messages(*turn(*blocks), dialect="openrouter")[1]
    assert found["reasoning_details"] == [{**text, "text": "a", "signature": "s"}, {**summary, "summary": "b"}, {**encrypted, "data": "zz"}]
    assert "reasoning" not in found
    assert messages(*turn(*blocks), dialect="generic")[1]["reasoning_content"] == "ab"


def test_foreign_thinking_is_dropped_or_turned_into_text() -> None:
    answer = Message("assistant", [Thinking("hm", signature="s"), RedactedThinking("z"), Text("a")], origin=CLAUDE)
    assert messages(user("q"), answer, dialect="deepseek")[1] == {"role": "assistant", "content": "a"}
    as_text = messages(user("q"), answer, dialect="deepseek", foreign_thinking="text")[1]["content"]
    assert as_text == [{"type": "text", "text": "hm"}, {"type": "text", "text": "a"}]


# ---- ids


def test_a_long_id_is_shortened_the_same_for_call_and_result_and_apart_from_its_like() -> None:
    first, second = "call_" + "a" * 70, "call_" + "a" * 69 + "b"
    found = messages(*turn(ToolUse(first, "f", {}), ToolUse(second, "g", {})), user(ToolResult(second, "2"), ToolResult(first, "1")))
    ids = [call["id"] for call in found[1]["tool_calls"]]
    assert [len(i) for i in ids] == [40, 40]
    assert ids[0] != ids[1]
    assert [m["tool_call_id"] for m in found[2:]] == [ids[1], ids[0]]


def test_mistrals_ids_are_nine_letters_and_digits() -> None:
    found = messages(
        *turn(ToolUse("toolu_01ABC", "f", {}), ToolUse("abcDEF123", "f", {})), user(ToolResult("toolu_01ABC", "1")), dialect="mistral"
    )
    ids = [call["id"] for call in found[1]["tool_calls"]]
    assert ids[1] == "abcDEF123"
    assert len(ids[0]) == 9
    assert ids[0].isalnum()
    assert found[2]["tool_call_id"] == ids[0]


def test_an_id_that_comes_again_in_a_later_turn_is_made_different() -> None:
    conversation = [
        user("q"),
        assistant(ToolUse("0", "f", {})),
        user(ToolResult("0", "1")),
        assistant(ToolUse("0", "f", {})),
        user(ToolResult("0", "2")),
    ]
    found = messages(*conversation)
    first, again = found[1]["tool_calls"][0]["id"], found[3]["tool_calls"][0]["id"]
    assert first == found[2]["tool_call_id"] == "0"
    assert again == found[4]["tool_call_id"] != "0"


def test_two_calls_of_one_turn_with_one_id_are_answered_in_order() -> None:
    found = messages(*turn(ToolUse("x", "f", {}), ToolUse("x", "g", {})), user(ToolResult("x", "1"), ToolResult("x", "2")))
    assert [call["id"] for call in found[1]["tool_calls"]] == [m["tool_call_id"] for m in found[2:]]
    assert found[2]["tool_call_id"] != found[3]["tool_call_id"]


# ---- what JSON cannot hold


def test_lone_surrogates_become_replacement_characters_except_in_signed_thinking() -> None:
    assert messages(user("a\ud800b"))[0]["content"] == "a\ufffdb"
    call = messages(*turn(ToolUse("c", "f", {"a": "\udc00"})))[1]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"]) == {"a": "\ufffd"}
    signed = Thinking("a\ud800", signature="s", extra={"openai-chat": {"detail": {"type": "reasoning.text"}}})
    assert problems(Request(turn(signed)), "openrouter") == [("messages[1].content[0]", "surrogate")]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_no_form_for_are_refused(value: float) -> None:
    assert [rule for _, rule in problems(Request("hi", extra_body={"x": [value]}))] == ["not_json"]
    assert [rule for _, rule in problems(Request(turn(ToolUse("c", "f", {"a": value}))))] == ["not_json"]
    assert [rule for _, rule in problems(Request("hi", extra_body={"x": object()}))] == ["not_json"]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_every_dialect_writes_a_whole_conversation(dialect: str) -> None:
    conversation = [
        user("q", Image(Url("https://example.com/a.png"))),
        assistant(Thinking("hm"), Text("a"), ToolUse("c", "weather", {"city": "x"})),
        user(ToolResult("c", "sunny")),
    ]
    request = Request(conversation, system="s", tools=[WEATHER], tool_choice="required", max_tokens=9, effort="low", model="m")
    found = body(request, dialect, stream=True)
    assert [m["role"] for m in found["messages"]] == ["system", "user", "assistant", "tool"]
    assert found["stream"] is True
