"""A gateway: a request that a client sent in one dialect goes on in another, without what only its writer can read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Origin, Request
from dragoman.history import problems
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import ServerWire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire

SIGNATURE = "c2lnbmVk"

ANTHROPIC: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
                {"type": "redacted_thinking", "data": SIGNATURE},
                {"type": "text", "text": "a"},
            ],
        },
        {"role": "user", "content": "go on"},
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "input": [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": SIGNATURE},
        {"type": "message", "role": "assistant", "content": "a"},
        {"role": "user", "content": "go on"},
    ],
    "max_output_tokens": 100,
    "store": False,
    "include": ["reasoning.encrypted_content"],
}
CHAT: dict[str, Any] = {
    "model": "z-ai/glm-4.6",
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": SIGNATURE, "index": 0}],
        },
        {"role": "user", "content": "go on"},
    ],
    "max_tokens": 100,
}

GATES: dict[str, tuple[ServerWire, dict[str, Any]]] = {
    "anthropic": (AnthropicWire(), ANTHROPIC),
    "openai-responses": (OpenAIResponsesWire(), RESPONSES),
    "openai-chat": (OpenAIChatWire("openrouter"), CHAT),
}
PAIRS = [(here, there) for here in GATES for there in GATES if here != there]


def received(name: str) -> Request:
    wire, body = GATES[name]
    return wire.decode_request(json.dumps(body).encode())


@pytest.mark.parametrize("name", GATES)
def test_an_assistant_turn_is_known_by_its_dialect_alone(name: str) -> None:
    assert [message.origin for message in received(name).messages] == [None, Origin("", "", name), None]


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_thinking_of_one_dialect_is_not_sent_in_another(here: str, there: str) -> None:
    wire, body = GATES[there]
    request = received(here).replace(model=body["model"], extra_body={})
    assert problems(request, wire) == []
    sent = wire.encode(request, stream=False)
    assert SIGNATURE.encode() not in sent.body
    assert b"hm" not in sent.body
    assert "thinking_left_out" in [notice.code for notice in sent.notices]


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_thinking_of_another_dialect_may_become_text(here: str, there: str) -> None:
    wire, body = GATES[there]
    sent = wire.encode(received(here).replace(model=body["model"], extra_body={}, foreign_thinking="text"), stream=False)
    assert SIGNATURE.encode() not in sent.body
    assert b'"hm"' in sent.body


@pytest.mark.parametrize("wire", [*(wire for wire, _ in GATES.values()), OpenAIResponsesWire(provider="azure"), OpenAIChatWire("vercel")])
def test_the_same_dialect_gets_its_thinking_back_whichever_host_speaks_it(wire: ServerWire) -> None:
    assert SIGNATURE.encode() in wire.encode(received(wire.name), stream=False).body


@pytest.mark.parametrize("name", GATES)
def test_the_same_wire_writes_what_it_read(name: str) -> None:
    wire, body = GATES[name]
    assert json.loads(wire.encode(received(name), stream=False).body) == body
