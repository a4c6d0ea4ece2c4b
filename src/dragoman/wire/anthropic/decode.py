"""Anthropic's answers as events: the stream, and the whole body through the same code (spec: anthropic.md §6, §8 to §11, §16, §19).

Strategy. Nearly every frame is a `content_block_delta` of one of four kinds: one typed msgspec decode, one look-up of its block, one
append, one event. Everything else is rare, is decoded as a plain dict so that no key is lost, and goes through a table from `type` to
method. What msgspec refuses (unknown types, lone surrogates) takes the same plain path. The `type` inside the data decides, the
`event:` line only where the data has none.

A whole body, and a `message_start` that arrives already filled, are turned into the events a stream would have given. Everything is
kept by wire index until its block stops; the terminal event is held until `message_stop`, `error` or the end of input.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.errors import ContextOverflowError, ProviderError, UnsupportedStopError
from dragoman.event import (
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    Failed,
    MessageStart,
    MessageStop,
    SignatureDelta,
    UsageUpdate,
)
from dragoman.fragments import JOIN_EVERY, parse_input, scrub
from dragoman.message import (
    Block,
    Citation,
    InvalidToolUse,
    Opaque,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
)
from dragoman.request import ProviderTool, Request
from dragoman.response import RateLimits, StopDetails, StopReason
from dragoman.wire.anthropic.blocks import SERVER_SIDE, WIRE, block_of
from dragoman.wire.anthropic.errors import decode_error, rate_limits, stream_error
from dragoman.wire.anthropic.pieces import BlockDelta, OpenBlock, frequent
from dragoman.wire.anthropic.usage import WireUsage
from dragoman.wire.base import Headers
from dragoman.wire.decoder import BLOCK_LIMIT, AnswerDecoder, TooManyBlocksError, load_json
from dragoman.wire.json_values import as_list, as_object, as_string, is_object
from dragoman.wire.sse import Frame

__all__ = ["HOSTED", "STOP_REASONS", "AnthropicDecoder", "is_hosted"]

STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "pause_turn": "pause_turn",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_exceeded",
    "compaction": "compaction",
}
"""Anthropic's stop reasons; any other is `unknown`, with the wire's word in `raw_stop`."""

HOSTED = ("web_search", "web_fetch", "code_execution", "tool_search_tool", "advisor", "mcp_toolset")
"""Beginnings of the dated types of provider tools that run on Anthropic's side."""

