"""Faults that users met in other libraries, on the way out: what a history becomes on Anthropic's wire.

Inputs are read in place from the shared cases; each test names the case it stands for. Those whose answer is a local error are tested
with the validation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import (
    Accumulator,
    Base64,
    Block,
    CacheControl,
    Image,
    InvalidInputError,
    InvalidToolUse,
    Message,
    RedactedThinking,
    Request,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolResult,
    ToolUse,
    assistant,
    user,
)
from dragoman.history import problems
from tests.shared import case, cases, needs_cases
from tests.wire.anthropic_requests import MODEL, WIRE

pytestmark = needs_cases

BY_VALIDATION = {
    "BerriAI/litellm#30480",
    "agno-agi/agno#8405",
    "1jehuang/jcode#465",
    "letta-ai/letta#3308",
    "mastra-ai/mastra#16193",
    "can1357/oh-my-pi#341",
    "dotCipher/opencode-claude-bridge#1",
    "open-webui/pipelines#546",
}
"""Cases whose answer is an InvalidInputError."""


def _cache(data: dict[str, Any]) -> CacheControl | None:
    return CacheControl(data["cache_control"].get("ttl", "5m")) if "cache_control" in data else None


def _block(data: dict[str, Any]) -> Block:
    cache = _cache(data)
    match data:
        case {"text": text}:
            return Text(text, cache=cache)
        case {"thinking": thinking}:
            extra = {"anthropic": {"cache_control": data["cache_control"]}} if cache else {}
            return Thinking(thinking["thinking"], signature=thinking["signature"], extra=extra)
        case {"redacted": payload}:
            return RedactedThinking(payload)
        case {"tool_use": {"invalid": True, "id": id, "name": name, "input_raw": raw}}:
            return InvalidToolUse(id, name, raw, reason="invalid_json")
        case {"tool_use": call}:
            return ToolUse(call["id"], call["name"], call["input"] or {}, cache=cache)
        case {"tool_result": result}:
            return ToolResult(result["tool_use_id"], result["content"], is_error=result.get("is_error", False), cache=cache)
        case {"image": image}:
            return Image(Base64(image["media_type"], image["data"]))
        case _:
            raise AssertionError(data)


def request_of(identity: str) -> Request:
    """The case's neutral blocks as a request."""
    data = json.loads(case(identity)["input"])
    return Request(
        [Message(message["role"], [_block(block) for block in message["blocks"]]) for message in data["messages"]],
        model=data.get("model", MODEL),
        max_tokens=data.get("max_tokens", 100),
        system=[Text(block["text"], cache=_cache(block)) for block in data.get("system", [])],
        tools=[Tool(tool["name"], "", tool.get("input_schema", {}), cache=_cache(tool)) for tool in data.get("tools", [])],
    )


def wire_of(identity: str) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(WIRE.encode(request_of(identity), stream=True).body)
    return body


def test_a_mark_on_thinking_moves_to_the_text_before() -> None:
    messages = wire_of("Wei-Shaw/sub2api#225")["messages"]
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "S"}]},
    ]


def test_tools_and_schema_keys_keep_their_order_at_every_call() -> None:
    request = request_of("nugget/thane-ai-agent#804")
    bodies = {WIRE.encode(request, stream=True).body for _ in range(50)}
    (body,) = bodies
    assert body.index(b'"name":"b"') < body.index(b'"name":"a"')
    assert b'"properties":{"z":1,"a":2}' in body


def test_an_id_goes_back_to_its_maker_as_it_was() -> None:
    assert "functions.ls:0" in case("NVIDIA-NeMo/Switchyard#178")["input"]
    request = Request(["q", assistant(ToolUse("functions.ls:0", "ls", {})), user(ToolResult("functions.ls:0", "ok"))], model=MODEL)
    messages = msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"]
    assert messages[1]["content"][0]["id"] == messages[2]["content"][0]["tool_use_id"] == "dgm1-functions_2els_3a0"
    assert request.messages[1].tool_uses[0].id == "functions.ls:0"


def test_a_repeated_id_is_rewritten_with_its_own_result() -> None:
    messages = wire_of("NVIDIA-NeMo/Switchyard#502")["messages"]
    assert [message["content"][0].get("id") or message["content"][0].get("tool_use_id") for message in messages[1:]] == [
        "call_0",
        "call_0",
        "dgm2-call_5f0",
        "dgm2-call_5f0",
    ]
    assert [message["content"][0]["content"] for message in messages[2::2]] == ["1", "2"]


def test_an_empty_text_is_left_out_and_its_mark_moves() -> None:
    messages = wire_of("NousResearch/hermes-agent#1216")["messages"]
    assert messages[1]["content"] == [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]
    assert messages[0]["content"] == [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]


def test_an_empty_text_that_the_api_gave_is_not_sent_back() -> None:
    accumulator = Accumulator()
    decoder = WIRE.decoder()
    for event in [*decoder.feed(case("anthropics/anthropic-sdk-python#461")["input"].encode()), *decoder.close()]:
        accumulator.push(event)
    request = Request(["q", accumulator.message(), user(ToolResult("toolu_1", "ok"))], model=MODEL)
    messages = msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"]
    assert messages[1]["content"] == [{"type": "tool_use", "id": "toolu_1", "name": "today", "input": {}}]


