"""The official SDK, `anthropic`: `messages.stream()`; with BENCH_EVENTS its bare events, `create(stream=True)`, joined by hand; with
BENCH_AIOHTTP its async calls go over the SDK's client on aiohttp.
"""

from __future__ import annotations

import json
import os
from time import perf_counter
from typing import Any

import anthropic
import httpx2

from material import Answer, history, tools

_EVENTS = bool(os.environ.get("BENCH_EVENTS"))


def _content(message: Any) -> Any:
    block = message.content[0]
    return block.input["lines"] if block.type == "tool_use" else block.text


class _Joined:
    """What a caller of `create(stream=True)` writes for itself."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.tool = False

    def push(self, event: Any) -> None:
        if event.type == "content_block_delta":
            if event.delta.type == "text_delta":
                self.pieces.append(event.delta.text)
            elif event.delta.type == "input_json_delta":
                self.tool = True
                self.pieces.append(event.delta.partial_json)

    def content(self) -> str:
        whole = "".join(self.pieces)
        return json.loads(whole)["lines"] if self.tool else whole


class _Stream(httpx2.SyncByteStream):
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Any:
        return iter(self._chunks)


class Client:
    """Both clients with their defaults, retries off."""

    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
        over = {"http_client": anthropic.DefaultAioHttpClient()} if os.environ.get("BENCH_AIOHTTP") else {}
        self._aclient = anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0, **over)
        self._memory: list[bytes] = []
        self._headers = {"content-type": "text/event-stream"}
        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=self._headers, stream=_Stream(self._memory)))
        self._offline = anthropic.Anthropic(api_key="k", max_retries=0, http_client=httpx2.Client(transport=transport))

    def check(self, answer: Any, expected: Answer) -> bool:
        """The final message holds the whole answer."""
        return answer == expected.content()

    def _body(self, model: str) -> dict[str, Any]:
        return {"model": model, "max_tokens": 1024, "messages": [{"role": "user", "content": "hi"}]}

    def _stream(self, client: Any, model: str) -> str:
        if _EVENTS:
            joined = _Joined()
            for event in client.messages.create(**self._body(model), stream=True):
                joined.push(event)
            return joined.content()
        with client.messages.stream(**self._body(model)) as stream:
            for _ in stream:
                pass
            return _content(stream.get_final_message())

    def stream(self, model: str) -> str:
        """Every event seen, and the final message."""
        return self._stream(self._client, model)

    async def astream(self, model: str) -> str:
        """As `stream`."""
        if _EVENTS:
            joined = _Joined()
            async for event in await self._aclient.messages.create(**self._body(model), stream=True):
                joined.push(event)
            return joined.content()
        async with self._aclient.messages.stream(**self._body(model)) as stream:
            async for _ in stream:
                pass
            return _content(await stream.get_final_message())

    def timed(self, model: str) -> tuple[float, float]:
        """When the first delta and the end came."""
        first = 0.0
        joined = _Joined()
        if _EVENTS:
            for event in self._client.messages.create(**self._body(model), stream=True):
                joined.push(event)
                if not first and joined.pieces:
                    first = perf_counter()
        else:
            with self._client.messages.stream(**self._body(model)) as stream:
                for event in stream:
                    if not first and event.type == "content_block_delta":
                        first = perf_counter()
                stream.get_final_message()
        return first, perf_counter()

    async def atimed(self, model: str) -> tuple[float, float]:
        """As `timed`."""
        first = 0.0
        joined = _Joined()
        if _EVENTS:
            async for event in await self._aclient.messages.create(**self._body(model), stream=True):
                joined.push(event)
                if not first and joined.pieces:
                    first = perf_counter()
        else:
            async with self._aclient.messages.stream(**self._body(model)) as stream:
                async for event in stream:
                    if not first and event.type == "content_block_delta":
                        first = perf_counter()
                await stream.get_final_message()
        return first, perf_counter()

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return _content(self._client.messages.create(**self._body(model)))

    async def acomplete(self, model: str) -> str:
        """As `complete`."""
        return _content(await self._aclient.messages.create(**self._body(model)))

    def conversation(self) -> Any:
        """The long history, as the SDK takes it: dicts."""
        return history(), tools()

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        return self._send(self._client, conversation, model)

    def _send(self, client: Any, conversation: Any, model: str) -> str:
        messages, offered = conversation
        return _content(client.messages.create(model=model, max_tokens=1024, messages=messages, tools=offered))

    def build(self, conversation: Any, model: str) -> str:
        """As `send`, without a network."""
        self._memory, self._headers = [Answer.of(model).message()], {"content-type": "application/json"}
        return self._send(self._offline, conversation, model)

    def codec(self, chunks: list[bytes]) -> str:
        """Bytes to the final message, without a network."""
        self._memory, self._headers = chunks, {"content-type": "text/event-stream"}
        return self._stream(self._offline, "claude-bench-memory")
