"""What every client is given to do: pre-rendered answers, and a long history to send. Nothing but the standard library.

A model name says what the server answers with (`claude-bench-text-2000-8-0`: 2,000 text deltas of 8 bytes, 0 ms apart), because a model is
the one thing that every library passes through unchanged. From the same name a client knows which answer is right.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Answer", "history", "sse", "tools"]

PREFIX = "claude-bench-"


class Answer(NamedTuple):
    """One answer: `kind` is `text` or `tool`, `count` deltas of `size` bytes, `pace` milliseconds apart (0: all at once)."""

    kind: str
    count: int
    size: int = 8
    pace: int = 0

    @property
    def model(self) -> str:
        """The model name that asks for it."""
        return f"{PREFIX}{self.kind}-{self.count}-{self.size}-{self.pace}"

    @classmethod
    def of(cls, model: str) -> Answer:
        """What a model name asks for. Raises ValueError for any other name."""
        kind, count, size, pace = model.removeprefix(PREFIX).split("-")
        return cls(kind, int(count), int(size), int(pace))

    def pieces(self) -> list[str]:
        """The content of each delta; of a tool call the JSON of its input, cut anywhere."""
        if self.kind == "tool":
            whole = _tool_input(self.count * self.size)
            return [whole[at : at + self.size] for at in range(0, len(whole), self.size)]
        return [f" w{n % 1_000_000:x}".ljust(self.size, "x")[: self.size] for n in range(self.count)]

    def content(self) -> Any:
        """The right answer: the text, or the `lines` of the tool's input."""
        whole = "".join(self.pieces())
        return json.loads(whole)["lines"] if self.kind == "tool" else whole

    def events(self) -> list[bytes]:
        """The whole stream, one event each."""
        return [*self._head(), *(frame for frame, _ in self._deltas()), *self._tail()]

    def payloads(self) -> list[bytes]:
        """The JSON of the deltas alone."""
        return [payload for _, payload in self._deltas()]

    def message(self) -> bytes:
        """The answer to a request that does not stream."""
        if self.kind == "tool":
            block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {"lines": self.content()}}
        else:
            block = {"type": "text", "text": self.content()}
        return json.dumps({**self._message(), "content": [block], "stop_reason": self._stop(), "stop_sequence": None}).encode()

    def _message(self) -> dict[str, Any]:
        usage = {"input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": [], "usage": usage}

    def _stop(self) -> str:
        return "tool_use" if self.kind == "tool" else "end_turn"

    def _head(self) -> list[bytes]:
        tool = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
        block = tool if self.kind == "tool" else {"type": "text", "text": ""}
        message = {**self._message(), "stop_reason": None, "stop_sequence": None}
        return [
            sse({"type": "message_start", "message": message}),
            sse({"type": "content_block_start", "index": 0, "content_block": block}),
            sse({"type": "ping"}),
        ]

    def _deltas(self) -> list[tuple[bytes, bytes]]:
        kind, name = ("input_json_delta", "partial_json") if self.kind == "tool" else ("text_delta", "text")
        deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: piece}} for piece in self.pieces()]
        return [(sse(delta), _dump(delta)) for delta in deltas]

    def _tail(self) -> list[bytes]:
        delta = {"stop_reason": self._stop(), "stop_sequence": None}
        return [
            sse({"type": "content_block_stop", "index": 0}),
            sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.count}}),
            sse({"type": "message_stop"}),
        ]


def _tool_input(length: int) -> str:
    """What a call that writes a file has as its input, in so many characters (100 at least): many small objects, escapes in their texts."""
    rows: list[str] = []
    left = length - len('{"lines":[]}')
    while len(row := f'{{"line":{len(rows)},"text":"    value = read(\\"{len(rows)}.txt\\")\\n"}}') + 1 <= left - 60:
        rows.append(row)
        left -= len(row) + 1
    last = f'{{"line":{len(rows)},"text":""}}'
    rows.append(last[:-2] + "x" * (left - len(last)) + last[-2:])
    return '{"lines":[' + ",".join(rows) + "]}"


def sse(event: dict[str, Any]) -> bytes:
    """One event as the wire has it."""
    return b"event: %s\ndata: %s\n\n" % (event["type"].encode(), _dump(event))


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@lru_cache
def history(messages: int = 999, text: int = 1_950) -> list[dict[str, Any]]:
    """A conversation in Anthropic's own form: a question, then calls and their results; 999 messages are 1.1 MB of JSON."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
    for n in range(messages // 2):
        call = {
            "type": "tool_use",
            "id": f"toolu_{n}",
            "name": f"tool_{n % 20}",
            "input": {"path": f"/src/file{n}.py", "lines": [n, n + 20]},
        }
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"{n:06d} ".ljust(text, "x")}
        turns += [{"role": "assistant", "content": [{"type": "text", "text": "Looking."}, call]}, {"role": "user", "content": [result]}]
    return turns


@lru_cache
def tools(count: int = 20) -> list[dict[str, Any]]:
    """Tools in Anthropic's own form."""
    properties = {f"field_{n}": {"type": "string", "description": "what it is for " * 4} for n in range(6)}
    schema = {"type": "object", "properties": properties, "required": ["field_0"]}
    return [{"name": f"tool_{n}", "description": "Does something useful. " * 10, "input_schema": schema} for n in range(count)]
