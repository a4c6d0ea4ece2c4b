"""litellm: `completion(stream=True)` and its own builder of the final message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import litellm

from clients.peer import PeerClient, openai_history, openai_tools

_HI = [{"role": "user", "content": "hi"}]


def _content(answer: Any) -> Any:
    message = answer.choices[0].message
    return json.loads(message.tool_calls[0].function.arguments)["lines"] if message.tool_calls else message.content


def _brought(chunk: Any) -> bool:
    delta = chunk.choices[0].delta
    return bool(delta.content or delta.tool_calls)


class Client(PeerClient):
    """Its functions, with the address and key as arguments."""

    def __init__(self, url: str) -> None:
        self._settings = {"api_base": url, "api_key": "k", "max_tokens": 1024, "num_retries": 0}

    def pieces(self, model: str) -> Iterator[Any]:
        """Read a stream."""
        chunks: list[Any] = []
        for chunk in litellm.completion(model="anthropic/" + model, messages=_HI, stream=True, **self._settings):
            chunks.append(chunk)
            yield _brought(chunk)
        yield _content(litellm.stream_chunk_builder(chunks))

    async def apieces(self, model: str) -> AsyncIterator[Any]:
        """As `pieces`."""
        chunks: list[Any] = []
        async for chunk in await litellm.acompletion(model="anthropic/" + model, messages=_HI, stream=True, **self._settings):
            chunks.append(chunk)
            yield _brought(chunk)
        yield _content(litellm.stream_chunk_builder(chunks))

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return _content(litellm.completion(model="anthropic/" + model, messages=_HI, **self._settings))

    def conversation(self) -> Any:
        """The long history as dicts."""
        return openai_history(), openai_tools()

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        messages, offered = conversation
        return _content(litellm.completion(model="anthropic/" + model, messages=messages, tools=offered, **self._settings))
