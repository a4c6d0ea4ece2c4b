"""Requests and their parts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from dragoman import (
    InvalidInputError,
    Message,
    OutputFormat,
    ProviderTool,
    Request,
    Tenant,
    Text,
    ThinkingConfig,
    Tool,
    ToolNamed,
    TraceInfo,
    assistant,
    problems,
    user,
)
from dragoman.wire.anthropic import AnthropicWire

VALUES: list[Any] = [
    Request("a"),
    Tool("t"),
    ProviderTool("bash_20250124", "bash"),
    ToolNamed("t"),
    ThinkingConfig.auto(),
    OutputFormat({}),
    TraceInfo(),
    Tenant("t"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_unhashable_and_copy_as_equals(value: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    with pytest.raises(AttributeError):
        setattr(value, value.__struct_fields__[0], "x")
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value


# ---- messages


def test_a_string_is_a_user_message() -> None:
    assert Request("hi").messages == [user("hi")]


def test_strings_among_messages_are_user_messages() -> None:
    assert Request(["a", assistant("b"), "c"]).messages == [user("a"), assistant("b"), user("c")]


@pytest.mark.parametrize("messages", [{"role": "user", "content": "hi"}, [{"role": "user", "content": "hi"}], [user("hi"), {}]])
def test_a_dict_is_no_message_and_no_list_of_them(messages: Any) -> None:
    request = Request(messages, model="m")
    path = f"messages[{len(request.messages) - 1}]"
    found = [problem for problem in problems(request, AnthropicWire()) if problem.rule != "required"]
    assert [(problem.path, problem.rule) for problem in found] == [(path, "not_a_message")]
    assert found[0].fix == "use user(…), assistant(…), system(…) or Message(…)"
    with pytest.raises(InvalidInputError) as caught:
        AnthropicWire().encode(request, stream=False)
    assert caught.value.problems == found


def test_any_iterable_of_messages_is_made_a_list() -> None:
    assert Request(m for m in ("a", "b")).messages == [user("a"), user("b")]


def test_no_messages_are_a_list_too() -> None:
    assert Request([]).messages == []


def test_a_system_prompt_stays_as_given() -> None:
    assert Request("a", system="Be brief.").system == "Be brief."
    assert Request("a", system=[Text("Be brief.")]).system == [Text("Be brief.")]


def test_what_is_given_is_copied() -> None:
    messages: list[Message | str] = [user("a")]
    system, tools, stops, betas = [Text("s")], [Tool("t")], ["#"], ["b"]
    metadata, headers, body = {"user_id": "u"}, {"x": "1"}, {"k": 1}
    request = Request(
        messages,
        system=system,
        tools=tools,
        stop_sequences=stops,
        betas=betas,
        metadata=metadata,
        extra_headers=headers,
        extra_body=body,
    )
    before = copy.deepcopy(request)
    for given in (messages, system, tools, stops, betas, metadata, headers, body):
        given.clear()  # type: ignore[attr-defined]
    assert request == before


def test_replace_gives_a_changed_copy() -> None:
    request = Request("a", model="m", temperature=0.5)
    changed = request.replace(messages="b", temperature=None)
    assert changed == Request("b", model="m")
    assert request == Request("a", model="m", temperature=0.5)


def test_replace_refuses_what_is_no_field() -> None:
    with pytest.raises(TypeError, match="temprature"):
        Request("a").replace(temprature=1)


def test_only_messages_are_positional() -> None:
    assert Request.__match_args__ == ("messages",)


def test_defaults_say_nothing() -> None:
    request = Request("a")
    assert {name: getattr(request, name) for name in Request.__struct_fields__[1:]} == {
        "model": "",
        "system": "",
        "tools": [],
        "tool_choice": None,
        "parallel_tools": True,
        "max_tokens": None,
        "temperature": None,
        "top_p": None,
        "top_k": None,
        "stop_sequences": [],
        "thinking": None,
        "effort": None,
        "output": None,
        "cache": None,
        "metadata": {},
        "betas": [],
        "extra_headers": {},
        "extra_body": {},
        "hoist_system": "leading",
        "foreign_thinking": "drop",
        "trace": None,
    }


# ---- thinking


def test_thinking_is_made_by_its_class_methods() -> None:
    assert ThinkingConfig.off() == ThinkingConfig("off")
    assert ThinkingConfig.budget(2048) == ThinkingConfig("budget", budget_tokens=2048)
    assert ThinkingConfig.budget(9, clamp=True) == ThinkingConfig("budget", budget_tokens=9, clamp=True)
    assert ThinkingConfig.adaptive() == ThinkingConfig("adaptive")
    assert ThinkingConfig.auto() == ThinkingConfig("auto")


def test_a_budget_of_nothing_is_off() -> None:
    assert ThinkingConfig.budget(0, clamp=True) == ThinkingConfig.off()


@pytest.mark.parametrize(
    "config",
    [
        ThinkingConfig.off(display="omitted"),
        ThinkingConfig.budget(2048, display="omitted"),
        ThinkingConfig.budget(0, display="omitted"),
        ThinkingConfig.adaptive(display="omitted"),
        ThinkingConfig.auto(display="omitted"),
    ],
)
def test_every_mode_takes_display(config: ThinkingConfig) -> None:
    assert config.display == "omitted"


# ---- tools and the rest


def test_tools_carry_their_kind() -> None:
    assert Tool("t").kind == "tool"
    assert ProviderTool("bash_20250124", "bash").kind == "provider_tool"


def test_a_tools_schema_and_options_are_copied() -> None:
    schema: dict[str, Any] = {"type": "object"}
    tool, hosted = Tool("t", "", schema), ProviderTool("x", "y", schema)
    output = OutputFormat(schema)
    schema.clear()
    assert tool.input_schema == hosted.options == output.schema == {"type": "object"}


def test_an_output_format_has_a_name_and_is_strict() -> None:
    assert OutputFormat({}, "report", False) == OutputFormat({}, name="report", strict=False)
    assert (OutputFormat({}).name, OutputFormat({}).strict) == ("output", True)


def test_trace_information_is_copied() -> None:
    tags = ["a"]
    trace = TraceInfo("c", "u", "s", "t", tags, Tenant("acme", True, False))
    tags.clear()
    assert trace == TraceInfo(
        conversation_id="c",
        user_id="u",
        session_id="s",
        trace_name="t",
        tags=["a"],
        tenant=Tenant("acme", trace_llm_content=True, langfuse_enabled=False),
    )


def test_one_message_stands_for_a_list_of_one() -> None:
    assert Request(user("hi")) == Request([user("hi")]) == Request("hi")


def test_a_budget_may_be_clamped_by_position() -> None:
    assert ThinkingConfig.budget(5, True) == ThinkingConfig.budget(5, clamp=True)
