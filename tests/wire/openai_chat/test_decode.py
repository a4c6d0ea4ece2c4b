"""Chat answers: what the shapes that hosts send mean."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from dragoman import (
    BlockStart,
    BlockStop,
    ContextOverflowError,
    Failed,
    Image,
    IncompleteStreamError,
    InvalidRequestError,
    InvalidToolUse,
    MessageStart,
    MessageStop,
    Notice,
    Opaque,
    OpaqueEvent,
    OverloadedError,
    ProtocolError,
    RateLimitedError,
    Refusal,
    ServerError,
    Text,
    TextDelta,
    Thinking,
    ToolInputDelta,
    ToolUse,
    Url,
    UsageUpdate,
)
from dragoman.message import Base64
from dragoman.wire.openai_chat import OpenAIChatWire
from tests.shared import case
from tests.wire.openai_chat.build import DONE, JSON, STREAM, body_response, call, chunk, event, events, response

STOP = chunk({}, "stop") + DONE
CALLS = chunk({}, "tool_calls") + DONE


def notices(data: bytes, dialect: str = "openai") -> list[str]:
    return [found.code for found in events(data, dialect) if isinstance(found, Notice)]


# ---- the faults that were reported elsewhere


def test_a_stream_that_just_ends_is_incomplete_and_a_missing_done_is_not() -> None:
    """NVIDIA/TensorRT-LLM#18289"""
    cut = case("NVIDIA/TensorRT-LLM#18289")["input"].encode()
    found = events(cut)
    assert isinstance(found[-1], Failed)
    assert isinstance(found[-1].error, IncompleteStreamError)
    assert [f for f in found if isinstance(f, TextDelta)] == [TextDelta(0, "cut")]
    finished = response(cut + chunk({}, "stop"))
    assert (finished.text, finished.stop) == ("cut", "end_turn")


@pytest.mark.parametrize("usage_again", [False, True])
def test_the_usage_chunk_has_no_choices(usage_again: bool) -> None:
    """XSpoonAi/spoon-core#179"""
    data = case("XSpoonAi/spoon-core#179")["input"].encode()
    if usage_again:
        last = event({"id": "x", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}})
        data = data.replace(DONE, last + DONE)
    found = response(data)
    assert (found.text, found.usage.input, found.usage.output) == ("hi", 9, 3 if usage_again else 2)


def test_usage_may_come_in_the_finish_chunk_or_not_at_all() -> None:
    """XSpoonAi/spoon-core#179"""
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    assert response(chunk({"content": "hi"}) + chunk({}, "stop", usage=usage)).usage.total == 11
    assert response(chunk({"content": "hi"}) + STOP).usage.total == 0


def test_stop_beside_a_call_is_tool_use() -> None:
    """anomalyco/opencode#14973"""
    found = response(case("anomalyco/opencode#14973")["input"].encode())
    assert (found.stop, found.raw_stop) == ("tool_use", "stop")
    assert found.tool_uses == [ToolUse("call_1", "f", {})]


@pytest.mark.parametrize("raw", ["tool_calls", "function_call"])
def test_tool_calls_without_a_call_is_no_tool_use(raw: str) -> None:
    """anomalyco/opencode#14973, mastra-ai/mastra#14187"""
    data = chunk({"content": "hi"}) + chunk({}, raw) + DONE
    found = response(data)
    assert (found.stop, found.raw_stop) == ("unknown", raw)
    assert [notice.code for notice in found.notices] == ["tool_use_without_call"]


@pytest.mark.parametrize(("raw", "stop"), [("length", "max_tokens"), ("content_filter", "refusal")])
def test_other_reasons_keep_their_meaning_beside_a_call(raw: str, stop: str) -> None:
    """anomalyco/opencode#14973"""
    assert response(chunk(call(0, "c", "f", '{"a":1}')) + chunk({}, raw) + DONE).stop == stop


def test_an_error_in_the_stream_is_an_error_with_what_had_come() -> None:
    """open-octo/octo-agent#910"""
    found = events(case("open-octo/octo-agent#910")["input"].encode())
    last = found[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, ServerError)
    assert (last.error.status, last.error.retryable) == (502, True)
    assert TextDelta(0, "Partial") in found


def test_an_error_in_the_stream_may_have_empty_choices_and_a_code_that_is_text() -> None:
    """open-octo/octo-agent#910"""
    (failed,) = events(event({"choices": [], "error": {"message": "slow down", "code": "429"}}))
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, RateLimitedError)


