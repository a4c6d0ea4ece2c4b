"""Requests as bodies: what is sent, what is left out and said so, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    Audio,
    Base64,
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
    ServerToolResult,
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
    tool_result,
    user,
)
from dragoman.wire.base import HTTPRequest
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.shared import case, needs_cases
from tests.wire.openai_responses.answers import WIRE

OWN = "openai-responses"
OPENAI = Origin("openai", "gpt-test", OWN)
CLAUDE = Origin("anthropic", "claude-test-1", "anthropic")
WEATHER = Tool("get_weather", "The weather", {"type": "object", "properties": {"city": {"type": "string"}}})


def encoded(request: Request, wire: OpenAIResponsesWire = WIRE, *, stream: bool = True) -> HTTPRequest:
    return wire.encode(request, stream=stream)


def body(*messages: Message | str, wire: OpenAIResponsesWire = WIRE, **fields: Any) -> dict[str, Any]:
    fields = {"model": "gpt-test", **fields}
    return json.loads(encoded(Request(messages, **fields), wire).body)  # type: ignore[no-any-return]


def notices(*messages: Message | str, wire: OpenAIResponsesWire = WIRE, **fields: Any) -> list[tuple[str, str | None]]:
    return [(notice.code, notice.path) for notice in encoded(Request(messages, model="gpt-test", **fields), wire).notices]


def problems(*messages: Message | str, **fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInputError) as raised:
        encoded(Request(messages, model="gpt-test", **fields))
    return [(problem.path, problem.rule) for problem in raised.value.problems]


# ---- the whole


def test_a_request_is_stateless_and_asks_for_encrypted_reasoning() -> None:
    request = encoded(Request("hi", model="gpt-test", system="Be brief.", max_tokens=50, temperature=0.5, top_p=0.9))
    assert (request.method, request.path, request.notices) == ("POST", "/responses", [])
    assert request.headers == {"content-type": "application/json", "accept": "text/event-stream"}
    assert json.loads(request.body) == {
        "model": "gpt-test",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "hi"}],
        "max_output_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }


def test_an_answer_in_one_piece_is_asked_for_as_json() -> None:
    request = encoded(Request("hi", model="gpt-test"), stream=False)
    assert request.headers["accept"] == "application/json"
    assert "stream" not in json.loads(request.body)


def test_the_same_request_is_the_same_bytes() -> None:
    request = Request([user("hi"), assistant(ToolUse("call_1", "f", {"b": 1, "a": 2})), user(tool_result("call_1", "ok"))], model="m")
    assert encoded(request).body == encoded(request).body


@pytest.mark.parametrize("model", ["gpt-4o", "openai/gpt-4.1-mini", "gpt-5-chat-latest", "chatgpt-4o-latest"])
def test_a_model_without_reasoning_is_not_asked_to_encrypt_it(model: str) -> None:
    assert "include" not in body("hi", model=model)


def test_storing_is_the_callers_choice() -> None:
    sent = body("and?", extra_body={"store": True, "previous_response_id": "resp_1"})
    assert (sent["store"], sent["previous_response_id"]) == (True, "resp_1")
    assert "include" not in sent


@pytest.mark.parametrize(
    ("include", "sent"),
    [
        (["web_search_call.action.sources"], ["web_search_call.action.sources", "reasoning.encrypted_content"]),
        (["reasoning.encrypted_content"], ["reasoning.encrypted_content"]),
        ([], None),
    ],
)
def test_what_else_shall_be_included_is_added(include: list[str], sent: list[str] | None) -> None:
    assert body("hi", extra_body={"include": include}).get("include") == sent


def test_standard_fields_win_and_objects_are_merged() -> None:
    sent = body(
        "hi",
        effort="low",
        output=OutputFormat({"type": "object"}, name="answer"),
        max_tokens=5,
        extra_body={
            "max_output_tokens": 9,
            "reasoning": {"effort": "high", "context": "all_turns"},
            "text": {"verbosity": "low", "format": {"type": "text", "description": "d"}},
            "service_tier": "flex",
        },
    )
    assert (sent["max_output_tokens"], sent["service_tier"]) == (5, "flex")
    assert sent["reasoning"] == {"effort": "low", "context": "all_turns"}
    assert sent["text"] == {
        "verbosity": "low",
        "format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True, "description": "d"},
    }


def test_what_of_extra_body_a_field_overrules_is_noticed() -> None:
    extra = {
        "max_output_tokens": 9,
        "stream": False,
        "temperature": 1,
        "reasoning": {"effort": "high", "context": "all_turns"},
        "text": {"verbosity": "low", "format": {"type": "text"}},
    }
    sent = encoded(Request("hi", model="m", effort="low", output=OutputFormat({}), max_tokens=5, temperature=1, extra_body=extra))
    assert [(notice.code, notice.path) for notice in sent.notices] == [
        ("extra_body_ignored", "extra_body.max_output_tokens"),
        ("extra_body_ignored", "extra_body.reasoning.effort"),
        ("extra_body_ignored", "extra_body.text.format.type"),
        ("extra_body_ignored", "extra_body.stream"),
    ]


def test_the_wires_own_limit_is_used_where_the_request_has_none() -> None:
    wire = OpenAIResponsesWire(max_tokens=77)
    assert body("hi", wire=wire)["max_output_tokens"] == 77
    assert body("hi", wire=wire, max_tokens=5)["max_output_tokens"] == 5


def test_headers_and_betas() -> None:
    request = encoded(Request("hi", model="m", betas=["a=v1", "b=v2", "a=v1"], extra_headers={"OpenAI-Project": "p"}))
    assert request.headers["openai-beta"] == "a=v1,b=v2"
    assert request.headers["openai-project"] == "p"


@pytest.mark.parametrize(
    ("fields", "reasoning"),
    [
        ({"effort": "high"}, {"effort": "high"}),
        ({"thinking": ThinkingConfig.off()}, {"effort": "none"}),
        ({"thinking": ThinkingConfig.off(), "effort": "high"}, {"effort": "none"}),
        ({"thinking": ThinkingConfig.adaptive()}, None),
        ({"thinking": ThinkingConfig.adaptive(display="summarized")}, {"summary": "auto"}),
        ({"thinking": ThinkingConfig.auto(display="detailed"), "effort": "low"}, {"effort": "low", "summary": "detailed"}),
        ({"thinking": ThinkingConfig.adaptive(display="omitted"), "effort": "low"}, {"effort": "low"}),
        ({"thinking": ThinkingConfig.budget(1024)}, {"effort": "minimal"}),
        ({"thinking": ThinkingConfig.budget(8000)}, {"effort": "medium"}),
        ({"thinking": ThinkingConfig.budget(30000)}, {"effort": "xhigh"}),
        ({"thinking": ThinkingConfig.budget(30000), "effort": "low"}, {"effort": "low"}),
    ],
)
def test_thinking_and_effort(fields: dict[str, Any], reasoning: dict[str, Any] | None) -> None:
    assert body("hi", **fields).get("reasoning") == reasoning


def test_a_budget_that_became_an_effort_is_reported() -> None:
    assert notices("hi", thinking=ThinkingConfig.budget(2048)) == [("thinking_budget_as_effort", "thinking")]


def test_a_background_response_is_not_waited_for() -> None:
    assert notices("hi", extra_body={"background": True}) == [("background_unsupported", "extra_body.background")]


def test_what_the_wire_decided_is_told() -> None:
    wire = OpenAIResponsesWire(max_tokens=77)
    request = Request("hi", model="m", thinking=ThinkingConfig.budget(2048))
    assert encoded(request, wire).settled == {"max_tokens": 77, "effort": "low"}
    assert encoded(Request("hi", model="m", thinking=ThinkingConfig.off())).settled == {"max_tokens": None, "effort": None}


def test_the_same_change_at_many_places_is_one_notice() -> None:
    turn = Message("assistant", [Thinking("why", signature="sig"), Text("so")], origin=CLAUDE)
    (notice,) = encoded(Request([user("q"), turn, user("q"), turn], model="m")).notices
    assert (notice.path, notice.message[-10:]) == ("messages[1].content[0]", " (2 times)")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_without_a_json_form_is_refused(number: float) -> None:
    assert problems("q", assistant(ToolUse("call_1", "f", {"a": [{"b": number}]}))) == [("messages[1].content[0].input", "not_json")]


def test_what_the_api_does_not_have_is_refused() -> None:
    assert problems("hi", top_k=5, stop_sequences=["END"]) == [("top_k", "unsupported"), ("stop_sequences", "unsupported")]


def test_a_value_without_a_json_form_is_refused() -> None:
    assert problems("hi", extra_body={"x": object()}) == [("extra_body", "not_json")]
    assert problems("hi", temperature=float("nan")) == [("request", "not_json")]


# ---- system


def test_leading_system_messages_are_instructions_and_later_ones_stay() -> None:
    sent = body(system("A"), system("B"), user("hi"), system("C"), system="Z")
    assert sent["instructions"] == "Z\n\nA\n\nB"
    assert sent["input"] == [{"role": "user", "content": "hi"}, {"role": "system", "content": "C"}]


def test_all_system_messages_are_instructions_if_asked() -> None:
    sent = body(user("hi"), system("C"), hoist_system="all")
    assert (sent["instructions"], sent["input"]) == ("C", [{"role": "user", "content": "hi"}])


def test_instructions_never_overtake_a_message_that_stays_in_its_place() -> None:
    developer = Message("system", "first", extra={OWN: {"role": "developer"}})
    sent = body(developer, system("second"), user("hi"))
    assert "instructions" not in sent
    assert [item["content"] for item in sent["input"]] == ["first", "second", "hi"]


def test_system_blocks_are_joined() -> None:
    assert body("hi", system=[Text("A", cache=CacheControl()), Text("B")])["instructions"] == "A\n\nB"


def test_a_developer_message_stays_one() -> None:
    developer = Message("system", "Rules", extra={OWN: {"role": "developer"}})
    assert body(developer, user("hi"))["input"][0] == {"role": "developer", "content": "Rules"}


# ---- tools


def test_tools_say_whether_they_are_strict() -> None:
    search = ProviderTool("web_search", "web_search", {"search_context_size": "low"})
    custom = ProviderTool("custom", "sh", {"description": "run", "format": {"type": "text"}})
    sent = body("hi", tools=[WEATHER, Tool("ping", strict=True), search, custom])
    assert sent["tools"] == [
        {
            "type": "function",
            "name": "get_weather",
            "description": "The weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            "strict": False,
        },
        {"type": "function", "name": "ping", "parameters": {"type": "object", "properties": {}}, "strict": True},
        {"type": "web_search", "search_context_size": "low"},
        {"type": "custom", "name": "sh", "description": "run", "format": {"type": "text"}},
    ]


MCP = ProviderTool("mcp", "dice", {"server_label": "dice", "server_url": "https://mcp.example"})


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("required_if_allowed", "required"),
        (ToolNamed("get_weather"), {"type": "function", "name": "get_weather"}),
        (ToolNamed("sh"), {"type": "custom", "name": "sh"}),
        (ToolNamed("web_search"), {"type": "web_search"}),
        (ToolNamed("dice"), {"type": "mcp", "server_label": "dice"}),
        (None, None),
    ],
)
def test_the_choice_of_a_tool(choice: Any, sent: Any) -> None:
    tools = [WEATHER, ProviderTool("custom", "sh"), ProviderTool("web_search", "web_search"), MCP]
    assert body("hi", tools=tools, tool_choice=choice).get("tool_choice") == sent


def test_without_tools_no_choice_is_sent() -> None:
    sent = body("hi", tool_choice="required_if_allowed", parallel_tools=False)
    assert "tool_choice" not in sent
    assert "parallel_tool_calls" not in sent


def test_one_call_at_a_time() -> None:
    assert body("hi", tools=[WEATHER], parallel_tools=False)["parallel_tool_calls"] is False


# ---- what the user gives


def test_the_parts_of_a_user_message() -> None:
    sent = body(
        user(
            Text("Look:"),
            Image(Base64("image/jpg", "AA==")),
            Image(Url("https://x.example/a.png"), extra={OWN: {"detail": "low"}}),
            Image(FileId("file_1")),
            Document(Base64("application/pdf", "JVBE"), title="a.pdf"),
            Document(Base64("text/csv", "YQ==")),
            Document(Url("https://x.example/b.pdf")),
            Document(FileId("file_2")),
            Document(PlainText("plain"), title="Notes", context="Old."),
            Document(Parts(["one", Image(FileId("file_3"))])),
            Audio(Base64("audio/mpeg", "SUQz")),
        )
    )
    assert sent["input"][0]["content"] == [
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": "data:image/jpeg;base64,AA=="},
        {"type": "input_image", "image_url": "https://x.example/a.png", "detail": "low"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
        {"type": "input_file", "filename": "document.csv", "file_data": "data:text/csv;base64,YQ=="},
        {"type": "input_file", "file_url": "https://x.example/b.pdf"},
        {"type": "input_file", "file_id": "file_2"},
        {"type": "input_text", "text": "Old."},
        {"type": "input_text", "text": "Notes\n"},
        {"type": "input_text", "text": "plain"},
        {"type": "input_text", "text": "one"},
        {"type": "input_image", "file_id": "file_3"},
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
    ]


def test_what_has_no_form_is_refused_with_its_place() -> None:
    found = problems(
        "x",
        user("a", Video(Url("https://x.example/v.mp4"))),
        user(Image(PlainText("no")), Audio(Url("https://x.example/a.mp3"))),
        user(ToolResult("call_1", [Text("a"), Video(Url("https://x.example/v.mp4"))])),
    )
    assert found == [
        ("messages[1].content[1]", "no_video"),
        ("messages[2].content[0]", "image_source"),
        ("messages[2].content[1]", "audio_source"),
        ("messages[3].content[0].content[1]", "no_video"),
    ]


def test_a_wish_for_citations_is_reported() -> None:
    assert notices(user(Document(FileId("f"), cite=True))) == [("citations_unsupported", "messages[0].content[0]")]


def test_lone_surrogates_become_the_replacement_character() -> None:
    assert body("a\ud83d")["input"][0]["content"] == "a\ufffd"


# ---- calls and results


def test_a_tool_loop() -> None:
    sent = body(
        "Weather?",
        assistant("Let me see.", ToolUse("call_1", "get_weather", {"city": "Köln"}), ToolUse("call_2", "get_weather", {})),
        user(tool_result("call_1", {"t": 20}), ToolResult("call_2", ""), "And now?"),
    )
    assert sent["input"] == [
        {"role": "user", "content": "Weather?"},
        {"type": "message", "role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Köln"}'},
        {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": '{"t":20}'},
        {"type": "function_call_output", "call_id": "call_2", "output": ""},
        {"role": "user", "content": "And now?"},
    ]


def test_a_result_may_hold_pictures() -> None:
    result = ToolResult("call_1", [Text("see"), Image(Base64("image/png", "iVBO"))])
    assert body(assistant(ToolUse("call_1", "f", {})), user(result))["input"][1]["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
    ]


def test_a_failed_result_has_the_status_incomplete() -> None:
    sent = body(assistant(ToolUse("call_1", "f", {})), user(tool_result("call_1", "boom", is_error=True)))["input"][1]
    assert sent == {"type": "function_call_output", "call_id": "call_1", "output": "boom", "status": "incomplete"}


def test_an_invalid_call_is_sent_marked() -> None:
    sent = body(assistant(InvalidToolUse("call_1", "f", '{"a', reason="incomplete")), user(tool_result("call_1", "no", is_error=True)))[
        "input"
    ][0]
    assert sent == {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"INVALID_JSON":"{\\"a"}'}


def test_ids_of_another_provider_that_repeat_are_made_different_together_with_their_results() -> None:
    first, second = assistant(ToolUse("call_0", "f", {})), assistant(ToolUse("call_0", "g", {}))
    sent = body("q", first, user(tool_result("call_0", "one")), second, user(tool_result("call_0", "two")))["input"]
    ids = [item["call_id"] for item in sent if "call_id" in item]
    assert ids[0] == ids[1] == "call_0"
    assert ids[2] == ids[3] != "call_0"


def test_calls_of_one_turn_with_one_id_are_answered_in_order() -> None:
    calls = assistant(ToolUse("x", "f", {}), ToolUse("x", "g", {}))
    sent = body("q", calls, user(tool_result("x", "one"), tool_result("x", "two")))["input"]
    ids = [item["call_id"] for item in sent if "call_id" in item]
    assert ids[0] == ids[2] == "x"
    assert ids[1] == ids[3] != "x"


@needs_cases
def test_a_call_id_is_at_most_64_characters_long() -> None:
    given = json.loads(case("experientiallabs/experiential#801")["input"])["messages"]
    long = given[1]["blocks"][0]["tool_use"]["id"]
    other = long[:-1] + "b"
    sent = body("q", assistant(ToolUse(long, "f", {}), ToolUse(other, "f", {})), user(tool_result(long, "ok"), tool_result(other, "ok")))
    ids = [item["call_id"] for item in sent["input"][1:]]
    assert all(len(id) <= 64 for id in ids)
    assert ids[0] == ids[2]
    assert ids[1] == ids[3]
    assert ids[0] != ids[1]


@needs_cases
def test_a_call_without_arguments_is_sent_with_none() -> None:
    given = json.loads(case("BerriAI/litellm#5063")["input"])["messages"][1]["blocks"][0]["tool_use"]
    assert body("q", assistant(ToolUse(given["id"], given["name"], {})))["input"][1]["arguments"] == "{}"


# ---- what others wrote


def test_the_thinking_of_another_is_left_out_or_said_as_text() -> None:
    turn = Message("assistant", [Thinking("why", signature="sig"), RedactedThinking("x"), Text("so")], origin=CLAUDE)
    assert body("q", turn)["input"][1:] == [{"type": "message", "role": "assistant", "content": "so"}]
    assert notices("q", turn) == [("thinking_left_out", "messages[1].content[0]"), ("thinking_left_out", "messages[1].content[1]")]
    told = body("q", turn, foreign_thinking="text")["input"][1]
    assert [part["text"] for part in told["content"]] == ["why", "so"]


def test_encrypted_reasoning_goes_back_only_to_the_provider_that_made_it() -> None:
    turn = Message("assistant", [Thinking("w", signature="s", extra={OWN: {"id": "rs_1"}}), Text("so")], origin=OPENAI)
    assert body("q", turn)["input"][1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "w"}],
        "encrypted_content": "s",
    }
    assert body("q", turn, wire=OpenAIResponsesWire(provider="xai"))["input"][1:] == [
        {"type": "message", "role": "assistant", "content": "so"}
    ]


def test_where_a_reasoning_is_left_out_its_turn_has_no_ids() -> None:
    """An item whose id is known must come with its reasoning (400 otherwise)."""
    said = Text("so", extra={OWN: {"item": {"id": "msg_1", "status": "completed"}}})
    use = ToolUse("call_1", "f", {}, extra={OWN: {"id": "fc_1", "status": "completed"}})
    turn = Message("assistant", [Thinking("unfinished"), said, use], origin=OPENAI)
    sent = body("q", turn)["input"][1:]
    assert [("id" in item, item["status"]) for item in sent] == [(False, "completed"), (False, "completed")]


def test_a_reasoning_that_nothing_follows_is_left_out() -> None:
    alone = Message("assistant", [Thinking("w", signature="s", extra={OWN: {"id": "rs_1"}})], origin=OPENAI)
    assert body("q", alone, user("go on"))["input"] == [{"role": "user", "content": "q"}, {"role": "user", "content": "go on"}]
    assert notices("q", alone, user("go on")) == [("thinking_left_out", None)]


def test_azure_gets_no_item_ids_while_nothing_is_stored() -> None:
    wire = OpenAIResponsesWire(provider="azure")
    turn = Message(
        "assistant",
        [Thinking("w", signature="s", extra={OWN: {"id": "rs_1"}}), Text("so", extra={OWN: {"item": {"id": "msg_1"}}})],
        origin=Origin("azure", "m", OWN),
    )
    assert not [item for item in body("q", turn, wire=wire)["input"] if "id" in item]
    stored = body("q", turn, wire=wire, extra_body={"store": True})["input"]
    assert [item.get("id") for item in stored] == [None, "rs_1", "msg_1"]


def test_blocks_that_only_another_provider_understands_are_left_out_and_reported() -> None:
    turn = Message(
        "assistant",
        [
            ServerToolUse("srv_1", "web_search", {"query": "x"}),
            ServerToolResult("srv_1", [{"type": "web_search_result"}], kind="web_search_tool_result"),
            Opaque({"type": "compaction"}, wire="anthropic"),
            Image(Base64("image/png", "iVBO")),
            Text("so", citations=[Citation("char_location", {"cited_text": "x"})]),
        ],
        origin=CLAUDE,
    )
    assert body("q", turn)["input"][1:] == [{"type": "message", "role": "assistant", "content": "so"}]
    left_out = [("block_left_out", f"messages[1].content[{n}]") for n in range(4)]
    assert notices("q", turn) == [*left_out, ("citations_left_out", "messages[1].content[4]")]


def test_an_unfinished_call_of_a_provider_tool_is_left_out() -> None:
    cut = InvalidToolUse("ws_1", "web_search", "", reason="incomplete", extra={"dragoman": {"server_tool": True}})
    assert notices("q", Message("assistant", [cut, Text("so")])) == [("block_left_out", "messages[1].content[0]")]


def test_a_refusal_and_sound_go_back_as_words() -> None:
    turn = assistant(Refusal("I won't."), Audio(Base64("audio/wav", "UklG"), transcript="hello"))
    assert body("q", turn)["input"][1]["content"] == [
        {"type": "refusal", "refusal": "I won't."},
        {"type": "output_text", "text": "hello", "annotations": []},
    ]
    assert notices("q", turn) == [("audio_as_text", "messages[1].content[1]")]


def test_signed_thinking_with_a_lone_surrogate_is_refused() -> None:
    turn = Message("assistant", [Thinking("a\ud83d", signature="s", extra={OWN: {"id": "rs_1"}}), Text("so")], origin=OPENAI)
    assert problems("q", turn) == [("messages[1].content[0]", "surrogate")]


def test_nothing_given_is_changed() -> None:
    extra = {OWN: {"id": "rs_1", "summary": [1, 1]}}
    turn = Message("assistant", [Thinking("a\n\nb", signature="s", extra=extra), Text("so")], origin=OPENAI)
    request = Request([user("q"), turn, user("go on")], model="m", extra_body={"include": ["x"], "text": {"verbosity": "low"}})
    before = repr(request)
    encoded(request)
    encoded(request)
    assert repr(request) == before
