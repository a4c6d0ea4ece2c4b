"""The reasoning of an answer, under whichever key a host sends it, as Thinking and RedactedThinking.

Strategy. `reasoning_content` (DeepSeek, vLLM, llama.cpp, xAI …), `reasoning` (OpenRouter, Groq) and the thinking parts of Mistral's content
are one Thinking; `extra[wire]["field"]` remembers the key, so that it goes back the same way. OpenRouter and gateways that copy it send
`reasoning_details` instead or beside: each entry, known by type and index, is a block of its own (text or summary with its
signature: Thinking; encrypted: RedactedThinking), and what else it holds is `extra[wire]["detail"]`. `reasoning` beside a detail with text
says the same once more and is left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.message import RedactedThinking, Thinking
from dragoman.wire.framing import Framing
from dragoman.wire.json_values import as_objects, as_string
from dragoman.wire.openai_chat.chunk import Detail
from dragoman.wire.openai_chat.names import WIRE

__all__ = ["DETAIL_CONTENT", "THINKING", "Reasoning"]

THINKING = "thinking"
"""The key of the block that plain reasoning goes to."""

DETAIL_CONTENT = ("text", "summary", "data", "signature")
"""What of a detail the block itself holds."""


class Reasoning:
    """The reasoning of one answer, as blocks of `framing`."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._details: dict[tuple[str, Any], tuple[str, dict[str, Any]]] = {}  # type and index → key of the block, the detail so far
        self._channel = ""

    def go_on(self, piece: str, channel: str | None) -> bool:
        """More plain reasoning; False if this is not all that there is to do, and nothing was taken."""
        if self._framing.index(THINKING) is None or (channel is not None and channel != self._channel):
            return False
        self._framing.thinking(THINKING, piece)
        return True

    def go_on_detail(self, detail: Detail) -> bool:
        """More words of a detail that has begun; False if it is another one or says more, and nothing was taken."""
        key, known = self._details.get((detail.type, str(detail.index)), ("", {}))
        words = detail.text or detail.summary
        told = detail.format is msgspec.UNSET or known.get("format", msgspec.UNSET) == detail.format
        if not key or not words or not told:
            return False
        self._framing.thinking(key, words)
        return True

    def add(self, delta: dict[str, Any]) -> None:
        """Take what a delta or a message has of reasoning."""
        told = False
        for detail in as_objects(delta.get("reasoning_details")):
            told = self._detail(detail) or told
        if told:
            return
        field = "reasoning_content" if delta.get("reasoning_content") else "reasoning"
        self.think(as_string(delta.get(field)), field)
        channel = as_string(delta.get("channel"))
        if channel != self._channel and delta.get(field) and self._framing.index(THINKING) is not None:
            self._channel = channel
            self._framing.remember(THINKING, channel=channel)  # Groq: analysis

    def think(self, piece: str, field: str) -> None:
        """More plain reasoning that came under this key."""
        if piece:
            if self._framing.index(THINKING) is None:
                self._framing.start(THINKING, Thinking("", extra={WIRE: {"field": field}}))
            self._framing.thinking(THINKING, piece)

    def _detail(self, detail: dict[str, Any]) -> bool:
        """A piece of a detail; whether it brought text."""
        place = (as_string(detail.get("type")), str(detail.get("index")))
        key, known = self._details.get(place, ("", {}))
        data = as_string(detail.get("data"))
        text = as_string(detail.get("text")) or as_string(detail.get("summary"))
        if not key or data or (detail.get("id") and known.get("id") and detail["id"] != known["id"]):
            key, known = f"detail {self._framing.count}", {}
            self._framing.start(key, RedactedThinking(data) if data else Thinking(""))
        rest = {name: value for name, value in detail.items() if name not in DETAIL_CONTENT}
        own = {**known, **{name: value for name, value in rest.items() if value is not None or name not in known}}
        if own != known:
            self._framing.remember(key, detail=own)
        self._details[place] = (key, own)
        if not data:
            self._framing.thinking(key, text)
            self._framing.signature(key, as_string(detail.get("signature")))
        return bool(text)