def test_cached_tokens_are_part_of_the_prompt() -> None:
    """coder/coder#23210"""
    usage = json.loads(case("coder/coder#23210")["input"])["usage"]
    found = response(chunk({"content": "x"}) + chunk({}, "stop", usage=usage) + DONE).usage
    assert (found.input, found.cache_read, found.output) == (86, 1920, 300)


@pytest.mark.parametrize("details", [{}, {"prompt_tokens_details": None}])
def test_no_details_are_no_cache(details: dict[str, Any]) -> None:
    """coder/coder#23210"""
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, **details}
    assert response(chunk({}, "stop", usage=usage)).usage.cache_read == 0


def test_reasoning_is_part_of_the_output() -> None:
    """twentyhq/twenty#18155"""
    usage = json.loads(case("twentyhq/twenty#18155")["input"])["usage"]
    found = response(chunk({"content": "x"}) + chunk({}, "stop", usage=usage) + DONE).usage
    assert (found.output, found.reasoning) == (120, 100)


# ---- how an answer begins and ends


def test_the_first_event_opens_the_message_also_where_azure_sends_a_chunk_without_id_first() -> None:
    first = event({"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
    found = events(first + chunk({"content": "a"}) + STOP)
    assert found[0] == MessageStart("chatcmpl-1", "gpt-test", provider="openai", wire="openai-chat")
    end = found[-1]
    assert isinstance(end, MessageStop)
    assert end.extra["openai-chat"]["prompt_filter_results"] == [{"prompt_index": 0}]


def test_done_without_a_finish_reason_is_incomplete() -> None:
    last = events(chunk({"content": "a"}) + DONE)[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, IncompleteStreamError)


def test_done_without_a_finish_reason_ends_a_host_that_never_says_one() -> None:
    found = response(chunk({"content": "a"}) + DONE, "snowflake")
    assert (found.text, found.stop, found.raw_stop) == ("a", "end_turn", "")
    assert [notice.code for notice in found.notices] == ["missing_finish_reason"]


def test_nothing_is_an_incomplete_stream() -> None:
    (failed,) = events(b"")
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, IncompleteStreamError)


def test_nothing_follows_done() -> None:
    assert isinstance(events(chunk({"content": "a"}) + STOP + chunk({"content": "b"}))[-1], MessageStop)


def test_the_end_waits_for_usage_also_in_a_chunk_with_choices() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    data = chunk({"content": "a"}) + chunk({}, "stop") + chunk({"content": ""}, "stop", usage=usage)
    assert response(data + DONE).usage.total == 3
    assert response(data).usage.total == 3


def test_a_finish_reason_that_comes_twice_counts_once_and_the_last_wins() -> None:
    found = response(chunk({"content": "a"}) + chunk({}, "length") + chunk({}, "stop") + DONE)
    assert found.raw_stop == "stop"


def test_comments_and_blank_lines_mean_nothing() -> None:
    found = response(b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + chunk({"content": "a"}) + b": x\n\n" + STOP)
    assert found.text == "a"


def test_null_and_empty_deltas_mean_nothing() -> None:
    found = events(chunk(None) + chunk({}) + chunk({"role": "assistant", "content": ""}) + chunk({"content": None}) + STOP)
    assert [type(f) for f in found] == [MessageStart, MessageStop]


def test_padding_against_traffic_analysis_is_ignored() -> None:
    data = chunk({"content": "a"}, obfuscation="xxxx") + chunk({"content": "b"}, p="abc") + chunk({}, "stop", obfuscation="y") + DONE
    assert response(data).extra == {"openai-chat": {"created": 1}}


def test_unknown_keys_of_a_chunk_are_kept_and_sources_go_to_the_message() -> None:
    found = response(chunk({"content": "a"}, citations=["u"], timings={"n": 1}) + chunk({"new": 1}, "stop", system_fingerprint="fp") + DONE)
    assert found.extra == {"openai-chat": {"created": 1, "timings": {"n": 1}, "system_fingerprint": "fp"}}
    assert found.message.extra == {"openai-chat": {"citations": ["u"], "new": 1}}


def test_an_event_that_is_no_chunk_is_passed_on() -> None:
    found = events(chunk({"content": "a"}) + event({"type": "keepalive"}) + STOP)
    assert [f for f in found if isinstance(f, OpaqueEvent)] == [OpaqueEvent({"type": "keepalive"}, wire="openai-chat", kind="keepalive")]
    assert notices(event(["x"]) + chunk({"content": "a"}) + STOP) == ["unknown_event"]


def test_an_event_that_is_not_json_is_a_protocol_error_unless_it_is_a_cut_last_one() -> None:
    last = events(chunk({"content": "a"}) + b"data: {broken\n\n" + STOP)[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, ProtocolError)
    assert response(chunk({"content": "a"}) + chunk({}, "stop") + b'data: {"id":"x').text == "a"


def test_the_request_id_may_be_in_the_headers_or_the_body() -> None:
    data = chunk({"content": "a"}, x_groq={"id": "req_1"}) + STOP
    assert response(data).request_id == "req_1"
    decoder = OpenAIChatWire().decoder(headers={**STREAM, "X-Request-Id": "r2"})
    assert [f.request_id for f in decoder.feed(data) if isinstance(f, MessageStart)] == ["r2"]


def test_limits_are_read_from_the_headers() -> None:
    headers = {**STREAM, "x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6s"}
    limits = OpenAIChatWire().decoder(headers=headers).rate_limits
    assert limits is not None
    assert limits.requests is not None
    assert (limits.requests.limit, limits.requests.remaining, limits.requests.reset) == (10, 9, "6s")
    assert limits.tokens is None
    assert OpenAIChatWire().decoder().rate_limits is None


# ---- finish reasons


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("sensitive", "refusal"),
        ("brand_new", "unknown"),
    ],
)
def test_finish_reasons(raw: str, stop: str) -> None:
    found = response(chunk({"content": "a"}) + chunk({}, raw) + DONE)
    assert (found.stop, found.raw_stop) == (stop, raw)
    assert [notice.code for notice in found.notices] == ["unknown_stop_reason"] * (stop == "unknown")


