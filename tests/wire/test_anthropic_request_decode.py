"""`decode_request`: what clients send to the Messages API becomes a `Request` that encodes to the same JSON meaning."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import (
    CacheControl,
    InvalidInputError,
    Message,
    OutputFormat,
    ProviderTool,
    Request,
    Text,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolUse,
    from_json,
    to_json,
)
from dragoman.wire.anthropic import AnthropicWire
from tests.shared import CORPUS, Exchange, exchanges
from tests.wire.anthropic_forms import normal

WIRE = AnthropicWire()


def recorded_requests() -> list[Any]:
    """Every recorded Messages API request, of Anthropic and of Bedrock's invoke; one skipped parameter if there are none."""
    found = [e for e in exchanges("anthropic") if (e.folder / "request.json").exists()]
    found += [
        Exchange(path.parent) for path in sorted((CORPUS / "bedrock").glob("*/*/request.json")) if b"anthropic_version" in path.read_bytes()
    ]
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the recorded exchanges are not at {CORPUS}"))]
    return [pytest.param(exchange, id=exchange.name) for exchange in found]


@pytest.mark.parametrize("exchange", recorded_requests())
def test_a_recorded_request_encodes_to_the_same_meaning(exchange: Exchange) -> None:
    body = exchange.json("request.json")
    body.setdefault("model", "claude-sonnet-4-5")  # Vertex and Bedrock have it in the URL
    headers = exchange.json("request_headers.json") or {}
    request = WIRE.decode_request(json.dumps(body).encode(), headers)
    encoded = WIRE.encode(from_json(to_json(request), Request), stream=body.get("stream") is True)
    assert normal(msgspec.json.decode(encoded.body)) == normal(body)
    sent = encoded.headers.get("anthropic-beta", "").split(",")
    given = [beta for part in headers.get("anthropic-beta", "").split(",") if (beta := part.strip())]
    assert sent[: len(given)] == given or not given


@pytest.mark.parametrize("exchange", recorded_requests())
def test_a_second_round_trip_changes_nothing(exchange: Exchange) -> None:
    body = {"model": "claude-sonnet-4-5", **exchange.json("request.json")}
    first = WIRE.encode(WIRE.decode_request(json.dumps(body).encode()), stream=False)
    assert WIRE.encode(WIRE.decode_request(first.body), stream=False).body == first.body


# ---- what becomes a field, and what does not


def decode(body: dict[str, Any], headers: dict[str, str] | None = None) -> Request:
    return WIRE.decode_request(json.dumps({"model": "claude-test-1", "max_tokens": 9, "messages": [], **body}).encode(), headers or {})


def test_a_request_becomes_fields() -> None:
    request = decode(
        {
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
            ],
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "tools": [
                {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True, "eager_input_streaming": True},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "cache_control": {"type": "ephemeral"}},
            ],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
            "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 5,
            "stop_sequences": ["x"],
            "metadata": {"user_id": "u"},
            "cache_control": {"type": "ephemeral"},
            "stream": True,
        }
    )
    assert request == Request(
        ["q", Message("assistant", [ToolUse("t", "f", {"a": 1})])],
        model="claude-test-1",
        max_tokens=9,
        system=[Text("s", cache=CacheControl("1h"))],
        tools=[
            Tool("f", "d", {"type": "object"}, strict=True, eager_input_streaming=True),
            ProviderTool("web_search_20250305", "web_search", {"max_uses": 3}, cache=CacheControl()),
        ],
        tool_choice=ToolNamed("f"),
        parallel_tools=False,
        thinking=ThinkingConfig.budget(2000, display="summarized"),
        effort="high",
        output=OutputFormat({"type": "object"}),
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        stop_sequences=["x"],
        metadata={"user_id": "u"},
        cache="provider",
    )


KEPT: list[dict[str, Any]] = [
    {"container": {"skills": []}, "service_tier": "auto", "speed": "fast", "from_the_future": None},
    {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}},
    {"thinking": {"type": "enabled", "budget_tokens": "many"}},
    {"thinking": {"type": "enabled", "budget_tokens": True}},
    {"thinking": {"type": "from_the_future"}},
    {"tool_choice": {"type": "from_the_future"}},
    {"tool_choice": {"type": "auto", "x": 1}},
    {"output_config": {"effort": "extreme", "task_budget": {"type": "tokens", "total": 1}}},
    {"output_config": {"format": {"type": "from_the_future"}}},
    {"output_config": {"effort": {"level": "low"}}},
    {"metadata": {"user_id": 5, "x": 1}},
    {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"temperature": "hot", "top_k": True, "stop_sequences": "x", "max_tokens": "9"},
    {"system": [{"type": "from_the_future"}]},
    {"system": 5, "tools": {"x": 1}},
]


def test_a_choice_among_the_tools_of_a_server_is_kept() -> None:
    choice = {"type": "any", "disable_parallel_tool_use": True}
    body = {"messages": [{"role": "user", "content": "q"}], "mcp_servers": [{"type": "url", "name": "m"}], "tool_choice": choice}
    assert msgspec.json.decode(WIRE.encode(decode(body), stream=False).body)["tool_choice"] == choice