_START_KEYS = frozenset(
    {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage"}
)  # of a message; all others go to Response.extra
_STOP_KEYS = frozenset({"stop_reason", "stop_sequence", "stop_details"})


def is_hosted(tool: ProviderTool) -> bool:
    """Whether a provider tool runs on the provider's side."""
    return tool.type.startswith(HOSTED) if tool.hosted is None else tool.hosted


_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_DELTAS = ("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta")


class AnthropicDecoder(AnswerDecoder):
    """Decodes one answer of the Messages API."""

    def __init__(
        self,
        *,
        request: Request | None = None,
        status: int = 200,
        headers: Headers = (),
        label: str = "Anthropic",
        provider: str = "anthropic",
    ) -> None:
        # what every delta needs comes first: attributes lie in memory in the order in which they are made
        self._latest: OpenBlock | None = None  # until it or the answer stops: most deltas are for the block that started last
        self._latest_index = -1  # of the wire
        self._stop: dict[str, Any] | None = None
        self._open: dict[int, OpenBlock] = {}  # by wire index
        super().__init__(
            label=label, wire=WIRE, provider=provider, model=request.model if request is not None else "", status=status, headers=headers
        )
        self._request = request
        self._stopped: set[int] = set()  # wire indexes
        self._count = 0
        self._id = ""
        self._usage = WireUsage()
        self._stop_extra: dict[str, Any] = {}
        self._called = False  # a client tool call came
        self._server_side = False

    @property
    def rate_limits(self) -> RateLimits | None:
        """The `anthropic-ratelimit-*` headers."""
        return rate_limits(self.headers)

    def _decode_error(self, body: bytes) -> ProviderError:
        return decode_error(self.status, self.headers, body, label=self.label, provider=self.provider)

    # ---- frames

    def feed(self, data: bytes) -> list[Event]:
        """Events that these bytes complete. One more piece of an open block, alone in its read, takes the shortest way."""
        block = self._latest  # only a stream's is ever here
        if block is not None and (payload := self._sse.one(data)) is not None:
            try:
                frame = frequent(payload)
            except (msgspec.MsgspecError, RecursionError):
                pass
            else:
                if type(frame) is not BlockDelta:
                    return []  # a ping
                delta = frame.delta
                if frame.index == self._latest_index and delta.__class__ is block.fits and not block.held and (piece := delta.piece):
                    pieces = block.pieces
                    pieces.append(piece)
                    if len(pieces) >= JOIN_EVERY:
                        block.fragments.join()
                    return [block.event(block.index, piece)]
        return super().feed(data)

    def _frames(self, frames: list[Frame]) -> None:
        """The hot loop: nearly every frame is one more piece of an open block."""
        out = self._out.append
        blocks = self._open
        for event, data in frames:
            if not blocks:  # what comes between two blocks is rare, and a decoding that fails costs as much as ten
                self._rare_frame(data, event, last=False)
                if self._ended:
                    return
                continue
            try:
                frame = frequent(data)
            except (msgspec.MsgspecError, RecursionError):
                self._rare_frame(data, event, last=False)
                if self._ended:
                    return
                continue
            if type(frame) is not BlockDelta:  # `isinstance` of a Struct that it is not costs as much as its decoding
                continue
            block = blocks.get(frame.index)
            delta = frame.delta
            if block is None or delta.__class__ is not block.fits or block.held or self._stop is not None:
                self._delta(frame.index, load_json(data)["delta"])
                if self._ended:
                    return
            elif piece := delta.piece:
                pieces = block.pieces
                pieces.append(piece)
                if len(pieces) >= JOIN_EVERY:
                    block.fragments.join()
                out(block.event(block.index, piece))

    def _frame(self, data: bytes, event: bytes, *, last: bool = False) -> None:
        """One frame by itself: the last one, which may be unfinished."""
        self._rare_frame(data, event, last=last)

    def _rare_frame(self, data: bytes, event: bytes, *, last: bool) -> None:
        try:
            value: Any = load_json(data)
        except ValueError:
            if self._stop is not None:
                self._notice("after_stop", "bytes that are not JSON came after the stop reason and were ignored")
            elif not last and data.strip() not in (b"", b"[DONE]"):
                self._protocol_error("an event's data is not JSON", body=data)
            return
        if not is_object(value):
            self._break("an event's data is JSON but not an object", body=data)
            return
        frame = value
        kind = frame.get("type")
        if event == b"error" or kind == "error":
            self._on_error(frame)
            return
        kind = kind if isinstance(kind, str) else event.decode("utf-8", "replace")
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, frame)
        elif isinstance(frame.get("error"), dict | str):
            self._on_error(frame)
        else:
            self._opaque(frame, kind)
            self._notice("unknown_event", f"an event of unknown type {kind[:100]!r} was passed on")

    def _end(self, event: MessageStop | Failed) -> None:
        self._latest = None
        super()._end(event)

    def _break(self, detail: str, *, body: bytes = b"") -> None:
        """The stream contradicts itself: an error, or only a notice once the answer is known to be complete."""
        if self._stop is not None:
            self._notice("after_stop", f"ignored after the stop reason: {detail}")
        else:
            self._protocol_error(detail, body=body)

    # ---- events of the message

    def _on_message_start(self, frame: dict[str, Any]) -> None:
        message = frame.get("message")
        if not is_object(message):
            self._break("message_start without a message")
            return
        self._message(message)

    def _message(self, message: dict[str, Any]) -> None:
        """The head of an answer; its content and stop reason too, where they are there already."""
        identity = as_string(message.get("id"))
        if self._started:
            if identity == self._id:
                self._notice("duplicate_message_start", "message_start came again with the same id and was ignored")
            else:
                self._break(f"a second message_start with another id ({identity[:100]!r} after {self._id[:100]!r})")
            return
        self._id = identity
        self.model = as_string(message.get("model")) or self.model
        usage = self._usage.merge(message.get("usage"))
        self.usage = usage or self.usage
        extra = {key: value for key, value in message.items() if key not in _START_KEYS and value is not None}
        self._start(
            MessageStart(
                identity,
                self.model,
                provider=self.provider,
                wire=WIRE,
                request_id=self.request_id,
                usage=usage,
                extra={WIRE: extra} if extra else {},
            )
        )
        for block in as_list(message.get("content")):
            if is_object(block):
                self._close_block(self._open_block(block))
        self._hold(message)

    def _body(self, body: dict[str, Any]) -> None:
        if body.get("type") == "error" or ("content" not in body and "error" in body):
            self._on_error(body)
        elif isinstance(body.get("content"), list):
            self._message(body)
        else:
            self._protocol_error("the JSON answer is not a message", body=bytes(self._buffered))

    def _on_message_delta(self, frame: dict[str, Any]) -> None:
        if not self._started:
            self._break("message_delta before message_start")
            return
        usage = self._usage.merge(frame.get("usage"))
        if usage is not None:
            self.usage = usage
            self._out.append(UsageUpdate(usage))
        delta = as_object(frame.get("delta"))
        self._stop_extra |= {key: value for key, value in delta.items() if key not in _STOP_KEYS and value is not None}
        self._stop_extra |= {key: value for key, value in frame.items() if key not in ("type", "delta", "usage") and value is not None}
        self._hold(delta)

    def _hold(self, delta: dict[str, Any]) -> None:
        """Remember a stop reason. A later one replaces it, null does not."""
        if delta.get("stop_reason") is not None:
            self._latest = None
            self._stop = {key: delta.get(key) for key in _STOP_KEYS}

    def _on_message_stop(self, frame: dict[str, Any]) -> None:
        del frame
        self._finish(None)

    def _on_ping(self, frame: dict[str, Any]) -> None:
        """A sign of life, told apart by its `event:` line alone."""

    def _on_error(self, frame: dict[str, Any]) -> None:
        error = stream_error(frame, label=self.label, provider=self.provider, request_id=self.request_id)
        if self._stop is not None:
            self._notice("error_after_stop", f"an error event ({error.kind}) came after the stop reason")
            self._finish(None)
        else:
            self._fail(error)

    # ---- events of a block

    def _on_block_start(self, frame: dict[str, Any]) -> None:
        index, block = frame.get("index"), frame.get("content_block")
        if not self._started or not isinstance(index, int) or not is_object(block):
            what = "before message_start" if not self._started else "without an index and a content_block"
            self._break(f"content_block_start {what}")
            return
        known = self._open.get(index)
        if known is not None and known.start == block and not known.fragments:
            self._notice("duplicate_block_start", "content_block_start came twice and was ignored", index=known.index)
        elif known is not None or index in self._stopped:
            self._break(f"content_block_start for block {index}, which was started before")
        else:
            self._open[index] = opened = self._open_block(block)
            self._latest, self._latest_index = opened if self._stop is None else None, index

    def _open_block(self, data: dict[str, Any]) -> OpenBlock:
        """Emit the start of a block and what it brought along."""
        start, given = data, ""
        if data.get("type") in _CALLS and data.get("input"):
            given = data["input"] if isinstance(data["input"], str) else json.dumps(data["input"], ensure_ascii=False)
            data = {**data, "input": {}}
        whole = block_of(data)
        kind: type = type(whole)
        if given and kind not in (ToolUse, ServerToolUse):  # no call after all: kept as it came
            whole, given = block_of(start), ""
            kind = type(whole)
        index = self._count
        if index >= BLOCK_LIMIT:
            raise TooManyBlocksError
        self._count += 1
        shell = whole
        match whole:
            case Text(text, citations=citations) if text or citations:
                shell = msgspec.structs.replace(whole, text="", citations=[])
            case Thinking(text, signature=signature) if text or signature:
                shell = msgspec.structs.replace(whole, text="", signature="")
            case ToolUse(id, extra=extra) | ServerToolUse(id, extra=extra) if not id:
                id = f"call_{self._id}_{index}"
                shell = msgspec.structs.replace(whole, id=id, extra={**extra, "dragoman": {"generated_id": True}})
            case _:
                pass
        self._called = self._called or kind is ToolUse
        self._server_side = self._server_side or kind in SERVER_SIDE
        block = OpenBlock(index, shell, start, scrub(given) if given else "")
        self._out.append(BlockStart(index, shell))
        if shell is not whole:
            match whole:
                case Text(text, citations=citations):
                    for citation in citations:
                        self._citation(block, citation)
                    self._text(block, text)
                case Thinking(text, signature=signature):
                    self._text(block, text)
                    self._signature(block, signature)
                case _:
                    pass
        return block

    def _on_block_delta(self, frame: dict[str, Any]) -> None:
        index, delta = frame.get("index"), frame.get("delta")
        if not isinstance(index, int) or not is_object(delta):
            self._break("content_block_delta without an index and a delta")
            return
        self._delta(index, delta)

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = as_string(delta.get("type"))
        block = self._open.get(index)
        if block is None:
            state = "was stopped before" if index in self._stopped else "was never started"
            self._break(f"{kind[:100] or 'a delta'} for block {index}, which {state}")
            return
        if self._stop is not None:
            self._notice("after_stop", "content came after the stop reason", index=block.index)
        shell = block.shell
        match kind:
            case "text_delta" if isinstance(shell, Text):
                self._text(block, as_string(delta.get("text")))
            case "thinking_delta" if isinstance(shell, Thinking):
                self._text(block, as_string(delta.get("thinking")))
            case "signature_delta" if isinstance(shell, Thinking):
                self._signature(block, as_string(delta.get("signature")))
            case "input_json_delta" if isinstance(shell, ToolUse | ServerToolUse):
                self._text(block, as_string(delta.get("partial_json")))
            case "citations_delta" if isinstance(shell, Text):
                data = as_object(delta.get("citation"))
                self._citation(block, Citation(as_string(data.get("type")), data))
            case "input_json_delta" if isinstance(shell, Opaque):
                block.fragments.add(as_string(delta.get("partial_json")))
            case "compaction_delta" if isinstance(shell, Opaque):
                block.shell = Opaque(shell.data | {k: v for k, v in delta.items() if k != "type"}, wire=WIRE)
            case _ if kind in _DELTAS and not isinstance(shell, Opaque):
                self._break(f"{kind} for block {index}, which is a {shell.type}")
            case _:
                self._opaque(delta, kind, block.index)
                self._notice("unknown_delta", f"a delta of unknown type {kind[:100]!r} was passed on", index=block.index)

    def _text(self, block: OpenBlock, text: str) -> None:
        """More text of whatever kind the block is; surrogate halves cut apart by the wire are joined again."""
        thinking = isinstance(block.shell, Thinking)
        text = block.held + text
        block.held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            block.held, text = text[-1], text[:-1]
        self._piece(block, _join_pairs(text) if thinking else scrub(text))

    def _piece(self, block: OpenBlock, text: str) -> None:
        if not text:
            return
        block.fragments.add(text)
        self._out.append(block.event(block.index, text))

    def _signature(self, block: OpenBlock, signature: str) -> None:
        if signature and signature != block.signature:  # a gateway may give the same one in the start and as a delta
            block.signature += signature
            self._out.append(SignatureDelta(block.index, signature))

    def _citation(self, block: OpenBlock, citation: Citation) -> None:
        block.citations.append(citation)
        self._out.append(CitationDelta(block.index, citation))

    def _on_block_stop(self, frame: dict[str, Any]) -> None:
        index = frame.get("index")
        if not isinstance(index, int) or index not in self._open:
            self._notice("stray_block_stop", "content_block_stop for a block that is not open was ignored")
            return
        self._stopped.add(index)
        if index == self._latest_index:
            self._latest = None
        self._close_block(self._open.pop(index))

    def _close_block(self, block: OpenBlock, *, complete: bool = True) -> None:
        """Emit the end of a block. `complete=False`: the wire never stopped it, so a tool call in it must not be run."""
        if block.held:
            held, block.held = block.held, ""
            self._piece(block, held if isinstance(block.shell, Thinking) else "\ufffd")
        if complete and block.input and not block.fragments:
            self._piece(block, block.input)  # whole with the start: readers of deltas get it as one
        self._out.append(BlockStop(block.index, self._finished(block, complete=complete)))

    def _finished(self, block: OpenBlock, *, complete: bool) -> Block:
        shell = block.shell
        text = block.fragments.text()
        match shell:
            case Text():
                return msgspec.structs.replace(shell, text=text, citations=block.citations)
            case Thinking():
                return msgspec.structs.replace(shell, text=text, signature=block.signature)
            case ToolUse() | ServerToolUse():
                value = parse_input(text) if complete else "incomplete"
                if isinstance(value, dict):
                    return msgspec.structs.replace(shell, input=value)
                extra = shell.extra
                if isinstance(shell, ServerToolUse):
                    extra = {**extra, "dragoman": {"server_tool": True}}  # nobody has to answer it
                return InvalidToolUse(shell.id, shell.name, text, reason=value, extra=extra)
            case Opaque(data) if block.fragments:
                value = parse_input(text)
                return Opaque({**data, "input": value if isinstance(value, dict) else text}, wire=WIRE)
            case _:
                return shell

    # ---- the end

    def _terminal(self) -> MessageStop | Failed | None:
        if self._stop is None or not self._started:
            return None
        raw = as_string(self._stop["stop_reason"])
        sequence = self._stop["stop_sequence"]
        stop = STOP_REASONS.get(raw, "unknown")
        if raw not in STOP_REASONS:
            self._notice("unknown_stop_reason", f"the stop reason {raw[:100]!r} is not known")
        if stop == "end_turn" and isinstance(sequence, str) and sequence:  # llama.cpp
            stop = "stop_sequence"
        if stop == "tool_use" and not self._called:
            stop = "unknown"
            self._notice("tool_use_without_call", "the stop reason is tool_use but there is no tool call")
        error = self._stop_error(stop, raw)
        if error is not None:
            return Failed(error, stop=stop, raw_stop=raw, usage=self.usage)
        for index in sorted(self._open, key=lambda wire_index: self._open[wire_index].index):
            self._close_block(self._open[index], complete=False)
        self._open.clear()
        return MessageStop(
            stop,
            raw_stop=raw,
            stop_sequence=sequence if isinstance(sequence, str) else None,
            stop_details=_stop_details(self._stop["stop_details"]),
            usage=self.usage,
            extra={WIRE: self._stop_extra} if self._stop_extra else {},
        )

    def _stop_error(self, stop: StopReason, raw: str) -> ProviderError | None:
        if stop == "context_exceeded":
            return ContextOverflowError(f"{self.label} request failed ({raw}): the answer ran into the end of the context window", type=raw)
        if stop == "pause_turn" and not self._may_pause():
            text = f"{self.label} request failed: unsupported stop reason {raw!r}: the request has no tool that runs on the provider's side"
            return UnsupportedStopError(text, raw=raw)
        return None

    def _may_pause(self) -> bool:
        """Whether the turn can be continued: something in it runs on the provider's side."""
        request = self._request
        if request is None:
            return self._server_side
        hosted = any(isinstance(tool, ProviderTool) and is_hosted(tool) for tool in request.tools)
        return hosted or bool(request.extra_body.get("mcp_servers") or request.extra_body.get("container"))