@pytest.mark.parametrize(
    ("raw", "cls"), [("error", ServerError), ("insufficient_system_resource", OverloadedError), ("network_error", ServerError)]
)
def test_finish_reasons_that_are_failures(raw: str, cls: type[Exception]) -> None:
    last = events(chunk({"content": "a"}) + chunk({}, raw) + DONE)[-1]
    assert isinstance(last, Failed)
    assert type(last.error) is cls
    assert (last.stop, last.raw_stop) == ("unknown", raw)


def test_the_end_of_the_context_window_is_an_error_with_the_whole_answer() -> None:
    last = events(chunk({"content": "a"}) + chunk({}, "model_length") + DONE, "mistral")[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, ContextOverflowError)
    assert last.stop == "context_exceeded"


@pytest.mark.parametrize("key", ["stop_reason", "matched_stop"])
def test_a_matched_stop_sequence_is_named(key: str) -> None:
    data = event({"id": "x", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", key: "END"}]})
    found = response(data)
    assert (found.stop, found.stop_sequence) == ("stop_sequence", "END")
    token = event({"id": "x", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop", key: 128009}]})
    assert response(token).stop == "end_turn"


def test_a_filter_says_which_of_its_classes_it_hit() -> None:
    results = {"hate": {"filtered": False, "severity": "safe"}, "violence": {"filtered": True, "severity": "high"}}
    choice = {"index": 0, "delta": {}, "finish_reason": "content_filter", "content_filter_results": results}
    details = response(chunk({"content": "a"}) + event({"id": "x", "choices": [choice]}) + DONE, "azure").stop_details
    assert details is not None
    assert (details.kind, details.category, details.extra) == ("filter", "violence", {"openai-chat": results})


# ---- calls


def test_arguments_come_in_pieces_and_null_is_nothing() -> None:
    data = chunk(call(0, "c1", "f", None)) + chunk(call(0, None, None, '{"a"')) + chunk(call(0, None, None, ":1}")) + CALLS
    assert response(data).tool_uses == [ToolUse("c1", "f", {"a": 1})]
    deltas = [f.json for f in events(data) if isinstance(f, ToolInputDelta)]
    assert deltas == ['{"a"', ":1}"]


def test_interleaved_calls_are_kept_apart_by_index() -> None:
    data = (
        chunk(call(0, "a", "f", ""))
        + chunk(call(1, "b", "g", ""))
        + chunk(call(0, None, None, '{"x":1}'))
        + chunk(call(1, None, None, "{}"))
    )
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {"x": 1}), ToolUse("b", "g", {})]


def test_a_new_id_at_a_used_index_is_a_new_call() -> None:
    data = chunk(call(0, "a", "f", "{}")) + chunk(call(0, "b", "f", '{"x":')) + chunk(call(0, None, None, "2}"))
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {}), ToolUse("b", "f", {"x": 2})]