@pytest.mark.parametrize("body", KEPT, ids=lambda body: ",".join(body))
def test_what_no_field_holds_is_kept_and_sent_as_it_came(body: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": "q"}], **body}
    request = decode(body)
    assert request.extra_body == {key: value for key, value in body.items() if key != "messages"}
    sent = msgspec.json.decode(WIRE.encode(request, stream=False).body)
    assert {key: sent[key] for key in body} == body


@pytest.mark.parametrize(
    "block", [{"type": "text", "text": ["x "]}, {"type": "text", "text": {"a": 1}}, {"type": "from_the_future", "text": "x"}], ids=str
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_lone_block_that_is_no_plain_text_is_sent_as_it_came(role: str, block: dict[str, Any]) -> None:
    request = decode(
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": role, "content": [block]}]}
    )
    assert msgspec.json.decode(WIRE.encode(request, stream=False).body)["messages"][-1]["content"][-1:] == [block]


def test_the_part_of_an_object_that_fields_do_not_hold_is_kept_beside_them() -> None:
    body = {
        "messages": [{"role": "user", "content": "q"}],
        "output_config": {"effort": "low", "task_budget": {"type": "tokens", "total": 1}},
        "metadata": {"user_id": "u", "session": "s"},
    }
    request = decode(body)
    assert (request.effort, request.metadata) == ("low", {"user_id": "u"})
    assert request.extra_body == {"output_config": {"task_budget": {"type": "tokens", "total": 1}}, "metadata": {"session": "s"}}
    sent = WIRE.encode(request, stream=False)
    assert {key: msgspec.json.decode(sent.body)[key] for key in body} == body
    assert sent.notices == []


def test_what_a_tool_or_message_carries_beyond_its_fields_is_kept() -> None:
    body = {
        "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": "s", "clear_at": "never"}],
        "tools": [
            {"name": "a", "input_schema": True, "defer_loading": True, "input_examples": [{"x": 1}]},
            {"name": "b", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral", "scope": "global"}},
            {"type": "mcp_toolset", "mcp_server_name": "w"},
        ],
    }
    request = decode(body)
    assert request.messages[1].extra == {"anthropic": {"clear_at": "never"}}
    sent = msgspec.json.decode(WIRE.encode(request, stream=False).body)
    assert {key: sent[key] for key in body} == body


@pytest.mark.parametrize(
    ("model", "form", "field"),
    [
        ("claude-sonnet-4-5", "disabled", True),
        ("claude-sonnet-5-5", "between_tools", True),
        ("claude-sonnet-5-5", "disabled", False),
        ("claude-sonnet-4-5", "between_tools", False),
        ("claude-opus-5-5", "disabled", True),
    ],
)
def test_thinking_turned_off_is_sent_in_the_clients_form(model: str, form: str, field: bool) -> None:
    request = decode({"model": model, "messages": [{"role": "user", "content": "q"}], "thinking": {"type": form}})
    assert (request.thinking == ThinkingConfig.off()) is field
    assert msgspec.json.decode(WIRE.encode(request, stream=False).body)["thinking"] == {"type": form}


def test_a_top_level_mark_for_a_model_that_cannot_cache_is_sent_as_it_came() -> None:
    body = {"model": "claude-2", "messages": [{"role": "user", "content": "q"}], "cache_control": {"type": "ephemeral"}}
    assert b'"cache_control":{"type":"ephemeral"}' in WIRE.encode(decode(body), stream=False).body


def test_null_says_nothing() -> None:
    nulls = dict.fromkeys(["system", "tools", "tool_choice", "thinking", "output_config", "temperature", "stop_sequences", "metadata"])
    assert decode(nulls) == decode({})


# ---- headers


def test_only_the_headers_that_belong_to_the_request_are_kept() -> None:
    request = decode(
        {},
        {
            "Anthropic-Beta": "a-2025-01-01, b-2025-01-01",
            "anthropic-version": "2023-06-01",
            "X-Api-Key": "sk-secret",
            "authorization": "Bearer secret",
            "anthropic-workspace-id": "w",
        },
    )
    assert request.betas == ["a-2025-01-01", "b-2025-01-01"]
    assert request.extra_headers == {"anthropic-workspace-id": "w"}


def test_another_version_than_the_wires_is_kept() -> None:
    request = decode({"messages": [{"role": "user", "content": "q"}]}, {"anthropic-version": "2026-10-21"})
    assert WIRE.encode(request, stream=False).headers["anthropic-version"] == "2026-10-21"


# ---- what is not the dialect


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"messages": NaN}'])
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError) as caught:
        WIRE.decode_request(body)
    assert [problem.path for problem in caught.value.problems] == ["body"]


def test_all_that_is_not_the_dialect_is_refused_at_once_with_paths() -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode(
            {
                "messages": [
                    {"role": "tool", "content": "x"},
                    "x",
                    {"role": "user", "content": 5},
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_json_delta"}, 5, {"text": "a"}]},
                ],
                "tools": [5, {"name": 5}],
            }
        )
    assert [problem.path for problem in caught.value.problems] == [
        "messages[0].role",
        "messages[1].role",
        "messages[2].content",
        "messages[3].content[1]",
        "messages[3].content[2]",
        "messages[3].content[3]",
        "tools[0]",
        "tools[1]",
    ]


def test_a_request_without_messages_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        WIRE.decode_request(b'{"model": "m"}')
    assert [problem.path for problem in caught.value.problems] == ["messages"]


def test_lone_surrogates_in_a_body_are_read() -> None:
    request = WIRE.decode_request(b'{"model": "m", "messages": [{"role": "user", "content": "a\\ud83d"}]}')
    assert request.messages[0].text == "a\ud83d"
