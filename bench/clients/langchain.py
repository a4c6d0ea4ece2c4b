"""langchain-anthropic: chunks added up, as its documentation says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from clients.peer import PeerClient
from material import history, tools


def _content(message: Any) -> Any:
    if message.tool_calls:
        return message.tool_calls[0]["args"]["lines"]
    content = message.content
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


class Client(PeerClient):
    """One chat model object per model name."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._models: dict[str, ChatAnthropic] = {}

    def _model(self, name: str) -> ChatAnthropic:
        if name not in self._models:
            self._models[name] = ChatAnthropic(model=name, base_url=self._url, api_key="k", max_retries=0, max_tokens=1024)
        return self._models[name]

    def pieces(self, model: str) -> Iterator[Any]:
        """Read a stream."""
        whole: Any = None
        for chunk in self._model(model).stream("hi"):
            whole = chunk if whole is None else whole + chunk
            yield bool(chunk.content or chunk.tool_call_chunks)
        yield _content(whole)

    async def apieces(self, model: str) -> AsyncIterator[Any]:
        """As `pieces`."""
        whole: Any = None
        async for chunk in self._model(model).astream("hi"):
            whole = chunk if whole is None else whole + chunk
            yield bool(chunk.content or chunk.tool_call_chunks)
        yield _content(whole)

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return _content(self._model(model).invoke("hi"))

    def conversation(self) -> Any:
        """The long history in its types."""
        turns: list[Any] = []
        for turn in history():
            content = turn["content"]
            if isinstance(content, str):
                turns.append(HumanMessage(content))
            elif turn["role"] == "assistant":
                text, call = content
                turns.append(AIMessage(text["text"], tool_calls=[{"name": call["name"], "args": call["input"], "id": call["id"]}]))
            else:
                turns.append(ToolMessage(content[0]["content"], tool_call_id=content[0]["tool_use_id"]))
        return turns, tools()

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        turns, offered = conversation
        return _content(self._model(model).bind_tools(offered).invoke(turns))