def test_an_id_and_name_that_are_repeated_in_every_piece_are_one_call() -> None:
    data = chunk(call(0, "a", "f", "")) + chunk(call(0, "a", "f", '{"x":')) + chunk(call(0, "a", "f", "2}"))
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {"x": 2})]


def test_empty_ids_and_names_in_later_pieces_mean_nothing() -> None:
    data = chunk(call(0, "a", "f", "")) + chunk(call(0, "", "", '{"x":2}'))
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {"x": 2})]


def test_without_an_index_the_id_decides_and_without_an_id_the_latest_call_goes_on() -> None:
    data = chunk(call(None, "a", "f", '{"x":')) + chunk(call(None, None, None, "1}")) + chunk(call(None, "b", "g", "{}"))
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {"x": 1}), ToolUse("b", "g", {})]


def test_without_ids_a_new_name_is_a_new_call() -> None:
    data = chunk(call(0, None, "f", "{}")) + chunk(call(0, None, "f", '{"x":1}'))
    calls = response(data + CALLS).tool_uses
    assert [(c.id, c.input) for c in calls] == [("call_chatcmpl-1_0", {}), ("call_chatcmpl-1_1", {"x": 1})]


def test_without_ids_another_name_is_another_call_also_before_arguments_came() -> None:
    data = chunk(call(0, None, "f", "")) + chunk(call(0, None, "g", ""))
    assert [c.name for c in response(data + CALLS).tool_uses] == ["f", "g"]


def test_without_ids_the_same_name_in_every_piece_is_one_call() -> None:
    """Seen: vLLM's named tool choice."""
    data = b"".join(chunk(call(0, None, "get_weather", piece)) for piece in ['{"', "location", '":"', "Paris", '"}', ""])
    (found,) = response(data + STOP).tool_uses
    assert (found.name, found.input) == ("get_weather", {"location": "Paris"})


@pytest.mark.parametrize("tail", [None, "f"])
def test_without_ids_a_name_that_comes_again_before_its_arguments_is_another_call(tail: str | None) -> None:
    pieces = [("f", ""), (tail, '{"x":'), (tail, "1}"), ("f", None), (tail, '{"x":'), (tail, "2}")]
    data = b"".join(chunk(call(0, None, name, piece)) for name, piece in pieces)
    assert [c.input for c in response(data + CALLS).tool_uses] == [{"x": 1}, {"x": 2}]


def test_the_arguments_of_a_call_may_come_at_an_index_of_their_own() -> None:
    data = chunk(call(0, "a", "f", "")) + chunk(call(0, None, None, '{"x":1}')) + chunk(call(0, "b", "g", ""))
    data += chunk(call(1, None, None, '{"path":')) + chunk(call(1, None, None, '"/tmp"}'))
    assert response(data + CALLS).message.content == [ToolUse("a", "f", {"x": 1}), ToolUse("b", "g", {"path": "/tmp"})]


def test_one_id_at_two_indexes_is_one_call_until_arguments_came() -> None:
    data = chunk(call(0, "a", "f", "")) + chunk(call(1, "a", "f", '{"cmd":')) + chunk(call(1, None, None, '"ls"}'))
    assert response(data + CALLS).message.content == [ToolUse("a", "f", {"cmd": "ls"})]
    twice = chunk(call(0, "a", "f", "{}")) + chunk(call(1, "a", "f", '{"x":1}'))
    assert response(twice + CALLS).tool_uses == [ToolUse("a", "f", {}), ToolUse("a", "f", {"x": 1})]


def test_arguments_at_a_new_index_after_a_call_that_has_begun_are_nobodys() -> None:
    data = chunk(call(0, "a", "f", "{}")) + chunk(call(1, None, None, '{"x":1}'))
    used, unusable = response(data + CALLS).message.content
    assert used == ToolUse("a", "f", {})
    assert isinstance(unusable, InvalidToolUse)


@pytest.mark.parametrize("name", [None, "f"])
def test_an_id_that_comes_late_is_no_other_call(name: str | None) -> None:
    data = chunk(call(0, None, "f", "")) + chunk(call(0, "b", name, '{"x":')) + chunk(call(0, "b", name, "1}"))
    (found,) = response(data + CALLS).message.content
    assert isinstance(found, ToolUse)
    assert found.input == {"x": 1}


