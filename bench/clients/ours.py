"""dragoman, by way of any of its transports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from dragoman import Accumulator, Anthropic, Message, Request, Response, Text, TextDelta, Tool, ToolInputDelta, ToolResult, ToolUse
from dragoman.transport import Clocks, HeaderList
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import HTTPRequest
from material import Answer, history, tools

_VALIDATE: Any = os.environ.get("BENCH_VALIDATE", "error")


def _content(response: Response) -> Any:
    calls = response.message.tool_uses
    return calls[0].input["lines"] if calls else response.text


class _AtOnce:
    """A transport that answers without a network, to see what a request costs to build."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.headers: HeaderList = [("content-type", "application/json")]

    def send(self, request: HTTPRequest, timeouts: Clocks) -> _AtOnce:
        timeouts.connected()
        assert len(request.body) > 1_000_000
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter([self._body])

    def read(self) -> bytes:
        return self._body

    def close(self) -> None: ...


class Client:
    """A provider with default settings: validation, timeouts and retries on. Telemetry is off unless `telemetry` says otherwise."""

    def __init__(self, url: str) -> None:
        settings: dict[str, Any] = {"telemetry": _telemetry(), "validate": _VALIDATE}
        if os.environ["BENCH_TRANSPORT"] == "httpx2":
            from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

            settings |= {"transport": HTTPX2Transport(), "async_transport": AsyncHTTPX2Transport()}
        else:
            from dragoman.transport.direct import AsyncDirectTransport, DirectTransport  # type: ignore[import-not-found]

            settings |= {"transport": DirectTransport(), "async_transport": AsyncDirectTransport()}
        self._provider = Anthropic(api_key="k", base_url=url, **settings)
        self._offline: Any = None

    def check(self, answer: Any, expected: Answer) -> bool:
        """The final message holds the whole answer."""
        return answer == expected.content()

    def _request(self, model: str) -> Request:
        return Request("hi", model=model, max_tokens=1024)

    def stream(self, model: str) -> str:
        """Every event seen, and the final response."""
        with self._provider.stream(self._request(model)) as stream:
            for _ in stream:
                pass
            return _content(stream.response())

    async def astream(self, model: str) -> str:
        """As `stream`."""
        async with self._provider.astream(self._request(model)) as stream:
            async for _ in stream:
                pass
            return _content(await stream.response())

    def whole(self, model: str) -> str:
        """The final response alone."""
        return _content(self._provider.complete(self._request(model)))

    async def awhole(self, model: str) -> str:
        """As `whole`."""
        return _content(await self._provider.acomplete(self._request(model)))

    def timed(self, model: str) -> tuple[float, float]:
        """When the first delta and the final response came."""
        first = 0.0
        with self._provider.stream(self._request(model)) as stream:
            for event in stream:
                if not first and isinstance(event, TextDelta | ToolInputDelta):
                    first = perf_counter()
            stream.response()
        return first, perf_counter()

    async def atimed(self, model: str) -> tuple[float, float]:
        """As `timed`."""
        first = 0.0
        async with self._provider.astream(self._request(model)) as stream:
            async for event in stream:
                if not first and isinstance(event, TextDelta | ToolInputDelta):
                    first = perf_counter()
            await stream.response()
        return first, perf_counter()

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return _content(self._provider.complete(self._request(model), stream=False))

    async def acomplete(self, model: str) -> str:
        """As `complete`."""
        return _content(await self._provider.acomplete(self._request(model), stream=False))

    # ---- the long request

    def conversation(self) -> Any:
        """The long history in our types."""
        return conversation(history(), tools())

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        messages, offered = conversation
        return _content(self._provider.complete(Request(messages, model=model, tools=offered, max_tokens=1024), stream=False))

    def build(self, conversation: Any, model: str) -> str:
        """As `send`, without a network."""
        if self._offline is None:
            self._offline = Anthropic(api_key="k", telemetry=None, validate=_VALIDATE, transport=_AtOnce(Answer.of(model).message()))
        messages, offered = conversation
        return _content(self._offline.complete(Request(messages, model=model, tools=offered, max_tokens=1024), stream=False))

    def codec(self, chunks: list[bytes]) -> str:
        """Bytes to the final response, without a network."""
        return codec(chunks)


def codec(chunks: list[bytes]) -> str:
    """Bytes to the content of the final response, as a driver does it."""
    decoder = AnthropicWire().decoder(headers={"content-type": "text/event-stream"})
    accumulator = Accumulator()
    push = accumulator.push
    for chunk in chunks:
        for event in decoder.feed(chunk):
            push(event)
    for event in decoder.close():
        push(event)
    return _content(accumulator.response())


def conversation(turns: list[dict[str, Any]], offered: list[dict[str, Any]]) -> tuple[list[Message], list[Tool]]:
    """A history and tools in our types."""
    messages = [Message(turn["role"], _blocks(turn["content"])) for turn in turns]
    return messages, [Tool(tool["name"], tool["description"], tool["input_schema"]) for tool in offered]


def _blocks(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [
        Text(block["text"])
        if block["type"] == "text"
        else ToolUse(block["id"], block["name"], block["input"])
        if block["type"] == "tool_use"
        else ToolResult(block["tool_use_id"], block["content"])
        for block in content
    ]


def _telemetry() -> Any:
    if not os.environ.get("BENCH_TELEMETRY"):
        return None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    from dragoman.telemetry import OpenTelemetry

    class Nowhere(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            del spans
            return SpanExportResult.SUCCESS

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(Nowhere()))
    return OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False))
