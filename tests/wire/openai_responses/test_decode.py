"""How an answer begins, goes on and ends: events in order, missing fields, errors, cuts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import (
    BlockStart,
    BlockStop,
    Citation,
    CitationDelta,
    Failed,
    IncompleteStreamError,
    InvalidRequestError,
    InvalidToolUse,
    MessageStart,
    MessageStop,
    Notice,
    OpaqueEvent,
    ProtocolError,
    QuotaExceededError,
    RateLimitedError,
    Refusal,
    Request,
    ServerError,
    SignatureDelta,
    StopDetails,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolUse,
    Usage,
)
from dragoman.errors import OverloadedError
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.shared import case, needs_cases
from tests.wire.openai_responses.answers import (
    STREAM,
    USAGE,
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
)

OWN = "openai-responses"


def test_a_text_is_framed_by_its_item() -> None:
    item = message("Hello")
    part: dict[str, Any] = {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "msg_1"}
    events = events_of(
        sse(
            created(),
            {"type": "response.in_progress", "response": response(status="in_progress")},
            added(0, {**item, "content": [], "status": "in_progress"}),
            {**part, "part": {"type": "output_text", "text": "", "annotations": []}},
            delta("output_text", 0, "Hel", content_index=0, item_id="msg_1", obfuscation="xyz"),
            delta("output_text", 0, "lo", content_index=0, item_id="msg_1", obfuscation="z"),
            done(0, item),
            completed(item),
        )
    )
    finished = Text("Hello", extra={OWN: {"item": {"id": "msg_1", "status": "completed"}}})
    assert events == [
        MessageStart("resp_1", "gpt-test", provider="openai", wire=OWN),
        BlockStart(0, Text("")),
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        BlockStop(0, finished),
        MessageStop("end_turn", raw_stop="completed", usage=Usage(input=5, output=3)),
    ]


def test_what_the_deltas_left_out_comes_as_a_last_delta() -> None:
    item = message("Hello, world")
    events = events_of(
        sse(created(), added(0, {**item, "content": []}), delta("output_text", 0, "Hello", content_index=0), completed(item))
    )
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hello", ", world"]


def test_deltas_that_contradict_the_finished_item_are_reported_and_it_wins() -> None:
    item = message("right")
    events = events_of(
        sse(created(), added(0, {**item, "content": []}), delta("output_text", 0, "wrong", content_index=0), completed(item))
    )
    assert folded(events).response().text == "right"
    assert [(event.code, event.index) for event in events if isinstance(event, Notice)] == [("content_differs", 0)]


def test_the_events_need_no_index_and_no_done() -> None:
    """llama.cpp: neither output_index nor content_index nor sequence_number, no arguments.done."""
    spoken, asked = message("Let me see", id="msg_a"), call('{"city":"Paris"}', call_id="fc_x")
    del asked["id"]
    no_index = [
        created(),
        {"type": "response.output_item.added", "item": {"type": "message", "id": "msg_a", "role": "assistant", "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_a", "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "item_id": "msg_a", "delta": "Let me"},
        {"type": "response.output_item.added", "item": {**asked, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_x", "delta": '{"city":'},
        {"type": "response.output_text.delta", "item_id": "msg_a", "delta": " see"},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_x", "delta": '"Paris"}'},
        {"type": "response.output_item.done", "item": spoken},
        {"type": "response.output_item.done", "item": asked},
        {"type": "response.completed", "response": response(spoken, asked)},
    ]
    made = answer(sse(*no_index))
    assert made.text == "Let me see"
    assert [(tool.id, tool.input) for tool in made.tool_uses] == [("fc_x", {"city": "Paris"})]
    assert made.notices == []


def test_events_that_name_no_item_are_about_the_latest_open_one_of_their_kind() -> None:
    first, second = message("one", id="msg_1"), message("two", id="msg_2")
    added_only = {"type": "response.output_item.added"}
    made = answer(
        sse(
            created(),
            {**added_only, "item": {**first, "content": []}},
            {"type": "response.output_text.delta", "delta": "one"},
            {"type": "response.output_item.done", "item": first},
            {**added_only, "item": {**second, "content": []}},
            {"type": "response.output_text.delta", "delta": "two"},
            {"type": "response.completed", "response": response(first, second)},
        )
    )
    assert [block.text for block in made.message.content if isinstance(block, Text)] == ["one", "two"]
    assert made.notices == []


def test_a_content_index_that_is_counted_over_all_items_is_still_the_first_part() -> None:
    """Amazon Bedrock: the only part of the second item has the content index 1."""
    thought, said = reasoning("hm"), message("so")
    events = events_of(
        sse(
            created(),
            added(0, thought),
            done(0, thought),
            added(1, {**said, "content": []}),
            delta("output_text", 1, "so", content_index=1),
            done(1, said),
            completed(thought, said),
        )
    )
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["so"]
    assert len(folded(events).response().message.content) == 2


def test_an_answer_whose_final_list_is_empty_keeps_what_was_streamed() -> None:
    """ChatGPT's backend ends with `output: []`."""
    item = message("kept")
    assert answer(sse(created(), added(0, {**item, "content": []}), done(0, item), completed())).text == "kept"