def test_a_head_that_comes_after_a_piece_without_anything_is_no_other_call() -> None:
    data = chunk(call(0, None, None, "")) + chunk(call(0, "b", "f", "{}"))
    assert response(data + CALLS).message.content == [ToolUse("b", "f", {})]


def test_a_late_id_with_another_name_is_another_call() -> None:
    data = chunk(call(0, None, "f", "")) + chunk(call(0, "b", "g", "{}"))
    assert [c.name for c in response(data + CALLS).tool_uses] == ["f", "g"]


@pytest.mark.parametrize("id", [None, "a"])
def test_a_name_in_two_pieces_is_joined_with_a_notice(id: str | None) -> None:
    data = chunk(call(0, "a", "get_", "")) + chunk(call(0, id, "ti", "")) + chunk(call(0, id, "me", "{}")) + chunk(call(1, "b", "g", "{}"))
    assert response(data + CALLS).message.content == [ToolUse("a", "get_time", {}), ToolUse("b", "g", {})]
    assert notices(data + CALLS) == ["tool_name_in_pieces"]
    assert notices(chunk(call(0, "a", "f", "")) + chunk(call(0, "a", "f", "{}")) + CALLS) == []


def test_a_call_with_a_name_in_pieces_that_was_cut_cannot_be_run() -> None:
    data = chunk(call(0, "a", "get_", "")) + chunk(call(0, None, "time", ""))
    found = response(data + chunk({}, "length") + DONE)
    assert found.message.content == [InvalidToolUse("a", "get_time", "", reason="incomplete")]


def test_arguments_that_come_before_the_name_are_not_lost() -> None:
    data = chunk(call(0, "a", None, '{"x"')) + chunk(call(0, None, "f", ":1}"))
    found = events(data + CALLS)
    assert BlockStart(0, ToolUse("a", "f", {})) in found
    assert response(data + CALLS).tool_uses == [ToolUse("a", "f", {"x": 1})]


def test_a_call_that_never_named_a_tool_cannot_be_run() -> None:
    found = response(chunk(call(0, "a", None, "{}")) + CALLS)
    assert found.message.content == [InvalidToolUse("a", "", "{}", reason="incomplete")]


@pytest.mark.parametrize(
    ("raw", "reason"), [('{"a":', "incomplete"), ("{'a': 1}", "invalid_json"), ("null", "not_an_object"), ('{"a": NaN}', "invalid_json")]
)
def test_a_call_with_unusable_arguments_is_never_executable(raw: str, reason: str) -> None:
    (block,) = response(chunk(call(0, "c", "f", raw)) + CALLS).message.content
    assert block == InvalidToolUse("c", "f", raw, reason=reason)  # type: ignore[arg-type]


def test_arguments_sent_as_an_object_are_understood() -> None:
    data = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": {"a": [1]}}}]})
    assert response(data + CALLS).tool_uses == [ToolUse("c", "f", {"a": [1]})]


def test_a_streamed_custom_call_is_one_string_escaped() -> None:
    first = {"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": 'say "'}}]}
    more = {"tool_calls": [{"index": 0, "custom": {"input": '4"\n'}}]}
    more["tool_calls"][0]["type"] = "custom"
    found = response(chunk(first) + chunk(more) + CALLS)
    assert found.tool_uses == [ToolUse("c", "sql", {"input": 'say "4"\n'}, extra={"openai-chat": {"kind": "custom"}})]


def test_the_rest_of_a_custom_call_needs_no_type() -> None:
    first = {"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}}]}
    more = {"tool_calls": [{"index": 0, "custom": {"input": "select"}}]}
    assert [c.input for c in response(chunk(first) + chunk(more) + CALLS).tool_uses] == [{"input": "select"}]


def test_the_call_of_the_old_form_has_no_id() -> None:
    data = chunk({"function_call": {"name": "f", "arguments": ""}}) + chunk({"function_call": {"arguments": '{"a":1}'}})
    (found,) = response(data + chunk({}, "function_call") + DONE).tool_uses
    assert (found.name, found.input) == ("f", {"a": 1})
    assert found.extra == {"openai-chat": {"kind": "function_call", "synthetic_id": True}}


def test_what_else_a_call_carries_is_kept() -> None:
    entry = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "s"}}}
    (found,) = response(chunk({"tool_calls": [entry]}) + CALLS).tool_uses
    assert found.extra == {"openai-chat": {"extra_content": {"google": {"thought_signature": "s"}}}}


