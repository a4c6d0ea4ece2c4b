"""Requests that clients sent, read back: each recorded one encodes to the same meaning; what is not the dialect is refused with paths."""

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
    OutputFormat,
    ProviderTool,
    RedactedThinking,
    Refusal,
    Request,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    Url,
    Video,
    user,
)
from dragoman.message import Base64
from dragoman.wire.openai_chat import DIALECTS, OpenAIChatWire
from tests.shared import Exchange, exchange_params
from tests.wire.openai_chat.recordings import wire_of


def meaning(body: dict[str, Any]) -> dict[str, Any]:
    """A body in one form: what the closed list of the design lets an encoder change is made equal."""
    found = {key: value for key, value in body.items() if value is not None and value != [] and (key, value) != ("stream", False)}
    for key, default in (("stream_options", {"include_usage": True}), ("parallel_tool_calls", True), ("model", None)):
        if found.get(key) == default or key == "model":
            found.pop(key, None)
    if isinstance(found.get("stop"), str):
        found["stop"] = [found["stop"]]
    found["messages"] = _messages(body["messages"])
    if "tools" in found:
        found["tools"] = [_tool(tool) for tool in body["tools"]]
    schema = (found.get("response_format") or {}).get("json_schema")
    if isinstance(schema, dict) and schema.get("strict") is False:
        found["response_format"] = {"type": "json_schema", "json_schema": {k: v for k, v in schema.items() if k != "strict"}}
    return _without_default_ttl(found)  # type: ignore[no-any-return]


def _messages(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    ids: dict[str, str] = {}  # ids may be rewritten, call and result together
    for message in given:
        m = {key: value for key, value in message.items() if value is not None and value != []}
        content = m.get("content")
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            m["content"] = content[0]["text"]
        if m["role"] == "assistant" and not m.get("content"):
            m.pop("content", None)
        if m.keys() == {"role"}:
            continue  # a turn of nothing
        if "tool_calls" in m:
            m["tool_calls"] = [_call(call, ids) for call in m["tool_calls"]]
        if "tool_call_id" in m:
            m["tool_call_id"] = ids.get(m["tool_call_id"], m["tool_call_id"])
        plain = m.keys() == {"role", "content"} and isinstance(m["content"], str)
        if m["role"] == "system" and plain and found and all(other["role"] == "system" for other in found):
            found[-1] = {"role": "system", "content": f"{found[-1]['content']}\n\n{m['content']}"}
        else:
            found.append(m)
    return found


def _call(call: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    found = {"type": "function", **{key: value for key, value in call.items() if key != "index"}}
    found["id"] = ids[call["id"]] = f"call {len(ids)}"
    if "function" in found:
        raw = call["function"].get("arguments") or "{}"
        found["function"] = {**call["function"], "arguments": json.loads(raw)}
    return found


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if "function" not in tool:
        return tool
    kept = {key: value for key, value in tool["function"].items() if value not in (None, "", False) or key == "name"}
    kept["parameters"] = kept.get("parameters") or {"type": "object", "properties": {}}
    return {**tool, "function": kept}


def _without_default_ttl(value: Any) -> Any:
    if isinstance(value, dict):
        if value == {"type": "ephemeral", "ttl": "5m"}:
            return {"type": "ephemeral"}
        return {key: _without_default_ttl(item) for key, item in value.items()}
    return [_without_default_ttl(item) for item in value] if isinstance(value, list) else value


REQUESTED = exchange_params("openai_chat", where=lambda exchange: (exchange.folder / "request.json").exists())


@pytest.mark.parametrize("exchange", REQUESTED)
@pytest.mark.parametrize("dialect", ["its own", "openai"])
def test_a_recorded_request_read_and_written_again_means_the_same(exchange: Exchange, dialect: str) -> None:
    path = exchange.folder / "request.json"
    sent = json.loads(path.read_bytes())
    wire = wire_of(exchange) if dialect == "its own" else OpenAIChatWire()
    request = wire.decode_request(path.read_bytes())
    http = wire.encode(request if request.model else request.replace(model="m"), stream=sent.get("stream") is True)
    assert meaning(json.loads(http.body)) == meaning(sent)


def read(dialect: str = "openai", **body: Any) -> Request:
    given = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}
    return OpenAIChatWire(dialect).decode_request(json.dumps(given).encode())


def conversation(*messages: dict[str, Any], dialect: str = "openai") -> list[Message]:
    return list(read(dialect, messages=list(messages)).messages)


@pytest.mark.parametrize(
    ("dialect", "body", "fields"),
    [
        ("openai", {"max_completion_tokens": 5}, {"max_tokens": 5}),
        ("generic", {"max_tokens": 5}, {"max_tokens": 5}),
        ("openai", {"max_tokens": 5}, {"extra_body": {"max_tokens": 5}}),
        ("openai", {"temperature": 0, "top_p": 0.5, "stop": "x"}, {"temperature": 0, "top_p": 0.5, "stop_sequences": ["x"]}),
        ("generic", {"top_k": 3}, {"top_k": 3}),
        ("openai", {"top_k": 3}, {"extra_body": {"top_k": 3}}),
        ("openai", {"user": "u", "metadata": {"a": "b"}}, {"metadata": {"user_id": "u", "a": "b"}}),
        ("openai", {"reasoning_effort": "low"}, {"effort": "low"}),
        ("openai", {"reasoning_effort": "none"}, {"thinking": ThinkingConfig.off()}),
        ("openai", {"reasoning_effort": "brand_new"}, {"extra_body": {"reasoning_effort": "brand_new"}}),
        ("openrouter", {"reasoning": {"max_tokens": 2000}}, {"thinking": ThinkingConfig.budget(2000)}),
        ("openrouter", {"reasoning": {"enabled": True}}, {"thinking": ThinkingConfig.adaptive()}),
        ("openrouter", {"reasoning": {"enabled": False}}, {"thinking": ThinkingConfig.off()}),
        ("openrouter", {"reasoning": {"effort": "low"}}, {"extra_body": {"reasoning": {"effort": "low"}}}),
        ("deepseek", {"thinking": {"type": "disabled"}}, {"thinking": ThinkingConfig.off()}),
        ("vllm", {"chat_template_kwargs": {"enable_thinking": True}}, {"thinking": ThinkingConfig.adaptive()}),
        ("openai", {"n": 2, "seed": 1}, {"extra_body": {"n": 2, "seed": 1}}),
        ("openai", {"stream": True, "stream_options": {"include_usage": True}}, {}),
        (
            "openai",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": True}}},
            {"output": OutputFormat({}, name="x")},
        ),
        ("openai", {"response_format": {"type": "json_object"}}, {"extra_body": {"response_format": {"type": "json_object"}}}),
    ],
)
def test_parameters(dialect: str, body: dict[str, Any], fields: dict[str, Any]) -> None:
    assert read(dialect, **body) == Request([user("hi")], model="m", **fields)


def test_tools_and_their_choice() -> None:
    function = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True, "x": 1}}
    custom = {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}
    other = {"type": "openrouter:web_search", "parameters": {"a": 1}}
    found = read(tools=[function, custom, other], tool_choice={"type": "function", "function": {"name": "f"}}, parallel_tool_calls=False)
    assert found.tools == [
        Tool("f", "d", {"type": "object"}, strict=True, extra={"openai-chat": {"function": {"x": 1}}}),
        Tool("c", extra={"openai-chat": {"custom": {"format": {"type": "text"}}}}),
        ProviderTool("openrouter:web_search", "openrouter:web_search", {"parameters": {"a": 1}}),
    ]
    assert (found.tool_choice, found.parallel_tools, found.extra_body) == (ToolNamed("f"), False, {})
    assert read("mistral", tools=[function], tool_choice="any").tool_choice == "required"
    assert read(tools=[function], tool_choice="any").extra_body == {"tool_choice": "any"}
    assert read(tool_choice="auto").extra_body == {"tool_choice": "auto"}


