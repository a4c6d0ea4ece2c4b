"""Every recorded answer goes back as it came: decoded, stored, loaded and encoded as the next request's assistant turn."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import Accumulator, Message, ProviderError, Request, from_json, to_json
from dragoman.wire.anthropic import AnthropicWire
from tests.shared import Exchange, exchange_params
from tests.wire.anthropic_forms import normal_content

WIRE = AnthropicWire()

# ---- samples, from anthropic.md §5 and §6, of what no recording holds

CITED = {"cited_text": "c", "document_index": 0, "document_title": None, "file_id": None}
SAMPLES: list[dict[str, Any]] = [
    {
        "type": "text",
        "text": "t",
        "citations": [
            {"type": "char_location", **CITED, "start_char_index": 0, "end_char_index": 1},
            {"type": "page_location", **CITED, "start_page_number": 1, "end_page_number": 2},
            {"type": "content_block_location", **CITED, "start_block_index": 0, "end_block_index": 1},
            {"type": "web_search_result_location", "cited_text": "c", "encrypted_index": "E==", "title": None, "url": "u"},
            {
                "type": "search_result_location",
                "cited_text": "c",
                "search_result_index": 0,
                "source": "s",
                "title": "t",
                "start_block_index": 0,
                "end_block_index": 1,
            },
            {"type": "from_the_future", "x": [None]},
        ],
    },
    {"type": "thinking", "thinking": "", "signature": "S+/="},
    {"type": "redacted_thinking", "data": "R+/=="},
    {"type": "tool_use", "id": "toolu_1", "name": "click", "input": {"x": 1}, "toolset_name": "browser"},
    {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}, "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "1"}, "caller": {"type": "direct"}},
    {
        "type": "code_execution_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "encrypted_code_execution_result", "encrypted_stdout": "E=", "stderr": "", "return_code": 0, "content": []},
    },
    {
        "type": "text_editor_code_execution_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": {"type": "text_editor_code_execution_str_replace_result", "lines": None, "old_start": 1},
    },
    {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"type": "bash_code_execution_result", "return_code": 0}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "s",
        "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"},
    },
    {
        "type": "web_fetch_tool_result",
        "tool_use_id": "s",
        "content": {"type": "web_fetch_result", "url": "u", "content": {"type": "document", "source": {"type": "text", "data": "d"}}},
        "caller": {"type": "direct"},
    },
    {
        "type": "tool_search_tool_result",
        "tool_use_id": "s",
        "content": {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "n"}]},
    },
    {"type": "container_upload", "file_id": "file_1"},
    {"type": "advisor_tool_result", "tool_use_id": "s", "content": {"type": "advisor_redacted_result", "encrypted_content": "E="}},
    {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "wiki", "input": {"q": "x"}},
    {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [{"type": "text", "text": "r"}]},
    {"type": "mcp_tool_listing", "mcp_server_name": "wiki", "tools": []},
    {"type": "compaction", "content": None, "encrypted_content": "E=", "signature": "S"},
    {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal", "category": None}},
    {"type": "from_the_future", "deep": {"x": [1, None]}},
]


def answer_of(exchange: Exchange) -> tuple[Message, list[dict[str, Any]]] | None:
    """The decoded message and the blocks as they were received (a stream's by the official SDK); None for an error."""
    accumulator = Accumulator()
    decoder = WIRE.decoder(status=exchange.status, headers=exchange.headers)
    try:
        for event in [*decoder.feed(exchange.body), *decoder.close()]:
            accumulator.push(event)
    except ProviderError:
        return None
    received = exchange.json("expected.json") if exchange.streamed else msgspec.json.decode(exchange.body)
    if received is None or exchange.json("sdk_loss.json"):
        return None
    return accumulator.message(), received["content"]


def replayed(message: Message) -> list[dict[str, Any]]:
    """What the next request says as this assistant turn."""
    request = Request(["q", from_json(to_json(message)), "go on"], model=message.origin.model if message.origin else "m")
    turns = msgspec.json.decode(WIRE.encode(request, stream=True).body)["messages"]
    return normal_content(turns[1]["content"]) if len(turns) > 1 else []  # nothing left: the two user turns are one


@pytest.mark.parametrize("exchange", exchange_params("anthropic"))
def test_a_recorded_answer_goes_back_as_it_came(exchange: Exchange) -> None:
    answer = answer_of(exchange)
    if answer is None:
        return  # an error, or a stream whose oracle is not whole: the decoder's tests look at these
    message, received = answer
    expected = normal_content(received)
    assert replayed(message) == expected
    assert [list(block.get("input", {})) for block in replayed(message)] == [list(block.get("input", {})) for block in expected]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["type"])
def test_every_documented_block_goes_back_as_it_came(sample: dict[str, Any]) -> None:
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [sample, {"type": "text", "text": "end"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    response = WIRE.decode_response(200, {"content-type": "application/json"}, msgspec.json.encode(body))
    message = from_json(to_json(response.message))
    encoded = WIRE.encode(Request(["q", message, "go on"], model="claude-sonnet-4-5"), stream=True)
    assert msgspec.json.decode(encoded.body)["messages"][1]["content"][0] == sample


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["type"])
def test_every_documented_block_is_read_from_a_request(sample: dict[str, Any]) -> None:
    body = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [sample, sample]}],
    }
    if "id" in sample:
        body["messages"][1]["content"][1] = {**sample, "id": "other_1"}  # type: ignore[index]
    encoded = WIRE.encode(WIRE.decode_request(msgspec.json.encode(body)), stream=False)
    assert msgspec.json.decode(encoded.body) == body
