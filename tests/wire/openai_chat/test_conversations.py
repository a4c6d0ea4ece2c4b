"""One conversation, many hosts: it goes from one to another and back, and the first one's own things are intact."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Request,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    from_json,
    to_json,
    user,
)
from dragoman.message import Block
from dragoman.wire.openai_chat import DIALECTS, OpenAIChatWire

texts = st.text(min_size=1, max_size=8)
ids = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="_-.:"), min_size=1, max_size=70)


def blocks(origin: Origin) -> st.SearchStrategy[list[Block]]:
    """An answer of this origin: thinking in its own way, text, calls, and perhaps a block that nobody else knows."""
    own: Any = {
        "anthropic": st.builds(lambda t, s: [Thinking(t, signature=s), RedactedThinking(s)], texts, texts),
        "gemini": st.builds(lambda t: [Thinking(t, extra={"gemini": {"thought": True}})], texts),
        "openai-chat": st.builds(
            lambda t, s: [Thinking(t, signature=s, extra={"openai-chat": {"detail": {"type": "reasoning.text", "index": 0}}})], texts, texts
        ),
    }[origin.wire]
    calls = st.lists(st.builds(lambda i: ToolUse(i, "f", {"a": 1}), ids), max_size=2, unique_by=lambda call: call.id)
    odd = st.lists(st.just(Opaque({"type": "odd"}, wire=origin.wire)), max_size=1)
    return st.builds(lambda a, t, c, o: [*a, Text(t), *c, *o], own, texts, calls, odd)


ORIGINS = [
    Origin("openrouter", "m", "openai-chat"),
    Origin("deepseek", "m", "openai-chat"),
    Origin("anthropic", "c", "anthropic"),
    Origin("google", "g", "gemini"),
]


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for origin in draw(st.lists(st.sampled_from(ORIGINS), min_size=1, max_size=4)):
        messages.append(user(draw(texts)))
        answer = Message("assistant", draw(blocks(origin)), origin=origin)
        messages.append(answer)
        if answer.tool_uses:
            messages.append(user(*[ToolResult(call.id, "r") for call in answer.tool_uses]))
    return messages


@given(conversations(), st.sampled_from(sorted(DIALECTS)))
def test_any_conversation_can_go_to_any_host(conversation: list[Message], dialect: str) -> None:
    before = [to_json(message) for message in conversation]
    wire = OpenAIChatWire(dialect)
    http = wire.encode(Request(conversation, model="m"), stream=False)
    sent = json.loads(http.body)["messages"]
    calls = [call["id"] for m in sent for call in m.get("tool_calls", [])]
    assert len(set(calls)) == len(calls)
    assert all(len(id) <= wire.dialect.id_limit for id in calls)
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == calls
    assert [to_json(message) for message in conversation] == before
    assert wire.encode(Request(conversation, model="m"), stream=False).body == http.body


@given(conversations(), st.sampled_from(["groq", "mistral", "openai"]))
def test_back_at_the_first_host_its_signatures_are_what_they_were(conversation: list[Message], elsewhere: str) -> None:
    first = OpenAIChatWire("openrouter")
    alone = [m for m in conversation if m.role != "assistant" or m.origin == ORIGINS[0]]
    before = _details(first, alone)
    OpenAIChatWire(elsewhere).encode(Request(conversation, model="m"), stream=False)
    stored = [from_json(to_json(message), Message) for message in conversation]
    assert _details(first, stored) == before


def _details(wire: OpenAIChatWire, conversation: list[Message]) -> list[Any]:
    sent = json.loads(wire.encode(Request(conversation, model="m"), stream=False).body)["messages"]
    return [m["reasoning_details"] for m in sent if "reasoning_details" in m]


@given(conversations())
def test_thinking_of_others_is_dropped_or_said_as_text(conversation: list[Message]) -> None:
    wire = OpenAIChatWire("openai")
    foreign = [b.text for m in conversation for b in m.content if isinstance(b, Thinking) and b.text.strip()]
    dropped = json.loads(wire.encode(Request(conversation, model="m"), stream=False).body)["messages"]
    said = json.loads(wire.encode(Request(conversation, model="m", foreign_thinking="text"), stream=False).body)["messages"]
    count = sum(len(m["content"]) if isinstance(m["content"], list) else 1 for m in said if m["role"] == "assistant")
    plain = sum(len(m["content"]) if isinstance(m["content"], list) else 1 for m in dropped if m["role"] == "assistant")
    assert count == plain + len(foreign)
