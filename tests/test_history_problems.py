"""What local validation finds, each with its path, rule and fix; and that it finds nothing wrong with what providers have accepted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from dragoman import (
    Anthropic,
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
    OpenAIChat,
    Origin,
    OutputFormat,
    Parts,
    PlainText,
    Problem,
    ProviderTool,
    RedactedThinking,
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
    assistant,
    problems,
    system,
    user,
)
from dragoman.history import required
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire

from .shared import CORPUS, Exchange, case, exchange_params

WIRE = AnthropicWire()
LATEST = AnthropicWire(api_version="2026-10-21")
PNG = "iVBORw0KGgoAAAANSUhEUg=="
JPEG = "/9j/4AAQSkZJRgABAQ=="
TOOL = Tool("f", input_schema={"type": "object"})
SHORT, LONG = CacheControl(), CacheControl("1h")


class OtherWire:
    """A dialect that validation has no row for."""

    name = "some-other"


def found(request: Request, wire: Any = WIRE) -> list[tuple[str, str]]:
    """Path and rule of every problem."""
    return [(problem.path, problem.rule) for problem in problems(request, wire)]


def ask(*messages: Message | str, model: str = "claude-test-1", **settings: Any) -> Request:
    return Request(messages or ["q"], model=model, **settings)


def calls(*ids: str) -> Message:
    return assistant(*(ToolUse(call_id, "f", {}) for call_id in ids))


def results(*ids: str) -> Message:
    return user(*(ToolResult(call_id, "ok") for call_id in ids))


# ---- the whole


def test_a_plain_request_has_no_problems() -> None:
    assert problems(ask("hello"), WIRE) == []


def test_all_problems_come_at_once_in_a_stable_order() -> None:
    request = ask(
        user("q", ToolResult("gone", "x")),
        calls("a"),
        temperature=3,
        thinking=ThinkingConfig.budget(100),
        tool_choice="required",
        extra_body={"n": 2},
    )
    assert found(request) == [
        ("thinking", "thinking_budget"),
        ("temperature", "sampling_range"),
        ("tool_choice", "thinking_tool_choice"),
        ("extra_body.n", "n"),
        ("tool_choice", "tool_choice_without_tools"),
        ("messages[0].content[1]", "tool_result_orphan"),
        ("messages[1].content[0]", "tool_result_missing"),
    ]


def test_every_problem_says_what_to_do() -> None:
    request = ask(user(ToolUse("a", "bad name", {"x": math.nan})), top_k=-1, stop_sequences=[" "], metadata={"x": 1})
    assert all(problem.fix and problem.message for problem in problems(request, WIRE))


def test_no_problem_quotes_content() -> None:
    secret = "hunter2"
    request = ask(
        user(secret, ToolUse("a", secret + " !", {"x": {1, 2}}), Thinking(secret)),
        assistant(ToolResult("b", secret)),
        system=[Text(secret, cache=SHORT)],
        stop_sequences=[" "],
    )
    assert problems(request, WIRE)
    assert secret not in repr([(p.path, p.message, p.fix) for p in problems(request, WIRE)])


def test_what_no_request_can_be_without() -> None:
    assert required(Request([]), "Anthropic") == [
        Problem("model", "required", "Anthropic request requires a model", "set Request.model, or the provider's model"),
        Problem("messages", "required", "Anthropic request requires at least one user/assistant message", "add a user message"),
    ]
    assert required(Request([system("s")], model="m"), "Anthropic")[0].path == "messages"
    assert required(ask(assistant("prefill")), "Anthropic") == []


@pytest.mark.parametrize("messages", [[], [system("s")], [assistant(" ")], [assistant(Thinking("unsigned"))], [assistant()]])
def test_a_request_of_which_nothing_is_sent_has_no_message(messages: list[Message]) -> None:
    assert found(Request(messages, model="claude-test-1")) == [("messages", "required")]


def test_what_is_no_message_and_no_block_is_named() -> None:
    request = Request([{"role": "user"}, user("q")], model="claude-test-1")  # type: ignore[list-item]
    assert found(request) == [("messages[0]", "not_a_message")]
    odd = Message("user", ["q", {"type": "text", "text": "raw"}])  # type: ignore[list-item]
    assert found(ask(odd)) == [("messages[0].content[1]", "not_a_block")]


@pytest.mark.parametrize("choice", ["required", ToolNamed("f")])
@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-opus-5"])
def test_a_tool_cannot_be_forced_where_thinking_is_on_by_default(model: str, choice: Any) -> None:
    request = ask(model=model, tools=[TOOL], tool_choice=choice)
    (problem,) = problems(request, WIRE)
    assert (problem.path, problem.rule) == ("tool_choice", "thinking_tool_choice")
    assert problem.message == f"{model} thinks unless told not to, and a tool cannot be forced while it does"
    assert problem.fix == 'use "auto" or "required_if_allowed", or set thinking=ThinkingConfig.off()'
    assert found(request.replace(thinking=ThinkingConfig.off())) == []
    assert found(request.replace(extra_body={"thinking": {"type": "disabled"}})) == []
    assert found(request.replace(tool_choice="required_if_allowed")) == []


def test_what_is_no_tool_and_no_system_text_is_named() -> None:
    request = ask(tools=[{"name": "f"}, TOOL], system=[{"type": "text", "text": "s"}, Text("s")])
    assert found(request) == [("system[0]", "not_a_block"), ("tools[0]", "not_a_tool")]


def test_an_unknown_role_is_named() -> None:
    assert found(ask("q", Message("tool", "x"))) == [("messages[1].role", "unknown_role")]  # type: ignore[arg-type]


# ---- parameters


@pytest.mark.parametrize("budget", [1, 1023, -5])
def test_a_budget_below_1024_is_a_problem(budget: int) -> None:
    assert found(ask(thinking=ThinkingConfig.budget(budget))) == [("thinking", "thinking_budget")]


@pytest.mark.parametrize(("budget", "max_tokens"), [(2048, 2048), (8192, 4096)])
def test_a_budget_that_leaves_nothing_for_the_answer_is_a_problem(budget: int, max_tokens: int) -> None:
    assert found(ask(thinking=ThinkingConfig.budget(budget), max_tokens=max_tokens)) == [("thinking", "thinking_budget")]


def test_a_max_tokens_that_is_left_out_makes_room_up_to_the_models_limit() -> None:
    assert found(ask(thinking=ThinkingConfig.budget(2048)), AnthropicWire(max_tokens=1500)) == []
    assert found(ask(model="claude-sonnet-4-5", thinking=ThinkingConfig.budget(63_999))) == []
    assert found(ask(model="claude-sonnet-4-5", thinking=ThinkingConfig.budget(64_000))) == [("thinking", "thinking_budget")]


def test_a_budget_that_may_move_is_no_problem() -> None:
    assert found(ask(thinking=ThinkingConfig.budget(10, clamp=True), max_tokens=20_000)) == []


@pytest.mark.parametrize("config", [ThinkingConfig.budget(10, clamp=True), ThinkingConfig.auto()])
def test_a_budget_that_may_move_still_needs_room(config: ThinkingConfig) -> None:
    assert found(ask(thinking=config, max_tokens=1024)) == [("thinking", "thinking_budget")]
    assert found(ask(thinking=config, max_tokens=1025)) == []
    adaptive = ask(thinking=ThinkingConfig.auto(), max_tokens=100, model="claude-opus-5")
    assert found(adaptive) == []


def test_a_budget_may_pass_max_tokens_where_it_spans_the_rounds_of_a_turn() -> None:
    request = ask(thinking=ThinkingConfig.budget(8192), max_tokens=4096, betas=["interleaved-thinking-2025-05-14"])
    assert found(request) == []


def test_thinking_in_extra_body_counts_like_the_field() -> None:
    raw = {"thinking": {"type": "enabled", "budget_tokens": 100}}
    assert found(ask(extra_body=raw, temperature=0.5)) == [("thinking", "thinking_budget"), ("temperature", "thinking_sampling")]
    assert found(ask(extra_body={"thinking": {"type": "disabled"}}, temperature=0.5)) == []
    assert found(ask(extra_body={"thinking": {"type": "adaptive"}}, top_k=1)) == [("top_k", "thinking_sampling")]


def test_a_budget_needs_a_number() -> None:
    assert found(ask(thinking=ThinkingConfig("budget"))) == [("thinking", "thinking_budget")]


def test_there_is_a_limit_to_the_number_of_messages() -> None:
    assert found(Request([user("q")] * 100_001, model="claude-test-1")) == [("messages", "too_many_messages")]


def test_a_budget_of_zero_is_off() -> None:
    assert found(ask(thinking=ThinkingConfig.budget(0), max_tokens=100, temperature=0.5)) == []


@pytest.mark.parametrize("config", [ThinkingConfig.budget(1024), ThinkingConfig.adaptive(), ThinkingConfig.auto()])
def test_thinking_goes_with_no_sampling_and_no_forced_tool(config: ThinkingConfig) -> None:
    request = ask(thinking=config, max_tokens=4096, temperature=0.5, top_k=5, tools=[TOOL], tool_choice=ToolNamed("f"))
    assert found(request) == [("temperature", "thinking_sampling"), ("top_k", "thinking_sampling"), ("tool_choice", "thinking_tool_choice")]


def test_what_recordings_show_accepted_with_thinking_is_no_problem() -> None:
    request = ask(thinking=ThinkingConfig.budget(1024), max_tokens=4096, temperature=1, tools=[TOOL], tool_choice="auto")
    assert found(request) == []
    assert found(request.replace(temperature=None, top_p=0.95, tool_choice="required_if_allowed")) == []
    assert found(request.replace(temperature=None, top_p=0.9)) == [("top_p", "thinking_sampling")]


def test_without_thinking_all_of_it_is_allowed() -> None:
    request = ask(thinking=ThinkingConfig.off(), temperature=0.5, top_k=5, tools=[TOOL], tool_choice="required")
    assert found(request) == []


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", 1.5), ("temperature", -0.1), ("temperature", math.nan), ("top_p", 2), ("top_k", -1)]
)
def test_a_sampling_parameter_has_a_range(name: str, value: float) -> None:
    assert found(ask(**{name: value})) == [(name, "sampling_range")]


@pytest.mark.parametrize(("name", "value"), [("temperature", 1.0), ("top_p", 1.0), ("top_k", 0)])
def test_the_latest_api_version_takes_no_sampling_parameters(name: str, value: float) -> None:
    assert found(ask(**{name: value}), LATEST) == [(name, "api_version")]
    assert found(ask(extra_body={name: value}), LATEST) == [(name, "api_version")]


def test_max_tokens_cannot_be_negative_and_zero_fills_the_cache() -> None:
    assert found(ask(max_tokens=-1)) == [("max_tokens", "max_tokens")]
    assert found(ask(max_tokens=0)) == []


@pytest.mark.parametrize("value", [None, True, "5", 5.0])
def test_max_tokens_in_extra_body_is_an_integer(value: Any) -> None:
    assert found(ask(extra_body={"max_tokens": value})) == [("extra_body.max_tokens", "max_tokens")]
    assert found(ask(max_tokens=5, extra_body={"max_tokens": value})) == []  # the field wins


def test_max_tokens_in_extra_body_counts_like_the_field() -> None:
    assert found(ask(extra_body={"max_tokens": -4})) == [("extra_body.max_tokens", "max_tokens")]
    assert found(ask(extra_body={"max_tokens": 100_000}, model="claude-sonnet-4-5")) == [("extra_body.max_tokens", "max_tokens")]
    settings: dict[str, Any] = {"model": "claude-sonnet-4-5", "thinking": ThinkingConfig.budget(5000)}
    assert found(ask(extra_body={"max_tokens": 4096}, **settings)) == [("thinking", "thinking_budget")]
    assert found(ask(extra_body={"max_tokens": 8192}, **settings)) == []
    moving = ThinkingConfig.budget(5000, clamp=True)
    assert found(ask(extra_body={"max_tokens": 1000}, thinking=moving)) == [("thinking", "thinking_budget")]


@pytest.mark.parametrize("header", ["anthropic-beta", "Anthropic-Beta"])
def test_a_beta_counts_wherever_it_is_said(header: str) -> None:
    long_output = ask(model="claude-sonnet-4-5", max_tokens=100_000)
    rounds = ask(thinking=ThinkingConfig.budget(5000), max_tokens=4096)
    for request, beta in ((long_output, "output-128k-2025-02-19"), (rounds, "interleaved-thinking-2025-05-14")):
        assert found(request) != []
        assert found(request.replace(betas=[beta])) == []
        assert found(request.replace(extra_headers={header: f"other-2026-01-01, {beta}"})) == []
        assert found(request, AnthropicWire(betas=[beta])) == []


def test_the_version_that_is_sent_decides() -> None:
    request = ask(temperature=0.5)
    newer = request.replace(extra_headers={"Anthropic-Version": "2026-10-21"})
    assert found(newer) == [("temperature", "api_version")]
    assert found(newer.replace(extra_headers={"anthropic-version": "2023-06-01"}), LATEST) == []
    assert found(newer.replace(extra_headers={"anthropic-version": "?"}), LATEST) == [("temperature", "api_version")]
    document = ask("q", assistant(Document(PlainText("d")), "a"), "r", extra_headers=newer.extra_headers)
    assert found(document) == [("messages[1].content[0]", "api_version")]


def test_headers_of_wrong_types_are_named() -> None:
    request = ask(extra_headers={"anthropic-version": 5, "anthropic-beta": None, "x": "y"})
    assert found(request) == [("extra_headers.anthropic-version", "wrong_type"), ("extra_headers.anthropic-beta", "wrong_type")]


@pytest.mark.parametrize("model", ["claude-sonnet-4-5:1m", "claude-opus-4-6:fast", "claude-test-1"])
def test_betas_that_are_no_list_are_named(model: str) -> None:
    for provider in (Anthropic(api_key="k"), Anthropic(api_key="k", betas=["a-2026-01-01"])):
        for betas in ("zz", "", b"z"):
            with pytest.raises(InvalidInputError) as caught:
                provider.complete(Request("q", model=model, betas=betas))  # type: ignore[arg-type]
            assert {problem.rule for problem in caught.value.problems} == {"wrong_type"}


def test_one_request_gives_one_answer() -> None:
    (problem,) = problems(ask(extra_body={"n": 3}), WIRE)
    assert (problem.path, problem.rule, problem.fix) == ("extra_body.n", "n", "send n calls")
    assert found(ask(extra_body={"n": 1})) == []


def test_a_stop_sequence_needs_a_character() -> None:
    assert found(ask(stop_sequences=["END", "\n"])) == [("stop_sequences[1]", "stop_sequence")]


def test_metadata_knows_the_user_id_only() -> None:
    assert found(ask(metadata={"user_id": "u", "team": "t"})) == [("metadata.team", "metadata")]


def test_extra_body_holds_json() -> None:
    assert found(ask(extra_body={"a": [{"b": math.inf}]})) == [("extra_body.a[0].b", "not_json")]


# ---- models


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        ("claude-opus-5", {"thinking": ThinkingConfig.budget(2048)}, ("thinking", "thinking_unsupported")),
        ("claude-sonnet-4-5", {"thinking": ThinkingConfig.adaptive()}, ("thinking", "thinking_unsupported")),
        ("claude-3-5-haiku-latest", {"thinking": ThinkingConfig.auto()}, ("thinking", "thinking_unsupported")),
        ("claude-opus-5-5", {"thinking": ThinkingConfig.off()}, ("thinking", "thinking_off")),
        ("claude-fable-5", {"thinking": ThinkingConfig.budget(0)}, ("thinking", "thinking_off")),
        ("claude-opus-5", {"temperature": 1.0}, ("temperature", "sampling_unsupported")),
        ("claude-opus-9", {"top_p": 0.9}, ("top_p", "sampling_unsupported")),
        ("claude-mythos-preview", {"temperature": 0.5}, ("temperature", "thinking_sampling")),
        ("claude-opus-4-1", {"temperature": 0.7, "top_p": 0.9}, ("top_p", "temperature_and_top_p")),
        ("claude-opus-5", {"effort": "max", "thinking": ThinkingConfig.off()}, ("effort", "effort")),
        ("claude-sonnet-5-5", {"effort": "xhigh", "thinking": ThinkingConfig.off()}, ("effort", "effort")),
        ("claude-opus-4-5", {"effort": "max"}, ("effort", "effort")),
        ("claude-haiku-4-5", {"effort": "low"}, ("effort", "effort")),
        ("claude-sonnet-4-5", {"max_tokens": 64_001}, ("max_tokens", "max_tokens")),
        ("claude-opus-5-5", {"tools": [TOOL], "tool_choice": "required"}, ("tool_choice", "tool_choice_unsupported")),
        ("claude-sonnet-4-0", {"output": OutputFormat({"type": "object"})}, ("output", "structured_output")),
        ("claude-sonnet-4-0", {"tools": [Tool("f", strict=True)]}, ("tools[0].strict", "strict_tools")),
        ("claude-sonnet-5", {"extra_body": {"speed": "fast"}}, ("extra_body.speed", "fast_mode")),
    ],
)
def test_what_a_model_does_not_take_is_a_problem_for_it_alone(model: str, settings: dict[str, Any], problem: tuple[str, str]) -> None:
    settings = {"max_tokens": 20_000, **settings} if model != "claude-3-5-haiku-latest" else settings
    assert found(ask(model=model, **settings)) == [problem]
    if problem[1] != "thinking_off":
        assert found(ask(model="claude-test-1", **settings)) == []


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("claude-opus-4-8", {"effort": "max", "thinking": ThinkingConfig.off()}),
        ("claude-sonnet-5-5", {"thinking": ThinkingConfig.off()}),
        ("claude-haiku-4-5", {"effort": "high", "thinking": ThinkingConfig.auto()}),
        ("claude-opus-5", {"effort": "minimal"}),
        ("claude-opus-5", {"tools": [TOOL], "tool_choice": "required", "thinking": ThinkingConfig.off()}),
        ("claude-opus-5-5", {"tools": [TOOL], "tool_choice": "required_if_allowed"}),
        ("claude-3-7-sonnet-latest", {"max_tokens": 128_000, "betas": ["output-128k-2025-02-19"]}),
    ],
)
def test_what_a_model_takes_is_no_problem(model: str, settings: dict[str, Any]) -> None:
    assert found(ask(model=model, **settings)) == []


def test_a_model_that_sees_nothing_is_sent_nothing_to_see() -> None:
    request = ask(user(Image(Base64("image/png", PNG)), Document(Base64("application/pdf", "JVBERi0xLjQKJeLjz9M="))), model="claude-2.1")
    assert found(request) == [("messages[0].content[0]", "image_input"), ("messages[0].content[1]", "pdf_input")]


def test_a_system_message_stays_in_place_only_where_it_is_honoured() -> None:
    messages = ["q", assistant("a"), system("from now on"), user("go")]
    assert found(ask(*messages, model="claude-sonnet-5")) == [("messages[2]", "system_position")]
    assert found(ask(*messages, model="claude-opus-5")) == []
    assert found(ask(*messages, model="claude-sonnet-5", hoist_system="all")) == []
    assert found(ask(system("first"), *messages[:2], user("go"), model="claude-sonnet-5")) == []


def test_a_trailing_assistant_message_is_continued_only_by_older_models() -> None:
    assert found(ask("q", assistant("The answer is"), model="claude-opus-5")) == [("messages[1]", "prefill")]
    assert found(ask("q", assistant("The answer is"), model="claude-sonnet-4-5")) == []


def test_a_paused_turn_goes_on_with_every_model() -> None:
    paused = assistant("searching", ServerToolUse("srvtoolu_1", "web_search", {"query": "x"}))
    assert found(ask("q", paused, model="claude-opus-5")) == []


# ---- tools


@pytest.mark.parametrize("name", ["", "two words", "naïve", "a" * 129, "f\n", "a.b"])
def test_a_tool_name_is_a_word(name: str) -> None:
    assert found(ask(tools=[Tool(name)])) == [("tools[0].name", "tool_name")]
    assert found(ask("q", assistant(ToolUse("a", name, {})), results("a"))) == [("messages[1].content[0].name", "tool_name")]


def test_tool_names_are_unique() -> None:
    assert found(ask(tools=[TOOL, ProviderTool("bash_20250124", "f")])) == [("tools[1].name", "tool_name_repeated")]


def test_toolsets_have_no_name_to_be_repeated() -> None:
    servers = [ProviderTool("mcp_toolset", "", {"mcp_server_name": name}) for name in "ab"]
    sets = [ProviderTool("browser_toolset_20260801", ""), ProviderTool("computer_toolset_20260801", "")]
    assert found(ask(tools=[*servers, *sets])) == []
    assert found(ask(tools=[Tool(""), *sets])) == [("tools[0].name", "tool_name")]
    (problem,) = problems(ask(tools=[ProviderTool("memory_20250818", "")], tool_choice=ToolNamed("")), WIRE)
    assert (problem.rule, problem.fix) == ("tool_choice_unknown", 'add it to the tools, or use "required"')


@pytest.mark.parametrize("choice", ["required", ToolNamed("f")])
def test_a_tool_cannot_be_forced_without_tools(choice: Any) -> None:
    assert found(ask(tool_choice=choice)) == [("tool_choice", "tool_choice_without_tools")]
    assert found(ask(tool_choice=choice, extra_body={"mcp_servers": [{"type": "url"}]})) == []


@pytest.mark.parametrize("choice", ["auto", "none", "required_if_allowed", None])
def test_a_choice_that_forces_nothing_needs_no_tools(choice: Any) -> None:
    assert found(ask(tool_choice=choice)) == []


def test_a_tool_that_is_named_exists() -> None:
    assert found(ask(tools=[TOOL], tool_choice=ToolNamed("g"))) == [("tool_choice", "tool_choice_unknown")]
    assert found(ask(tools=[ProviderTool("browser_toolset_20260801", "browser")], tool_choice=ToolNamed("navigate"))) == []


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, ("tools[0].input_schema", "tool_schema")),
        ({"properties": {}}, ("tools[0].input_schema", "tool_schema")),
        ({"type": "object", "anyOf": []}, ("tools[0].input_schema.anyOf", "tool_schema")),
        ({"type": "object", "properties": {"x": {"maximum": math.inf}}}, ("tools[0].input_schema.properties.x.maximum", "not_json")),
    ],
)
def test_a_tools_schema_describes_an_object(schema: dict[str, Any], problem: tuple[str, str]) -> None:
    assert found(ask(tools=[Tool("f", input_schema=schema)])) == [problem]


def test_no_schema_means_no_parameters() -> None:
    assert found(ask(tools=[Tool("f")])) == []


def strict(*properties: str, required: bool = True, kind: Any = "string", name: str = "f") -> Tool:
    schema = {"type": "object", "properties": {p: {"type": kind} for p in properties}, "required": list(properties) if required else []}
    return Tool(name, input_schema=schema, strict=True)


def test_strict_schemas_have_the_limits_of_the_compiler() -> None:
    names = [f"p{i}" for i in range(25)]
    assert found(ask(tools=[strict(name=name) for name in names[:20]])) == []
    assert found(ask(tools=[strict(name=name) for name in names[:21]])) == [("tools[20]", "strict_tools")]
    assert found(ask(tools=[strict(*names[:24], required=False)])) == []
    assert found(ask(tools=[strict(*names, required=False)])) == [("tools[0].input_schema", "strict_schema")]
    assert found(ask(tools=[strict(*names[:16], kind=["string", "null"])])) == []
    assert found(ask(tools=[strict(*names[:17], kind=["string", "null"])])) == [("tools[0].input_schema", "strict_schema")]
    assert found(ask(tools=[strict(*names, required=False)]).replace(tools=[Tool("f")])) == []


def test_the_limits_count_over_all_strict_schemas() -> None:
    ten = [f"p{i}" for i in range(10)]
    request = ask(tools=[strict(*ten, required=False), strict(*ten, required=False, name="g")])
    assert found(request) == []
    assert found(request.replace(output=OutputFormat({"type": "object", "properties": {p: {} for p in ten}}))) == [
        ("output.schema", "strict_schema")
    ]


@pytest.mark.parametrize(
    ("schema", "recursive"),
    [
        ({"$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"anyOf": [{"$ref": "#/$defs/A"}]}}}, True),
        ({"$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}, True),
        ({"properties": {"self": {"$ref": "#"}}}, True),
        ({"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}, "required": ["a", "b"]}, False),
    ],
)
def test_a_strict_schema_does_not_refer_to_itself(schema: dict[str, Any], recursive: bool) -> None:
    tool = Tool("f", input_schema={"type": "object", **schema}, strict=True)
    assert found(ask(tools=[tool])) == ([("tools[0].input_schema", "strict_schema")] if recursive else [])


def test_what_to_do_about_a_strict_schema_can_be_done() -> None:
    """The output format is strict whatever it says of itself: there is no other on this wire."""
    circle = {"type": "object", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}
    (problem,) = problems(ask(output=OutputFormat(circle, strict=False)), WIRE)
    assert (problem.path, problem.fix) == ("output.schema", "write the levels out, or ask for the JSON in words")
    (problem,) = problems(ask(tools=[Tool("f", input_schema=circle, strict=True)]), WIRE)
    assert problem.fix == "write the levels out, or set strict=False"
    many = {"type": "object", "properties": {f"p{i}": {"type": ["string", "null"]} for i in range(30)}}
    assert [p.fix for p in problems(ask(output=OutputFormat(many)), WIRE)] == ["make some required", "give some one type"]
    tools = [Tool("f", input_schema=many, strict=True)]
    assert [p.fix.partition(", or ")[2] for p in problems(ask(tools=tools), WIRE)] == ["set strict=False on some tools"] * 2


def test_a_long_way_of_references_is_followed_once() -> None:
    steps = 5_000
    chain = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(steps)}
    assert found(ask(output=OutputFormat({"type": "object", "$defs": chain}))) == []
    closed = {**chain, f"d{steps}": {"items": {"$ref": "#/$defs/d0"}}}
    assert found(ask(output=OutputFormat({"type": "object", "$defs": closed}))) == [("output.schema", "strict_schema")]


# ---- calls and results


def test_every_call_of_a_turn_is_answered_in_the_next() -> None:
    assert found(ask("q", calls("a", "b"), results("b", "a"))) == []
    assert found(ask("q", calls("a", "b"), results("b"), user("next"))) == [("messages[1].content[0]", "tool_result_missing")]


def test_results_may_be_spread_over_neighbours_and_stand_after_text() -> None:
    assert found(ask("q", assistant("thinking aloud"), calls("a", "b"), user("stop"), results("a"), results("b"))) == []


def test_a_call_at_the_end_is_unanswered() -> None:
    assert found(ask("q", calls("a"))) == [("messages[1].content[0]", "tool_result_missing")]
    assert found(ask("q", calls("a"), model="claude-opus-5")) == [("messages[1].content[0]", "tool_result_missing")]


def test_a_result_two_turns_later_answers_nothing() -> None:
    request = ask("q", calls("a"), user("wait"), assistant("waiting"), results("a"))
    assert found(request) == [("messages[1].content[0]", "tool_result_missing"), ("messages[4].content[0]", "tool_result_orphan")]
    assert "messages[1].content[0]" in problems(request, WIRE)[1].message


def test_a_call_has_one_result() -> None:
    assert found(ask("q", calls("a"), results("a", "a"))) == [("messages[2].content[1]", "tool_result_repeated")]
    assert found(ask("q", calls("a"), results("a"), results("a"))) == [("messages[3].content[0]", "tool_result_repeated")]


def test_a_second_result_is_told_from_one_without_a_call() -> None:
    spread = ask("q", calls("a"), assistant("more"), results("a"), user("x"), results("b", "a", "b", "a"))
    assert found(spread) == [
        ("messages[5].content[0]", "tool_result_orphan"),
        ("messages[5].content[1]", "tool_result_repeated"),
        ("messages[5].content[2]", "tool_result_orphan"),
        ("messages[5].content[3]", "tool_result_repeated"),
    ]
    parted = ask("q", calls("a"), system("hurry"), results("a", "a"))
    assert [rule for _, rule in found(parted)] == ["tool_result_missing", "tool_result_orphan", "tool_result_orphan"]
    own = Opaque({"type": "tool_use", "id": "a", "name": "f", "input": {}}, wire="anthropic")
    assert found(ask("q", assistant(own), results("a", "a"))) == [("messages[2].content[1]", "tool_result_repeated")]


def test_the_same_id_in_different_turns_is_no_problem() -> None:
    assert found(ask("q", calls("call_0"), results("call_0"), calls("call_0"), results("call_0"))) == []


def test_the_same_id_twice_in_one_turn_is_answered_in_order() -> None:
    assert found(ask("q", calls("call_0", "call_0"), results("call_0", "call_0"))) == []
    assert found(ask("q", calls("call_0", "call_0"), results("call_0"))) == [("messages[1].content[1]", "tool_result_missing")]


def test_of_calls_with_one_id_the_one_that_must_not_be_run_is_answered_in_its_place() -> None:
    invalid = InvalidToolUse("a", "f", "{", reason="incomplete")
    ran, failed = ToolResult("a", "r"), ToolResult("a", "cut off", is_error=True)
    for turn, answers in ([(ToolUse("a", "f", {}), invalid), (ran, failed)], [(invalid, ToolUse("a", "f", {})), (failed, ran)]):
        assert found(ask("q", assistant(*turn), user(*answers))) == []
        assert [rule for _, rule in found(ask("q", assistant(*turn), user(*reversed(answers))))] == ["invalid_call_result"]
    twice = ask("q", assistant(invalid), user(failed), assistant(ToolUse("a", "f", {})), user(ran))
    assert found(twice) == []


@pytest.mark.parametrize("call_id", ["functions.ls:0", "", "a b", "é"])
def test_an_illegal_id_is_rewritten_so_it_is_no_problem(call_id: str) -> None:
    assert found(ask("q", calls(call_id), results(call_id))) == []


def test_an_invalid_call_is_answered_with_an_error() -> None:
    call = assistant(InvalidToolUse("a", "f", '{"who": Bob}', reason="invalid_json"))
    assert found(ask("q", call, results("a"))) == [("messages[2].content[0].is_error", "invalid_call_result")]
    assert found(ask("q", call, user(ToolResult("a", "invalid JSON", is_error=True)))) == []


@pytest.mark.parametrize(
    "body",
    [{"thread": {"type": "continue", "previous_message_id": "msg_1"}}, {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}],
)
def test_where_the_server_holds_the_history_pairs_are_not_checked(body: dict[str, Any]) -> None:
    assert found(ask(results("a"), extra_body=body)) == []
    assert found(ask(results("a"), extra_body={"thread": {"type": "create"}})) == [("messages[0].content[0]", "tool_result_orphan")]


def test_what_the_encoder_drops_does_not_part_a_turn() -> None:
    assert found(ask("q", calls("a", "b"), results("a"), assistant(" "), results("b"))) == []
    assert found(ask("q", calls("a", "b"), results("a"), assistant(Thinking("unsigned")), results("b"))) == []


def test_a_system_message_that_stays_parts_a_call_from_its_result() -> None:
    messages = ["q", calls("a"), system("hurry"), results("a")]
    assert [rule for _, rule in found(ask(*messages))] == ["tool_result_missing", "tool_result_orphan"]
    assert found(ask(*messages, hoist_system="all")) == []
    assert found(ask("q", calls("a"), results("a"), system("hurry"))) == []


# ---- blocks


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (user("q", ToolUse("a", "f", {})), "block_role"),
        (user("q", Thinking("t", signature="S")), "block_role"),
        (user("q", RedactedThinking("x")), "block_role"),
        (user("q", ServerToolUse("a", "f", {})), "block_role"),
        (assistant("q", ToolResult("a", "x")), "block_role"),
        (user("q", Audio(FileId("f"))), "no_audio"),
    ],
)
def test_a_block_stands_where_its_kind_belongs(message: Message, problem: str) -> None:
    assert found(ask("q", message)) == [("messages[1].content[1]", problem)]


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (user("q", Thinking("t", signature="S")), "thinking cannot stand in a user message"),
        (assistant("q", ToolResult("a", "x")), "tool_result cannot stand in an assistant message"),
        (Message("system", ["s", Image(FileId("f"))]), "image cannot stand in a system message"),
        (user(ToolResult("a", ["s", InvalidToolUse("a", "f", "", reason="incomplete")])), "invalid_tool_use cannot stand in a tool result"),
    ],
)
def test_a_misplaced_block_is_told_with_its_place(message: Message, where: str) -> None:
    told = [problem.message for problem in problems(ask("q", message), AnthropicWire()) if problem.rule == "block_role"]
    assert told == [f"a block of type {where}"]


def test_a_system_message_holds_text() -> None:
    assert found(ask(Message("system", ["s", Image(FileId("f"))]), "q")) == [("messages[0].content[1]", "block_role")]
    assert found(ask("q", Message("system", [Opaque({"type": "tool_addition"}, wire="anthropic")]), "r")) == []


def test_a_tool_result_holds_text_images_and_documents() -> None:
    result = ToolResult("a", ["x", Image(Base64("image/png", PNG)), Document(PlainText("d")), Thinking("t")])
    assert found(ask("q", calls("a"), user(result))) == [("messages[2].content[0].content[3]", "block_role")]


@pytest.mark.parametrize("content", [[], [""], [" \n\t"], [Text(""), Text("  ")], [Opaque({"type": "x"}, wire="gemini")]])
def test_a_user_turn_of_which_nothing_is_sent_is_a_problem(content: list[Any]) -> None:
    assert found(ask("q", assistant("a"), Message("user", content))) == [("messages[2]", "empty_turn")]


def test_an_empty_message_beside_another_is_no_problem() -> None:
    assert found(ask(user(""), user("q"), assistant(""))) == []


def test_a_call_that_was_stored_without_arguments_is_sent_without() -> None:
    assert found(ask("q", assistant(ToolUse("a", "f", "")), results("a"))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("input", "path"),
    [
        ({"a": math.nan}, "input.a"),
        ({"ok": 1, "a": [1, {"b": -math.inf}]}, "input.a[1].b"),
        ({"a": {1, 2}}, "input.a"),
        ({"a": {"b": object()}}, "input.a.b"),
        ({"a": {1: "x"}}, "input.a"),
    ],
)
def test_a_calls_input_is_json(input: dict[str, Any], path: str) -> None:
    request = ask("q", assistant(ToolUse("a", "f", input)), results("a"))
    assert found(request) == [(f"messages[1].content[0].{path}", "not_json")]


def test_a_value_that_holds_itself_is_found() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    assert [rule for _, rule in found(ask("q", assistant(ToolUse("a", "f", loop)), results("a")))] == ["not_json"]


def nest(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP = "nests deeper than 500 levels, or holds itself"
NO_FORM = "holds a value that JSON has no form for"


def holding(value: Any) -> list[tuple[Request, str]]:
    """Requests that hold a value wherever one can stand that no field describes, and where that is."""
    server = ServerToolResult("s", [value], kind="web_search_tool_result")
    cited = Text("a", citations=[Citation("char_location", {"x": value})])
    return [
        (ask("q", assistant(ToolUse("a", "f", {"x": value})), results("a")), "messages[1].content[0].input.x"),
        (ask("q", assistant(ServerToolUse("s", "web_search", {"x": value}), "a"), "r"), "messages[1].content[0].input.x"),
        (ask("q", assistant(server, "a"), "r"), "messages[1].content[0].content[0]"),
        (ask("q", assistant("b", cited), "r"), "messages[1].content[1].citations[0].data.x"),
        (ask(user(Opaque({"type": "search_result", "x": value}, wire="anthropic"))), "messages[0].content[0].data.x"),
        (ask(user(Text("q", extra={"anthropic": {"x": value}}))), "messages[0].content[0].extra.anthropic.x"),
        (ask(Message("user", "q", extra={"anthropic": {"x": value}})), "messages[0].extra.anthropic.x"),
        (ask(tools=[Tool("f", input_schema={"type": "object", "x": value})]), "tools[0].input_schema.x"),
        (ask(extra_body={"x": value}), "extra_body.x"),
    ]


@pytest.mark.parametrize(("value", "text", "end"), [(LOOP, DEEP, "…"), (nest(600), DEEP, "…"), (nest(3, math.nan), NO_FORM, "[0][0][0]")])
def test_what_json_has_no_form_for_is_told_in_the_same_words_before_and_while_it_is_written(value: Any, text: str, end: str) -> None:
    for request, place in holding(value):
        (told,) = problems(request, WIRE)
        with pytest.raises(InvalidInputError) as caught:
            WIRE.encode(request, stream=False)
        assert told in caught.value.problems
        assert {problem.message for problem in caught.value.problems} == {text}
        assert (told.rule, told.path.startswith(place), told.path.endswith(end)) == ("not_json", True, True)
        assert len(told.path) <= 81
        assert told.path.count(place + "[0]") == 1


def test_500_levels_can_be_sent() -> None:
    for request, _ in holding(nest(497)):
        assert found(request) == []
        WIRE.encode(request, stream=False)


@pytest.mark.parametrize("key", ["x" * 100_000, "."])
def test_a_path_into_a_value_is_shown_as_far_as_it_helps(key: str) -> None:
    loop: dict[str, Any] = {}
    loop[key] = [loop]
    wrong = {"a": {key * 300: {"b": math.nan}}}
    for value in (loop, wrong):
        (problem,) = problems(ask(extra_body={"k": value}), WIRE)
        assert problem.path.startswith("extra_body.k.")
        assert problem.path.endswith("…") or problem.path.endswith(".b")
        assert len(problem.path) <= 401


def test_half_a_character_in_signed_thinking_is_a_problem_and_elsewhere_is_not() -> None:
    assert found(ask("q", assistant(Thinking("\udcaf", signature="S"), "a"), "r")) == [("messages[1].content[0]", "broken_unicode")]
    assert found(ask("\udcaf", assistant(Thinking("\udcaf"), "a"), "r")) == []
    assert found(ask("q", assistant(RedactedThinking("\udcaf"), "a"), "r")) == [("messages[1].content[0]", "broken_unicode")]
    assert found(ask("q", assistant(Thinking("naïve 😀 \ud83d\ude00", signature="S"), "a"), "r")) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Base64("image/png", JPEG), ("source.media_type", "media_mismatch")),
        (Base64("image/jpeg", PNG), ("source.media_type", "media_mismatch")),
        (Base64("image/png", "JVBERi0xLjQKJeLjz9M="), ("source.media_type", "media_mismatch")),
        (Base64("image/bmp", "Qk0="), ("source.media_type", "image_type")),
        (Base64("image/png", ""), ("source.data", "base64")),
        (Base64("image/png", "not base64!"), ("source.data", "base64")),
        (Base64("image/png", "data:image/png;base64," + PNG), ("source.data", "base64")),
        (Url("data:image/png;base64," + PNG), ("source.url", "url")),
        (PlainText("a picture"), ("source", "image_source")),
    ],
)
def test_an_image_is_what_it_says(source: Any, problem: tuple[str, str]) -> None:
    path, rule = problem
    assert found(ask(user("q", Image(source)))) == [(f"messages[0].content[1].{path}", rule)]
    inside = ask("q", calls("a"), user(ToolResult("a", [Image(source)])))
    assert found(inside) == [(f"messages[2].content[0].content[0].{path}", rule)]
    within = ask(user("q", Document(Parts([Image(source)]))))
    assert found(within) == [(f"messages[0].content[1].source.content[0].{path}", rule)]


@pytest.mark.parametrize(
    "source",
    [
        Base64("image/png", PNG),
        Base64("image/jpeg", JPEG),
        Base64("image/jpg", JPEG),
        Base64("image/gif", "R0lGODlhAQABAA=="),
        Base64("image/webp", "UklGRiQAAABXRUJQVlA4"),
        Base64("image/png", "AAAA"),
        Url("https://example.test/a.png"),
        FileId("file_1"),
    ],
)
def test_an_image_that_may_be_what_it_says_is_no_problem(source: Any) -> None:
    assert found(ask(user("q", Image(source)))) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (Base64("text/plain", "aGk="), ("source.media_type", "document_type")),
        (Base64("application/pdf", PNG), ("source.media_type", "media_mismatch")),
        (Parts([Text("x"), Thinking("t")]), ("source.content[1]", "block_unsupported")),
    ],
)
def test_a_document_is_what_it_says(source: Any, problem: tuple[str, str]) -> None:
    path, rule = problem
    assert found(ask(user("q", Document(source)))) == [(f"messages[0].content[1].{path}", rule)]


@pytest.mark.parametrize("data", ["iVBOR/w0KGgo" * 100_000, "JVBERi0xLjQK", "secret", "image/png\n", "text/" + "x" * 1000])
@pytest.mark.parametrize("kind", [Image, Document])
def test_a_media_type_that_is_none_is_not_quoted(kind: Any, data: str) -> None:
    """Who gives the two in the wrong order would find the data in the text of the error."""
    (problem,) = problems(ask(user("q", kind(Base64(data, "image/png")))), WIRE)
    assert (problem.path, problem.message) == ("messages[0].content[1].source.media_type", "is no media type")
    assert problem.fix == 'give one like "image/png"; the order is Base64(media_type, data)'
    assert data not in str(InvalidInputError([problem]))


@pytest.mark.parametrize(
    ("said", "text"),
    [("image/jpeg", "says `image/jpeg`, but its bytes are `image/png`"), ("iVBO", "is no media type, but its bytes are `image/png`")],
)
def test_what_the_bytes_are_is_said(said: str, text: str) -> None:
    (problem,) = problems(ask(user("q", Image(Base64(said, PNG)))), OpenAIResponsesWire())
    assert (problem.rule, problem.message, problem.fix) == ("media_mismatch", text, 'use "image/png"')


@pytest.mark.parametrize("said", ["image/bmp", "text/html; charset=utf-8", "Application/Vnd.Ms-Excel"])
def test_a_media_type_that_cannot_be_sent_is_named(said: str) -> None:
    (problem,) = problems(ask(user("q", Image(Base64(said, "AAAA")))), WIRE)
    assert problem.message == f"`{said}` is no image type that can be sent"


def test_the_latest_api_version_takes_no_document_from_the_assistant_and_no_citations_from_the_user() -> None:
    request = ask(user(Text("q", citations=[Citation("char_location", {})])), assistant(Document(PlainText("d")), "a"), "r")
    assert found(request, LATEST) == [("messages[0].content[0]", "api_version"), ("messages[1].content[0]", "api_version")]
    assert found(request, WIRE) == []


def test_an_event_of_a_stream_is_no_block() -> None:
    debris = Opaque({"type": "input_json_delta", "partial_json": "{"}, wire="anthropic")
    assert found(ask("q", assistant("a", debris), "r")) == [("messages[1].content[1]", "not_a_block")]


def test_a_call_and_result_of_unusual_shape_are_paired_like_any_other() -> None:
    call = assistant(Opaque({"type": "tool_use", "id": "a", "odd": 1}, wire="anthropic"))
    answer = user(Opaque({"type": "tool_result", "tool_use_id": "a", "odd": 1}, wire="anthropic"))
    assert found(ask("q", call, answer)) == []
    assert found(ask("q", call, user("next"))) == [("messages[1].content[0]", "tool_result_missing")]
    assert found(ask(answer)) == [("messages[0].content[0]", "tool_result_orphan")]


def test_server_side_results_of_an_assistant_turn_need_no_answer() -> None:
    turn = assistant(ServerToolUse("srvtoolu_1", "web_search", {}), ServerToolResult("srvtoolu_1", [], kind="web_search_tool_result"), "a")
    assert found(ask("q", turn, "r")) == []


# ---- cache marks


def test_four_marks_are_allowed_and_a_fifth_is_not() -> None:
    marked = [Text(str(i), cache=SHORT) for i in range(4)]
    assert found(ask(user(*marked))) == []
    assert found(ask(user(*marked), system=[Text("s", cache=SHORT)])) == [("messages[0].content[3]", "cache_marks")]


def test_marks_are_counted_everywhere() -> None:
    request = ask(
        user("q", Document(PlainText("d"), cache=SHORT)),
        assistant(ToolUse("a", "f", {}, cache=SHORT)),
        user(ToolResult("a", [Text("x", cache=SHORT)], cache=SHORT)),
        tools=[Tool("f", cache=SHORT)],
    )
    assert found(request) == [("messages[2].content[0]", "cache_marks")]
    assert found(request.replace(cache="off")) == []


def test_the_top_level_mark_takes_one_of_the_four() -> None:
    request = ask(user(*(Text(str(i), cache=SHORT) for i in range(4))))
    assert found(request.replace(cache="auto")) == []
    assert found(request.replace(cache="provider")) == [("messages[0].content[3]", "cache_marks")]
    assert found(request.replace(extra_body={"cache_control": {"type": "ephemeral"}})) == [("messages[0].content[3]", "cache_marks")]


def test_a_mark_that_cannot_stay_moves_and_is_counted_where_it_lands() -> None:
    texts = [Text("a", cache=SHORT), Text("", cache=SHORT), Text(" ", cache=SHORT), Text("b", cache=SHORT), Text("c", cache=SHORT)]
    assert found(ask(user(*texts))) == []
    assert found(ask("q", system=[Text("", cache=SHORT)])) == []


def test_a_long_lived_mark_does_not_come_after_a_short_lived_one() -> None:
    request = ask("q", tools=[Tool("f", cache=SHORT)], system=[Text("s", cache=LONG)])
    (problem,) = problems(request, WIRE)
    assert (problem.path, problem.rule) == ("system[0]", "cache_order")
    assert "tools[0]" in problem.message
    assert found(request.replace(tools=[Tool("f", cache=LONG)], system=[Text("s", cache=SHORT)])) == []


def test_a_long_lived_top_level_mark_comes_after_all_others() -> None:
    request = ask(user(Text("q", cache=SHORT)), extra_body={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
    assert found(request) == [("extra_body.cache_control", "cache_order")]


def test_a_mark_on_a_message_of_which_nothing_else_is_sent_counts() -> None:
    request = ask("q", assistant(Text(" ", cache=SHORT)), extra_body={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
    assert found(request) == [("extra_body.cache_control", "cache_order")]


def test_a_mark_within_a_wires_own_block_counts() -> None:
    marked = Opaque({"type": "search_result", "cache_control": {"type": "ephemeral"}}, wire="anthropic")
    assert found(ask(user(*[marked] * 4))) == []
    assert found(ask(user(*[marked] * 5))) == [("messages[0].content[4]", "cache_marks")]


def test_hoisted_system_messages_come_before_the_others() -> None:
    messages = [user(Text("q", cache=SHORT)), assistant("a"), Message("system", [Text("s", cache=LONG)]), user("r")]
    assert found(ask(*messages)) == [("messages[2].content[0]", "cache_order")]
    assert found(ask(*messages, hoist_system="all")) == []


# ---- other dialects


@pytest.mark.parametrize(
    ("wire", "settings", "paths"),
    [
        (OpenAIChatWire(), {"top_k": 3}, ["top_k"]),
        (OpenAIChatWire("openrouter"), {"top_k": 3}, []),
        (OpenAIResponsesWire(), {"top_k": 3, "stop_sequences": ["END"]}, ["top_k", "stop_sequences"]),
        (OpenAIChatWire(), {"tools": [Tool("f g")], "top_k": 3}, ["tools[0].name", "top_k"]),
        (OpenAIChatWire(), {"extra_body": {"n": 2, "x": math.nan}}, ["extra_body.n", "extra_body.x"]),
    ],
)
def test_what_only_the_wire_knows_is_found_with_the_rest(wire: Any, settings: dict[str, Any], paths: list[str]) -> None:
    assert [path for path, _ in found(ask("q", **settings), wire)] == paths


@pytest.mark.parametrize("wire", [OpenAIChatWire(), OpenAIResponsesWire()])
def test_a_wire_is_not_asked_to_write_what_has_no_form(wire: Any) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert [rule for _, rule in found(ask("q", extra_body={"x": deep}), wire)] == ["not_json"]


def test_what_the_wire_cannot_write_of_a_message_is_found_with_its_path() -> None:
    picture = user("look", Image(FileId("file-1")))
    assert found(ask(picture), OpenAIChatWire()) == [("messages[0].content[1]", "source")]


def test_a_call_refuses_what_the_wire_knows_and_what_all_know_at_once() -> None:
    provider = OpenAIChat("key", model="m")
    with pytest.raises(InvalidInputError) as caught:
        provider.events(ask("q", tools=[Tool("f g")], top_k=3))
    assert [problem.path for problem in caught.value.problems] == ["tools[0].name", "top_k"]


def test_another_dialect_gets_what_all_refuse_and_none_of_anthropics_rules() -> None:
    request = ask(
        user("q", Audio(FileId("f"))),
        calls("a"),
        user("next"),
        temperature=1.7,
        tools=[Tool("f", input_schema={"properties": {}}), Tool("f")],
        tool_choice=ToolNamed("g"),
        extra_body={"n": 2},
    )
    assert found(request, OtherWire()) == [
        ("extra_body.n", "n"),
        ("tools[1].name", "tool_name_repeated"),
        ("tool_choice", "tool_choice_unknown"),
        ("messages[1].content[0]", "tool_result_missing"),
    ]


def test_another_dialect_may_have_other_names_and_shapes() -> None:
    request = ask(
        "q",
        assistant(ToolUse("a", "default_api:find.all", {}), Opaque({"executableCode": {}}, wire="some-other")),
        results("a"),
        assistant(""),
        user(""),
        tools=[Tool("default_api:find.all"), ProviderTool("web_search", ""), ProviderTool("code_interpreter", "")],
    )
    assert found(request, OtherWire()) == []


def test_what_is_missing_is_said_with_the_dialects_name() -> None:
    texts = [problem.message for problem in problems(Request([]), OtherWire())]  # type: ignore[arg-type]
    assert texts == ["Some-other request requires a model", "Some-other request requires at least one user/assistant message"]


def test_blocks_of_another_dialect_are_not_sent() -> None:
    foreign = Message("assistant", [ServerToolUse("s", "web_search", {})], origin=Origin("openai", "gpt-5", "openai-responses"))
    assert found(ask("q", foreign, "r")) == []
    assert found(Request([foreign], model="claude-test-1")) == [("messages", "required")]


# ---- faults that were reported elsewhere


def _block(data: dict[str, Any]) -> Any:
    mark = data.get("cache_control")
    cache = CacheControl(mark.get("ttl", "5m")) if mark else None
    match data:
        case {"text": text}:
            return Text(text, cache=cache)
        case {"tool_use": {"input_raw": raw, **rest}}:
            return InvalidToolUse(rest["id"], rest["name"], raw, reason="invalid_json")
        case {"tool_use": call}:
            return ToolUse(call["id"], call["name"], call["input"], cache=cache)
        case {"tool_result": result}:
            return ToolResult(result["tool_use_id"], result["content"], is_error=result.get("is_error", False), cache=cache)
        case {"thinking": thinking}:
            return Thinking(thinking["thinking"], signature=thinking["signature"])
        case {"redacted": redacted}:
            return RedactedThinking(redacted)
        case {"image": image}:
            return Image(Base64(image["media_type"], image["data"]), cache=cache)
        case _:
            return data


def request_of(identity: str) -> Request:
    """The request of a fault case."""
    data = json.loads(case(identity)["input"])
    thinking = {"enabled": lambda t: ThinkingConfig.budget(t["budget_tokens"]), "adaptive": lambda _: ThinkingConfig.adaptive()}
    given = data.get("thinking") or {"type": "disabled"}
    choice = data.get("tool_choice")
    return Request(
        [Message(m["role"], [_block(b) for b in m["blocks"]]) for m in data["messages"]],
        model=data.get("model", "claude-test-1"),
        system=[_block(b) for b in data.get("system", [])],
        tools=[
            Tool(t["name"], input_schema=t.get("input_schema", {}), cache=_block({"text": "", **t}).cache) for t in data.get("tools", [])
        ],
        tool_choice=ToolNamed(choice["name"]) if choice else None,
        max_tokens=data.get("max_tokens"),
        temperature=data.get("temperature"),
        top_p=data.get("top_p"),
        thinking=thinking[given["type"]](given) if given["type"] in thinking else None,
    )


@pytest.mark.parametrize(
    ("identity", "rules"),
    [
        ("BerriAI/litellm#30480", {"cache_marks"}),
        ("agno-agi/agno#8405", {"cache_order"}),
        ("letta-ai/letta#3308", {"tool_result_missing"}),
        ("mastra-ai/mastra#16193", {"tool_result_orphan"}),
        ("can1357/oh-my-pi#341", {"thinking_tool_choice"}),
        ("dotCipher/opencode-claude-bridge#1", {"thinking_sampling"}),
        ("open-webui/pipelines#546", {"temperature_and_top_p"}),
        ("1jehuang/jcode#465", {"media_mismatch"}),
        ("1Panel-dev/MaxKB#6683", {"not_a_block", "tool_result_orphan"}),
        ("NousResearch/hermes-agent#68254", {"broken_unicode", "tool_result_orphan"}),
    ],
)
def test_a_known_fault_is_refused_before_it_is_sent(identity: str, rules: set[str]) -> None:
    assert {rule for _, rule in found(request_of(identity))} == rules


@pytest.mark.parametrize(
    "identity",
    [
        "Wei-Shaw/sub2api#225",
        "nugget/thane-ai-agent#804",
        "NVIDIA-NeMo/Switchyard#502",
        "NousResearch/hermes-agent#1216",
        "mealie-recipes/mealie#5897",
        "omnara-ai/omnara#443",
        "vybestack/llxprt-code#1312",
        "BerriAI/litellm#38809",
        "griffinwork40/agent-afk#288",
        "BerriAI/litellm#5063",
        "dust-tt/dust#24414",
        "EuroEval/EuroEval#1107",
    ],
)
def test_a_known_fault_that_the_encoder_mends_is_no_problem(identity: str) -> None:
    request = request_of(identity)
    if identity == "nugget/thane-ai-agent#804":  # its schemas are placeholders
        request = request.replace(tools=[Tool(tool.name) for tool in request.tools])
    assert found(request) == []
    WIRE.encode(request, stream=True)


def test_both_unanswered_calls_are_named() -> None:
    texts = " ".join(problem.message for problem in problems(request_of("letta-ai/letta#3308"), WIRE))
    assert "toolu_1" in texts
    assert "toolu_3" in texts
    assert "toolu_2" not in texts


def test_the_result_without_a_call_is_named() -> None:
    (problem,) = problems(request_of("mastra-ai/mastra#16193"), WIRE)
    assert "toolu_gone" in problem.message


def test_the_error_lists_them_all() -> None:
    error = InvalidInputError(problems(request_of("letta-ai/letta#3308"), WIRE))
    assert [problem.path for problem in error.problems] == ["messages[1].content[0]", "messages[1].content[2]"]


# ---- what providers have accepted

ACCEPTED_ONCE = {
    # recorded before the API looked at the bytes
    "openinference/mentor_test_anthropic_instrumentation_image_input_messages_with_stream.0.24af5b0a": "media_mismatch",
    # ids edited after the recording
    "dd-trace-py/thropic_anthropic_completion_tools_call_with_tool_result_stream_helper.0.367bb3cd": "tool_result_orphan",
    "dd-trace-py/trib_anthropic_anthropic_completion_tools_call_with_tool_result_stream.0.226492eb": "tool_result_orphan",
}


REFUSED_FOR_ITS_STRICT_SCHEMA = {
    "rig/anthropic_strict_schema_limits_seventeen_union_parameters_are_rejected.0.ae4a76de": "strict_schema",
    "rig/anthropic_strict_schema_limits_twenty_one_strict_tools_are_rejected.0.83b7f483": "strict_tools",
    "rig/opic_strict_schema_limits_twenty_five_optional_parameters_are_rejected.0.9283a673": "strict_schema",
    "rig/opic_strict_schema_matrix_recursive_ref_is_rejected_by_strict_compiler.0.f56e5474": "strict_schema",
}


@pytest.mark.parametrize(("name", "rule"), REFUSED_FOR_ITS_STRICT_SCHEMA.items())
def test_a_recorded_request_that_was_refused_for_its_schema_has_the_problem(name: str, rule: str) -> None:
    exchange = Exchange(CORPUS / "anthropic" / name)
    if not exchange.folder.exists():
        pytest.skip(f"the recorded exchange is not at {exchange.folder}")
    assert rule in {found_rule for _, found_rule in found(WIRE.decode_request((exchange.folder / "request.json").read_bytes()))}


def _was_answered(exchange: Exchange | None) -> bool:
    return exchange is None or (exchange.status == 200 and (exchange.folder / "request.json").exists())


@pytest.mark.parametrize("exchange", [param for param in exchange_params("anthropic") if _was_answered(param.values[0])])
def test_a_recorded_request_that_was_answered_has_no_problems(exchange: Exchange) -> None:
    body = exchange.json("request.json")
    request = WIRE.decode_request(json.dumps({"model": "claude-sonnet-4-5", **body}).encode())
    expected = ACCEPTED_ONCE.get(exchange.name)
    assert {expected} <= {rule for _, rule in found(request)} if expected else found(request) == []