def test_items_that_only_the_end_has_are_not_lost() -> None:
    first, second = message("one", id="msg_1"), message("two", id="msg_2")
    made = answer(sse(created(), added(0, {**first, "content": []}), done(0, first), completed(first, second)))
    assert [block.text for block in made.message.content if isinstance(block, Text)] == ["one", "two"]


def test_the_encrypted_reasoning_of_the_end_is_the_one_to_keep() -> None:
    early, late = reasoning("why", encrypted_content="early"), reasoning("why", encrypted_content="late")
    said = message("so")
    body = sse(created(), added(0, early), done(0, early), added(1, {**said, "content": []}), done(1, said), completed(late, said))
    events = events_of(body)
    assert [event.signature for event in events if isinstance(event, SignatureDelta)] == ["late"]
    assert folded(events).response().message.content[0] == Thinking("why", signature="late", extra={OWN: {"id": "rs_1"}})


def test_ids_that_change_with_each_event_do_not_matter() -> None:
    """GitHub Copilot makes a new id for every event; the last one is kept."""
    item = message("same", id="msg_9")
    made = answer(
        sse(
            created(),
            {"type": "response.in_progress", "response": {"id": "resp_other"}},
            added(0, {**item, "id": "msg_2", "content": []}),
            delta("output_text", 0, "same", content_index=0, item_id="msg_3"),
            done(0, {**item, "id": "msg_4"}),
            {"type": "response.completed", "response": {**response(item), "id": "resp_9"}},
        )
    )
    assert made.message.content == [Text("same", extra={OWN: {"item": {"id": "msg_9", "status": "completed"}}})]
    assert (made.id, made.extra) == ("resp_1", {OWN: {"id": "resp_9"}})


def test_overlapping_items_are_kept_apart() -> None:
    """OpenRouter opens the next item before it closes the last."""
    said, thought = message("Yes."), reasoning(id="rs_1", encrypted_content="enc", format="google-gemini-v1")
    events = events_of(
        sse(
            created(),
            added(0, {**said, "content": []}),
            delta("output_text", 0, "Yes", content_index=0),
            added(1, {"type": "reasoning", "id": "rs_1", "summary": []}),
            delta("output_text", 0, ".", content_index=0),
            done(0, said),
            done(1, thought),
            completed(said, thought),
        )
        + b"data: [DONE]\n\n"
    )
    assert [type(event).__name__ for event in events[1:-1]] == [
        "BlockStart",
        "TextDelta",
        "BlockStart",
        "TextDelta",
        "BlockStop",
        "SignatureDelta",
        "BlockStop",
    ]


