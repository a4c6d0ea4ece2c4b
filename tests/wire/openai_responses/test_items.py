"""What each kind of item becomes, and that it goes back as it came."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    Base64,
    Block,
    BlockStart,
    BlockStop,
    Citation,
    Event,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    OpaqueEvent,
    Refusal,
    Request,
    Response,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    Tool,
    ToolInputDelta,
    ToolResult,
    ToolUse,
    tool_result,
    user,
)
from tests.wire.openai_responses.answers import (
    WIRE,
    added,
    answer,
    body_answer,
    call,
    completed,
    created,
    delta,
    done,
    events_of,
    folded,
    message,
    reasoning,
    response,
    sse,
    stream_of,
)

OWN = "openai-responses"


def blocks(*items: dict[str, Any]) -> list[Block]:
    """The blocks of these items: the same from a stream as from a body."""
    value = response(*items)
    streamed, whole = answer(stream_of(value)), body_answer(value)
    assert list(streamed.message.content) == list(whole.message.content)
    assert (streamed.stop, streamed.usage) == (whole.stop, whole.usage)
    return list(whole.message.content)


def items_of(*messages: Message) -> list[dict[str, Any]]:
    """The input items of a conversation."""
    return json.loads(WIRE.encode(Request(messages, model="gpt-test"), stream=False).body)["input"]  # type: ignore[no-any-return]


def back(made: Response | list[Block]) -> list[dict[str, Any]]:
    """The items that these blocks are sent back as."""
    content = made.message.content if isinstance(made, Response) else made
    return items_of(user("q"), Message("assistant", content), user("go on"))[1:-1]


def inputs(events: list[Event]) -> str:
    return "".join([event.json for event in events if isinstance(event, ToolInputDelta)])


# ---- messages


def test_blocks_of_one_message_share_its_item_and_go_back_as_one() -> None:
    item = message("one", "two", phase="commentary")
    shared = {"item": {"id": "msg_1", "status": "completed", "phase": "commentary"}}
    made = blocks(item)
    assert made == [Text("one", extra={OWN: shared}), Text("two", extra={OWN: shared})]
    assert back(made) == [item]


def test_two_messages_stay_two() -> None:
    first, second = message("one", id="msg_1"), message("two", id="msg_2")
    assert back(blocks(first, second)) == [first, second]


def test_a_refusal_stops_the_answer_as_one() -> None:
    item = {**message(), "content": [{"type": "refusal", "refusal": "I can't"}]}
    made = body_answer(response(item))
    assert blocks(item) == [Refusal("I can't", extra={OWN: {"item": {"id": "msg_1", "status": "completed"}}})]
    assert (made.stop, made.raw_stop, made.text) == ("refusal", "completed", "")
    assert back(made) == [item]


def test_log_probabilities_and_citations_are_kept() -> None:
    item = message("Hi")
    note = {"type": "container_file_citation", "container_id": "c", "file_id": "f", "filename": "a", "start_index": 0, "end_index": 1}
    item["content"][0] |= {"logprobs": [{"token": "Hi", "logprob": -0.5}], "annotations": [note]}
    (text,) = blocks(item)
    assert isinstance(text, Text)
    assert text.citations == [Citation("container_file_citation", note)]
    assert text.extra[OWN]["logprobs"] == [{"token": "Hi", "logprob": -0.5}]
    assert back([text]) == [item]


def test_a_message_without_content_is_not_lost() -> None:
    item = message()
    assert blocks(item) == [Opaque(item, wire=OWN)]
    assert back(blocks(item)) == [item]


def test_a_part_of_an_unknown_kind_stays_in_its_message() -> None:
    item = message("a", "b")
    item["content"].insert(1, {"type": "output_hologram", "data": "?"})
    made = body_answer(response(item))
    assert [type(block) for block in made.message.content] == [Text, Opaque, Text]
    assert back(made) == [item]


# ---- reasoning


def test_a_reasoning_is_one_block_signed_by_its_encrypted_content() -> None:
    item = reasoning("First.", "", "Third.", encrypted_content="gAAA", status="completed")
    made = blocks(item, message("so"))
    assert made[0] == Thinking(
        "First.\n\n\n\nThird.", signature="gAAA", extra={OWN: {"id": "rs_1", "status": "completed", "summary": [6, 0, 6]}}
    )
    assert back(made) == [item, message("so")]


def test_a_reasoning_without_words_is_still_a_block() -> None:
    item = reasoning(encrypted_content="gAAA")
    assert blocks(item, message("so"))[0] == Thinking("", signature="gAAA", extra={OWN: {"id": "rs_1"}})
    assert back(blocks(item, message("so")))[0] == item


def test_reasoning_in_the_models_own_words_is_kept_apart_from_its_summary() -> None:
    item = {**reasoning("In short"), "content": [{"type": "reasoning_text", "text": "At length"}]}
    made = body_answer(response(item, message("so"))).message.content
    assert made[0] == Thinking("At length\n\nIn short", extra={OWN: {"id": "rs_1", "content": [9], "summary": [8]}})
    assert back(list(made))[0] == item


def test_parts_that_carry_more_than_text_are_kept_whole() -> None:
    item = reasoning()
    item["summary"] = [{"type": "summary_text", "text": "a", "index": 7}, {"type": "summary_text", "text": "b"}]
    made = blocks(item, message("so"))
    assert isinstance(made[0], Thinking)
    assert made[0].text == "a\n\nb"
    assert back(made)[0] == item


def test_a_text_that_was_changed_since_is_one_part() -> None:
    changed = Thinking("something else", signature="s", extra={OWN: {"id": "rs_1", "summary": [6, 6]}})
    sent = back([changed, Text("so")])[0]
    assert sent["summary"] == [{"type": "summary_text", "text": "something else"}]


# ---- calls


def test_a_function_call_keeps_what_the_provider_wants_back() -> None:
    item = call('{"sku":"a"}', status="in_progress", caller={"type": "program", "caller_id": "call_0"}, namespace="shop")
    (use,) = blocks(item)
    assert use == ToolUse("call_1", "get_weather", {"sku": "a"}, extra={OWN: {k: item[k] for k in ("id", "status", "caller", "namespace")}})
    assert back([use]) == [item]


def test_arguments_go_back_in_the_spelling_they_came_in_unless_they_were_changed() -> None:
    item = call('{"city": "K\\u00f6ln"}')
    (use,) = blocks(item)
    assert isinstance(use, ToolUse)
    assert back([use])[0]["arguments"] == '{"city": "K\\u00f6ln"}'
    changed = ToolUse(use.id, use.name, {"city": "Bonn"}, extra=use.extra)
    assert back([changed])[0]["arguments"] == '{"city":"Bonn"}'


@pytest.mark.parametrize(("arguments", "reason"), [('{"a":', "incomplete"), ("[1]", "not_an_object"), ("{a}", "invalid_json")])
def test_arguments_that_are_no_object_are_never_executable_and_go_back_marked(arguments: str, reason: str) -> None:
    (bad,) = blocks(call(arguments))
    assert isinstance(bad, InvalidToolUse)
    assert (bad.id, bad.name, bad.raw, bad.reason) == ("call_1", "get_weather", arguments, reason)
    assert json.loads(back([bad])[0]["arguments"]) == {"INVALID_JSON": arguments}


def test_a_call_without_an_id_gets_one_that_its_result_can_use() -> None:
    item = call("{}")
    del item["call_id"]
    (use,) = blocks(message("x", id="m"), item)[1:]
    assert isinstance(use, ToolUse)
    assert use.id == "call_resp_1_1"
    sent = items_of(Message("assistant", [use]), user(tool_result(use, "ok")))
    assert [entry["call_id"] for entry in sent] == ["call_resp_1_1"] * 2


def test_a_custom_call_is_its_text() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "status": "completed", "call_id": "call_1", "name": "math", "input": '4 + "4"'}
    value = response(item)
    events = events_of(stream_of(value, lambda text: [text[:3], text[3:]]))
    use = ToolUse("call_1", "math", {"input": '4 + "4"'}, extra={OWN: {"kind": "custom_tool_call", "id": "ctc_1", "status": "completed"}})
    assert folded(events).response().message.content == [use]
    assert inputs(events) == '{"input":"4 + \\"4\\""}'
    assert blocks(item) == [use]
    assert back([use]) == [item]
    sent = items_of(Message("assistant", [use]), user(tool_result(use, "8")))
    assert sent[1] == {"type": "custom_tool_call_output", "call_id": "call_1", "output": "8"}


def test_a_custom_call_that_was_cut_is_never_executable() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "status": "incomplete", "call_id": "call_1", "name": "sh", "input": "rm -rf /tmp"}
    made = body_answer(response(item, status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert [block.reason for block in made.invalid_tool_uses] == ["incomplete"]
    assert made.tool_uses == []


SHELL = {
    "id": "sh_1",
    "type": "shell_call",
    "status": "completed",
    "call_id": "call_1",
    "action": {"commands": ["ls -a", "pwd"], "max_output_length": 100, "timeout_ms": None},
}


def test_the_commands_of_a_shell_stream_as_one_json_object() -> None:
    start = {**SHELL, "status": "in_progress", "action": {"commands": [], "max_output_length": None, "timeout_ms": None}}
    events = events_of(
        sse(
            created(),
            added(0, start),
            {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""},
            delta("shell_call_command", 0, "ls", command_index=0),
            delta("shell_call_command", 0, " -a", command_index=0),
            {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 1, "command": ""},
            delta("shell_call_command", 0, "pw", command_index=1),
            done(0, SHELL),
            completed(SHELL),
        )
    )
    assert inputs(events) == '{"commands":["ls -a","pwd"],"max_output_length":100,"timeout_ms":null}'
    made = folded(events).response()
    assert made.stop == "tool_use"
    assert [(use.id, use.name, use.input) for use in made.tool_uses] == [("call_1", "shell", SHELL["action"])]
    assert back(made) == [SHELL]


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (ToolResult("call_1", "a.txt"), [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]),
        (ToolResult("call_1", "no", is_error=True), [{"stdout": "no", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]),
        (
            ToolResult("call_1", '[{"stdout":"","stderr":"e","outcome":{"type":"timeout"}}]'),
            [{"stdout": "", "stderr": "e", "outcome": {"type": "timeout"}}],
        ),
    ],
)
def test_a_shell_gets_output_and_exit_code(result: ToolResult, output: list[dict[str, Any]]) -> None:
    (use,) = blocks(SHELL)
    sent = items_of(Message("assistant", [use]), user(result))
    assert sent[1] == {"type": "shell_call_output", "call_id": "call_1", "output": output}


def test_a_shell_in_the_providers_container_is_not_for_the_caller() -> None:
    ran = {**SHELL, "environment": {"type": "container_reference", "container_id": "cntr_1"}}
    result = {"id": "sho_1", "type": "shell_call_output", "status": "completed", "call_id": "call_1", "output": [{"stdout": "a"}]}
    made = body_answer(response(ran, result, message("done")))
    assert made.stop == "end_turn"
    assert made.message.content[0] == ServerToolUse(
        "call_1",
        "shell",
        ran["action"],
        extra={OWN: {"kind": "shell_call", "id": "sh_1", "status": "completed", "environment": ran["environment"]}},
    )
    assert made.message.content[1] == ServerToolResult("call_1", result, kind="shell_call_output")
    assert back(made)[:2] == [ran, result]


PATCH = {
    "id": "apc_1",
    "type": "apply_patch_call",
    "status": "completed",
    "call_id": "call_1",
    "operation": {"type": "create_file", "diff": "+a\n+b", "path": "x.md"},
}


def test_a_patch_streams_its_diff() -> None:
    start = {**PATCH, "status": "in_progress", "operation": {**PATCH["operation"], "diff": ""}}  # type: ignore[dict-item]
    events = events_of(
        sse(created(), added(0, start), delta("apply_patch_call_operation_diff", 0, "+a\n"), done(0, PATCH), completed(PATCH))
    )
    assert inputs(events) == '{"diff":"+a\\n+b","type":"create_file","path":"x.md"}'
    made = folded(events).response()
    assert [(use.name, use.input) for use in made.tool_uses] == [("apply_patch", PATCH["operation"])]
    assert back(made) == [PATCH]


@pytest.mark.parametrize(("is_error", "status"), [(False, "completed"), (True, "failed")])
def test_a_patch_is_answered_by_a_status(is_error: bool, status: str) -> None:
    (use,) = blocks(PATCH)
    sent = items_of(Message("assistant", [use]), user(ToolResult("call_1", "log", is_error=is_error)))
    assert sent[1] == {"type": "apply_patch_call_output", "call_id": "call_1", "status": status, "output": "log"}


def test_a_local_shell_is_a_call_and_gets_text() -> None:
    item = {
        "id": "lsh_1",
        "type": "local_shell_call",
        "status": "completed",
        "call_id": "call_1",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    (use,) = blocks(item)
    assert isinstance(use, ToolUse)
    assert (use.name, use.input) == ("local_shell", item["action"])
    assert back([use]) == [item]
    sent = items_of(Message("assistant", [use]), user(tool_result(use, "a.txt")))
    assert sent[1] == {"type": "local_shell_call_output", "call_id": "call_1", "output": "a.txt"}


def test_a_computer_is_answered_by_a_screenshot() -> None:
    item = {
        "id": "cu_1",
        "type": "computer_call",
        "status": "completed",
        "call_id": "call_1",
        "action": {"type": "screenshot"},
        "pending_safety_checks": [{"id": "sc_1"}],
    }
    (use,) = blocks(item)
    assert isinstance(use, ToolUse)
    assert (use.name, use.input) == ("computer", {"type": "screenshot"})
    assert back([use]) == [item]
    shot = ToolResult("call_1", [Image(Base64("image/png", "iVBO"))], extra={OWN: {"acknowledged_safety_checks": [{"id": "sc_1"}]}})
    assert items_of(Message("assistant", [use]), user(shot))[1] == {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBO"},
        "acknowledged_safety_checks": [{"id": "sc_1"}],
    }


def test_several_actions_of_a_computer_are_one_input() -> None:
    actions = [{"type": "click", "x": 1, "y": 2}, {"type": "wait"}]
    item = {
        "id": "cu_1",
        "type": "computer_call",
        "status": "completed",
        "call_id": "call_1",
        "actions": actions,
        "pending_safety_checks": [],
    }
    (use,) = blocks(item)
    assert isinstance(use, ToolUse)
    assert use.input == {"actions": actions}
    assert back([use]) == [item]


def test_a_search_for_tools_at_the_caller_is_answered_by_their_definitions() -> None:
    item = {
        "id": "tsc_1",
        "type": "tool_search_call",
        "status": "completed",
        "call_id": "call_1",
        "execution": "client",
        "arguments": {"goal": "weather"},
    }
    (use,) = blocks(item)
    assert isinstance(use, ToolUse)
    assert (use.name, use.input) == ("tool_search", {"goal": "weather"})
    assert back([use]) == [item]
    tools = [{"type": "function", "name": "w", "parameters": {}}]
    assert items_of(Message("assistant", [use]), user(tool_result(use, json.dumps(tools))))[1] == {
        "type": "tool_search_output",
        "call_id": "call_1",
        "tools": tools,
        "execution": "client",
    }


# ---- what ran at the provider

PAIRS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
        "web_search",
        {"type": "search", "query": "x"},
    ),
    (
        {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["a"], "results": None},
        "file_search",
        {"queries": ["a"]},
    ),
    (
        {
            "id": "ci_1",
            "type": "code_interpreter_call",
            "status": "completed",
            "code": 'print("a")\n',
            "container_id": "c",
            "outputs": None,
        },
        "code_interpreter",
        {"code": 'print("a")\n'},
    ),
    (
        {"id": "mcp_1", "type": "mcp_call", "arguments": '{"n": 2}', "error": None, "name": "roll", "output": "7", "server_label": "dice"},
        "roll",
        {"n": 2},
    ),
    (
        {"id": "xs_1", "type": "x_search_call", "status": "completed", "call_id": "", "name": "x_semantic_search", "arguments": '{"q":1}'},
        "x_semantic_search",
        {"q": 1},
    ),
    (
        {
            "id": "ctc_1",
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": "xs_1",
            "name": "x_keyword_search",
            "input": '{"q":1}',
        },
        "x_keyword_search",
        {"input": '{"q":1}'},
    ),
]


@pytest.mark.parametrize(("item", "name", "value"), PAIRS, ids=[pair[0]["type"] for pair in PAIRS])
def test_an_item_that_is_call_and_result_becomes_the_pair_and_goes_back_whole(
    item: dict[str, Any], name: str, value: dict[str, Any]
) -> None:
    use, result, said = blocks(item, message("so"))
    assert isinstance(use, ServerToolUse)
    assert (use.id, use.name, use.input) == (item["id"], name, value)
    assert result == ServerToolResult(item["id"], item, kind=item["type"])
    assert body_answer(response(item, message("so"))).stop == "end_turn"
    assert back([use, result, said]) == [item, message("so")]
    assert json.loads(inputs(events_of(stream_of(response(item), lambda text: list(text))))) == value


def test_a_tool_of_the_callers_own_is_the_callers_whatever_its_name() -> None:
    item = PAIRS[-1][0]
    request = Request("q", model="m", tools=[Tool("x_keyword_search")])
    made = WIRE.decode_response(200, {}, json.dumps(response(item)).encode(), request)
    assert [use.name for use in made.tool_uses] == ["x_keyword_search"]


def test_a_picture_comes_whole_at_its_end_and_its_drafts_are_for_a_display() -> None:
    item = {
        "id": "ig_1",
        "type": "image_generation_call",
        "status": "generating",
        "output_format": "webp",
        "result": "UklGR",
        "revised_prompt": "a cat",
    }
    draft = {"type": "response.image_generation_call.partial_image", "output_index": 0, "item_id": "ig_1", "partial_image_b64": "UklG"}
    start = {"id": "ig_1", "type": "image_generation_call", "status": "in_progress"}
    events = events_of(sse(created(), added(0, start), draft, done(0, item), completed(item)))
    rest = {key: item[key] for key in ("id", "status", "output_format", "revised_prompt")}
    picture = Image(Base64("image/webp", "UklGR"), extra={OWN: rest})
    assert events[1:4] == [
        BlockStart(0, Image(Base64("image/png", ""))),
        OpaqueEvent(draft, wire=OWN, kind="response.image_generation_call.partial_image", index=0),
        BlockStop(0, picture),
    ]
    assert blocks(item) == [picture]
    assert back([picture]) == [item]


def test_a_picture_that_failed_stays_whole() -> None:
    item = {"id": "ig_1", "type": "image_generation_call", "status": "failed", "result": None, "error": {"message": "no"}}
    assert blocks(item) == [Opaque(item, wire=OWN)]
    assert back(blocks(item)) == [item]


def test_an_approval_is_waited_for() -> None:
    tools = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "zip", "tools": [{"name": "short"}]}
    asked = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "zip", "name": "short", "arguments": "{}"}
    made = body_answer(response(tools, asked))
    assert blocks(tools, asked) == [Opaque(tools, wire=OWN), Opaque(asked, wire=OWN)]
    assert (made.stop, made.finish) == ("action_required", "other")
    approved = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert items_of(made.message, user(Opaque(approved, wire=OWN))) == [tools, asked, approved]


@pytest.mark.parametrize(
    "item",
    [
        {"id": "cm_1", "type": "program", "call_id": "call_1", "code": "x", "fingerprint": "gAAA"},
        {"id": "cmo_1", "type": "program_output", "status": "completed", "call_id": "call_1", "result": "{}"},
        {"id": "tsc_1", "type": "tool_search_call", "status": "completed", "call_id": None, "execution": "server", "arguments": {}},
        {"id": "tso_1", "type": "tool_search_output", "status": "completed", "call_id": None, "execution": "server", "tools": []},
        {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAA"},
        {"id": "new_1", "type": "hologram", "data": [1, None]},
    ],
    ids=lambda item: item["type"],
)
def test_everything_else_is_kept_whole_in_its_place(item: dict[str, Any]) -> None:
    made = blocks(message("a", id="msg_1"), item, message("b", id="msg_2"))
    assert made[1] == Opaque(item, wire=OWN)
    assert back(made)[1] == item