def test_system_text_and_system_messages() -> None:
    found = read(messages=[{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, {"role": "user", "content": "c"}])
    assert found.system == "a"
    assert found.messages[0] == Message("system", "b", extra={"openai-chat": {"role": "developer"}})
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert read("openrouter", messages=[{"role": "system", "content": [marked]}]).system == [Text("a", cache=CacheControl())]


def test_parts() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,CCCC", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
    ]
    (message,) = conversation({"role": "user", "content": parts})
    assert message.content == [
        Text("a"),
        Image(Base64("image/png", "AAAA"), extra={"openai-chat": {"detail": "low"}}),
        Opaque(parts[2], wire="openai-chat"),
        Audio(Base64("audio/wav", "BBBB")),
        Document(Base64("application/pdf", "CCCC"), title="a.pdf"),
        Document(FileId("f1")),
        Video(Url("https://example.com/a.mp4")),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "u", "new": 1}},
        {"type": "video_url", "video_url": {"url": "u", "fps": 1}},
        {"type": "input_audio", "input_audio": "AAAA"},
        {"type": "file", "file": {"file_id": "f", "new": 1}},
        {"type": "file", "file": {"file_data": "AAAA", "filename": "a"}},
        {"type": "file", "file": {"file_data": "https://example.com/a.pdf", "filename": "a"}},
        {"type": "file", "file": {"file_id": "f", "filename": 3}},
        {"type": "text", "text": 3},
        {"type": "thinking", "thinking": "x"},
        {"text": "no type"},
    ],
)
def test_parts_of_any_other_shape_are_kept_whole(part: dict[str, Any]) -> None:
    (message,) = conversation({"role": "user", "content": [{"type": "text", "text": "a"}, part]})
    assert message.content == [Text("a"), Opaque(part, wire="openai-chat")]
    body = json.loads(OpenAIChatWire().encode(Request([message], model="m"), stream=False).body)
    assert body["messages"][0]["content"][1] == part