def test_a_citation_is_a_delta_and_is_not_sent_twice() -> None:
    note = {"type": "url_citation", "url": "https://example.org", "title": "Ex", "start_index": 0, "end_index": 2}
    other = {"type": "file_citation", "file_id": "file_1", "filename": "a.txt", "index": 3}
    item = message("Hi")
    item["content"][0]["annotations"] = [note, other]
    announced = {"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0, "annotation": note}
    events = events_of(
        sse(
            created(),
            added(0, {**item, "content": []}),
            delta("output_text", 0, "Hi", content_index=0),
            announced,
            done(0, item),
            completed(item),
        )
    )
    assert [event for event in events if isinstance(event, CitationDelta)] == [
        CitationDelta(0, Citation("url_citation", note)),
        CitationDelta(0, Citation("file_citation", other)),
    ]
    (text,) = folded(events).response().message.content
    assert isinstance(text, Text)
    assert [citation.url for citation in text.citations] == ["https://example.org", ""]


def test_the_parts_of_a_summary_are_parted_by_a_blank_line() -> None:
    part: dict[str, Any] = {"output_index": 0, "item_id": "rs_1"}
    item = reasoning("One", "Two")
    events = events_of(
        sse(
            created(),
            added(0, {**item, "summary": []}),
            {"type": "response.reasoning_summary_part.added", "summary_index": 0, **part},
            {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "One", **part},
            {"type": "response.reasoning_summary_part.added", "summary_index": 1, **part},
            {"type": "response.reasoning_summary_text.delta", "summary_index": 1, "delta": "Two", **part},
            done(0, item),
            completed(item),
        )
    )
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["One", "\n\n", "Two"]
    assert folded(events).response().message.content == [Thinking("One\n\nTwo", extra={OWN: {"id": "rs_1", "summary": [3, 3]}})]


def test_a_surrogate_pair_cut_over_two_deltas_is_one_character() -> None:
    item = message("a😀b")
    frames = sse(created(), added(0, {**item, "content": []}))
    frames += b'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a\\ud83d"}\n\n'
    frames += b'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"\\ude00b"}\n\n'
    events = events_of(frames + sse(completed(item)))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "😀b"]
    assert not [event for event in events if isinstance(event, Notice)]


# ---- stop reasons