def test_image_jpg_is_image_jpeg() -> None:
    assert wire_of("mealie-recipes/mealie#5897")["messages"][0]["content"][0]["source"]["media_type"] == "image/jpeg"


def test_an_empty_system_prompt_is_no_system_field() -> None:
    body = wire_of("omnara-ai/omnara#443")
    assert "system" not in body
    assert b"cache_control" not in msgspec.json.encode(body)


def test_neighbours_are_one_turn_and_results_come_first() -> None:
    messages = wire_of("vybestack/llxprt-code#1312")["messages"]
    assert [(message["role"], [b["type"] for b in message["content"]] if message["content"] != "q" else "q") for message in messages] == [
        ("user", "q"),
        ("assistant", ["text", "tool_use"]),
        ("user", ["tool_result", "text"]),
    ]


def test_disabled_thinking_has_no_budget() -> None:
    data = json.loads(case("EuroEval/EuroEval#1107")["input"])
    body = {**data, "model": MODEL, "messages": [{"role": "user", "content": "q"}]}
    request = WIRE.decode_request(json.dumps(body).encode())
    assert msgspec.json.decode(WIRE.encode(request, stream=True).body)["thinking"] == {"type": "disabled"}
    sent = WIRE.encode(Request("q", model=MODEL, thinking=ThinkingConfig.budget(0)), stream=True)
    assert msgspec.json.decode(sent.body)["thinking"] == {"type": "disabled"}


def test_only_unsigned_thinking_is_left_out() -> None:
    request = request_of("BerriAI/litellm#38809")
    assert msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"][1]["content"] == "a"
    signed = request.replace(messages=[request.messages[0], assistant(Thinking("", signature="S"), "a"), request.messages[2]])
    assert msgspec.json.decode(WIRE.encode(signed, stream=True).body)["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "text", "text": "a"},
    ]


def test_redacted_thinking_stays_before_the_call() -> None:
    messages = wire_of("griffinwork40/agent-afk#288")["messages"]
    assert messages[1]["content"] == [
        {"type": "redacted_thinking", "data": "R1"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
    ]


def test_stream_events_are_no_content() -> None:
    data = json.loads(case("1Panel-dev/MaxKB#6683")["input"])
    messages = [{"role": m["role"], "content": m["blocks"]} for m in data["messages"][1:2]]
    with pytest.raises(InvalidInputError) as caught:
        WIRE.decode_request(json.dumps({"model": MODEL, "messages": messages}).encode())
    assert [problem.path for problem in caught.value.problems] == [f"messages[0].content[{index}]" for index in range(3)]


def test_a_call_stored_without_arguments_has_the_empty_object() -> None:
    data = json.loads(case("BerriAI/litellm#5063")["input"])
    call = {"type": "tool_use", **data["messages"][1]["blocks"][0]["tool_use"]}
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [call]}]}
    request = WIRE.decode_request(json.dumps(body).encode())
    assert msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"][1]["content"][0]["input"] == {}


def test_an_invalid_input_is_sent_as_its_text() -> None:
    request = request_of("dust-tt/dust#24414")
    messages = msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"]
    assert messages[0]["content"][0]["input"] == {"INVALID_JSON": '{"who": Bob}'}
    assert messages[1]["content"][0]["is_error"] is True
    assert problems(request.replace(messages=["q", *request.messages]), WIRE) == []


def test_lone_surrogates_are_replaced_everywhere_but_in_signed_thinking() -> None:
    request = request_of("NousResearch/hermes-agent#68254")
    with pytest.raises(InvalidInputError):
        WIRE.encode(request, stream=True)
    unsigned = request.replace(
        messages=[request.messages[0], assistant(ToolUse("toolu_1", "f\ud83d", {"\udc97": ["\ud83d", "\U0001f600"]}))],
        system="s\ud83d",
        tools=[Tool("f", "\udc97", {"type": "object", "title": "\udc97"})],
    )
    body = msgspec.json.decode(WIRE.encode(unsigned, stream=True).body)
    assert body["messages"][0]["content"][0]["content"] == "dash \ufffd and \ufffd alone"
    assert body["messages"][1]["content"][0] == {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "f\ufffd",
        "input": {"\ufffd": ["\ufffd", "\U0001f600"]},
    }
    assert (body["system"], body["tools"][0]["description"], body["tools"][0]["input_schema"]["title"]) == ("s\ufffd", "\ufffd", "\ufffd")


def test_every_case_of_a_request_is_covered() -> None:
    themes = {"request", "request_params", "cache", "thinking", "tool_input", "unicode"}
    source = Path(__file__).read_text("utf-8")
    missing = [
        identity
        for identity, found in cases().items()
        if found["theme"] in themes and found["input_kind"] in ("request", "scenario") and found.get("provider", "anthropic") == "anthropic"
        if identity not in source
    ]
    assert missing == []