def test_a_mark_of_another_form_stays_as_it_is() -> None:
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "24h"}}
    (message,) = conversation({"role": "user", "content": [part]}, dialect="openrouter")
    assert message.content == [Text("a", extra={"openai-chat": {"cache_control": {"type": "ephemeral", "ttl": "24h"}}})]


def test_mistrals_thinking_parts_are_thinking() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    (message,) = conversation({"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, dialect="mistral")
    assert message.content == [Thinking("hm", extra={"openai-chat": {"field": "content"}}), Text("a")]


def test_an_assistant_message_and_its_results() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
        {"id": "b", "type": "function", "function": {"name": "f", "arguments": '{"x":'}},
        {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "s"}},
        {"id": "d", "type": "function", "function": {"name": "f", "arguments": '{"INVALID_JSON":"{\\"y\\":"}'}},
    ]
    found = conversation(
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "t", "refusal": "no", "audio": {"id": "au"}, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: bad"},
        {"role": "user", "content": "go on"},
    )
    assert found[1].content == [
        Text("t"),
        Refusal("no"),
        Audio(FileId("au"), extra={"openai-chat": {"id": "au"}}),
        ToolUse("a", "f", {"x": 1}),
        InvalidToolUse("b", "f", '{"x":', reason="incomplete"),
        ToolUse("c", "sql", {"input": "s"}, extra={"openai-chat": {"kind": "custom"}}),
        InvalidToolUse("d", "f", '{"y":', reason="incomplete"),
    ]
    assert found[2].content == [ToolResult("a", "1"), ToolResult("b", "bad", is_error=True)]
    assert found[3] == user("go on")


def test_pictures_in_a_tool_message_are_pictures_and_stay_there() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    sent = [{"role": "assistant", "content": None, "tool_calls": calls}, {"role": "tool", "tool_call_id": "a", "content": [part]}]
    found = conversation({"role": "user", "content": "q"}, *sent)
    (result,) = found[2].content
    assert isinstance(result, ToolResult)
    assert result.content == [Image(Url("https://example.com/a.png"))]
    for dialect in ("openai", "azure"):
        http = OpenAIChatWire(dialect).encode(Request(found, model="m"), stream=False)
        assert json.loads(http.body)["messages"][2] == sent[1]
        assert [notice.code for notice in http.notices] == ["tool_media"]


def test_reasoning_and_annotations_of_an_assistant_message() -> None:
    details = [
        {"type": "reasoning.text", "text": "a", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "z", "index": 1},
    ]
    annotation = {"type": "url_citation", "url_citation": {"url": "u"}}
    found = conversation(
        {"role": "assistant", "content": "t", "reasoning_details": details, "annotations": [annotation]}, dialect="openrouter"
    )
    assert found[0].content == [
        Thinking("a", signature="s", extra={"openai-chat": {"detail": {"type": "reasoning.text", "index": 0}}}),
        RedactedThinking("z", extra={"openai-chat": {"detail": {"type": "reasoning.encrypted", "index": 1}}}),
        Text("t", citations=[Citation("url_citation", {"url": "u"})]),
    ]
    (kept,) = conversation({"role": "assistant", "content": "t", "reasoning_content": "r"})
    assert kept == Message("assistant", "t", extra={"openai-chat": {"reasoning_content": "r"}})


def test_a_function_message_answers_the_call_before_it() -> None:
    found = conversation(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "r"},
    )
    call, result = found[0].content[0], found[1].content[0]
    assert isinstance(call, ToolUse)
    assert isinstance(result, ToolResult)
    assert result.tool_use_id == call.id


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}, "messages[0].tool_calls[0]"),
        ({"tools": "x"}, "tools"),
        ({"tools": [{"function": {}}]}, "tools[0]"),
    ],
)
def test_what_is_not_the_dialect_is_refused_with_its_path(body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(**body)
    assert path in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'"x"'])
def test_a_body_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInputError):
        OpenAIChatWire().decode_request(data)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_what_each_dialect_writes_it_reads_back(dialect: str) -> None:
    request = Request(
        [
            user("q", Image(Url("https://example.com/a.png"))),
            Message("assistant", [Text("a"), ToolUse("abcDEF123", "f", {"x": 1})]),
            user(ToolResult("abcDEF123", "no", is_error=True)),
            user("go on"),
        ],
        model="m",
        system="s",
        tools=[Tool("f", "d", {"type": "object"})],
        tool_choice="required",
        max_tokens=9,
        temperature=0.5,
        stop_sequences=["x"],
        effort="low",
        output=OutputFormat({"type": "object"}),
    )
    wire = OpenAIChatWire(dialect)
    assert wire.decode_request(wire.encode(request, stream=True).body) == request
