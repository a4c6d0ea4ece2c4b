"""Every recorded exchange of the Responses API: the same answer whatever the chunking, what the official SDK made of it, and back again."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from dragoman import (
    BlockStop,
    Event,
    Notice,
    ProtocolError,
    Refusal,
    Request,
    ServerToolUse,
    SignatureDelta,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolUse,
    from_json,
    to_json,
    user,
)
from dragoman.errors import InvalidInputError
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.shared import Exchange, exchange_params
from tests.wire.openai_responses.answers import WIRE, folded

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
NOT_RESPONSES = ("vercel-ai/azure_azure-deepseek-reasoning.1.0.ada7ef3d", "vercel-ai/azure_azure-deepseek-reasoning.1.0.d9a2d6c3")
"""Recorded under this dialect, but Chat Completions."""

SEVERAL_ANSWERS = (
    "vercel-ai/azure_azure-reasoning-encrypted-content.1.0.6d1766ca",
    "vercel-ai/openai_responses_openai-reasoning-encrypted-content.1.0.da3ce1a2",
    "vercel-ai/openai_responses_openai-shell-tool.1.0.9d3257a5",
)
"""Fixtures that hold the streams of several calls one after the other: an answer ends at its end, the SDK reads on to the last."""

DELTAS_DIFFER = (
    "braintrust-js/scenarios_flue-instrumentation_flue-v0-8-latest.11.3877e2d2",
    "braintrust-js/scenarios_flue-instrumentation_flue-v0-8-latest.12.0f710636",
    "vercel-ai/openai_responses_openai-shell-container.1.0.6661127b",
)
"""Recordings that were edited afterwards, so that deltas and finished items contradict each other."""

REFUSED = "req_llm/openai_o1_pro_tool_round_trip_2.0.03e09eac"
"""A recorded request with a role that the API does not know."""


def chosen(wanted: Callable[[Exchange], bool]) -> list[Any]:
    """The recordings of this dialect that a test is about."""
    found = exchange_params("openai_responses")
    return [p for p in found if p.values[0] is None or (p.id not in NOT_RESPONSES and wanted(p.values[0]))]


def decode(exchange: Exchange, cuts: list[int]) -> list[Event]:
    decoder = WIRE.decoder(status=exchange.status, headers=exchange.headers)
    body = exchange.body
    events = [event for a, b in itertools.pairwise([0, *cuts, len(body)]) for event in decoder.feed(body[a:b])]
    return events + decoder.close()


def final_response(exchange: Exchange) -> dict[str, Any] | None:
    """The response object that ends the recorded answer, or None for an error."""
    if not exchange.streamed:
        body = json.loads(exchange.body)
        return body if "output" in body else None
    for line in exchange.body.replace(b"\r\n", b"\n").split(b"\n"):
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            if event.get("type") in TERMINAL:
                return event["response"]  # type: ignore[no-any-return]
    return None


def has_output(exchange: Exchange) -> bool:
    final = final_response(exchange)
    return final is not None and bool(final["output"])


def is_finished(exchange: Exchange) -> bool:
    final = final_response(exchange)
    return final is not None and final["status"] in ("completed", "complete") and bool(final["output"])


def bare(value: Any) -> Any:
    """Without what is null or empty, which both directions may leave out."""
    if isinstance(value, dict):
        return {key: bare(v) for key, v in value.items() if v not in (None, [], {})}
    return [bare(v) for v in value] if isinstance(value, list) else value


# ---- decoding


@pytest.mark.parametrize("exchange", chosen(lambda e: True))
def test_the_events_do_not_depend_on_the_chunking(exchange: Exchange) -> None:
    whole = decode(exchange, [])
    size = len(exchange.body)
    if size < 25_000:
        assert decode(exchange, list(range(1, size))) == whole
    for seed in range(3):
        cuts = random.Random(seed).sample(range(size), min(size, 25))
        assert decode(exchange, sorted(cuts)) == whole


@pytest.mark.parametrize("exchange", chosen(lambda e: e.name not in DELTAS_DIFFER))
def test_the_deltas_of_a_block_are_its_finished_content(exchange: Exchange) -> None:
    texts: dict[int, str] = {}
    signatures: dict[int, str] = {}
    for event in decode(exchange, []):
        match event:
            case TextDelta(index, piece) | ThinkingDelta(index, piece) | ToolInputDelta(index, piece):
                texts[index] = texts.get(index, "") + piece
            case SignatureDelta(index, signature):
                signatures[index] = signatures.get(index, "") + signature
            case BlockStop(index, Text(text) | Refusal(text)):
                assert texts.get(index, "") == text
            case BlockStop(index, Thinking(text, signature=signature)):
                assert (texts.get(index, ""), signatures.get(index, "")) == (text, signature)
            case BlockStop(index, ToolUse() | ServerToolUse() as block):
                assert json.loads(texts.get(index) or "{}") == block.input
            case _:
                pass


@pytest.mark.parametrize("exchange", chosen(lambda e: e.streamed and has_output(e)))
def test_a_stream_gives_what_its_final_response_gives_as_a_body(exchange: Exchange) -> None:
    final = final_response(exchange)
    assert final is not None
    streamed = folded(decode(exchange, [])).response()
    whole = WIRE.decode_response(200, {"content-type": "application/json"}, json.dumps(final).encode())
    assert streamed.message.content == whole.message.content
    assert (streamed.stop, streamed.raw_stop, streamed.usage) == (whole.stop, whole.raw_stop, whole.usage)


def expected_blocks(output: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Text, calls and reasoning of the SDK's final response, in order."""
    found: list[tuple[Any, ...]] = []
    for item in output:
        match item:
            case {"type": "message"}:
                for part in item["content"]:
                    if part["type"] == "output_text":
                        found.append(("text", part["text"], [bare(a) for a in part.get("annotations") or []]))
                    else:
                        found.append(("refusal", part["refusal"]))
            case {"type": "reasoning"}:
                parts = [*(item.get("content") or []), *item["summary"]]
                found.append(("thinking", "\n\n".join(part["text"] for part in parts), item.get("encrypted_content") or ""))
            case {"type": "function_call"} if item.get("status") != "incomplete":
                found.append(("call", item["call_id"], item["name"], json.loads(item["arguments"] or "{}")))
            case _:
                pass
    return found


