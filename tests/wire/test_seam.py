"""The seam: a wire without block framing, in a few lines, gives our order of events with no change to the core."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Accumulator, Failed, MessageStart, MessageStop, ProviderError, Usage
from dragoman.response import StopReason
from dragoman.wire.decoder import AnswerDecoder, load_json
from dragoman.wire.framing import Framing
from tests.shared import Exchange, exchange_params

# ---- the whole wire: 45 lines


class ChunkDecoder(AnswerDecoder):
    """Chat-completion chunks: `choices[0].delta` with content and tool calls, then a finish reason, then `[DONE]`."""

    STOPS: dict[str, StopReason] = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}

    def __init__(self) -> None:
        super().__init__(label="Test", wire="test", provider="test", model="", status=200, headers={"content-type": "text/event-stream"})
        self._framing = Framing(self._emit, wire="test")
        self._stop = ""

    def _frame(self, data: bytes, event: bytes, *, last: bool = False) -> None:
        if data == b"[DONE]":
            self._finish(None)
            return
        chunk = load_json(data)
        if not self._started:
            self._start(MessageStart(chunk["id"], chunk["model"], provider="test", wire="test"))
        if usage := chunk.get("usage"):
            self.usage = Usage(input=usage["prompt_tokens"], output=usage["completion_tokens"])
        for choice in chunk["choices"]:
            delta = choice.get("delta") or {}
            if delta.get("content"):
                self._framing.text(("text",), delta["content"])
            for call in delta.get("tool_calls") or []:
                key = ("tool", call["index"])
                if call.get("id"):
                    self._framing.tool(key, call["id"], call["function"]["name"])
                self._framing.tool_input(key, call["function"].get("arguments") or "")
            self._stop = choice.get("finish_reason") or self._stop

    def _body(self, body: dict[str, Any]) -> None:
        raise AssertionError("this wire only streams")

    def _decode_error(self, body: bytes) -> ProviderError:
        return ProviderError(body.decode())

    def _terminal(self) -> MessageStop | Failed | None:
        if not self._stop:
            return None
        self._framing.stop_all()
        return MessageStop(self.STOPS.get(self._stop, "unknown"), raw_stop=self._stop, usage=self.usage)


# ---- and what it gives


def simple(exchange: Exchange) -> bool:
    """A plain api.openai.com stream of text or calls, whose oracle is complete."""
    body = exchange.body
    return b"api.openai.com" in (exchange.folder / "source.txt").read_bytes() and b"tool_calls" in body and b"refusal_" not in body


CHOSEN = [param for param in exchange_params("openai_chat", streamed=True) if param.values[0] is None or simple(param.values[0])]


@pytest.mark.parametrize("exchange", [CHOSEN[0], CHOSEN[len(CHOSEN) // 2], CHOSEN[-1]])
def test_a_wire_without_framing_gives_our_order_of_events(exchange: Exchange) -> None:
    decoder = ChunkDecoder()
    events = decoder.feed(exchange.body) + decoder.close()
    accumulator = Accumulator()
    for event in events:
        accumulator.push(event)  # the grammar: indexes in order, no delta outside its block
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    expected = exchange.json("expected.json")["choices"][0]
    message = accumulator.message()
    assert message.text == (expected["message"].get("content") or "")
    calls = [(call["id"], call["function"]["name"]) for call in expected["message"].get("tool_calls") or []]
    assert [(call.id, call.name) for call in message.tool_uses] == calls
    assert accumulator.raw_stop == expected["finish_reason"]
