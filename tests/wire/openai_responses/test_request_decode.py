"""A client's request as ours, and out again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    Audio,
    Base64,
    Document,
    FileId,
    Image,
    InvalidInputError,
    Message,
    Opaque,
    Origin,
    OutputFormat,
    ProviderTool,
    Request,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    Url,
)
from tests.wire.openai_responses.answers import WIRE, call, message, reasoning

OWN = "openai-responses"


def read(**body: Any) -> Request:
    return WIRE.decode_request(json.dumps({"model": "m", "input": "hi", **body}).encode())


def again(request: Request) -> dict[str, Any]:
    return json.loads(WIRE.encode(request, stream=False).body)  # type: ignore[no-any-return]


def test_a_bare_question_is_a_user_message_and_goes_out_bare() -> None:
    request = read(instructions="Be brief.", stream=True)
    assert [(m.role, m.text) for m in request.messages] == [("user", "hi")]
    assert (request.model, request.system) == ("m", "Be brief.")
    assert again(request) == {"model": "m", "instructions": "Be brief.", "input": "hi", "store": True}


def test_a_conversation_is_gathered_into_turns() -> None:
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "Rules"},
        {"role": "user", "content": [{"type": "input_text", "text": "q"}, {"type": "input_image", "file_id": "f", "detail": "low"}]},
        reasoning("why", encrypted_content="s"),
        message("Let me see", phase="commentary"),
        call('{"a":1}'),
        {"type": "function_call_output", "call_id": "call_1", "output": "ok"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"role": "user", "content": "go on"},
    ]
    request = read(input=items)
    shared = {"id": "msg_1", "status": "completed", "phase": "commentary"}
    assert list(request.messages) == [
        Message("system", "Rules", extra={OWN: {"role": "developer"}}),
        Message("user", [Text("q"), Image(FileId("f"), extra={OWN: {"detail": "low"}})]),
        Message(
            "assistant",
            [
                Thinking("why", signature="s", extra={OWN: {"id": "rs_1"}}),
                Text("Let me see", extra={OWN: {"item": shared}}),
                ToolUse("call_1", "get_weather", {"a": 1}, extra={OWN: {"id": "fc_1", "status": "completed"}}),
            ],
            origin=Origin("", "", OWN),
        ),
        Message("user", [ToolResult("call_1", "ok"), Opaque(items[6], wire=OWN)]),
        Message("user", "go on"),
    ]
    assert again(request)["input"] == items


def test_messages_that_look_alike_stay_apart() -> None:
    items = [{"type": "message", "role": "assistant", "content": text} for text in ("a", "b")] + [{"role": "user", "content": "c"}]
    assert again(read(input=items))["input"] == items


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"type": "input_text", "text": "a"}, Text("a")),
        ({"type": "input_image", "image_url": "data:image/png;base64,iVBO"}, Image(Base64("image/png", "iVBO"))),
        ({"type": "input_image", "image_url": "https://x.example/a.png"}, Image(Url("https://x.example/a.png"))),
        (
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            Document(Base64("application/pdf", "JVBE"), title="a.pdf"),
        ),
        ({"type": "input_file", "file_url": "https://x.example/a.pdf"}, Document(Url("https://x.example/a.pdf"))),
        ({"type": "input_file", "file_id": "file_1"}, Document(FileId("file_1"))),
        ({"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}, Audio(Base64("audio/mpeg", "SUQz"))),
        ({"type": "input_hologram", "x": 1}, Opaque({"type": "input_hologram", "x": 1}, wire=OWN)),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_content_parts(part: dict[str, Any], block: Any) -> None:
    items = [{"role": "user", "content": [{"type": "input_text", "text": "see"}, part]}]
    request = read(input=items)
    assert request.messages[0].content[1] == block
    assert again(request)["input"] == items


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call_output", "call_id": "c", "output": "boom", "status": "incomplete"},
        {"type": "function_call_output", "call_id": "c", "output": "ok", "status": "completed", "id": "fco_1"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        },
        {"type": "custom_tool_call_output", "call_id": "c", "output": "8"},
        {"type": "local_shell_call_output", "call_id": "c", "output": "a.txt"},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "max_output_length": 9,
            "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "timeout"}}],
        },
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "file_id": "f", "detail": "high"},
            "acknowledged_safety_checks": [{"id": "sc"}],
        },
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [{"type": "function", "name": "f"}]},
    ],
    ids=lambda item: f"{item['type']}-{item.get('status', '')}",
)
def test_results_of_every_kind_go_out_as_they_came(item: dict[str, Any]) -> None:
    request = read(input=[item, {"role": "user", "content": "go on"}])
    result = request.messages[0].content[0]
    assert isinstance(result, ToolResult)
    assert result.is_error == (item.get("status") in ("incomplete", "failed"))
    assert again(request)["input"][0] == item


def test_a_shells_output_that_was_changed_since_is_sent_as_it_is_now() -> None:
    item = {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "secret", "stderr": "", "outcome": {"type": "timeout"}}]}
    result = read(input=[item]).messages[0].content[0]
    assert isinstance(result, ToolResult)
    changed = ToolResult(result.tool_use_id, "[removed]", extra=result.extra)
    sent = again(Request([Message("user", [changed])], model="m"))["input"][0]
    assert sent["output"] == [{"stdout": "[removed]", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "g"},
        {"type": "program_output", "id": "p", "call_id": "c", "result": "{}", "status": "completed"},
        {"type": "additional_tools", "role": "developer", "tools": []},
        {"type": "image_generation_call", "id": "ig_1"},
        {"type": "hologram", "x": [1]},
    ],
    ids=lambda item: item.get("type", "bare reference"),
)
def test_items_without_a_type_of_ours_are_kept_whole(item: dict[str, Any]) -> None:
    request = read(input=[item, {"role": "user", "content": "go on"}])
    assert request.messages[0].content == [Opaque(item, wire=OWN)]
    assert again(request)["input"][0] == item


def test_a_shell_in_a_container_is_the_providers_on_both_sides() -> None:
    ran = {
        "type": "shell_call",
        "call_id": "c",
        "action": {"commands": ["ls"]},
        "environment": {"type": "container_reference", "container_id": "x"},
    }
    result = {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]}
    request = read(input=[ran, result])
    assert [m.role for m in request.messages] == ["assistant"]
    assert again(request)["input"] == [ran, result]


def test_settings_find_their_fields_and_the_rest_is_kept() -> None:
    request = read(
        max_output_tokens=50,
        temperature=0.5,
        top_p=0.9,
        metadata={"k": "v"},
        reasoning={"effort": "low", "summary": "auto", "context": "all_turns"},
        text={"verbosity": "low", "format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}},
        store=False,
        include=["reasoning.encrypted_content"],
        service_tier="flex",
        user=None,
    )
    assert (request.max_tokens, request.temperature, request.top_p, request.metadata) == (50, 0.5, 0.9, {"k": "v"})
    assert (request.effort, request.thinking) == ("low", ThinkingConfig.adaptive(display="summarized"))
    assert request.output == OutputFormat({"type": "object"}, name="a")
    assert request.extra_body == {"service_tier": "flex", "reasoning": {"context": "all_turns"}, "text": {"verbosity": "low"}}


@pytest.mark.parametrize(
    ("reasoning_setting", "thinking", "effort"),
    [
        ({"effort": "none"}, ThinkingConfig.off(), None),
        ({"summary": "detailed"}, ThinkingConfig.adaptive(display="detailed"), None),
        ({"effort": "high", "summary": None}, None, "high"),
        ({}, None, None),
    ],
)
def test_reasoning_settings(reasoning_setting: dict[str, Any], thinking: ThinkingConfig | None, effort: str | None) -> None:
    request = read(reasoning=reasoning_setting)
    assert (request.thinking, request.effort) == (thinking, effort)
    assert again(request).get("reasoning", {}) == {key: v for key, v in reasoning_setting.items() if v is not None}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({}, {"store": True}),
        ({"store": True, "include": []}, {"store": True}),
        ({"store": False}, {"include": []}),
        ({"store": False, "include": ["reasoning.encrypted_content"]}, {}),
    ],
)
def test_whether_the_answer_is_stored_is_kept(sent: dict[str, Any], kept: dict[str, Any]) -> None:
    assert read(**sent).extra_body == kept


def test_tools_and_their_choice() -> None:
    tools = [
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}, "strict": True},
        {"type": "function", "name": "g", "parameters": {"type": "object", "properties": {}}, "defer_loading": True},
        {"type": "custom", "name": "sh", "format": {"type": "text"}},
        {"type": "mcp", "server_label": "dice", "server_url": "https://mcp.example"},
    ]
    request = read(tools=tools, tool_choice={"type": "function", "name": "f"}, parallel_tool_calls=False)
    assert list(request.tools) == [
        Tool("f", "d", {"type": "object", "properties": {"a": {}}}, strict=True),
        Tool("g", extra={OWN: {"defer_loading": True, "strict": None}}),
        ProviderTool("custom", "sh", {"format": {"type": "text"}}),
        ProviderTool("mcp", "dice", {"server_label": "dice", "server_url": "https://mcp.example"}),
    ]
    assert (request.tool_choice, request.parallel_tools) == (ToolNamed("f"), False)
    out = again(request)
    assert (out["tools"], out["tool_choice"], out["parallel_tool_calls"]) == (tools, {"type": "function", "name": "f"}, False)


def test_a_choice_that_only_the_wire_can_say_is_kept() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    request = read(tools=[{"type": "function", "name": "f", "parameters": {}}], tool_choice=choice)
    assert request.tool_choice is None
    assert again(request)["tool_choice"] == choice


def test_betas_come_from_the_header() -> None:
    request = WIRE.decode_request(b'{"input": "hi"}', {"OpenAI-Beta": "a=v1, b=v2"})
    assert request.betas == ["a=v1", "b=v2"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"{", "$"),
        (b"[]", "$"),
        (b'{"input": 5}', "input"),
        (b'{"input": ["x"]}', "input[0]"),
        (b'{"input": [{"role": "user", "content": 5}]}', "input[0].content"),
        (b'{"input": [{"role": "assistant", "content": 5}]}', "input[0].content"),
        (b'{"input": [{"role": "tool", "content": "x"}]}', "input[0].role"),
        (b'{"input": "x", "tools": {}}', "tools"),
        (b'{"input": "x", "tools": [{"name": "f"}]}', "tools[0]"),
    ],
)
def test_what_is_not_the_dialect_is_named_by_its_path(body: bytes, path: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        WIRE.decode_request(body)
    assert [problem.path for problem in raised.value.problems] == [path]