# ---- other content


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_whatever_its_key(field: str) -> None:
    data = chunk({field: "a"}) + chunk({field: "b"}) + chunk({"content": "c"}) + STOP
    assert response(data).message.content == [Thinking("ab", extra={"openai-chat": {"field": field}}), Text("c")]


def test_reasoning_beside_a_detail_with_text_is_not_said_twice() -> None:
    detail = {"type": "reasoning.text", "text": "a", "index": 0}
    data = chunk({"reasoning": "a", "reasoning_details": [detail]}) + STOP
    assert response(data).message.content == [Thinking("a", extra={"openai-chat": {"detail": {"type": "reasoning.text", "index": 0}}})]


def test_reasoning_beside_an_encrypted_detail_is_kept() -> None:
    detail = {"type": "reasoning.encrypted", "data": "zz", "index": 0}
    found = response(chunk({"reasoning": "a", "reasoning_details": [detail]}) + STOP).message.content
    assert [type(block).__name__ for block in found] == ["RedactedThinking", "Thinking"]


def test_pieces_of_a_detail_are_joined_and_signed() -> None:
    pieces = [{"text": "a"}, {"text": "b"}, {"text": "", "signature": "sig", "format": "anthropic-claude-v1"}]
    data = b"".join(chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, **piece}]}) for piece in pieces)
    (block,) = response(data + STOP).message.content
    detail = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    assert block == Thinking("ab", signature="sig", extra={"openai-chat": {"detail": detail}})


def test_details_with_different_ids_are_different_items() -> None:
    pieces = [{"id": "rs_1", "summary": "a"}, {"id": "rs_2", "summary": "b"}]
    data = b"".join(chunk({"reasoning_details": [{"type": "reasoning.summary", "index": 0, **piece}]}) for piece in pieces)
    assert [block.text for block in response(data + STOP).message.content] == ["a", "b"]  # type: ignore[union-attr]


def test_a_refusal_ends_in_refusal() -> None:
    found = response(chunk({"refusal": "I "}) + chunk({"refusal": "cannot"}) + STOP)
    assert found.message.content == [Refusal("I cannot")]
    assert (found.stop, found.text) == ("refusal", "")


def test_parts_of_unknown_type_stay_whole_in_their_place() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]
    assert response(chunk({"content": parts}) + STOP).message.content == [Text("a"), Opaque(parts[1], wire="openai-chat")]


def test_pictures_are_images() -> None:
    images = [{"type": "image_url", "image_url": {"url": url}} for url in ("data:image/png;base64,AAAA", "https://example.com/a.png")]
    found = response(chunk({"content": "see", "images": images}) + STOP).message.content
    assert found == [Text("see"), Image(Base64("image/png", "AAAA")), Image(Url("https://example.com/a.png"))]


def test_sound_in_pieces_that_are_padded_on_their_own_is_joined() -> None:
    data = chunk({"audio": {"data": "YQ=="}}) + chunk({"audio": {"data": "Yg=="}}) + STOP
    (block,) = response(data).message.content
    assert block.source == Base64("application/octet-stream", "YWI=")  # type: ignore[union-attr]


def test_a_block_that_begins_after_the_finish_reason_is_noticed_once() -> None:
    data = chunk({"content": "a"}) + chunk({}, "stop") + chunk({"reasoning": "b"}) + chunk(call(0, "c", "f", "{}")) + DONE
    assert notices(data) == ["after_stop"]


def test_a_pair_that_was_cut_over_two_chunks_is_one_character() -> None:
    data = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n'
    data += b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}\n\n'
    assert response(data + STOP).text == "a😀b"


def test_a_host_whose_chunks_are_all_different_from_the_usual_shape_is_read_the_same() -> None:
    odd = b"".join(chunk({"content": f"{n} "}, extra_key=n) for n in range(40)) + STOP
    usual = b"".join(chunk({"content": f"{n} "}) for n in range(40)) + STOP
    assert response(odd).text == response(usual).text


# ---- errors inside an answer of status 200


