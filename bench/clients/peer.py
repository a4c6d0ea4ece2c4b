"""What the clients of the other libraries share: a stream is an iterator of pieces, from which all jobs follow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from time import perf_counter
from typing import Any

from material import Answer, history, tools

__all__ = ["PeerClient", "openai_history", "openai_tools"]


class PeerClient:
    """A library says how it streams: `pieces` and `apieces` yield True once content has come, then the final content."""

    def pieces(self, model: str) -> Iterator[Any]:
        """Read a stream."""
        raise NotImplementedError

    def apieces(self, model: str) -> AsyncIterator[Any]:
        """As `pieces`."""
        raise NotImplementedError

    def check(self, answer: Any, expected: Answer) -> bool:
        """The final message holds the whole answer."""
        return answer == expected.content()

    def stream(self, model: str) -> Any:
        """Every event seen, and the final message."""
        content: Any = None
        for content in self.pieces(model):  # noqa: B007 - the last one counts
            pass
        return content

    async def astream(self, model: str) -> Any:
        """As `stream`."""
        content: Any = None
        async for content in self.apieces(model):  # noqa: B007 - the last one counts
            pass
        return content

    def timed(self, model: str) -> tuple[float, float]:
        """When the first content and the end came."""
        first = 0.0
        for content in self.pieces(model):
            first = first or (perf_counter() if content is True else 0.0)
        return first, perf_counter()

    async def atimed(self, model: str) -> tuple[float, float]:
        """As `timed`."""
        first = 0.0
        async for content in self.apieces(model):
            first = first or (perf_counter() if content is True else 0.0)
        return first, perf_counter()


def openai_history() -> list[dict[str, Any]]:
    """The long history as chat completions have it."""
    turns: list[dict[str, Any]] = []
    for turn in history():
        if isinstance(turn["content"], str):
            turns.append(turn)
        elif turn["role"] == "assistant":
            text, call = turn["content"]
            function = {"name": call["name"], "arguments": json.dumps(call["input"])}
            called = [{"id": call["id"], "type": "function", "function": function}]
            turns.append({"role": "assistant", "content": text["text"], "tool_calls": called})
        else:
            result = turn["content"][0]
            turns.append({"role": "tool", "tool_call_id": result["tool_use_id"], "content": result["content"]})
    return turns


def openai_tools() -> list[dict[str, Any]]:
    """The tools as chat completions have them."""
    return [
        {
            "type": "function",
            "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]},
        }
        for tool in tools()
    ]
