"""Values of the wrong type, and of the right one that cannot be sent: each is a problem with its path, and nothing raises."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from dragoman import (
    Base64,
    CacheControl,
    Citation,
    Document,
    Image,
    InvalidInputError,
    Message,
    Opaque,
    Origin,
    OutputFormat,
    Parts,
    PlainText,
    ProviderTool,
    Refusal,
    Request,
    ServerToolResult,
    ServerToolUse,
    Tenant,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolNamed,
    ToolResult,
    ToolUse,
    TraceInfo,
    Url,
    assistant,
    problems,
    user,
)
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import Wire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire

WIRE = AnthropicWire()
WIRES: list[Wire] = [WIRE, OpenAIChatWire(), OpenAIResponsesWire()]
MODEL = "claude-test-1"
TOOL = Tool("f", input_schema={"type": "object"})
NAN = math.nan


def ask(*blocks: Any, **fields: Any) -> Request:
    return Request([user(*(blocks or ("q",)))], **{"model": MODEL, **fields})


def found(request: Request) -> list[tuple[str, str]]:
    return [(problem.path, problem.rule) for problem in problems(request, WIRE)]


# ---- types


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"tool_choice": "any"}, ("tool_choice", "unknown_value")),
        ({"tool_choice": {"type": "auto"}}, ("tool_choice", "wrong_type")),
        ({"tools": [TOOL], "tool_choice": ToolNamed(5)}, ("tool_choice.name", "wrong_type")),  # type: ignore[arg-type]
        ({"stop_sequences": "STOP"}, ("stop_sequences", "wrong_type")),
        ({"stop_sequences": [5]}, ("stop_sequences[0]", "wrong_type")),
        ({"thinking": ThinkingConfig("bogus")}, ("thinking.mode", "unknown_value")),  # type: ignore[arg-type]
        ({"thinking": "auto"}, ("thinking", "wrong_type")),
        ({"cache": "bogus"}, ("cache", "unknown_value")),
        ({"effort": "bogus"}, ("effort", "unknown_value")),
        ({"max_tokens": "5"}, ("max_tokens", "wrong_type")),
        ({"max_tokens": 5.0}, ("max_tokens", "wrong_type")),
        ({"max_tokens": True}, ("max_tokens", "wrong_type")),
        ({"top_k": 1.5}, ("top_k", "wrong_type")),
        ({"temperature": "1"}, ("temperature", "wrong_type")),
        ({"parallel_tools": 1}, ("parallel_tools", "wrong_type")),
        ({"output": {"type": "object"}}, ("output", "wrong_type")),
        ({"model": 5}, ("model", "wrong_type")),
        ({"extra_headers": {"x": 5}}, ("extra_headers.x", "wrong_type")),
        ({"extra_headers": {5: "x"}}, ("extra_headers", "wrong_type")),
        ({"betas": [5]}, ("betas[0]", "wrong_type")),
        ({"betas": "a-2025-01-01"}, ("betas", "wrong_type")),
        ({"tools": ["f"]}, ("tools[0]", "not_a_tool")),
        ({"tools": [{"name": "f"}], "tool_choice": "required"}, ("tools[0]", "not_a_tool")),
        ({"tools": [Tool("f", 5)]}, ("tools[0].description", "wrong_type")),  # type: ignore[arg-type]
        ({"tools": [Tool("f", extra={"anthropic": 5})]}, ("tools[0].extra.anthropic", "wrong_type")),  # type: ignore[dict-item]
        ({"hoist_system": "some"}, ("hoist_system", "unknown_value")),
        ({"trace": TraceInfo(tags=[5])}, ("trace.tags[0]", "wrong_type")),  # type: ignore[list-item]
        ({"trace": TraceInfo(tenant=Tenant(5))}, ("trace.tenant.id", "wrong_type")),  # type: ignore[arg-type]
    ],
)
def test_a_setting_of_the_wrong_type_is_a_problem(settings: dict[str, Any], problem: tuple[str, str]) -> None:
    assert found(ask(**settings)) == [problem]


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (Text(5), (".text", "wrong_type")),  # type: ignore[arg-type]
        (Text("a", cache=CacheControl("2h")), (".cache.ttl", "unknown_value")),  # type: ignore[arg-type]
        (Text("a", extra={"anthropic": 5}), (".extra.anthropic", "wrong_type")),  # type: ignore[dict-item]
        (Text("a", citations=["c"]), (".citations[0]", "wrong_type")),  # type: ignore[list-item]
        (Image("https://x"), (".source", "wrong_type")),  # type: ignore[arg-type]
        (Image(Base64("image/png", b"iVBORw0KGgoAAAANSUhEUg==")), (".source.data", "wrong_type")),  # type: ignore[arg-type]
        (Document(Parts([5])), (".source.content[0]", "not_a_block")),  # type: ignore[list-item]
        (ToolResult("a", [{"type": "text"}]), (".content[0]", "not_a_block")),  # type: ignore[list-item]
        (5, ("", "not_a_block")),
    ],
)
def test_a_block_of_the_wrong_type_is_a_problem(block: Any, problem: tuple[str, str]) -> None:
    assert found(ask(block)) == [(f"messages[0].content[0]{problem[0]}", problem[1])]


@pytest.mark.parametrize(
    ("block", "field"),
    [
        (ToolUse("a", "f", {}), "id"),
        (ToolUse("a", "f", {}), "name"),
        (ToolResult("a", "r"), "tool_use_id"),
        (ToolResult("a", "r"), "is_error"),
        (Thinking("t", signature="S"), "text"),
        (Thinking("t", signature="S"), "signature"),
    ],
)
@pytest.mark.parametrize("value", [5, [], {}, None, b"a", math])
def test_a_common_block_with_a_field_of_the_wrong_type_is_a_problem(block: Any, field: str, value: Any) -> None:
    wrong = replace(block, **{field: value})
    request = Request(["a", user(wrong) if isinstance(block, ToolResult) else assistant(wrong)], model=MODEL)
    assert (f"messages[1].content[0].{field}", "wrong_type") in found(request)


def test_of_who_wrote_a_message_every_field_is_a_string() -> None:
    for field in ("provider", "model", "wire"):
        origin = Origin(**{"provider": "p", "model": "m", "wire": "anthropic", field: 5})  # type: ignore[arg-type]
        request = Request(["a", Message("assistant", "b", origin=origin), "c"], model=MODEL)
        assert found(request) == [(f"messages[1].origin.{field}", "wrong_type")]


def test_strings_in_the_list_of_system_blocks_are_refused_with_what_to_do() -> None:
    refused = problems(ask(system=["a", "b"]), WIRE)
    assert [str(problem) for problem in refused] == [
        "system[0]: is no Text (give `system` one string, or a list of Text(…))",
        "system[1]: is no Text (give `system` one string, or a list of Text(…))",
    ]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tool_choice": "any"}, 'tool_choice: is no value that this field can have (use "required")'),
        ({"max_tokens": "5"}, "max_tokens: is of type str (use an integer, or leave it out)"),
        ({"temperature": "5"}, "temperature: is of type str (use a number, or leave it out)"),
        (
            {"thinking": "auto"},
            "thinking: is of type str (use ThinkingConfig.adaptive(), .budget(tokens), .auto() or .off(), or leave it out)",
        ),
        ({"betas": "a"}, "betas: is of type str (use a list of strings)"),
        ({"model": None}, "model: is None (use a string)"),
    ],
)
def test_the_text_says_what_would_be_right(settings: dict[str, Any], text: str) -> None:
    assert str(problems(ask(**settings), WIRE)[-1]) == text


def test_a_wrong_type_hides_no_other_problem() -> None:
    request = Request([user("a"), 5, assistant(ToolUse("c", "f", {})), user({"type": "x"})], model=MODEL, max_tokens="5", temperature=7)  # type: ignore[list-item, arg-type]
    assert found(request) == [
        ("max_tokens", "wrong_type"),
        ("messages[1]", "not_a_message"),
        ("messages[3].content[0]", "not_a_block"),
        ("temperature", "sampling_range"),
        ("messages[2].content[0]", "tool_result_missing"),
    ]


def test_a_subclass_is_what_it_derives_from() -> None:
    class Level(enum.StrEnum):
        HIGH = "high"

    class Number(float): ...

    request = ask(Text(Level.HIGH), effort=Level.HIGH, temperature=Number(0.5), max_tokens=enum.IntEnum("Size", {"S": 9}).S)
    assert found(request) == []
    assert json.loads(WIRE.encode(request, stream=False).body)["output_config"] == {"effort": "high"}


# ---- values of the right type


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"model": " "}, ("model", "required")),
        ({"metadata": {"user_id": 5}}, ("metadata.user_id", "metadata")),
        ({"output": OutputFormat({"a": NAN})}, ("output.schema.a", "not_json")),
        ({"output": OutputFormat({"$defs": 5, "required": 5, "properties": {"a": 5}})}, None),
        ({"tools": [ProviderTool("web_search_20250305", "web_search", {"a": NAN})]}, ("tools[0].options.a", "not_json")),
        ({"tools": [Tool("f", extra={"anthropic": {"a": NAN}})]}, ("tools[0].extra.anthropic.a", "not_json")),
        ({"extra_headers": {"x": "a\nb"}}, ("extra_headers.'x'", "header")),
        ({"extra_headers": {"x": "☃"}}, ("extra_headers.'x'", "header")),
        ({"extra_headers": {"x y": "a"}}, ("extra_headers.'x y'", "header")),
        ({"betas": ["a\nb"]}, ("betas[0]", "header")),
        ({"extra_body": {"top_k": 10**400}}, None),
    ],
)
def test_a_setting_that_cannot_be_sent_is_a_problem(settings: dict[str, Any], problem: tuple[str, str] | None) -> None:
    assert found(ask(**settings)) == ([problem] if problem else [])


def test_a_user_id_that_is_no_json_is_a_problem() -> None:
    assert ("metadata.user_id", "not_json") in found(ask(metadata={"user_id": NAN}))


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        (Image(Url("")), ("user", ".source.url", "url")),
        (Document(Url(" ")), ("user", ".source.url", "url")),
        (ServerToolResult("x", NAN, kind="web_search_tool_result"), ("assistant", ".content", "not_json")),
        (Text("a", citations=[Citation("c", {"a": NAN})]), ("assistant", ".citations[0].data.a", "not_json")),
        (Text("a", extra={"anthropic": {"a": NAN}}), ("assistant", ".extra.anthropic.a", "not_json")),
        (Text("a", extra={"anthropic": {"index": 0}}), ("assistant", "", "stream_debris")),
        (Opaque({"type": "x", "a": NAN}, wire="anthropic"), ("assistant", ".data.a", "not_json")),
        (Document(Parts([Opaque({"type": "text_delta"}, wire="anthropic")])), ("user", ".source.content[0]", "not_a_block")),
        (Text("a", extra={"gemini": {"a": NAN}}), None),
        (Opaque({"a": NAN}, wire="gemini"), None),
    ],
)
def test_a_block_that_cannot_be_sent_is_a_problem(block: Any, problem: tuple[str, str, str] | None) -> None:
    if problem is None:
        assert found(ask("a", block)) == []
        return
    role, path, rule = problem
    history = [user(block)] if role == "user" else [user("q"), assistant(block), user("go on")]
    assert found(Request(history, model=MODEL)) == [(f"messages[{len(history) // 2}].content[0]{path}", rule)]


def test_what_a_message_carries_must_be_json() -> None:
    request = Request([Message("user", "q", extra={"anthropic": {"a": NAN}})], model=MODEL)
    assert found(request) == [("messages[0].extra.anthropic.a", "not_json")]


# ---- without validation


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"system": ["a"]}, "system[0]"),
        ({"system": [Text("a"), 5]}, "system[1]"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [TOOL, {"name": "f"}]}, "tools[1]"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        ({"betas": [5]}, "betas[0]"),
        ({"extra_headers": {"x": 5}}, "extra_headers.x"),
    ],
)
def test_encoding_what_nobody_validated_names_the_mistake(settings: dict[str, Any], path: str) -> None:
    for encode in (lambda request: WIRE.encode(request, stream=True), WIRE.encode_count):
        with pytest.raises(InvalidInputError) as error:
            encode(ask(**settings))
        assert [problem.path for problem in error.value.problems] == [path]


def test_the_quick_look_knows_every_field() -> None:
    """Who adds a field to one of these has to add it to `Turns.run`."""
    looked_at = {
        Message: {"role", "content", "origin", "extra"},
        Text: {"text", "citations", "cache", "extra"},
        ToolUse: {"id", "name", "input", "cache", "extra"},
        ToolResult: {"tool_use_id", "content", "is_error", "cache", "extra"},
        Thinking: {"text", "signature", "extra"},
        Origin: {"provider", "model", "wire"},
    }
    assert {cls: {field.name for field in fields(cls)} for cls in looked_at} == looked_at


# ---- any value in any place

WHOLE = Request(
    [
        Message("system", [Text("s")]),
        user("q", Text("c", cache=CacheControl()), Image(Base64("image/png", "iVBORw0KGgoAAAANSUhEUg==")), Image(Url("https://x"))),
        user(Document(PlainText("t"), title="t"), Document(Parts([Text("p"), Image(Url("https://x"))]))),
        Message(
            "assistant",
            [
                Thinking("t", signature="S"),
                Text("a", citations=[Citation("char_location", {"a": 1})], extra={"anthropic": {"b": 1}}),
                Refusal("r"),
                ServerToolUse("s", "web_search", {}),
                ServerToolResult("s", [], kind="web_search_tool_result"),
                Opaque({"type": "compaction", "content": "x"}, wire="anthropic"),
                ToolUse("c1", "f", {"a": [1]}),
                ToolUse("c2", "f", {}, cache=CacheControl("5m")),
            ],
            origin=Origin("anthropic", MODEL, "anthropic"),
        ),
        user(ToolResult("c1", "r"), ToolResult("c2", [Text("r"), Image(Url("https://x"))], is_error=True)),
        Message("user", "go on", extra={"anthropic": {"x": 1}}),
    ],
    model=MODEL,
    system=[Text("s")],
    tools=[TOOL, ProviderTool("web_search_20250305", "web_search", {"max_uses": 1}), Tool("g", extra={"anthropic": {"a": 1}})],
    tool_choice=ToolNamed("f"),
    max_tokens=5000,
    temperature=0.5,
    stop_sequences=["x"],
    output=OutputFormat({"type": "object", "properties": {"a": {"type": "string"}}, "$defs": {"a": {}}}),
    metadata={"user_id": "u"},
    betas=["a-2025-01-01"],
    extra_headers={"x": "y"},
    extra_body={"context_management": {"edits": []}},
    trace=TraceInfo(user_id="u", tags=["t"], tenant=Tenant("t")),
)
"""A request that holds something of nearly everything, and is right."""


class _Nothing: ...


@dataclasses.dataclass
class _Object:
    role: str = "user"
    type: str = "text"


class _Rows(list[int]): ...


STRANGE: list[Any] = [
    *(None, True, False, 0, 5, -1, 10**400, 1.5, NAN, math.inf, 1j, "", " ", "auto", "any", "a\nb", "☃", "\ud800", b"x", bytearray(b"x")),
    *([], [5], ["a"], [None], [[]], [{}], (1,), _Rows([1]), {1}, {}, {"a": 5}, {"a": NAN}, {5: "x"}, {"anthropic": 5}, {"anthropic": {}}),
    *({"anthropic": {"index": 1}}, {"anthropic": {"a": {1}}}, {"type": 5}, {"type": "x"}, {"a\nb": "c"}, {"user_id": NAN}, {"a": _Rows()}),
    *({"$defs": 5, "properties": 5, "required": 5}, {"properties": {"a": 5}, "type": []}, {"tools": 5, "thinking": 5, "cache_control": 5}),
    *({"temperature": "x", "top_k": 10**400, "max_tokens": 1.5, "n": "x"}, {"thread": 5, "metadata": [], "output_config": 5}),
    *(_Nothing, _Nothing(), _Object(), len, enum.Enum("E", "A"), range(3), Text("t"), [Text("t")], user("q"), [user("q")]),
    *(Image(Url("")), Url(""), FileNotFoundError(), TOOL, [TOOL], ToolNamed("nowhere"), CacheControl(), ThinkingConfig("x")),  # type: ignore[arg-type]
    *(
        OutputFormat({}),
        [Opaque({}, wire="anthropic")],
        Opaque({"type": "x"}, wire="anthropic"),
        Opaque({"type": []}, wire="a"),
        Parts("p"),
    ),
]


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every field and item within a value."""
    if isinstance(value, msgspec.Struct):
        steps: list[tuple[str | int, Any]] = [(field.name, getattr(value, field.name)) for field in fields(value)]
    elif isinstance(value, list):
        steps = list(enumerate(value))
    elif isinstance(value, dict):
        steps = list(value.items())
    else:
        return []
    return [place for step, inner in steps for place in ((*path, step), *places(inner, (*path, step)))]