@pytest.mark.parametrize(
    ("error", "cls", "status"),
    [
        ({"message": "m", "type": "server_error"}, ServerError, None),
        ({"message": "m", "code": "rate_limit_exceeded"}, RateLimitedError, None),
        ({"message": "m", "code": 503}, OverloadedError, 503),
        ({"message": "m", "type": "invalid_request_error", "status_code": 400}, InvalidRequestError, 400),
        ({"message": "prompt: maximum context length is 10 tokens", "type": "invalid_request_error"}, ContextOverflowError, None),
        ("plain text", ServerError, None),
    ],
)
def test_errors_in_a_stream(error: Any, cls: type[Exception], status: int | None) -> None:
    for data in (event({"error": error}), event({"error": error}, "error"), chunk({"content": "a"}) + event({"error": error})):
        last = events(data)[-1]
        assert isinstance(last, Failed)
        assert type(last.error) is cls
        assert last.error.status == status
        assert ("m" in str(last.error)) or error == "plain text"


def test_an_error_event_without_an_error_key_or_json_is_still_an_error() -> None:
    for data in (event({"message": "boom", "type": "server_error"}, "error"), b"event: error\ndata: boom\n\n"):
        (failed,) = events(data)
        assert isinstance(failed, Failed)
        assert "boom" in str(failed.error)


def test_an_error_without_a_finish_reason_ends_the_stream_at_once() -> None:
    decoder = OpenAIChatWire().decoder(headers=STREAM)
    assert isinstance(decoder.feed(event({"error": {"message": "m"}}))[-1], Failed)
    assert decoder.close() == []


def test_null_and_empty_errors_are_none() -> None:
    assert response(chunk({"content": "a"}, error=None) + chunk({}, "stop", error={}) + DONE).text == "a"


# ---- bodies