_HANDLERS = {
    "ping": AnthropicDecoder._on_ping,  # pyright: ignore[reportPrivateUsage]
    "message_start": AnthropicDecoder._on_message_start,  # pyright: ignore[reportPrivateUsage]
    "content_block_start": AnthropicDecoder._on_block_start,  # pyright: ignore[reportPrivateUsage]
    "content_block_delta": AnthropicDecoder._on_block_delta,  # pyright: ignore[reportPrivateUsage]
    "content_block_stop": AnthropicDecoder._on_block_stop,  # pyright: ignore[reportPrivateUsage]
    "message_delta": AnthropicDecoder._on_message_delta,  # pyright: ignore[reportPrivateUsage]
    "message_stop": AnthropicDecoder._on_message_stop,  # pyright: ignore[reportPrivateUsage]
}


def _join_pairs(text: str) -> str:
    """Surrogates that stand as a pair become their character; lone ones stay (thinking is never altered)."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _stop_details(value: Any) -> StopDetails | None:
    if not is_object(value):
        return None
    details = value
    rest = {key: item for key, item in details.items() if key not in ("type", "category", "explanation") and item is not None}
    return StopDetails(
        as_string(details.get("type")),
        category=as_string(details.get("category")),
        explanation=as_string(details.get("explanation")),
        extra={WIRE: rest} if rest else {},
    )