@pytest.mark.parametrize(
    ("fields", "stop", "raw"),
    [
        ({}, "end_turn", "completed"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_tokens", "max_output_tokens"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refusal", "content_filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "unknown", "steered"),
        ({"status": "incomplete", "incomplete_details": None}, "unknown", "incomplete"),
        ({"status": "queued"}, "unknown", "queued"),
        ({"status": "in_progress"}, "unknown", "in_progress"),
        ({"status": "cancelled"}, "unknown", "cancelled"),
    ],
)
def test_the_status_and_its_reason_decide_the_stop(fields: dict[str, Any], stop: str, raw: str) -> None:
    made = body_answer(response(message("cut"), **fields))
    assert (made.stop, made.raw_stop, made.text) == (stop, raw, "cut")


def test_a_call_makes_the_stop_tool_use() -> None:
    assert body_answer(response(message("hm"), call("{}"))).stop == "tool_use"


def test_a_filter_says_so_in_the_details() -> None:
    filters = [{"source_type": "completion", "blocked": True}]
    made = body_answer(
        response(message("x"), status="incomplete", incomplete_details={"reason": "content_filter"}, content_filters=filters)
    )
    assert made.stop_details == StopDetails("filter", extra={OWN: {"content_filters": filters}})


def test_a_cut_call_is_not_executable_and_the_limit_is_the_reason() -> None:
    cut = call('{"city":"Par', status="incomplete")
    made = body_answer(response(cut, status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert made.stop == "max_tokens"
    assert [(c.raw, c.reason) for c in made.invalid_tool_uses] == [('{"city":"Par', "incomplete")]


@pytest.mark.parametrize("arguments", ["", '{"city":"Paris"}'])
def test_a_call_that_the_provider_calls_incomplete_is_never_executable(arguments: str) -> None:
    made = body_answer(response(call(arguments, status="incomplete"), status="incomplete", incomplete_details={"reason": "content_filter"}))
    assert (made.tool_uses, [c.reason for c in made.invalid_tool_uses]) == ([], ["incomplete"])


def test_a_call_without_arguments_has_none() -> None:
    assert body_answer(response(call(""))).tool_uses[0].input == {}


def test_an_answer_that_used_all_its_tokens_was_cut_where_the_server_does_not_say_so() -> None:
    wire = OpenAIResponsesWire(provider="local")
    request = Request("hi", model="m", max_tokens=3)
    body = json.dumps(response(message("and then")))
    made = wire.decode_response(200, {}, body.encode(), request)
    assert (made.stop, made.raw_stop, [n.code for n in made.notices]) == ("max_tokens", "completed", ["cut_by_limit"])
    assert WIRE.decode_response(200, {}, body.encode(), request).stop == "end_turn"  # OpenAI says `incomplete` itself


# ---- failures


def test_an_error_event_and_the_failed_response_after_it_are_one_failure_with_the_usage_of_the_second() -> None:
    error = {"type": "tokens", "code": "rate_limit_exceeded", "message": "slow down", "param": None}
    failed = response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow down"})
    events = events_of(sse(created(), {"type": "error", "error": error}, {"type": "response.failed", "response": failed}))
    assert [type(event) for event in events] == [MessageStart, Failed]
    failure = events[-1]
    assert isinstance(failure, Failed)
    assert isinstance(failure.error, RateLimitedError)
    assert (failure.error.code, failure.error.type, failure.error.retryable) == ("rate_limit_exceeded", "tokens", True)
    assert failure.error.message == "OpenAI request failed (tokens): slow down"
    assert failure.usage == Usage(input=5, output=3)


def test_of_several_errors_the_first_is_the_cause() -> None:
    first = {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}
    second = {"type": "error", "code": "server_error", "message": "and then"}
    assert isinstance(folded(events_of(sse(created(), first, second))).error, RateLimitedError)


def test_an_error_event_alone_is_the_end() -> None:
    flat = {"type": "error", "code": "server_error", "message": "boom", "param": None, "sequence_number": 1}
    accumulator = folded(events_of(sse(created(), flat)))
    assert isinstance(accumulator.error, ServerError)
    assert accumulator.error.code == "server_error"


def test_an_error_before_everything_is_a_failure_without_a_message() -> None:
    body = b'event: error\ndata: {"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"no credit"}}\n\n'
    (failure,) = events_of(body)
    assert isinstance(failure, Failed)
    assert isinstance(failure.error, QuotaExceededError)
    assert not failure.error.retryable


def test_a_failure_keeps_what_had_come() -> None:
    said = message("first", id="msg_1")
    accumulator = folded(
        events_of(
            sse(
                created(),
                added(0, {**said, "content": []}),
                done(0, said),
                added(1, {**call(""), "status": "in_progress"}),
                delta("function_call_arguments", 1, '{"ci'),
                {"type": "response.failed", "response": response(said, status="failed", error={"code": "server_error", "message": "x"})},
            )
        )
    )
    assert isinstance(accumulator.error, ServerError)
    said_block, cut = accumulator.partial().content
    assert said_block == Text("first", extra={OWN: {"item": {"id": "msg_1", "status": "completed"}}})
    assert isinstance(cut, InvalidToolUse)
    assert (cut.raw, cut.reason) == ('{"ci', "incomplete")


def test_a_failed_body_is_a_failure() -> None:
    with pytest.raises(OverloadedError, match="server_is_overloaded"):
        body_answer(response(status="failed", error={"code": "server_is_overloaded", "message": "busy"}))


def test_a_failed_response_may_be_without_usage_and_reason() -> None:
    accumulator = folded(
        events_of(sse(created(), {"type": "response.failed", "response": response(status="failed", usage=None, error=None)}))
    )
    assert isinstance(accumulator.error, ServerError)
    assert accumulator.error.usage == Usage()


def test_a_stream_without_its_end_is_incomplete_and_finished_items_stay_whole() -> None:
    thought = reasoning("hm", encrypted_content="enc")
    accumulator = folded(events_of(sse(created(), added(0, thought), done(0, thought), added(1, {**message(), "content": []}))))
    assert isinstance(accumulator.error, IncompleteStreamError)
    assert accumulator.partial().content == [Thinking("hm", signature="enc", extra={OWN: {"id": "rs_1"}})]


def test_a_reasoning_that_was_cut_off_carries_no_id_so_it_is_not_replayed() -> None:
    accumulator = folded(
        events_of(sse(created(), added(0, reasoning()), delta("reasoning_summary_text", 0, "hm", summary_index=0, item_id="rs_1")))
    )
    assert accumulator.partial().content == [Thinking("hm")]


def test_a_body_without_a_status_is_incomplete() -> None:
    body = response(message("x"))
    del body["status"]
    with pytest.raises(IncompleteStreamError):
        body_answer(body)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (delta("function_call_arguments", 0, "{}"), "function_call_arguments.delta for output item 0: no item was added"),
        (
            delta("function_call_arguments", 1, "{}"),
            "function_call_arguments.delta for output item 1: the item is an open one of type message",
        ),
        (delta("output_text", 2, "x", content_index=0), "output_text.delta for output item 2: the item is a finished one of type message"),
        (done(1, call("{}")), "output item 1 was added as message and ended as function_call"),
        (added(1, call("{}")), "output item 1 was added twice, as message and as function_call"),
        ({"type": "response.created", "response": {"id": "resp_2"}}, "a second response.created with another id"),
    ],
)
def test_events_that_contradict_each_other_are_a_protocol_error(event: dict[str, Any], words: str) -> None:
    finished = message("done", id="msg_2")
    start = [created(), added(1, {**message(id="msg_1"), "content": []}), added(2, {**finished, "content": []}), done(2, finished)]
    events = events_of(sse(*start, event, completed()))
    assert isinstance(events[-1], Failed)
    assert isinstance(events[-1].error, ProtocolError)
    assert words in events[-1].error.message


def test_more_text_of_a_message_that_is_done_is_a_protocol_error() -> None:
    more = delta("output_text", 0, "x", content_index=0, item_id="msg_1")
    item = message("xx")
    accumulator = folded(events_of(sse(created(), added(0, {**item, "content": []}), more, more, done(0, item), more)))
    assert isinstance(accumulator.error, ProtocolError)
    assert accumulator.partial().text == "xx"


def test_the_same_created_event_again_is_ignored() -> None:
    assert answer(sse(created(), created(), completed(message("x")))).text == "x"


def test_a_text_without_its_item_is_still_a_text() -> None:
    assert answer(sse(created(), delta("output_text", 0, "bare", content_index=0), completed())).text == "bare"


@pytest.mark.parametrize("data", [b"data: nonsense\n\n", b"data: [1]\n\n"])
def test_data_that_is_no_event_is_a_protocol_error(data: bytes) -> None:
    assert isinstance(folded(events_of(sse(created()) + data)).error, ProtocolError)


def test_nothing_follows_the_end() -> None:
    decoder = WIRE.decoder(headers=STREAM)
    ended = decoder.feed(sse(created(), completed(message("x"))))
    assert isinstance(ended[-1], MessageStop)  # at once: the connection need not close first
    assert decoder.feed(sse(created()) + b"data: [DONE]\n\n") == []
    assert decoder.close() == []


# ---- items whose whole form never comes, in an answer that is whole all the same


def bare_end(start: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    return list(answer(sse(created(), added(0, start), *deltas, completed())).message.content)


def test_a_reasoning_is_finished_from_its_deltas() -> None:
    assert bare_end(reasoning(), delta("reasoning_summary_text", 0, "hm", summary_index=0)) == [Thinking("hm")]


@pytest.mark.parametrize(("pieces", "value"), [(['{"a"', ":1}"], {"a": 1}), ([], {})])
def test_a_call_is_finished_from_its_deltas(pieces: list[str], value: dict[str, Any]) -> None:
    deltas = [delta("function_call_arguments", 0, piece) for piece in pieces]
    (use,) = bare_end({**call(""), "status": "in_progress"}, *deltas)
    assert use == ToolUse("call_1", "get_weather", value, extra={OWN: {"id": "fc_1"}})


def test_a_call_whose_deltas_end_too_early_is_not_executable() -> None:
    (bad,) = bare_end({**call(""), "status": "in_progress"}, delta("function_call_arguments", 0, '{"a'))
    assert (bad.raw, bad.reason) == ('{"a', "incomplete")


def test_a_call_of_free_text_without_its_end_is_not_executable() -> None:
    start = {"id": "ctc_1", "type": "custom_tool_call", "status": "in_progress", "call_id": "call_1", "name": "sh", "input": ""}
    (bad,) = bare_end(start, delta("custom_tool_call_input", 0, "rm -rf /"))
    assert (bad.raw, bad.reason) == ('{"input":"rm -rf /', "incomplete")


@pytest.mark.parametrize(
    "start",
    [
        {"id": "ws_1", "type": "web_search_call", "status": "in_progress"},
        {
            "id": "sh_1",
            "type": "shell_call",
            "call_id": "call_1",
            "action": {"commands": []},
            "environment": {"type": "container_reference", "container_id": "c"},
        },
    ],
)
def test_a_call_at_the_provider_without_its_end_is_nobodys_to_answer(start: dict[str, Any]) -> None:
    made = answer(sse(created(), added(0, start), completed()))
    (cut,) = made.invalid_tool_uses
    assert (cut.reason, cut.extra["dragoman"], made.stop) == ("incomplete", {"server_tool": True}, "end_turn")


def test_a_message_is_finished_from_its_deltas_under_its_id() -> None:
    start = {**message(), "content": [], "status": "in_progress"}
    assert bare_end(start, delta("refusal", 0, "No.", content_index=0)) == [Refusal("No.", extra={OWN: {"item": {"id": "msg_1"}}})]


# ---- texts and inputs that come whole


def whole(kind: str, field: str, text: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """An event that brings a text whole: `whole("output_text", "text", "Hi")`."""
    return {"type": f"response.{kind}.done", "output_index": index, field: text, **fields}


WHOLE_CALL = whole("function_call_arguments", "arguments", '{"a":1}')
WHOLE_TEXT = whole("output_text", "text", "Hi all", content_index=0)


@pytest.mark.parametrize("pieces", [[], ['{"a"'], ['{"a"', ":1}"]])
def test_arguments_that_come_whole_are_the_calls(pieces: list[str]) -> None:
    deltas = [delta("function_call_arguments", 0, piece) for piece in pieces]
    events = events_of(sse(created(), added(0, {**call(""), "status": "in_progress"}), *deltas, WHOLE_CALL, WHOLE_CALL, completed()))
    assert "".join([event.json for event in events if isinstance(event, ToolInputDelta)]) == '{"a":1}'
    (use,) = folded(events).response().tool_uses
    assert use.input == {"a": 1}


def test_arguments_in_the_start_of_a_call_are_its_input_where_nothing_else_comes() -> None:
    (use,) = bare_end({**call('{"a":1}'), "status": "in_progress"})
    assert use.input == {"a": 1}
    cut = {**completed(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "type": "response.incomplete"}
    (bad,) = answer(sse(created(), added(0, call("{}")), cut)).message.content
    assert isinstance(bad, InvalidToolUse)
    (use,) = bare_end({**call('{"a":1}'), "status": "in_progress"}, delta("function_call_arguments", 0, '{"a":2}'))
    assert use.input == {"a": 2}


@pytest.mark.parametrize("pieces", [[], ["Hi"], ["Hi", " all"]])
def test_a_text_that_comes_whole_is_the_messages(pieces: list[str]) -> None:
    start = {**message(), "content": [], "status": "in_progress"}
    deltas = [delta("output_text", 0, piece, content_index=0) for piece in pieces]
    for opening in ([added(0, start)], []):
        events = events_of(sse(created(), *opening, *deltas, WHOLE_TEXT, WHOLE_TEXT, completed()))
        assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == "Hi all"
        assert folded(events).response().text == "Hi all"


def test_a_refusal_that_comes_whole_is_one() -> None:
    start = {**message(), "content": [], "status": "in_progress"}
    made = answer(sse(created(), added(0, start), whole("refusal", "refusal", "No.", content_index=0), completed()))
    assert (type(made.message.content[0]), made.stop) == (Refusal, "refusal")


def test_parts_of_a_reasoning_that_come_whole_are_parted_by_a_blank_line() -> None:
    parts = [whole("reasoning_summary_text", "text", text, summary_index=n) for n, text in enumerate(("a", "b"))]
    first = delta("reasoning_summary_text", 0, "a", summary_index=0)
    assert bare_end(reasoning(), *parts) == [Thinking("a\n\nb")]
    assert bare_end(reasoning(), first, *parts) == [Thinking("a\n\nb")]


@pytest.mark.parametrize("pieces", [[], ["l"], ["ls"]])
def test_free_text_that_comes_whole_is_the_calls(pieces: list[str]) -> None:
    start = {"id": "ctc_1", "type": "custom_tool_call", "status": "in_progress", "call_id": "call_1", "name": "sh", "input": ""}
    deltas = [delta("custom_tool_call_input", 0, piece) for piece in pieces]
    assert bare_end(start, *deltas, whole("custom_tool_call_input", "input", "ls")) == [
        ToolUse("call_1", "sh", {"input": "ls"}, extra={OWN: {"kind": "custom_tool_call", "id": "ctc_1"}})
    ]


def test_a_patch_that_comes_whole_keeps_what_its_start_said() -> None:
    operation = {"type": "update_file", "path": "a.py", "diff": ""}
    start = {"id": "ap_1", "type": "apply_patch_call", "status": "in_progress", "call_id": "call_1", "operation": operation}
    (use,) = bare_end(start, whole("apply_patch_call_operation_diff", "diff", "+x"))
    assert (use.name, use.input) == ("apply_patch", {**operation, "diff": "+x"})


def test_commands_that_come_whole_are_shown_but_nobody_says_which_is_the_last() -> None:
    start = {"id": "sh_1", "type": "shell_call", "status": "in_progress", "call_id": "call_1", "action": {"commands": []}}
    commands = [whole("shell_call_command", "command", text, command_index=n) for n, text in ((0, "ls"), (2, "pwd"), (0, "no"), (1, "no"))]
    (bad,) = bare_end(start, delta("shell_call_command", 0, "l", command_index=0), *commands)
    assert (bad.raw, bad.reason) == ('{"commands":["ls","","pwd', "incomplete")


def test_a_whole_form_that_contradicts_the_deltas_is_reported_once() -> None:
    item = message("Hi all")
    wrong = delta("output_text", 0, "Bye", content_index=0)
    events = events_of(sse(created(), added(0, {**item, "content": []}), wrong, WHOLE_TEXT, done(0, item), WHOLE_TEXT, completed(item)))
    assert [event.code for event in events if isinstance(event, Notice)] == ["content_differs"]
    assert folded(events).response().text == "Hi all"


@pytest.mark.parametrize("event", [WHOLE_CALL, {**WHOLE_CALL, "arguments": ""}, {**WHOLE_TEXT, "text": ""}])
def test_a_whole_form_that_fits_no_item_or_is_empty_says_nothing(event: dict[str, Any]) -> None:
    made = answer(sse(created(), added(0, {**message(), "content": []}), event, completed(message("Hi"))))
    assert (made.text, made.notices) == ("Hi", [])


# ---- what is let through


def test_an_unknown_event_is_passed_on_and_reported() -> None:
    strange = {"type": "response.hologram.delta", "output_index": 0, "delta": "?"}
    events = events_of(sse(created(), strange, completed(message("x"))))
    assert OpaqueEvent(strange, wire=OWN, kind="response.hologram.delta") in events
    assert [event.code for event in events if isinstance(event, Notice)] == ["unknown_event"]


def test_signs_of_life_are_no_events() -> None:
    events = events_of(sse(created(), {"type": "keepalive", "sequence_number": 3}) + b": comment\n\n" + sse(completed(message("x"))))
    assert not [event for event in events if isinstance(event, Notice | OpaqueEvent)]


def test_gaps_in_the_sequence_numbers_are_nothing() -> None:
    events = [{**event, "sequence_number": n} for event, n in zip((created(), completed(message("x"))), (0, 7), strict=True)]
    assert answer(sse(*events)).notices == []


def test_how_far_a_tool_is_is_handed_on_for_a_display() -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}
    progress = {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}
    events = events_of(sse(created(), added(0, search), progress, completed({**search, "status": "completed", "action": None})))
    assert OpaqueEvent(progress, wire=OWN, kind="response.web_search_call.searching", index=0) in events
    assert not [event for event in events if isinstance(event, Notice)]


def test_what_the_response_says_beside_the_message_is_kept() -> None:
    made = body_answer(
        response(message("x"), created_at=7, moderation={"flagged": False}, instructions="be brief", conversation={"id": "c"})
    )
    assert made.extra == {OWN: {"created_at": 7, "moderation": {"flagged": False}, "conversation": {"id": "c"}}}


def test_the_request_id_and_the_limits_come_from_the_headers() -> None:
    headers = {
        "content-type": "application/json",
        "x-request-id": "req_1",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "998",
        "x-ratelimit-reset-tokens": "6ms",
    }
    made = WIRE.decode_response(200, headers, json.dumps(response(message("x"))).encode())
    assert made.request_id == "req_1"
    assert made.rate_limits is not None
    assert made.rate_limits.tokens is not None
    assert (made.rate_limits.tokens.limit, made.rate_limits.tokens.remaining, made.rate_limits.tokens.reset) == (1000, 998, "6ms")


# ---- usage


def usage_of(**usage: Any) -> Usage:
    return body_answer(response(message("x"), usage={**USAGE, **usage})).usage


def test_cached_and_written_tokens_are_taken_out_of_the_input() -> None:
    made = usage_of(input_tokens=4020, input_tokens_details={"cached_tokens": 3, "cache_write_tokens": 4012}, output_tokens=9)
    assert (made.input, made.cache_read, made.cache_write_other, made.total_input) == (5, 3, 4012, 4020)


def test_reasoning_is_part_of_the_output() -> None:
    made = usage_of(output_tokens=120, output_tokens_details={"reasoning_tokens": 100})
    assert (made.output, made.reasoning) == (120, 100)


def test_parts_larger_than_their_whole_leave_nothing_and_are_kept_as_they_came() -> None:
    details = {"cached_tokens": 9, "cache_write_tokens": 0}
    made = usage_of(input_tokens=5, input_tokens_details=details, total_tokens=8)
    assert (made.input, made.cache_read) == (0, 9)
    assert made.extra == {OWN: {"input_tokens": 5, "input_tokens_details": details}}


@pytest.mark.parametrize(("key", "value", "dollars"), [("cost", 3.55e-05, "0.0000355"), ("cost_in_usd_ticks", 1489500, "0.00014895")])
def test_what_a_gateway_billed_is_read(key: str, value: float, dollars: str) -> None:
    assert f"{usage_of(**{key: value}).reported_cost:f}" == dollars


@pytest.mark.parametrize("key", ["cost", "cost_in_usd_ticks"])
def test_a_bill_below_nothing_is_none_and_is_kept_as_it_came(key: str) -> None:
    found = usage_of(**{key: -1})
    assert (found.reported_cost, found.extra[OWN][key]) == (None, -1)


def test_tools_that_the_provider_ran_are_counted() -> None:
    usage = {"image_gen": {"input_tokens": 0}, "web_search": {"num_requests": 2}}
    made = body_answer(response(message("x"), tool_usage=usage, service_tier="flex")).usage
    assert (made.server_tools, made.service_tier, made.extra) == ({"web_search": 2}, "flex", {OWN: {"tool_usage": usage}})


def test_counts_that_are_no_counts_are_nothing() -> None:
    made = usage_of(input_tokens=None, output_tokens="3", input_tokens_details=None, output_tokens_details=[], total_tokens=0)
    assert (made.input, made.output) == (0, 0)


# ---- faults that were met elsewhere


@needs_cases
def test_usage_of_a_failed_answer_counts() -> None:
    accumulator = folded(events_of(case("envoyproxy/ai-gateway#2184")["input"].encode()))
    assert isinstance(accumulator.error, ServerError)
    assert accumulator.error.code == "server_error"
    assert (accumulator.usage.input, accumulator.usage.output) == (5, 3)
    without = case("envoyproxy/ai-gateway#2184")["input"].replace(
        '"usage":{"input_tokens":5,"output_tokens":3,"total_tokens":8}', '"usage":null'
    )
    assert folded(events_of(without.encode())).usage == Usage()
    limited = case("envoyproxy/ai-gateway#2184")["input"].replace('"server_error"', '"rate_limit_exceeded"')
    assert isinstance(folded(events_of(limited.encode())).error, RateLimitedError)


@needs_cases
@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal")])
def test_an_incomplete_response_is_not_taken_for_whole(reason: str, stop: str) -> None:
    text = case("langchain-ai/langchain#33840")["input"].replace("max_output_tokens", reason)
    made = answer(text.encode())
    assert (made.stop, made.text, made.usage.input, made.usage.output) == (stop, "cut", 5, 16)


def test_a_prompt_that_is_too_long_is_an_overflow() -> None:
    body = {"error": {"code": "context_length_exceeded", "message": "This model's maximum context length is 8191 tokens", "type": "x"}}
    error = WIRE.decode_error(400, {}, json.dumps(body).encode())
    assert error.kind == "context_overflow"
    assert not isinstance(error, InvalidRequestError)


def test_tool_deltas_are_the_text_as_received() -> None:
    item = call('{"city": "Paris"}')
    events = events_of(
        sse(
            created(),
            added(0, {**item, "arguments": ""}),
            delta("function_call_arguments", 0, '{"city": "P'),
            done(0, item),
            completed(item),
        )
    )
    assert [event.json for event in events if isinstance(event, ToolInputDelta)] == ['{"city": "P', 'aris"}']
    use = folded(events).response().tool_uses[0]
    assert use == ToolUse(
        "call_1", "get_weather", {"city": "Paris"}, extra={OWN: {"id": "fc_1", "status": "completed", "arguments": '{"city": "Paris"}'}}
    )
