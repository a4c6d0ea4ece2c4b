"""The hard recordings of chat hosts, each in the form that `spec/forms.md` demands."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dragoman import (
    Accumulator,
    Audio,
    CitationDelta,
    InvalidRequestError,
    MessageStart,
    OpaqueEvent,
    ProviderError,
    RedactedThinking,
    Refusal,
    Request,
    ServerError,
    Text,
    TextDelta,
    Thinking,
    ToolInputDelta,
    ToolUse,
    Usage,
    UsageUpdate,
    user,
)
from dragoman.message import Base64
from tests.shared import Exchange, exchanges
from tests.wire.openai_chat.recordings import decode, fold, headers_of, wire_of


def recording(ending: str) -> Exchange:
    """The one exchange whose name ends so; skips if the corpus is absent."""
    found = [e for e in exchanges("openai_chat") if e.name.endswith(ending)]
    if not found:
        pytest.skip("the recorded exchanges are absent")
    (one,) = found
    return one


def answer(ending: str) -> tuple[Accumulator, ProviderError | None]:
    return fold(decode(recording(ending), []))


def test_of_two_choices_the_first_is_the_answer_and_the_other_passes_by() -> None:
    exchange = recording("multiple_choices_with_tools.0.b9538dab")
    events = decode(exchange, [])
    accumulator, _ = fold(events)
    assert [type(block) for block in accumulator.message().content] == [ToolUse]
    others = [event for event in events if isinstance(event, OpaqueEvent)]
    assert [(event.kind, event.data["index"]) for event in others] == [("choice", 1)]


def test_a_streamed_refusal_is_a_refusal_although_the_host_says_stop() -> None:
    accumulator, _ = answer("refusal_matrix_chat_streaming_agent_surfaces_refusal.0.bf1d7692")
    (block,) = accumulator.message().content
    assert isinstance(block, Refusal)
    assert (accumulator.stop, accumulator.raw_stop, accumulator.message().text) == ("refusal", "stop", "")


def test_sound_is_one_audio_block_whose_last_part_comes_after_the_usage() -> None:
    exchange = recording("ChatTests_ChatWithAudioAsync.1.2c93bd53")
    decoder = wire_of(exchange).decoder(Request("q", extra_body={"audio": {"format": "pcm16"}}), headers=headers_of(exchange))
    events = [*decoder.feed(exchange.body), *decoder.close()]
    accumulator, error = fold(events)
    (block,) = accumulator.message().content
    assert error is None
    assert isinstance(block, Audio)
    assert isinstance(block.source, Base64)
    assert block.source.media_type == "audio/pcm"
    assert block.source.data
    assert block.transcript.startswith("Sure, let me")
    assert block.transcript == "".join(event.text for event in events if isinstance(event, TextDelta))
    assert block.extra == {"openai-chat": {"id": "audio_6a233a418eb88191b23c1f30b56d8614", "expires_at": 1780697170}}
    usage = accumulator.usage
    assert (usage.input, usage.output) == (185, 49)
    assert usage.details == {"input.audio": 130, "output.audio": 34}


def test_a_custom_tool_call_is_an_input_of_one_text_sent_escaped() -> None:
    exchange = recording("openai_v1_chat_completion_custom_tool_call.0.5eee7e5e")
    events = decode(exchange, [])
    (call,) = fold(events)[0].message().tool_uses
    assert call.input == {"input": "4 + 4"}
    assert call.extra == {"openai-chat": {"kind": "custom"}}
    assert "".join(event.json for event in events if isinstance(event, ToolInputDelta)) == '{"input":"4 + 4"}'


def test_a_call_without_an_id_gets_one_and_googles_signature_belongs_to_the_message() -> None:
    accumulator, _ = answer("compatible_api_with_tool_calls_without_id.0.19c045b7")
    message = accumulator.message()
    (call,) = message.tool_uses
    assert call.id == "call_3SE-aKjdCcCEz7IPxpqjCA_0"
    assert call.extra == {"openai-chat": {"synthetic_id": True}}
    assert message.extra["openai-chat"]["thought_signature"]
    usage = accumulator.usage
    assert (usage.input, usage.output, usage.reasoning, usage.total) == (35, 74, 62, 109)


def test_calls_that_all_came_at_index_0_are_many_and_the_error_after_them_has_the_usage() -> None:
    accumulator, error = answer("openrouter_google_gemini_2_5_flash_lite_object_streaming.0.0a889924")
    assert isinstance(error, ServerError)
    assert (error.status, accumulator.raw_stop) == (502, "stop")
    assert "Malformed function call" in str(error)
    assert error.usage == accumulator.usage
    assert (accumulator.usage.input, accumulator.usage.output, accumulator.usage.reported_cost) == (41, 243, Decimal("0.0001013"))
    partial = accumulator.partial()
    assert len(partial.invalid_tool_uses) > 5
    assert len({call.id for call in partial.invalid_tool_uses}) == len(partial.invalid_tool_uses)


def test_each_reasoning_detail_is_a_block_and_the_encrypted_one_names_its_call() -> None:
    accumulator, _ = answer("TestOpenRouterCommon_gemini_multi_tool.0.0d8e6dd0")
    blocks = accumulator.message().content
    redacted = [block for block in blocks if isinstance(block, RedactedThinking)]
    assert len(redacted) == 1
    detail = redacted[0].extra["openai-chat"]["detail"]
    assert detail["type"] == "reasoning.encrypted"
    assert detail["id"] == accumulator.message().tool_uses[0].id
    assert "data" not in detail


def test_summary_and_encrypted_details_with_one_index_are_two_blocks() -> None:
    accumulator, _ = answer("TestOpenRouterCommon_grok_tool_streaming.0.2f60cf76")
    kinds = [(type(block), block.extra["openai-chat"]["detail"]["type"]) for block in accumulator.message().content[:2]]  # type: ignore[union-attr]
    assert kinds == [(Thinking, "reasoning.summary"), (RedactedThinking, "reasoning.encrypted")]


def test_a_signed_detail_is_thinking_with_its_signature() -> None:
    accumulator, _ = answer("openrouter_anthropic_claude_haiku_4_5_streaming.0.f36ccd31")
    thinking = accumulator.message().content[0]
    assert isinstance(thinking, Thinking)
    assert thinking.text
    assert thinking.signature
    assert thinking.extra["openai-chat"]["detail"]["format"] == "anthropic-claude-v1"


def test_annotations_that_come_before_the_text_are_its_citations() -> None:
    exchange = recording("openrouter_web_search_annotations_stream.0.65da45a6")
    events = decode(exchange, [])
    accumulator, error = fold(events)
    assert error is None
    (text,) = accumulator.message().content
    assert isinstance(text, Text)
    assert [citation.kind for citation in text.citations] == ["url_citation"] * 5
    assert text.citations[0].url == "https://github.com/pydantic/pydantic-ai"
    first_text = next(place for place, event in enumerate(events) if isinstance(event, TextDelta))
    assert any(isinstance(event, CitationDelta) for event in events[:first_text])
    assert accumulator.usage.server_tools["web_search_requests"] == 1
    assert accumulator.usage.reported_cost == Decimal("0.0076509169000000005")


def test_an_error_event_in_a_200_stream_is_an_error_and_keeps_the_thinking() -> None:
    accumulator, error = answer("groq_test_tool_use_failed_error_streaming_with_text.0.c9b79b82")
    assert isinstance(error, InvalidRequestError)
    assert (error.code, error.status) == ("tool_use_failed", 400)
    assert "failed_generation" in error.body
    assert not error.retryable
    thinking, text = accumulator.partial().content
    assert isinstance(thinking, Thinking)
    assert isinstance(text, Text)
    assert text.text == "maybe"


def test_groqs_channel_is_kept_with_the_thinking() -> None:
    accumulator, _ = answer("groq_test_tool_use_failed_error_streaming_with_text.1.efd8c255")
    assert accumulator.message().content[0].extra["openai-chat"] == {"field": "reasoning", "channel": "analysis"}  # type: ignore[union-attr]


def test_one_text_stays_open_across_calls_and_the_first_id_wins() -> None:
    exchange = recording("avian-kimi_multi_tool_streaming.0.b500dc9f")
    events = decode(exchange, [])
    accumulator, _ = fold(events)
    kinds = [type(block) for block in accumulator.message().content]
    assert kinds == [Thinking, Text, ToolUse, ToolUse]
    assert len([event for event in events if isinstance(event, MessageStart)]) == 1


def test_logprobs_are_on_the_finished_text() -> None:
    accumulator, _ = answer("ai_chat_streaming_logprobs_matrix_streaming_gpt_4o_mini_length_top_two.0.43197a84")
    (text,) = accumulator.message().content
    assert isinstance(text, Text)
    assert [entry["token"] for entry in text.extra["openai-chat"]["logprobs"]] == [text.text]


def test_perplexitys_sources_belong_to_the_message_and_its_usage_grows() -> None:
    exchange = recording("perplexity_sonar_supports_streaming_responses.0.2fefb9b1")
    events = decode(exchange, [])
    accumulator, error = fold(events)
    assert error is None
    assert set(accumulator.message().extra["openai-chat"]) == {"citations", "search_results"}
    outputs = [event.usage.output for event in events if isinstance(event, UsageUpdate)]
    assert outputs == sorted(outputs)
    assert len(outputs) > 1
    assert accumulator.usage.reported_cost is not None


def test_mistrals_thinking_in_a_content_list_is_thinking() -> None:
    accumulator, _ = answer("mistral_mistral_v1_chat_completions_post_ccfa08da.0.98267123")
    thinking, text = accumulator.message().content
    assert isinstance(thinking, Thinking)
    assert thinking.text.startswith("Okay, the user has asked")
    assert isinstance(text, Text)


def test_the_length_limit_leaves_a_call_without_arguments_unusable() -> None:
    accumulator, _ = answer("agent_streaming_empty_arguments_on_length_are_not_invoked.0.f5137fd8")
    message = accumulator.message()
    assert accumulator.stop == "max_tokens"
    assert message.tool_uses == []
    assert [call.reason for call in message.invalid_tool_uses] == ["incomplete"]


def test_finish_reason_stop_with_a_call_is_tool_use() -> None:
    accumulator, _ = answer("openinference_instructor_streaming.0.8ccd8fec")
    assert (accumulator.stop, accumulator.raw_stop) == ("tool_use", "stop")


def test_azures_filter_says_what_it_hit() -> None:
    exchange = recording("openrouter_refusal_matrix_blocking_gpt_4_1_refusal.0.d7f2af88")
    response = wire_of(exchange).decode_response(200, headers_of(exchange), exchange.body)
    assert (response.stop, response.raw_stop) == ("refusal", "content_filter")
    assert response.stop_details is not None
    assert response.stop_details.kind == "filter"


@pytest.mark.parametrize(
    ("ending", "usage"),
    [
        (  # written to the cache: part of the prompt, and priced apart
            "test_openai_prompt_cache_test_openai_chat_prompt_cache_e2e.0.b47eb88b",
            Usage(input=8, output=4, cache_write_other=4012, service_tier="default"),
        ),
        ("TestOpenAICompatibleThinking_xai-grok-3-mini_thinking.0.017bd6e5", Usage(input=281, output=377, reasoning=350, cache_read=7)),
        ("TestVercelCommon_gemini-2.5-flash_multi_tool.0.81baa5f8", Usage(input=61, output=106, reasoning=96)),
        ("scenarios_openrouter-instrumentation_openrouter-v1-latest.2.6f794fda", Usage(input=15, output=256, reasoning=260)),
        (
            "mistral_multimodal_content_streaming_agent_sends_audio.0.e1fa76d9",
            Usage(input=377, output=15, cache_read=9, details={"input.audio": 375}, service_tier="standard"),
        ),
    ],
)
def test_tokens_are_counted_once_whatever_the_host_calls_them(ending: str, usage: Usage) -> None:
    accumulator, _ = answer(ending)
    found = accumulator.usage
    fields = ("input", "output", "reasoning", "cache_read", "cache_write_other", "details")
    assert {name: getattr(found, name) for name in fields} == {name: getattr(usage, name) for name in fields}


def test_what_a_host_reports_inconsistently_is_kept_as_it_said_it() -> None:
    accumulator, _ = answer("grok-4-1-fast-non-reasoning_supports_streaming_responses.0.b7494f4d")
    usage = accumulator.usage
    assert (usage.input, usage.cache_read) == (0, 161)
    assert usage.extra["openai-chat"]["prompt_tokens"] == 7
    assert usage.extra["openai-chat"]["total_tokens"] == 15


def test_xais_ticks_are_dollars() -> None:
    accumulator, _ = answer("TestOpenAICompatObjectGeneration_xai-grok-4-fast_simple_object.0.2b41fb88")
    assert accumulator.usage.reported_cost == Decimal("0.00014895")


def test_no_ticks_are_no_report() -> None:
    accumulator, _ = answer("grok-4-1-fast-non-reasoning_supports_streaming_responses.0.b7494f4d")
    assert accumulator.usage.reported_cost is None


def test_a_call_goes_to_google_with_the_id_that_we_made() -> None:
    exchange = recording("compatible_api_with_tool_calls_without_id.0.19c045b7")
    wire = wire_of(exchange)
    message = wire.decode_response(200, headers_of(exchange), exchange.body).message
    body = wire.encode(Request([user("q"), message], model="m"), stream=False).body
    assert b'"id":"call_3SE-aKjdCcCEz7IPxpqjCA_0"' in body