def our_blocks(content: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for block in content:
        match block:
            case Text(text):
                found.append(("text", text, [bare(citation.data) for citation in block.citations]))
            case Refusal(text):
                found.append(("refusal", text))
            case Thinking(text):
                found.append(("thinking", text, block.signature))
            case ToolUse() if "kind" not in block.extra.get("openai-responses", {}):
                found.append(("call", block.id, block.name, block.input))
            case _:
                pass
    return found


@pytest.mark.parametrize("exchange", chosen(lambda e: e.name not in SEVERAL_ANSWERS and (e.folder / "expected.json").exists()))
def test_a_stream_gives_what_the_official_sdk_makes_of_it(exchange: Exchange) -> None:
    expected = exchange.json("expected.json")
    response = folded(decode(exchange, [])).response()
    if expected["output"]:  # where the service left its final list empty the SDK has lost the answer
        assert our_blocks(response.message.content) == expected_blocks(expected["output"])
    usage = expected["usage"]
    assert response.usage.total_input == usage["input_tokens"]
    assert response.usage.cache_read == usage["input_tokens_details"]["cached_tokens"]
    assert response.usage.output == usage["output_tokens"]
    assert response.usage.reasoning == usage["output_tokens_details"]["reasoning_tokens"]
    reason = (expected.get("incomplete_details") or {}).get("reason")
    assert response.raw_stop == (reason or expected["status"])


@pytest.mark.parametrize("exchange", chosen(lambda e: e.streamed and not (e.folder / "expected.json").exists()))
def test_a_stream_that_is_an_error_to_the_official_sdk_is_the_same_error_here(exchange: Exchange) -> None:
    error = exchange.json("expected_error.json")
    ours = folded(decode(exchange, [])).error
    assert ours is not None
    assert (ours.code, ours.type) == (error["code"], error["type"])
    assert ours.message.endswith(error["message"][:200] if len(error["message"]) < 250 else "…")


@pytest.mark.parametrize("exchange", chosen(lambda e: not e.streamed))
def test_a_body_gives_its_own_output(exchange: Exchange) -> None:
    final = final_response(exchange)
    if final is None:
        error = folded(decode(exchange, [])).error
        assert error is not None
        assert error.status == exchange.status
        return
    response = folded(decode(exchange, [])).response()
    assert our_blocks(response.message.content) == expected_blocks(final["output"])
    usage = final.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    assert (response.usage.total_input, response.usage.output) == (usage["input_tokens"], usage["output_tokens"])


@pytest.mark.parametrize("exchange", chosen(lambda e: True))
def test_nothing_recorded_is_unknown(exchange: Exchange) -> None:
    notices = [event.code for event in decode(exchange, []) if isinstance(event, Notice)]
    assert notices == (["content_differs"] if exchange.name in DELTAS_DIFFER else [])


@pytest.mark.parametrize("exchange", [p for p in exchange_params("openai_responses") if p.values[0] is None or p.id in NOT_RESPONSES])
def test_another_dialect_is_told_by_name(exchange: Exchange) -> None:
    error = folded(decode(exchange, [])).error
    assert isinstance(error, ProtocolError)
    assert "Chat Completions" in error.message


# ---- and back


@pytest.mark.parametrize("exchange", chosen(is_finished))
def test_a_stored_answer_goes_back_as_the_items_it_came_as(exchange: Exchange) -> None:
    final = final_response(exchange)
    assert final is not None
    message = folded(decode(exchange, [])).response().message
    stored = from_json(to_json(message))
    request = WIRE.encode(Request([user("q"), stored, user("go on")], model="gpt-test"), stream=True)
    assert bare(json.loads(request.body)["input"][1:-1]) == bare(final["output"])
    assert not request.notices


def normal_request(body: dict[str, Any]) -> Any:
    """A request without what both spellings of the same thing differ in."""

    def item(value: dict[str, Any]) -> dict[str, Any]:
        value = dict(value)
        if value.get("type") == "message":
            del value["type"]
        if isinstance(value.get("content"), str):
            kind = "output_text" if value.get("role") == "assistant" else "input_text"
            value["content"] = [{"type": kind, "text": value["content"]}]
        return value

    body = {key: value for key, value in body.items() if value not in (None, "")}
    body.pop("stream", None)
    for key in ("store", "parallel_tool_calls"):
        if body.get(key) is True:
            del body[key]
    if isinstance(body.get("input"), list):
        body["input"] = [item(value) for value in body["input"]]
    return bare(body)


@pytest.mark.parametrize("exchange", chosen(lambda e: (e.folder / "request.json").exists() and e.name != REFUSED))
def test_a_recorded_request_comes_back_as_it_was(exchange: Exchange) -> None:
    sent = exchange.json("request.json")
    body = json.dumps(sent).encode()
    request = WIRE.decode_request(body)
    again = WIRE.encode(request, stream=bool(sent.get("stream"))).body
    assert normal_request(json.loads(again)) == normal_request(sent)
    assert WIRE.decode_request(again) == request
    assert from_json(to_json(request), Request) == request


@pytest.mark.parametrize("exchange", chosen(lambda e: e.name == REFUSED))
def test_a_request_that_the_api_refused_for_its_form_is_refused_with_its_path(exchange: Exchange) -> None:
    with pytest.raises(InvalidInputError, match=r"input\[2\].role"):
        WIRE.decode_request(json.dumps(exchange.json("request.json")).encode())


@pytest.mark.parametrize("exchange", chosen(has_output))
def test_another_provider_is_sent_no_encrypted_reasoning_and_no_foreign_ids(exchange: Exchange) -> None:
    message = folded(decode(exchange, [])).response().message
    other = OpenAIResponsesWire(provider="another")
    items = json.loads(other.encode(Request([user("q"), message, user("go on")], model="m"), stream=False).body)["input"][1:-1]
    assert not [item for item in items if item.get("type") == "reasoning" or "id" in item]
