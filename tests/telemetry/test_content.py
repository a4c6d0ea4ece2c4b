"""Content: one function, two gates, one tuple of keys, a cap in bytes, structured messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Audio,
    Base64,
    BlockStart,
    ConfigError,
    Document,
    Failed,
    FileId,
    Image,
    InvalidToolUse,
    Message,
    MessageStart,
    MessageStop,
    Opaque,
    OverloadedError,
    Parts,
    PlainText,
    ProviderTool,
    RedactedThinking,
    Refusal,
    Request,
    ServerToolResult,
    ServerToolUse,
    Tenant,
    Text,
    TextDelta,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
    TraceInfo,
    Url,
    Video,
    assistant,
    system,
    user,
)
from dragoman.hooks import CallInfo
from dragoman.message import Block
from dragoman.telemetry import CONTENT_CAP_BYTES, CONTENT_KEYS, messages
from dragoman.telemetry.attributes import Attributes
from dragoman.telemetry.capped import capped_messages, capped_parts
from dragoman.telemetry.content import record_content
from dragoman.testing import ScriptedProvider
from tests.telemetry.recorder import Recorder

OPEN = TraceInfo(tenant=Tenant("acme", trace_llm_content=True))
TOOLS = [Tool("get_time", "Tells the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})]
ASKED = Request("What time is it?", system="Be brief.", tools=TOOLS, trace=OPEN)


def content_of(recorder: Recorder, request: Request, *answers: Any, **options: Any) -> dict[str, Any]:
    """The content attributes of one call, decoded."""
    provider = ScriptedProvider.of(*answers) if answers else ScriptedProvider.of("It is noon.")
    provider.telemetry = recorder.telemetry(**options)
    provider.complete(request)
    return {key: json.loads(value) for key, value in recorder.attributes.items() if key in CONTENT_KEYS}


# ---- the gates


@pytest.mark.parametrize("tenant", [None, False, True])
@pytest.mark.parametrize("environment", [None, "", "false", "0", "maybe", "true", "1", "on"])
@pytest.mark.parametrize("genai", [False, True])
def test_content_is_recorded_only_if_both_gates_are_open(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, tenant: bool | None, environment: str | None, genai: bool
) -> None:
    telemetry = recorder.telemetry(genai_content=genai)  # made before: the gate is read at each call
    if environment is not None:
        monkeypatch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", environment)
    provider = ScriptedProvider.of("It is noon.")
    provider.telemetry = telemetry
    provider.complete(ASKED.replace(trace=None if tenant is None else TraceInfo(tenant=Tenant("acme", trace_llm_content=tenant))))
    found = set(CONTENT_KEYS) & recorder.attributes.keys()
    assert bool(found) == (tenant is True and environment in ("true", "1", "on"))


def test_a_gate_variable_that_is_neither_true_nor_false_is_reported(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", "maybe")
    with pytest.raises(ConfigError, match="DRAGOMAN_TRACE_LLM_CONTENT must be true or false, not 'maybe'"):
        recorder.telemetry()


def test_a_tenant_that_says_something_other_than_true_keeps_its_gate_closed(recorder: Recorder, open_gate: None) -> None:
    tenant = Tenant("acme", trace_llm_content="yes")  # type: ignore[arg-type]  # read from a table without checking
    provider = ScriptedProvider.of("It is noon.")
    provider.telemetry = recorder.telemetry()
    provider.complete(ASKED.replace(trace=TraceInfo(tenant=tenant)))
    assert not set(CONTENT_KEYS) & recorder.attributes.keys()


# ---- which keys


def test_content_goes_to_langfuses_two_attributes(recorder: Recorder, open_gate: None) -> None:
    assert content_of(recorder, ASKED) == {
        "langfuse.observation.input": [
            {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
            {"role": "user", "parts": [{"type": "text", "content": "What time is it?"}]},
        ],
        "langfuse.observation.output": [
            {"role": "assistant", "parts": [{"type": "text", "content": "It is noon."}], "finish_reason": "stop"},
        ],
    }


def test_content_goes_to_the_conventions_attributes_instead_if_asked(recorder: Recorder, open_gate: None) -> None:
    assert content_of(recorder, ASKED, genai_content=True) == {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "What time is it?"}]}],
        "gen_ai.output.messages": [
            {"role": "assistant", "parts": [{"type": "text", "content": "It is noon."}], "finish_reason": "stop"},
        ],
        "gen_ai.tool.definitions": [
            {
                "type": "function",
                "name": "get_time",
                "description": "Tells the time.",
                "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
            }
        ],
    }


@pytest.mark.parametrize("genai", [False, True])
def test_nothing_but_the_listed_keys_is_written(open_gate: None, genai: bool) -> None:
    written: set[str] = set()

    class Listing:
        def attributes(self, values: Attributes) -> None:
            written.update(values)

    record_content(Listing(), CallInfo(provider="p", model="m", request=ASKED), assistant("yes"), "stop", genai=genai)
    assert written <= set(CONTENT_KEYS)
    assert written == {key for key in CONTENT_KEYS if key.startswith("gen_ai.") == genai}


def test_what_came_before_a_failure_is_recorded(recorder: Recorder, open_gate: None) -> None:
    script = [
        MessageStart("m", "x", provider="p", wire="w"),
        BlockStart(0, Text("")),
        TextDelta(0, "It is"),
        Failed(OverloadedError("text")),
    ]
    provider = ScriptedProvider([script])
    provider.telemetry = recorder.telemetry()
    list(provider.events(ASKED))
    assert json.loads(recorder.attributes["langfuse.observation.output"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It is"}], "finish_reason": "error"},
    ]


def test_a_failures_message_and_stack_are_recorded_with_both_gates_open(recorder: Recorder, open_gate: None) -> None:
    provider = ScriptedProvider([[Failed(OverloadedError("Anthropic request failed with HTTP 529"))]])
    provider.telemetry = recorder.telemetry()
    list(provider.events(ASKED))
    [(name, attributes)] = recorder.events
    assert name == "exception"
    assert attributes["exception.type"] == "dragoman.errors.OverloadedError"
    assert attributes["exception.message"] == "Anthropic request failed with HTTP 529"
    assert "OverloadedError: Anthropic request failed with HTTP 529" in attributes["exception.stacktrace"]
    assert recorder.span.status.description == "overloaded"


# ---- the form


BLOCKS: list[tuple[Block, dict[str, Any]]] = [
    (Text("hi"), {"type": "text", "content": "hi"}),
    (Refusal("no"), {"type": "refusal", "content": "no"}),
    (Thinking("hm", signature="SIGNED"), {"type": "reasoning", "content": "hm"}),
    (RedactedThinking("SEALED"), {"type": "redacted_reasoning"}),
    (Image(Base64("image/png", "QUJD")), {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "QUJD"}),
    (Image(Url("https://x.test/a")), {"type": "uri", "modality": "image", "uri": "https://x.test/a"}),
    (Video(FileId("file-1")), {"type": "file", "modality": "video", "file_id": "file-1"}),
    (
        Audio(Base64("audio/wav", "QUJD"), transcript="hi"),
        {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "QUJD", "transcript": "hi"},
    ),
    (Document(PlainText("words"), title="T"), {"type": "text", "content": "words", "title": "T"}),
    (Document(Parts("words")), {"type": "document", "parts": [{"type": "text", "content": "words"}]}),
    (ToolUse("t1", "f", {"a": 1}), {"type": "tool_call", "id": "t1", "name": "f", "arguments": {"a": 1}}),
    (
        InvalidToolUse("t1", "f", '{"a', reason="incomplete"),
        {"type": "tool_call", "id": "t1", "name": "f", "arguments": '{"a', "invalid": "incomplete"},
    ),
    (
        ServerToolUse("s1", "web_search", {"query": "q"}),
        {
            "type": "server_tool_call",
            "id": "s1",
            "name": "web_search",
            "server_tool_call": {"type": "web_search", "arguments": {"query": "q"}},
        },
    ),
    (
        ServerToolResult("s1", [{"title": "T", "encrypted_content": "SEALED"}], kind="web_search_tool_result"),
        {
            "type": "server_tool_call_response",
            "id": "s1",
            "server_tool_call_response": {"type": "web_search_tool_result", "content": [{"title": "T"}]},
        },
    ),
    (Opaque({"type": "compaction", "content": "SEALED"}, wire="anthropic"), {"type": "anthropic.compaction"}),
]


@pytest.mark.parametrize(("block", "part"), BLOCKS, ids=[block.type for block, _ in BLOCKS])
def test_each_block_has_its_part(block: Block, part: dict[str, Any]) -> None:
    assert messages.output_message(Message("assistant", [block])) == ("assistant", [part])


def test_every_kind_of_block_is_tested() -> None:
    assert {type(block) for block, _ in BLOCKS} | {ToolResult} == set(Block.__args__)


def test_tool_results_become_messages_of_their_own() -> None:
    request = Request(
        [
            user("What time is it?"),
            assistant(ToolUse("t1", "get_time", {})),
            user(ToolResult("t1", "noon"), ToolResult("t2", [Text("a"), Image(FileId("f"))], is_error=True), "And now?"),
        ]
    )
    assert messages.input_messages(request) == [
        ("user", [{"type": "text", "content": "What time is it?"}]),
        ("assistant", [{"type": "tool_call", "id": "t1", "name": "get_time", "arguments": {}}]),
        (
            "tool",
            [
                {"type": "tool_call_response", "id": "t1", "response": "noon"},
                {
                    "type": "tool_call_response",
                    "id": "t2",
                    "response": [{"type": "text", "content": "a"}, {"type": "file", "modality": "image", "file_id": "f"}],
                    "is_error": True,
                },
            ],
        ),
        ("user", [{"type": "text", "content": "And now?"}]),
    ]


def test_system_messages_in_the_conversation_stay_where_they_are() -> None:
    assert [role for role, _ in messages.input_messages(Request([system("Be brief."), user("hi")]))] == ["system", "user"]


def test_tools_of_the_provider_are_named() -> None:
    assert messages.tool_definitions([ProviderTool("web_search_20250305", "web_search")]) == [
        {"type": "web_search_20250305", "name": "web_search"}
    ]


@pytest.mark.parametrize("genai", [False, True])
def test_signatures_and_sealed_data_are_never_exported(recorder: Recorder, open_gate: None, genai: bool) -> None:
    sealed: list[Block] = [
        Thinking("hm", signature="SEALED", extra={"gemini": {"thoughtSignature": "SEALED"}}),
        RedactedThinking("SEALED", extra={"x": {"y": "SEALED"}}),
        ToolUse("t1", "f", {}, extra={"gemini": {"thoughtSignature": "SEALED"}}),
        ServerToolResult("s1", {"a": [{"encrypted_index": "SEALED"}], "signature": "SEALED"}, kind="k", extra={"x": {"y": "SEALED"}}),
        Opaque({"type": "reasoning", "encrypted_content": "SEALED"}, wire="openai-responses"),
    ]
    request = Request([user("hi"), Message("assistant", sealed), user("go on")], trace=OPEN)
    content_of(recorder, request, Message("assistant", sealed[:3]), genai_content=genai)
    assert "SEALED" not in json.dumps(recorder.attributes)


# ---- the cap


def test_the_cap_has_a_default_with_a_name(recorder: Recorder, open_gate: None) -> None:
    assert CONTENT_CAP_BYTES == 128 * 1024
    found = content_of(recorder, Request(["x" * CONTENT_CAP_BYTES, "short"], trace=OPEN))
    [omitted, short] = found["langfuse.observation.input"]
    assert omitted["parts"][0]["type"] == "omitted"
    assert short == {"role": "user", "parts": [{"type": "text", "content": "short"}]}


def test_a_cap_too_small_to_say_anything_is_refused(recorder: Recorder) -> None:
    with pytest.raises(ConfigError, match="content_cap_bytes must be 1024 or more, not 1023"):
        recorder.telemetry(content_cap_bytes=1023)


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def test_the_oldest_messages_are_left_out_first() -> None:
    conversation = [("user", [text_part(f"{n}" * 300)]) for n in range(6)]
    kept = json.loads(capped_messages(conversation, 1024))
    assert kept == [
        {"role": "user", "parts": [{"type": "omitted", "parts": 4, "bytes": 4 * 328}]},
        {"role": "user", "parts": [text_part("4" * 300)]},
        {"role": "user", "parts": [text_part("5" * 300)]},
    ]


def test_a_part_too_large_is_left_out_whole_and_what_stands_around_it_stays() -> None:
    picture = {"type": "blob", "modality": "image", "content": "A" * 5000}
    conversation = [("user", [text_part("look"), picture, text_part("what is it?")])]
    assert json.loads(capped_messages(conversation, 1024)) == [
        {"role": "user", "parts": [text_part("look"), {"type": "omitted", "parts": 1, "bytes": 5047}, text_part("what is it?")]},
    ]


def test_a_list_of_parts_is_cut_at_whole_parts() -> None:
    kept = json.loads(capped_parts([text_part("a" * 600), text_part("b" * 600)], 1024))
    assert kept == [{"type": "omitted", "parts": 1, "bytes": 628}, text_part("b" * 600)]


conversations = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.lists(st.text(max_size=400).map(text_part), max_size=5)), max_size=12
)


@given(conversation=conversations, cap=st.integers(1024, 4096), finish=st.sampled_from(["", "stop"]))
def test_the_cap_holds_and_every_part_is_whole_or_counted(
    conversation: list[tuple[str, list[dict[str, Any]]]], cap: int, finish: str
) -> None:
    written = capped_messages(conversation, cap, finish_reason=finish)
    assert len(written.encode()) <= cap
    kept = [part for message in json.loads(written) for part in message["parts"]]
    given_parts = [part for _, parts in conversation for part in parts]
    whole = [part for part in kept if part["type"] == "text"]
    assert [part for part in given_parts if part in whole] == [part for part in given_parts if part in kept]
    assert len(whole) + sum(part["parts"] for part in kept if part["type"] == "omitted") == len(given_parts)


def test_what_json_has_no_form_for_is_named_and_not_quoted() -> None:
    class Secretive:
        def __repr__(self) -> str:
            return "SECRET"

    endless: dict[str, Any] = {"type": "tool_call"}
    endless["arguments"] = endless
    part = {"type": "tool_call", "arguments": {"a": Secretive()}}
    assert json.loads(capped_parts([part, endless], 1024)) == [
        {"type": "tool_call", "arguments": {"a": "<Secretive>"}},
        {"type": "unwritable"},
    ]


def test_half_a_character_does_not_keep_content_from_being_written() -> None:
    assert json.loads(capped_parts([text_part("a\ud800b")], 1024)) == [text_part("a\ufffdb")]


def test_an_answer_without_stop_reason_of_its_own_is_not_called_an_error(recorder: Recorder, open_gate: None) -> None:
    script = [MessageStart("m", "x", provider="p", wire="w"), MessageStop("pause_turn")]
    provider = ScriptedProvider([script])
    provider.telemetry = recorder.telemetry()
    provider.complete(ASKED)
    assert json.loads(recorder.attributes["langfuse.observation.output"]) == [{"role": "assistant", "parts": [], "finish_reason": "stop"}]
