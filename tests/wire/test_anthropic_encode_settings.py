"""Parameters, tools, thinking and headers on Anthropic's wire, as exact JSON."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman import (
    CacheControl,
    InvalidInputError,
    Message,
    Opaque,
    Origin,
    OutputFormat,
    ProviderTool,
    Request,
    ServerToolResult,
    ServerToolUse,
    Text,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    TraceInfo,
    assistant,
    problems,
    user,
)
from dragoman.fragments import scrub
from dragoman.request import Effort
from dragoman.wire.anthropic import AnthropicWire
from tests.wire.anthropic_requests import MODEL, WIRE, body_of, encode, headers_of, notices_of

TOOL = Tool("f")
SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {}}}


# ---- parameters


def test_fields_left_at_their_default_are_not_sent() -> None:
    body = msgspec.json.decode(WIRE.encode(Request("q", model=MODEL, max_tokens=0), stream=False).body)
    assert body == {"model": MODEL, "max_tokens": 0, "messages": [{"role": "user", "content": "q"}]}


def test_parameters_on_the_wire() -> None:
    body = body_of(temperature=0.5, top_p=0.9, top_k=5, stop_sequences=["x"], metadata={"user_id": "u"}, trace=TraceInfo(user_id="no"))
    assert body == {"temperature": 0.5, "top_p": 0.9, "top_k": 5, "stop_sequences": ["x"], "metadata": {"user_id": "u"}}


def test_only_a_stream_says_so() -> None:
    assert b'"stream":true' in encode("q", stream=True).body
    assert b'"stream"' not in encode("q", stream=False).body


def test_other_metadata_is_left_out_with_a_notice() -> None:
    assert body_of(metadata={"user_id": "u", "run": "1"})["metadata"] == {"user_id": "u"}
    assert notices_of(metadata={"run": "1"}) == [("metadata_left_out", "metadata.run")]


def test_effort_and_output_are_output_config() -> None:
    output = OutputFormat(SCHEMA)
    assert body_of(effort="high", output=output)["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}}


def test_the_effort_below_the_lowest_is_the_lowest_with_a_notice() -> None:
    assert body_of(effort="minimal")["output_config"] == {"effort": "low"}
    assert notices_of(effort="minimal") == [("effort_renamed", "effort")]
    assert notices_of(effort="low") == []


def test_an_effort_that_only_chooses_the_budget_is_not_renamed() -> None:
    settings = {"model": "claude-sonnet-4-5", "thinking": ThinkingConfig.auto(), "effort": "minimal", "max_tokens": 5000}
    assert notices_of(**settings) == []


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-opus-5"])
def test_a_model_that_thinks_by_default_is_not_made_to_call_a_tool(model: str) -> None:
    asked = {"model": model, "tools": [TOOL], "tool_choice": "required_if_allowed"}
    assert "tool_choice" not in body_of(**asked)
    assert body_of(**asked, thinking=ThinkingConfig.off())["tool_choice"] == {"type": "any"}


@pytest.mark.parametrize(
    ("model", "default", "thinking", "expected"),
    [
        ("claude-test-1", None, None, 8192),
        ("claude-sonnet-4-5", None, None, 64000),
        ("claude-sonnet-4-5", 500, None, 500),
        ("claude-test-1", None, ThinkingConfig.budget(4000), 12192),
        ("claude-test-1", 500, ThinkingConfig.budget(4000), 12192),
        ("claude-test-1", 50_000, ThinkingConfig.budget(4000), 50_000),
        ("claude-sonnet-4-5", 500, ThinkingConfig.budget(60_000), 64000),
        ("claude-test-1", None, ThinkingConfig.budget(10, clamp=True), 9216),
    ],
)
def test_max_tokens_where_the_request_has_none(model: str, default: int | None, thinking: Any, expected: int) -> None:
    encoded = AnthropicWire(max_tokens=default).encode(Request("q", model=model, thinking=thinking), stream=False)
    assert msgspec.json.decode(encoded.body)["max_tokens"] == expected


def test_extra_body_completes_and_standard_fields_win() -> None:
    extra = {"temperature": 1, "speed": "fast", "output_config": {"effort": "low", "task_budget": {"type": "tokens", "total": 9}}}
    encoded = encode("q", temperature=0.5, effort="high", extra_body=extra)
    body = msgspec.json.decode(encoded.body)
    assert (body["temperature"], body["speed"]) == (0.5, "fast")
    assert body["output_config"] == {"effort": "high", "task_budget": {"type": "tokens", "total": 9}}
    assert [(n.code, n.path) for n in encoded.notices] == [
        ("extra_body_ignored", "extra_body.temperature"),
        ("extra_body_ignored", "extra_body.output_config"),
    ]


def test_max_tokens_in_extra_body_counts_where_the_request_has_none() -> None:
    request = Request("q", model=MODEL, extra_body={"max_tokens": 7})
    assert msgspec.json.decode(WIRE.encode(request, stream=False).body)["max_tokens"] == 7


def test_messages_and_stream_cannot_be_replaced_by_extra_body() -> None:
    encoded = encode("q", stream=True, extra_body={"messages": [], "stream": False})
    body = msgspec.json.decode(encoded.body)
    assert (body["messages"], body["stream"]) == ([{"role": "user", "content": "q"}], True)
    assert [n.path for n in encoded.notices] == ["extra_body.messages", "extra_body.stream"]
    assert b'"stream"' not in encode("q", stream=False, extra_body={"stream": True}).body


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), b"x"])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    for fields in ({"extra_body": {"x": [value]}}, {"tools": [Tool("f", "", {"type": value})]}, {"output": OutputFormat({"x": value})}):
        with pytest.raises(InvalidInputError) as caught:
            encode("q", **fields)
        assert [problem.rule for problem in caught.value.problems] == ["not_json"]


@pytest.mark.parametrize("key", ["system", "tools", "thinking", "container"])
@pytest.mark.parametrize("value", [float("nan"), {1, 2}, [object()], {"a": [{1}]}])
def test_what_json_has_no_form_for_in_extra_body_is_refused_where_it_is(key: str, value: Any) -> None:
    (told,) = problems(Request("q", model=MODEL, extra_body={key: value}), WIRE)
    for text in ("q", "\ud800"):
        with pytest.raises(InvalidInputError) as caught:
            encode(text, extra_body={key: value})
        assert caught.value.problems == [told]


def test_a_value_of_a_wrong_type_beside_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode(Message("assistant", [ToolUse("t", "f", {}), Text("\ud800")]), "q", stop_sequences=[object()])
    assert [problem.rule for problem in caught.value.problems] == ["not_json"]
    with pytest.raises(InvalidInputError) as caught:
        encode(Message("user", [Text("\ud800"), ToolResult("t", [Text(object())])]))  # type: ignore[arg-type]
    assert [problem.rule for problem in caught.value.problems] == ["wrong_type"]


# ---- half a character, and how deep a value may nest

LOST: dict[str, Any] = dict.fromkeys(["\ud800", "\ud801"], 1)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (Request(["q", assistant(ToolUse("t", "f", {"a": [LOST]})), user(ToolResult("t", "ok"))]), "messages[1].content[0].input.a[0]"),
        (Request("q", tools=[Tool("f", "", {"type": "object", "properties": LOST})]), "tools[0].input_schema.properties"),
        (Request("q", extra_body={"container": LOST}), "extra_body.container"),
        (Request([user(Opaque({"type": "x", "y": LOST}, wire="anthropic"))]), "messages[0].content[0].data.y"),
        (Request([user(Text("a", extra={"anthropic": {"y": LOST}}))]), "messages[0].content[0].extra.anthropic.y"),
    ],
)
def test_keys_that_would_become_one_are_refused(request_: Request, path: str) -> None:
    request_ = request_.replace(model=MODEL)
    with pytest.raises(InvalidInputError) as caught:
        WIRE.encode(request_, stream=True)
    assert [(problem.path, problem.rule) for problem in caught.value.problems] == [(path, "broken_unicode")]
    assert problems(request_, WIRE) == caught.value.problems


def test_keys_that_stay_apart_are_sent() -> None:
    foreign = Opaque({"type": "x", "y": LOST}, wire="gemini")
    call = ToolUse("t", "f", {"\ud800": 1, "a": 2})
    request = Request([user("a\ud800", foreign), assistant(call), user(ToolResult("t", "x"))], model=MODEL)
    assert problems(request, WIRE) == []
    assert msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"][1]["content"][0]["input"] == {"\ufffd": 1, "a": 2}


def test_what_is_not_sent_may_hold_anything() -> None:
    loop: dict[Any, Any] = {1: "\ud800"}
    loop["self"] = [loop, loop]
    others = Text("a", extra={"gemini": loop})
    foreign = Message("assistant", [others, ServerToolUse("s", "search", loop)], origin=Origin("google", "gemini-3", "gemini"))
    encoded = encode("\ud800", foreign, Message("user", "q", extra={"gemini": loop}), metadata={"user_id": "u", "more": loop})
    assert msgspec.json.decode(encoded.body)["messages"][0]["content"] == "\ufffd"


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def below(frames: int, call: Callable[[], Any]) -> Any:
    """What a call gives with so many frames above it."""
    return call() if frames == 0 else below(frames - 1, call)


@pytest.mark.parametrize("leaf", ["x", "\ud800"])
def test_what_may_nest_500_levels_deep_is_sent_from_any_ordinary_stack(leaf: str) -> None:
    request = Request(["q", assistant(ToolUse("t", "f", {"a": nested(499, leaf)})), user(ToolResult("t", "x"))], model=MODEL)
    assert problems(request, WIRE) == []
    body = msgspec.json.decode(WIRE.encode(request, stream=True).body)
    assert body["messages"][1]["content"][0]["input"] == {"a": nested(499, scrub(leaf))}


@pytest.mark.parametrize(
    "fields",
    [
        {"extra_body": {"container": nested(490, "x")}},
        {"tools": [Tool("f", "", {"type": "object", "x": nested(490, "\ud800")})]},
        {"messages": ["q", assistant(ToolUse("t", "f", {"a": nested(490, "x")})), user(ToolResult("t", "x"))]},
        {"messages": [user(Text("a", extra={"anthropic": {"x": nested(490, "x")}}))]},
    ],
)
def test_too_little_stack_for_what_nests_deeply_is_a_problem_if_anything(fields: dict[str, Any]) -> None:
    """C code counts its own stack since Python 3.12, so there it may be sent."""
    request = Request("q", model=MODEL).replace(**fields)
    frames = sys.getrecursionlimit() - len(inspect.stack()) - 300
    assert below(frames, lambda: problems(request, WIRE)) == []  # told without the stack

    def encoded() -> bytes | list[str]:
        try:
            return WIRE.encode(request, stream=True).body
        except InvalidInputError as error:
            return [problem.rule for problem in error.problems]

    assert below(frames, encoded) in (["not_json"], encoded())


# ---- thinking


@pytest.mark.parametrize(
    ("model", "config", "wire"),
    [
        ("claude-sonnet-4-5", ThinkingConfig.budget(2000), {"type": "enabled", "budget_tokens": 2000}),
        ("claude-sonnet-4-5", ThinkingConfig.budget(0), {"type": "disabled"}),
        ("claude-sonnet-4-5", ThinkingConfig.off(), {"type": "disabled"}),
        ("claude-sonnet-5-5", ThinkingConfig.off(), {"type": "between_tools"}),
        ("claude-opus-5", ThinkingConfig.adaptive(), {"type": "adaptive"}),
        ("claude-opus-5", ThinkingConfig.adaptive(display="omitted"), {"type": "adaptive", "display": "omitted"}),
        ("claude-opus-5", ThinkingConfig.auto(display="summarized"), {"type": "adaptive", "display": "summarized"}),
        (
            "claude-sonnet-4-5",
            ThinkingConfig.auto(display="summarized"),
            {"type": "enabled", "budget_tokens": 8192, "display": "summarized"},
        ),
        ("claude-test-1", ThinkingConfig.auto(), {"type": "enabled", "budget_tokens": 8192}),
        ("claude-3-haiku", ThinkingConfig.auto(), None),
        ("claude-opus-5", None, None),
    ],
)
def test_thinking_on_the_wire(model: str, config: ThinkingConfig | None, wire: dict[str, Any] | None) -> None:
    assert body_of(model=model, thinking=config, max_tokens=20_000).get("thinking") == wire


@pytest.mark.parametrize(
    ("effort", "budget"), [("minimal", 1024), ("low", 2048), ("medium", 8192), ("high", 16384), ("xhigh", 32768), ("max", 32768)]
)
def test_effort_chooses_the_budget_where_the_model_is_not_adaptive(effort: Effort, budget: int) -> None:
    body = body_of(model="claude-sonnet-4-5", thinking=ThinkingConfig.auto(), effort=effort, max_tokens=None)
    assert body["thinking"]["budget_tokens"] == budget
    assert "output_config" not in body  # the model has no effort of its own


def test_effort_is_also_sent_where_the_model_has_one() -> None:
    assert body_of(model="claude-opus-4-5", thinking=ThinkingConfig.auto(), effort="low")["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(("budget", "max_tokens", "sent"), [(500, 4096, 1024), (9000, 4096, 3072), (2000, 4096, 2000), (9000, 1500, 1024)])
def test_a_clamped_budget_is_moved_into_its_range(budget: int, max_tokens: int, sent: int) -> None:
    config = ThinkingConfig.budget(budget, clamp=True)
    assert body_of(thinking=config, max_tokens=max_tokens)["thinking"]["budget_tokens"] == sent
    expected = [] if budget == sent else [("thinking_budget_clamped", "thinking.budget_tokens")]
    assert notices_of(thinking=config, max_tokens=max_tokens) == expected


# ---- tools

TOOLS: list[tuple[Tool | ProviderTool, dict[str, Any]]] = [
    (Tool("f"), {"name": "f", "input_schema": {"type": "object", "properties": {}}}),
    (Tool("f", "does", SCHEMA), {"name": "f", "description": "does", "input_schema": SCHEMA}),
    (
        Tool("f", "", SCHEMA, strict=True, eager_input_streaming=True, cache=CacheControl("1h")),
        {
            "name": "f",
            "input_schema": SCHEMA,
            "strict": True,
            "eager_input_streaming": True,
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
    ),
    (
        Tool("f", "", SCHEMA, extra={"anthropic": {"defer_loading": True}, "gemini": {"x": 1}}),
        {"name": "f", "input_schema": SCHEMA, "defer_loading": True},
    ),
    (
        ProviderTool("web_search_20250305", "web_search", {"max_uses": 3}, cache=CacheControl()),
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "cache_control": {"type": "ephemeral"}},
    ),
    (ProviderTool("mcp_toolset", "", {"mcp_server_name": "wiki"}), {"type": "mcp_toolset", "mcp_server_name": "wiki"}),
]


@pytest.mark.parametrize(("tool", "wire"), TOOLS)
def test_a_tool_on_the_wire(tool: Tool | ProviderTool, wire: dict[str, Any]) -> None:
    assert body_of(tools=[tool])["tools"] == [wire]


def test_tools_and_schema_keys_keep_the_callers_order() -> None:
    body = encode("q", tools=[Tool("b", "", SCHEMA), Tool("a")]).body
    assert b'"tools":[{"name":"b","input_schema":{"type":"object","properties":{"z":{"type":"string"},"a":{}}}},{"name":"a",' in body


@pytest.mark.parametrize(
    ("choice", "parallel", "wire"),
    [
        (None, True, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("auto", True, {"type": "auto"}),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", True, {"type": "none"}),
        ("none", False, {"type": "none"}),
        ("required", True, {"type": "any"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolNamed("f"), True, {"type": "tool", "name": "f"}),
        (ToolNamed("f"), False, {"type": "tool", "name": "f", "disable_parallel_tool_use": True}),
        ("required_if_allowed", True, {"type": "any"}),
    ],
)
def test_the_tool_choice_on_the_wire(choice: Any, parallel: bool, wire: dict[str, Any] | None) -> None:
    assert body_of(tools=[TOOL], tool_choice=choice, parallel_tools=parallel).get("tool_choice") == wire
    assert "tool_choice" not in body_of(tool_choice=choice, parallel_tools=parallel)
    for key in ("mcp_servers", "tools"):  # there are tools, though the request does not show them
        elsewhere = {key: [{"type": "url", "name": "m"}]}
        assert body_of(tool_choice=choice, parallel_tools=parallel, extra_body=elsewhere).get("tool_choice") == wire


@pytest.mark.parametrize(
    ("model", "fields", "sent"),
    [
        ("claude-sonnet-4-5", {}, True),
        ("claude-sonnet-4-5", {"thinking": ThinkingConfig.off()}, True),
        ("claude-sonnet-4-5", {"thinking": ThinkingConfig.budget(2000)}, False),
        ("claude-sonnet-4-5", {"extra_body": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}, False),
        ("claude-opus-5", {}, False),  # it thinks unless told not to
        ("claude-opus-5", {"thinking": ThinkingConfig.off()}, True),
        ("claude-opus-5-5", {}, False),
        ("claude-sonnet-5-5", {"thinking": ThinkingConfig.off()}, False),  # never takes a forced choice
    ],
)
def test_a_tool_is_forced_only_where_the_model_allows_it(model: str, fields: dict[str, Any], sent: bool) -> None:
    assert ("tool_choice" in body_of(model=model, tools=[TOOL], tool_choice="required_if_allowed", **fields)) is sent


# ---- headers


def test_the_headers_of_a_call() -> None:
    assert encode("q", stream=True).headers == {
        "accept": "text/event-stream",
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
    }
    assert encode("q", stream=False).headers["accept"] == "application/json"
    assert encode("q", wire=AnthropicWire(api_version="2026-10-21")).headers["anthropic-version"] == "2026-10-21"


def test_the_callers_headers_win_under_lower_case_names() -> None:
    headers = headers_of(extra_headers={"X-Trace": "1", "Anthropic-Version": "2025-01-01"})
    assert (headers["x-trace"], headers["anthropic-version"]) == ("1", "2025-01-01")
    assert "X-Trace" not in headers


def test_all_betas_are_one_header_without_duplicates() -> None:
    wire = AnthropicWire(betas=["a-2025-01-01", "b-2025-01-01"])
    headers = headers_of(
        wire=wire,
        betas=["b-2025-01-01", "c-2025-01-01, d-2025-01-01", ""],
        extra_headers={"Anthropic-Beta": "d-2025-01-01,e-2025-01-01"},
        extra_body={"speed": "fast"},
    )
    assert headers["anthropic-beta"] == "a-2025-01-01,b-2025-01-01,c-2025-01-01,d-2025-01-01,e-2025-01-01,fast-mode-2026-02-01"
    assert [name for name in headers if "beta" in name.lower()] == ["anthropic-beta"]


@pytest.mark.parametrize("headers", [{"x": "a\r\nb: c"}, {"x y": "a"}, {"x": "\u2028"}, {"": "a"}])
def test_a_header_that_http_cannot_carry_is_refused_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode("q", extra_headers=headers)
    assert [problem.rule for problem in caught.value.problems] == ["header"]
    assert "b: c" not in str(caught.value)


FEATURES: list[tuple[dict[str, Any], str]] = [
    ({"extra_body": {"speed": "fast"}}, "fast-mode-2026-02-01"),
    ({"extra_body": {"speed": "standard"}}, ""),
    ({"extra_body": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}}, "context-management-2025-06-27"),
    ({"extra_body": {"context_management": {"edits": [{"type": "compact_20260112"}]}}}, "compact-2026-01-12"),
    (
        {"extra_body": {"context_management": {"edits": [{"type": "compact_20260112"}, {"type": "clear_thinking_20251015"}]}}},
        "compact-2026-01-12,context-management-2025-06-27",
    ),
    ({"extra_body": {"compaction": {"type": "summarize"}}}, "compact-2026-09-04"),
    ({"extra_body": {"fallbacks": "default"}}, "server-side-fallback-2026-07-01"),
    ({"extra_body": {"fallback_credit_token": "t"}}, "fallback-credit-2026-07-01"),
    ({"extra_body": {"thread": {"type": "create"}}}, "message-threads-2026-08-12"),
    ({"extra_body": {"output_config": {"task_budget": {"type": "tokens", "total": 1}}}}, "task-budgets-2026-03-13"),
    ({"extra_body": {"mcp_servers": [{"type": "url"}]}}, "mcp-client-2025-04-04"),
    (
        {"extra_body": {"mcp_servers": [{"type": "url"}]}, "tools": [ProviderTool("mcp_toolset", "", {"mcp_server_name": "w"})]},
        "mcp-client-2025-11-20",
    ),
    ({"extra_body": {"mcp_servers": [{"type": "url"}]}, "betas": ["mcp-client-2026-09-15"]}, "mcp-client-2026-09-15"),
    ({"extra_body": {"thinking": {"type": "adaptive", "block_binding": {"x": 1}}}}, "thinking-binding-controls-2026-08-01"),
    ({"thinking": ThinkingConfig.adaptive(display="updates")}, "thinking-display-updates-2026-08-18"),
    ({"tools": [ProviderTool("computer_20251124", "computer")]}, "computer-use-2025-11-24"),
    ({"tools": [ProviderTool("advisor_20260301", "advisor")]}, "advisor-tool-2026-03-01"),
    ({"tools": [ProviderTool("web_search_20250305", "web_search")]}, ""),
    ({"extra_body": {"container": "c", "inference_geo": "us", "diagnostics": {}}}, ""),
]


@pytest.mark.parametrize(("fields", "beta"), FEATURES)
def test_a_beta_feature_adds_its_header(fields: dict[str, Any], beta: str) -> None:
    assert headers_of(**fields).get("anthropic-beta", "") == beta


@pytest.mark.parametrize(
    ("message", "beta"),
    [
        (assistant(ServerToolUse("m", "ask", {}, extra={"anthropic": {"server_name": "w"}}), "x"), "mcp-client-2025-11-20"),
        (assistant(ServerToolResult("m", [], kind="mcp_tool_result"), "x"), "mcp-client-2025-11-20"),
        (assistant(ServerToolResult("m", [], kind="web_search_tool_result"), "x"), ""),
        (assistant(ServerToolResult("m", {}, kind="advisor_tool_result"), "x"), "advisor-tool-2026-03-01"),
        (assistant(Opaque({"type": "compaction", "content": "c"}, wire="anthropic"), "x"), "compact-2026-01-12"),
        (assistant(Opaque({"type": "fallback"}, wire="anthropic"), "x"), "server-side-fallback-2026-07-01"),
        (user(Opaque({"type": "container_upload", "file_id": "f"}, wire="anthropic")), ""),
        (Message("system", "s", extra={"anthropic": {"clear_at": "never"}}), "mid-conversation-system-clear-at-2026-08-21"),
        (Message("system", "s", extra={"anthropic": {"output_config": {"effort": "low"}}}), "mid-conversation-output-config-2026-07-01"),
        (
            Message("system", [Opaque({"type": "tool_addition", "tool": {"type": "tool_definition"}}, wire="anthropic")]),
            "mid-conversation-tool-changes-2026-07-01,inline-tools-2026-09-15",
        ),
    ],
)
def test_a_beta_block_in_the_history_adds_its_header(message: Message, beta: str) -> None:
    assert encode("q", message, "r").headers.get("anthropic-beta", "") == beta


# ---- counting tokens


def test_counting_takes_the_request_without_what_it_does_not_know() -> None:
    request = Request(
        [user("q")],
        model=MODEL,
        system=[Text("s")],
        tools=[TOOL],
        tool_choice="auto",
        thinking=ThinkingConfig.budget(2000),
        temperature=0.5,
        metadata={"user_id": "u"},
        stop_sequences=["x"],
        extra_body={"context_management": {"edits": []}, "service_tier": "auto", "container": "c"},
    )
    encoded = WIRE.encode_count(request)
    assert (encoded.path, encoded.headers["accept"]) == ("/v1/messages/count_tokens", "application/json")
    assert encoded.headers["anthropic-beta"] == "context-management-2025-06-27"
    assert msgspec.json.decode(encoded.body) == {
        "model": MODEL,
        "system": "s",
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}],
        "tool_choice": {"type": "auto"},
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "context_management": {"edits": []},
        "messages": [{"role": "user", "content": "q"}],
    }


def test_the_wire_says_what_it_is_and_shows_nothing_else() -> None:
    wire = AnthropicWire(provider="proxy", betas=["b"], max_tokens=5)
    assert (wire.name, wire.provider, wire.betas, wire.max_tokens) == ("anthropic", "proxy", ("b",), 5)
    assert repr(wire) == "AnthropicWire(provider='proxy', api_version='2023-06-01')"