def changed(value: Any, path: tuple[str | int, ...], to: Any) -> Any:
    """The value with what is at a path replaced."""
    if not path:
        return to
    step, *rest = path
    if isinstance(value, msgspec.Struct):
        return replace(value, **{str(step): changed(getattr(value, str(step)), tuple(rest), to)})
    copy = value.copy()
    copy[step] = changed(value[step], tuple(rest), to)
    return copy


PLACES = places(WHOLE)


def test_the_whole_request_is_right() -> None:
    assert found(WHOLE) == []
    WIRE.encode(WHOLE, stream=True)


@given(st.sampled_from(PLACES), st.sampled_from(STRANGE), st.sampled_from(WIRES))
@settings(max_examples=400, deadline=None)
def test_whatever_stands_anywhere_problems_says_so_or_it_encodes(place: tuple[str | int, ...], value: Any, wire: Wire) -> None:
    try:
        request = changed(WHOLE, place, value)
    except (TypeError, ValueError):
        return  # the constructor has refused it
    refused = problems(request, wire)
    assert all(problem.path and problem.rule and problem.message and problem.fix for problem in refused)
    if refused:
        return
    try:
        body = wire.encode(request, stream=True).body
    except InvalidInputError:
        assert wire is not WIRE  # which says all that it cannot write beforehand
    else:
        json.loads(body)


@pytest.mark.parametrize("value", STRANGE)
def test_whatever_nobody_validated_encodes_or_is_refused(value: Any) -> None:
    refused: list[InvalidInputError] = []
    for place in PLACES:
        try:
            request = changed(WHOLE, place, value)
        except (TypeError, ValueError):
            continue
        try:
            body = WIRE.encode(request, stream=True).body
        except InvalidInputError as error:
            refused.append(error)
        else:
            json.loads(body)
    assert all(error.problems for error in refused)
