"""A wire for a protocol that dragoman does not know: Ollama's own chat API, one JSON object a line, no framing, no ids.

A package of yours offers it under a name, in its pyproject.toml:

    [project.entry-points."dragoman.wires"]
    ollama-native = "your_package:OllamaWire"

and `dragoman.connect("ollama-native:llama3.2")` finds it. docs/how-to/add-a-provider.md explains each part.
"""

from typing import Any

import msgspec

from dragoman.accumulator import Accumulator
from dragoman.errors import IncompleteStreamError, ModelNotFoundError, ProtocolError, ProviderError, ServerError
from dragoman.event import Event, Failed, MessageStart, MessageStop
from dragoman.message import Message, Thinking, ToolResult, tool_result, user
from dragoman.request import Request, Tool
from dragoman.response import Response, StopReason, Usage
from dragoman.wire import HTTPRequest
from dragoman.wire.base import Headers
from dragoman.wire.framing import Framing

NAME = "ollama-native"
STOPS: dict[str, StopReason] = {"stop": "end_turn", "length": "max_tokens"}


class OllamaWire:
    """Pure: no I/O, no state between calls. `base_url` is what `connect` uses unless told otherwise; it needs no key."""

    name = NAME
    base_url = "http://localhost:11434"

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        body: dict[str, Any] = {"model": request.model, "messages": write_messages(request), "stream": stream}
        for tool in request.tools:
            if isinstance(tool, Tool):
                function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
                body.setdefault("tools", []).append({"type": "function", "function": function})
        options = {"num_predict": request.max_tokens, "temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
        body["options"] = {key: value for key, value in options.items() if value is not None}
        body.update({key: value for key, value in request.extra_body.items() if key not in body})
        return HTTPRequest(path="/api/chat", headers={"content-type": "application/json"}, body=msgspec.json.encode(body))

    def decoder(self, request: Request | None = None, *, status: int = 200, headers: Headers = ()) -> "OllamaDecoder":
        del request, headers  # this protocol needs neither to read an answer
        return OllamaDecoder(self, status)

    def decode_response(self, status: int, headers: Headers, body: bytes, request: Request | None = None) -> Response:
        decoder, accumulator = self.decoder(request, status=status, headers=headers), Accumulator()
        for event in decoder.feed(body) + decoder.close():
            accumulator.push(event)
        return accumulator.response()

    def decode_error(self, status: int, headers: Headers, body: bytes) -> ProviderError:
        del headers
        text = body.decode("utf-8", "replace")
        cls = ModelNotFoundError if status == 404 else ServerError if status >= 500 else ProviderError
        return cls(f"Ollama request failed with HTTP {status}: {text[:300]}", provider="ollama", status=status, body=text)


def write_messages(request: Request) -> list[dict[str, Any]]:
    """Our turns as theirs. What a protocol has no place for should be an InvalidInputError or a Notice; this example keeps to text."""
    system = request.system if isinstance(request.system, str) else "\n\n".join([text.text for text in request.system])
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    names = {call.id: call.name for message in request.messages for call in message.tool_uses}
    for message in request.messages:
        if message.role == "assistant":
            messages.append(write_answer(message))
            continue
        results = [block for block in message.content if isinstance(block, ToolResult)]
        messages += [{"role": "tool", "tool_name": names.get(r.tool_use_id, ""), "content": r.text} for r in results]  # no ids: the name
        if message.text:
            messages.append({"role": message.role, "content": message.text})
    return messages


def write_answer(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.tool_uses:
        wire["tool_calls"] = [{"function": {"name": call.name, "arguments": call.input}} for call in message.tool_uses]
    if message.origin is None or message.origin.wire == NAME:  # thinking goes back to its own writer only
        thinking = "".join([block.text for block in message.content if isinstance(block, Thinking)])
        wire |= {"thinking": thinking} if thinking else {}
    return wire


class Function(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}


class Piece(msgspec.Struct):
    content: str = ""
    thinking: str = ""
    tool_calls: list[dict[str, Function]] = []


class Chunk(msgspec.Struct):
    """One line of an answer. Reading it into types is all the checking that a peer's bytes need."""

    model: str = ""
    created_at: str = ""
    message: Piece = msgspec.field(default_factory=Piece)
    done: bool = False
    done_reason: str = ""
    prompt_eval_count: int = 0
    eval_count: int = 0
    error: str = ""


class OllamaDecoder:
    """The state of one answer. Never raises for what the peer sent; no event depends on how the bytes were cut."""

    request_id = ""
    rate_limits = None

    def __init__(self, wire: OllamaWire, status: int) -> None:
        self._wire = wire
        self._status = status
        self._line = bytearray()
        self._out: list[Event] = []
        self._framing = Framing(self._out.append, wire=NAME)
        self._started = self._ended = False

    def feed(self, data: bytes) -> list[Event]:
        self._line += data
        if self._status == 200 and not self._ended:
            *lines, rest = bytes(self._line).split(b"\n")
            self._line = bytearray(rest)
            for line in filter(None, lines):
                self._read(line)
        return self._take()

    def close(self, error: ProviderError | None = None) -> list[Event]:
        if self._status != 200 and not self._ended:
            self._fail(self._wire.decode_error(self._status, (), bytes(self._line)))
        elif self._line.strip() and not self._ended:
            self._read(bytes(self._line), last=True)
        if not self._ended:
            self._fail(error or IncompleteStreamError("Ollama request failed: the stream ended without a stop reason"))
        return self._take()

    def _take(self) -> list[Event]:
        out, self._out[:] = self._out.copy(), []
        return out

    def _fail(self, error: ProviderError) -> None:
        self._ended = True
        self._out.append(Failed(error))

    def _read(self, line: bytes, *, last: bool = False) -> None:
        """One line. Framing turns the fragments into blocks: it opens them, counts them, parses a call's input and closes them."""
        if self._ended:
            return
        try:
            chunk = msgspec.json.decode(line, type=Chunk)
        except msgspec.MsgspecError as cause:
            if not last:
                self._fail(ProtocolError(f"Ollama request failed: protocol error: {cause}"))
            return
        if chunk.error:
            self._fail(ServerError(f"Ollama request failed: {chunk.error}", provider="ollama"))
            return
        if not self._started:
            self._started, self._framing.response_id = True, chunk.created_at
            self._out.append(MessageStart(chunk.created_at, chunk.model, provider="ollama", wire=NAME))
        self._framing.thinking("thinking", chunk.message.thinking)
        self._framing.text("text", chunk.message.content)
        for call in chunk.message.tool_calls:
            key = f"call {self._framing.calls}"
            self._framing.tool(key, "", call["function"].name)  # without an id: Framing makes one and remembers that it did
            self._framing.tool_input(key, msgspec.json.encode(call["function"].arguments).decode())
        if chunk.done:
            self._ended = True
            self._framing.stop_all(cut=chunk.done_reason == "length")
            stop: StopReason = "tool_use" if self._framing.calls else STOPS.get(chunk.done_reason, "unknown")
            usage = Usage(input=chunk.prompt_eval_count, output=chunk.eval_count)
            self._out.append(MessageStop(stop, raw_stop=chunk.done_reason, usage=usage))


ANSWER = b"""\
{"model":"m","created_at":"t1","message":{"role":"assistant","thinking":"I need the weather. "},"done":false}
{"model":"m","message":{"tool_calls":[{"function":{"name":"weather","arguments":{"city":"Paris"}}}]},"done":false}
{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":9}
"""


def main() -> None:
    wire, request = OllamaWire(), Request("What is the weather in Paris?", model="m", tools=[Tool("weather")])
    answer = wire.decode_response(200, {}, ANSWER)
    print(answer.stop, answer.usage.total, [block.type for block in answer.message.content])
    results = user(*[tool_result(call, "sunny") for call in answer.tool_uses])
    print(wire.encode(request.replace(messages=[*request.messages, answer.message, results]), stream=True).body.decode())


if __name__ == "__main__":
    main()
