"""Every recorded chat exchange: the same answer whatever the chunking, equal to what the official SDK made of it."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from dragoman import (
    Failed,
    IncompleteStreamError,
    InvalidRequestError,
    MessageStop,
    ProtocolError,
    Request,
    Response,
    ServerError,
    from_json,
    to_json,
    user,
)
from dragoman.wire.openai_chat import Dialect
from dragoman.wire.openai_chat.stops import STOP_REASONS
from tests.shared import Exchange, exchange_params
from tests.wire.openai_chat.recordings import decode, fold, headers_of, plain, wire_of

FAILS = {
    "llm/test_tools_streaming_test_tools_streaming_variant_a.0.27214b41": IncompleteStreamError,  # [DONE], but no finish reason
    "llm/test_tools_streaming_test_tools_streaming_variant_b.0.42dd5f6c": IncompleteStreamError,
    "pydantic-ai/test_groq_test_tool_use_failed_error_streaming_with_text.0.c9b79b82": InvalidRequestError,
    "req_llm/groq_meta_llama_llama_4_scout_17b_16e_instruct_object_streaming.0.984e64a6": InvalidRequestError,
    "req_llm/openrouter_google_gemini_2_5_flash_lite_object_streaming.0.0a889924": ServerError,
    "lmnr/test_openai_test_azure_test_prompt_content_filtering.0.56a09cf1": InvalidRequestError,
    "req_llm/openrouter_mistralai_devstral_small_2505_tool_round_trip_2.0.3129472a": ServerError,
    "req_llm/openrouter_nousresearch_hermes_4_405b_token_limit.0.1d2e5821": ServerError,
    "vercel-ai/mistral_mistral-transcription.0.d21ec1ba": ProtocolError,  # a transcription, not a chat
}
"""Answers of status 200 that fail, and as what."""

SDK_WRONG = {
    "llm/test_tools_streaming_test_tools_streaming_variant_a.0.27214b41": "joins an id and a name that come in every piece",
    "llm/test_tools_streaming_test_tools_streaming_variant_b.0.42dd5f6c": "has no finish reason",
    "pydantic-ai/test_openrouter_test_openrouter_web_search_annotations_stream.0.65da45a6": "cannot join annotations without an index",
    "ruby_llm/chat_streaming_responses_perplexity_sonar_supports_streaming_responses.0.2fefb9b1": "drops a last event without a blank line",
    "vercel-ai/perplexity_perplexity-text.0.ccfe0a20": "drops a last event without a blank line",
    "dd-trace-py/mistral_mistral_v1_chat_completions_post_ccfa08da.0.98267123": "does not know thinking parts in content",
}
"""Where the SDK's result is not the right answer; the tests of forms say what is."""


