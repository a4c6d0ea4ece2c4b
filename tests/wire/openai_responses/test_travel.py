"""One conversation, two dialects: each is sent its own signatures and none of the other's, and nothing is lost on the way back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Origin, Request, Text, Thinking, ToolUse, from_json, to_json, tool_result, user
from dragoman.wire.anthropic import AnthropicWire
from tests.wire.openai_responses.answers import WIRE, body_answer, call, message, reasoning, response

CLAUDE = AnthropicWire()


def items(*messages: Message) -> list[dict[str, Any]]:
    return json.loads(WIRE.encode(Request(messages, model="gpt-test"), stream=True).body)["input"]  # type: ignore[no-any-return]


def turns(*messages: Message) -> list[dict[str, Any]]:
    return json.loads(CLAUDE.encode(Request(messages, model="claude-test-1"), stream=True).body)["messages"]  # type: ignore[no-any-return]


def openai_turn(number: int) -> list[Message]:
    """A turn of OpenAI's with its tool's result."""
    output = [
        reasoning("why", id=f"rs_{number}", encrypted_content=f"enc_{number}"),
        message("Let me see", id=f"msg_{number}"),
        call('{"n": 1}', call_id=f"call.{number}") | {"id": f"fc_{number}"},
    ]
    answer = body_answer(response(*output)).message
    return [answer, user(tool_result(answer.tool_uses[0], "ok"))]


def claude_turn(number: int) -> list[Message]:
    """A turn of Anthropic's with its tool's result."""
    use = ToolUse(f"toolu_{number}", "get_weather", {"n": 1})
    content = [Thinking("because", signature=f"sig_{number}"), Text("I think"), use]
    answer = Message("assistant", content, origin=Origin("anthropic", "claude-test-1", "anthropic"))
    return [answer, user(tool_result(use, "ok"))]


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_a_conversation_that_goes_back_and_forth(order: list[bool]) -> None:
    conversation = [user("q")]
    for number, at_openai in enumerate(order):
        conversation += openai_turn(number) if at_openai else claude_turn(number)
    conversation = [from_json(to_json(each)) for each in conversation]
    wanted = [number for number, at_openai in enumerate(order) if at_openai]

    sent = items(*conversation)
    assert [item["encrypted_content"] for item in sent if item.get("type") == "reasoning"] == [f"enc_{n}" for n in wanted]
    calls = [item["call_id"] for item in sent if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in sent if item.get("type") == "function_call_output"]
    assert len(calls) == len(order)
    assert "sig_" not in json.dumps(sent)

    blocks = [block for turn in turns(*conversation) if isinstance(turn["content"], list) for block in turn["content"]]
    assert [block["signature"] for block in blocks if block["type"] == "thinking"] == [
        f"sig_{number}" for number, at_openai in enumerate(order) if not at_openai
    ]
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert asked == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(set(asked)) == len(order)
    assert "enc_" not in json.dumps(blocks)

    assert items(*conversation) == sent  # having been at the other one changes nothing


def test_a_turn_of_another_keeps_its_words_and_calls() -> None:
    assert items(user("q"), *claude_turn(7)) == [
        {"role": "user", "content": "q"},
        {"type": "message", "role": "assistant", "content": "I think"},
        {"type": "function_call", "call_id": "toolu_7", "name": "get_weather", "arguments": '{"n":1}'},
        {"type": "function_call_output", "call_id": "toolu_7", "output": "ok"},
    ]