def test_a_body_is_the_same_answer() -> None:
    message = {"role": "assistant", "content": "hi", "refusal": None, "annotations": []}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 0.5}
    found = body_response(
        {"id": "c1", "model": "m", "created": 1, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    )
    assert (found.text, found.id, found.model, found.stop, found.usage.reported_cost) == ("hi", "c1", "m", "end_turn", Decimal("0.5"))


def test_a_body_where_a_stream_was_asked_for_is_understood() -> None:
    body = json.dumps({"id": "c1", "model": "m", "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()
    decoder = OpenAIChatWire().decoder()
    found = [*decoder.feed(body[:1]), *decoder.feed(body[1:]), *decoder.close()]
    assert BlockStop(0, Text("hi")) in found


def test_calls_of_a_body_are_numbered_by_their_place() -> None:
    calls = [{"id": "x", "function": {"name": "f", "arguments": "{}"}, "index": 0} for _ in range(2)]
    found = body_response({"id": "c", "choices": [{"message": {"content": None, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
    assert len(found.tool_uses) == 2


@pytest.mark.parametrize("body", [{"object": "list", "data": []}, {"choices": []}, {"choices": "x"}])
def test_json_that_is_no_chat_answer_is_a_protocol_error(body: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="no choices"):
        body_response(body)


@pytest.mark.parametrize("place", ["top", "choice"])
def test_an_error_in_a_body_of_status_200_is_an_error(place: str) -> None:
    error = {"code": 502, "message": "upstream"}
    body: dict[str, Any] = {"error": error}
    if place == "choice":
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        body = {"id": "c", "choices": [{"message": {"content": "par"}, "finish_reason": None, "error": error}], "usage": usage}
    with pytest.raises(ServerError) as caught:
        body_response(body)
    assert caught.value.status == 502
    if place == "choice":
        assert caught.value.partial is not None
        assert caught.value.partial.text == "par"
        assert caught.value.usage is not None
        assert caught.value.usage.total == 3


def test_a_body_without_a_finish_reason_is_incomplete() -> None:
    with pytest.raises(IncompleteStreamError):
        body_response({"id": "c", "choices": [{"message": {"content": "a"}, "finish_reason": None}]})


def test_a_cut_body_is_incomplete() -> None:
    with pytest.raises(IncompleteStreamError, match="cut or malformed"):
        OpenAIChatWire().decode_response(200, JSON, b'{"id":"c","choices":[{"mess')


def test_a_page_is_a_protocol_error_that_says_so() -> None:
    with pytest.raises(ProtocolError, match="text/html"):
        OpenAIChatWire().decode_response(200, {"content-type": "text/html"}, b"<html>login</html>")


# ---- usage


def reasoned(prompt: int, completion: int, total: int, reasoning: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {**counts, "completion_tokens_details": {"reasoning_tokens": reasoning}}


@pytest.mark.parametrize(
    ("dialect", "usage", "expected"),
    [
        ("openai", {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 50}}, (20, 30, 50, 0)),
        ("deepseek", {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36}, (36, 64, 0, 0)),
        ("generic", {"prompt_tokens": 100, "cached_tokens": 10}, (90, 10, 0, 0)),
        ("generic", {"prompt_tokens": 100, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 20}, (70, 10, 20, 0)),
        ("openai", {"prompt_tokens": 10, "completion_tokens": None, "total_tokens": None}, (10, 0, 0, 0)),
        ("openai", {"prompt_tokens": "many", "completion_tokens": -3}, (0, 0, 0, 0)),
        (
            "xai",
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 35, "completion_tokens_details": {"reasoning_tokens": 20}},
            (10, 0, 0, 25),
        ),
        (
            "openai",
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "completion_tokens_details": {"reasoning_tokens": 3}},
            (10, 0, 0, 5),
        ),
        (
            "openrouter",
            {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6, "completion_tokens_details": {"reasoning_tokens": 9}},
            (1, 0, 0, 5),
        ),
        ("google", {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}, (35, 0, 0, 74)),
    ],
)
def test_usage_of_hosts(dialect: str, usage: dict[str, Any], expected: tuple[int, ...]) -> None:
    found = response(chunk({"content": "x"}) + chunk({}, "stop", usage=usage) + DONE, dialect).usage
    assert (found.input, found.cache_read, found.cache_write, found.output) == expected


def test_the_lifetimes_of_cache_writes_are_split() -> None:
    creation = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4, "ephemeral_24h_input_tokens": 5}
    usage = {"prompt_tokens": 20, "cache_creation_input_tokens": 12, "cache_creation": creation}
    found = response(chunk({}, "stop", usage=usage)).usage
    assert (found.cache_write_5m, found.cache_write_1h, found.cache_write_other, found.input) == (3, 4, 5, 8)


def test_a_split_of_cache_writes_counts_also_without_its_sum() -> None:
    creation = {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 10}
    found = response(chunk({}, "stop", usage={"prompt_tokens": 100, "cache_creation": creation})).usage
    assert (found.input, found.cache_write_5m, found.cache_write_1h, found.cache_write_other) == (30, 60, 10, 0)
    assert found.total_input == 100


@pytest.mark.parametrize("cost", [-1, -0.5, True, "1", {"input": 1}, {"total_cost": -1}])
def test_a_bill_that_is_none_is_kept_as_it_came(cost: Any) -> None:
    found = response(chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "cost": cost})).usage
    assert (found.reported_cost, found.extra) == (None, {"openai-chat": {"cost": cost}})


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0076509169000000005}, "0.0076509169000000005"),
        ({"cost": 0}, "0"),
        ({"cost": {"total_cost": 0.006, "input_tokens_cost": 0.001}}, "0.006"),
        ({"cost_in_usd_ticks": 1489500}, "0.00014895"),
        ({"cost": True}, None),
        ({}, None),
    ],
)
def test_what_the_host_billed(usage: dict[str, Any], cost: str | None) -> None:
    found = response(chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, **usage})).usage
    assert found.reported_cost == (None if cost is None else Decimal(cost))


def test_usage_keys_without_a_field_are_kept() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "queue_time": 0.5, "is_byok": False, "nothing": None}
    details = {"completion_tokens_details": {"accepted_prediction_tokens": 4, "rejected_prediction_tokens": 0}}
    found = response(chunk({}, "stop", usage=usage | details)).usage
    kept = {"queue_time": 0.5, "is_byok": False, "completion_tokens_details": {"accepted_prediction_tokens": 4}}
    assert found.extra == {"openai-chat": kept}


def test_the_same_usage_again_is_not_news() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    data = chunk({"content": "a"}, usage=usage) + chunk({}, "stop", usage=usage) + DONE
    assert len([f for f in events(data) if isinstance(f, UsageUpdate)]) == 1


def test_the_service_tier_is_told() -> None:
    data = chunk({"content": "a"}, service_tier="flex") + chunk({}, "stop", usage={"prompt_tokens": 1}) + DONE
    assert response(data).usage.service_tier == "flex"


def test_groqs_usage_in_its_own_object_is_used_where_there_is_no_other() -> None:
    data = chunk({"content": "a"}) + chunk({}, "stop", x_groq={"id": "r", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}) + DONE
    assert response(data, "groq").usage.total == 7
