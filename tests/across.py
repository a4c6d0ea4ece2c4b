"""Recorded answers of all three dialects as parts of one conversation, and what a request says in each dialect's own words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from dragoman import Accumulator, Message, Origin, ProviderError, Request, Text, tool_result, user
from dragoman.message import Block
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import Wire
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.shared import Exchange, exchanges
from tests.wire.openai_chat.recordings import headers_of, wire_of

WANTED: dict[str, list[tuple[int, str, str]]] = {
    "anthropic": [
        (3, '"redacted_thinking"', "redacted_thinking"),
        (5, '"tool_use"', "thinking tool_use"),
        (3, '"signature"', "thinking"),
        (4, '"server_tool_use"', "server_tool_use"),
        (2, '"mcp_tool_use"', "server_tool_use"),
        (1, '"compaction"', "opaque"),
        (3, '"tool_use"', "tool_use"),
        (1, "citation", "text"),
        (2, '"text"', "text"),
    ],
    "openai_chat": [
        (3, '"reasoning.encrypted"', "redacted_thinking"),
        (2, '"reasoning_details"', "thinking tool_use"),
        (2, '"signature"', "thinking"),
        (4, '"reasoning_content"', "thinking tool_use"),
        (2, '"reasoning_content"', "thinking"),
        (2, '"reasoning"', "thinking tool_use"),
        (2, '"thought_signature"', "tool_use"),
        (1, '"type": "custom"', "tool_use"),
        (1, '"function_call"', "tool_use"),
        (2, '"transcript"', "audio"),
        (1, '"url_citation"', "text"),
        (1, '"refusal": "', "refusal"),
        (6, '"tool_calls"', "tool_use"),
    ],
    "openai_responses": [
        (5, '"encrypted_content"', "thinking tool_use"),
        (2, '"encrypted_content"', "thinking"),
        (1, '"custom_tool_call"', "tool_use"),
        (1, '"local_shell_call"', "tool_use"),
        (1, '"shell_call"', "tool_use"),
        (1, '"apply_patch_call"', "tool_use"),
        (1, '"computer_call"', "tool_use"),
        (1, '"mcp_approval_request"', "opaque"),
        (1, '"mcp_call"', "server_tool_use"),
        (1, '"image_generation_call"', "image"),
        (1, '"code_interpreter_call"', "server_tool_use"),
        (1, '"web_search_call"', "server_tool_use"),
        (1, '"program"', "opaque"),
        (5, '"function_call"', "tool_use"),
        (1, '"refusal"', "refusal"),
    ],
}
"""For each dialect: so many answers, of bodies that hold these words, and with blocks of these types. What is hard comes first."""


class Answer(NamedTuple):
    """A recorded answer, decoded, and the wire of the host that gave it."""

    exchange: Exchange
    wire: Wire
    message: Message

    @property
    def origin(self) -> Origin:
        """Who wrote it."""
        assert self.message.origin is not None
        return self.message.origin


def home_wire(dialect: str, exchange: Exchange) -> Wire:
    """The wire of the host that gave this answer."""
    if dialect == "openai_chat":
        return wire_of(exchange)
    return AnthropicWire() if dialect == "anthropic" else OpenAIResponsesWire()


def answer_of(dialect: str, exchange: Exchange) -> Answer | None:
    """The recorded answer, or None if it is an error, or holds nothing."""
    wire = home_wire(dialect, exchange)
    headers = headers_of(exchange)
    decoder = wire.decoder(status=exchange.status, headers=headers)
    accumulator = Accumulator()
    try:
        for event in [*decoder.feed(exchange.body), *decoder.close()]:
            accumulator.push(event)
    except ProviderError:
        return None
    message = accumulator.message()
    return Answer(exchange, wire, message) if message.content and message.origin else None


@cache
def answers(dialect: str) -> list[Answer]:
    """The recorded answers that `WANTED` asks for, each once, and of each kind from as many recorders as there are."""
    bodies = [(exchange, exchange.body.replace(b'":"', b'": "')) for exchange in exchanges(dialect)]
    found: dict[str, Answer] = {}
    for count, word, types in WANTED[dialect]:
        holding = sorted(((len(body), exchange) for exchange, body in bodies if word.encode() in body and len(body) < 200_000))
        recorders: set[str] = set()
        for _, exchange in holding:
            recorder = exchange.name.split("/")[0]
            if len(recorders) == count or recorder in recorders or exchange.name in found:
                continue
            answer = answer_of(dialect, exchange)
            if answer is not None and set(types.split()) <= {block.type for block in answer.message.content}:
                recorders.add(recorder)
                found[exchange.name] = answer
    return list(found.values())


# ---- conversations


class Home(NamedTuple):
    """Where a conversation is asked: a wire and a model of its provider."""

    wire: Wire
    model: str

    def request(self, messages: Sequence[Message], **settings: Any) -> Request:
        """A request that asks here."""
        return Request(messages, model=self.model, **settings)


def exchange_of(message: Message) -> list[Message]:
    """An answer, and what the user says to it: the results of its calls, and a word."""
    results: list[Block] = [tool_result(call, f"result {number}") for number, call in enumerate(message.tool_uses)]
    return [message, user(*results, Text("Go on."))]


def begun(message: Message) -> list[Message]:
    """A conversation that begins with a question and this answer."""
    return [user("Begin."), *exchange_of(message)]


# ---- what a request says


class Said(NamedTuple):
    """The conversation in a request's body, in the dialect's own words."""

    turns: list[Any]
    calls: list[str]
    answered: list[str]

    @property
    def strings(self) -> list[str]:
        """Every string in it, texts and keys alike."""
        return list(_strings(self.turns))


def said(body: bytes, wire: str) -> Said:
    """The conversation in the body of a request to this wire."""
    turns: list[Any] = json.loads(body)[{"openai-responses": "input"}.get(wire, "messages")]
    return Said(turns, *_IDS[wire](turns))


def _anthropic_ids(turns: list[Any]) -> tuple[list[str], list[str]]:
    blocks = [block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def _chat_ids(turns: list[Any]) -> tuple[list[str], list[str]]:
    calls = [call.get("id", call.get("function", {}).get("name")) for turn in turns for call in turn.get("tool_calls", [])]
    return calls, [turn.get("tool_call_id", turn.get("name")) for turn in turns if turn["role"] == "tool"]


def _responses_ids(turns: list[Any]) -> tuple[list[str], list[str]]:
    kinds = [(str(item.get("type", "")), item.get("call_id", "")) for item in turns]
    return [id for kind, id in kinds if kind.endswith("_call") and id], [id for kind, id in kinds if kind.endswith("_output")]


_IDS = {"anthropic": _anthropic_ids, "openai-chat": _chat_ids, "openai-responses": _responses_ids}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