def of_message(message: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """The same as `plain`, of a message as the wire and the SDK have it."""
    content = message.get("content") or ""
    parts = content if isinstance(content, list) else []
    calls = []
    for call in message.get("tool_calls") or []:
        custom = call["custom"] if call.get("type") == "custom" else None
        raw = custom["input"] if custom else call["function"].get("arguments") or ("" if finish == "length" else "{}")
        if custom:
            value: Any = {"input": raw}
        else:
            try:
                value = json.loads(raw)
            except ValueError:
                value = raw
        calls.append((call["id"], (custom or call["function"])["name"], value if isinstance(value, dict) else raw))
    function = message.get("function_call")
    if function and function["name"]:
        calls.append((None, function["name"], json.loads(function["arguments"])))
    details = [detail.get("text") or detail.get("summary") or "" for detail in message.get("reasoning_details") or []]
    return {
        "text": "".join(part.get("text", "") for part in parts if part["type"] == "text") if parts else content,
        "refusal": message.get("refusal") or "",
        "reasoning": "".join(details) or message.get("reasoning_content") or message.get("reasoning") or "",
        "calls": calls,
    }


def ours(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Ids that the wire did not give do not count."""
    calls = found["calls"]
    known = [call[0] for call in expected["calls"]]
    return {**found, "calls": [(id if known[place] else known[place], name, value) for place, (id, name, value) in enumerate(calls)]}


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=True))
def test_no_event_depends_on_how_the_bytes_were_cut(exchange: Exchange) -> None:
    size = len(exchange.body)
    whole = decode(exchange, [])
    assert decode(exchange, list(range(1, size))) == whole
    for seed in range(3):
        cuts = sorted(random.Random(seed).sample(range(size), min(size, 20)))
        assert decode(exchange, cuts) == whole
    assert isinstance(whole[-1], MessageStop | Failed)
    assert not any(isinstance(event, MessageStop | Failed) for event in whole[:-1])


@pytest.mark.parametrize("exchange", exchange_params("openai_chat"))
def test_every_answer_ends_as_it_should(exchange: Exchange) -> None:
    accumulator, error = fold(decode(exchange, []))
    if exchange.status != 200:
        assert error is not None
        assert error.status == exchange.status
        assert error.body
    elif exchange.name in FAILS:
        assert type(error) is FAILS[exchange.name]
    else:
        assert error is None
        assert accumulator.stop != "unknown"


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=True, where=lambda e: e.name not in SDK_WRONG))
def test_a_stream_is_what_the_official_sdk_made_of_it(exchange: Exchange) -> None:
    expected = exchange.json("expected.json")
    if expected is None:
        assert exchange.json("expected_error.json") is not None
        return
    accumulator, _ = fold(decode(exchange, []))
    choice = expected["choices"][0]
    wanted = of_message(choice["message"], choice.get("finish_reason"))
    found = plain(accumulator.partial())
    assert ours(found, wanted) == wanted
    assert accumulator.raw_stop == (choice.get("finish_reason") or "")
    _assert_usage(accumulator.usage.total, accumulator.usage.output, accumulator.usage.reported_cost, expected.get("usage"), exchange)


def answered(exchange: Exchange) -> bool:
    """Whether there is an answer, not an error."""
    return exchange.status == 200 and exchange.name not in FAILS


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=False, where=answered))
def test_a_body_says_what_it_says(exchange: Exchange) -> None:
    body = json.loads(exchange.body)
    response = wire_of(exchange).decode_response(200, headers_of(exchange), exchange.body)
    choice = body["choices"][0]
    wanted = of_message(choice["message"], choice.get("finish_reason"))
    assert ours(plain(response.message), wanted) == wanted
    assert response.raw_stop == choice.get("finish_reason", "max_tokens")
    if not response.message.tool_uses and not wanted["refusal"]:
        assert response.stop == STOP_REASONS.get(response.raw_stop, "end_turn")
    assert (response.id, response.model) == (body["id"], body["model"])
    _assert_usage(response.usage.total, response.usage.output, response.usage.reported_cost, body.get("usage"), exchange)
    assert from_json(to_json(response), Response) == response


def _assert_usage(total: int, output: int, cost: Decimal | None, usage: dict[str, Any] | None, exchange: Exchange) -> None:
    """The sum of the buckets is the wire's total; the exceptions are of whole hosts, and each has a test of its own."""
    if not usage:
        return
    details = usage.get("completion_tokens_details") or {}
    reasoning = details.get("reasoning_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    hidden = wire_of(exchange).dialect.outside_models and reasoning > usage["completion_tokens"]
    if hidden:
        assert total == usage["total_tokens"] + reasoning
        assert output == usage["completion_tokens"] + reasoning
    elif cached > usage["prompt_tokens"]:
        assert total == cached + usage["completion_tokens"]
    else:
        assert total == usage["total_tokens"]
    if isinstance(usage.get("cost"), int | float):
        assert cost == Decimal(str(usage["cost"]))


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=False, where=answered))
def test_an_answer_goes_back_to_its_host_as_it_came(exchange: Exchange) -> None:
    wire = wire_of(exchange)
    message = wire.decode_response(200, headers_of(exchange), exchange.body).message
    http = wire.encode(Request([user("q"), message, user("go on")], model="m"), stream=False)
    sent = next((m for m in json.loads(http.body)["messages"] if m["role"] == "assistant"), {"role": "assistant"})
    came = json.loads(exchange.body)["choices"][0]["message"]
    assert sendable(sent, wire.dialect) == sendable(came, wire.dialect)


def sendable(message: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """What of an answer's message goes back, in one form: empty is absent, arguments are values, ids as the dialect keeps them."""
    keys = ["content", "tool_calls", "function_call", "thought_signature", "extra_content"]
    keys += ["reasoning_details"] * dialect.thinking_details + ["refusal"] * dialect.refusal
    found = {key: message[key] for key in keys if message.get(key)}
    if not dialect.refusal and message.get("refusal"):
        found["content"] = message["refusal"]
    if dialect.thinking_field and "reasoning_details" not in found:
        found["reasoning"] = message.get("reasoning_content") or message.get("reasoning") or ""
    if any((message.get("audio") or {}).values()):
        found["audio"] = message["audio"]["id"]
    function = found.pop("function_call", None)
    if function and function["name"]:
        found["function"] = (function["name"], json.loads(function["arguments"]))
    calls = []
    for call in found.pop("tool_calls", []):
        function = call.get("function", {})
        arguments = function.get("arguments", "{}")
        valid = arguments.startswith("{") and arguments.endswith("}") and "INVALID_JSON" not in arguments
        id = call.get("id") if dialect.id_limit >= 40 and not dialect.takes_made_ids else "ours"
        rest = {key: value for key, value in call.items() if key not in ("index", "function", "id") and value != {"input": "", "name": ""}}
        calls.append((id, function.get("name"), json.loads(arguments) if valid else "invalid", rest))
    return {**found, "calls": calls}


def finished(exchange: Exchange) -> bool:
    """Whether there is a finish reason to cut before."""
    return exchange.status == 200 and b'"finish_reason":"' in exchange.body and b'"error"' not in exchange.body


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=True, where=finished))
def test_a_cut_stream_is_never_a_success(exchange: Exchange) -> None:
    """Cut before the finish reason, at any event: an error, and all that had come is kept."""
    body = exchange.body
    at = body.find(b'"finish_reason":"')
    end = body.rfind(b"\n\n", 0, at)
    decoder = wire_of(exchange).decoder(headers=headers_of(exchange))
    accumulator, error = fold([*decoder.feed(body[: max(end, 0)]), *decoder.close()])
    assert isinstance(error, IncompleteStreamError)
    assert accumulator.stop is None


def test_the_exceptions_are_recorded_exchanges() -> None:
    names = {param.values[0].name for param in exchange_params("openai_chat") if param.values[0] is not None}
    if not names:
        pytest.skip("the recorded exchanges are absent")
    assert {*FAILS, *SDK_WRONG} <= names
