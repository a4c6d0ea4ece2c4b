"""any-llm, which answers in the form of chat completions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from any_llm import AnyLLM

from clients.peer import PeerClient, openai_history, openai_tools

_HI = [{"role": "user", "content": "hi"}]


class _Joined:
    """What a caller of chat completions writes for itself."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[str] = []

    def push(self, chunk: Any) -> bool:
        brought = False
        for choice in chunk.choices:
            if choice.delta.content:
                self.texts.append(choice.delta.content)
                brought = True
            for call in choice.delta.tool_calls or ():
                if call.function and call.function.arguments:
                    self.calls.append(call.function.arguments)
                    brought = True
        return brought

    def content(self) -> str:
        return json.loads("".join(self.calls))["lines"] if self.calls else "".join(self.texts)


class Client(PeerClient):
    """One provider object."""

    def __init__(self, url: str) -> None:
        self._llm = AnyLLM.create("anthropic", api_key="k", api_base=url)

    def pieces(self, model: str) -> Iterator[Any]:
        """Read a stream."""
        joined = _Joined()
        for chunk in self._llm.completion(model=model, messages=_HI, stream=True, max_tokens=1024):
            yield joined.push(chunk)
        yield joined.content()

    async def apieces(self, model: str) -> AsyncIterator[Any]:
        """As `pieces`."""
        joined = _Joined()
        async for chunk in await self._llm.acompletion(model=model, messages=_HI, stream=True, max_tokens=1024):
            yield joined.push(chunk)
        yield joined.content()

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return self._llm.completion(model=model, messages=_HI, max_tokens=1024).choices[0].message.content

    def conversation(self) -> Any:
        """The long history as dicts."""
        return openai_history(), openai_tools()

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        messages, offered = conversation
        answer = self._llm.completion(model=model, messages=messages, tools=offered, max_tokens=1024)
        return answer.choices[0].message.content
