"""One answer of the Responses API as events: a stream, a JSON body, an error.

Strategy. The API frames by items: `output_item.added`, deltas that name the item by `output_index`, `output_item.done` with the whole
item, and at last `response.completed` with all of them. `Items` knows which item an event is about; its blocks are opened in `Framing`
as they appear, deltas go there, and the `Settler` finishes them. A body is a stream that has only the last event, so both give one
answer.

When an item is settled: at `output_item.done`, except that items which the provider encrypts anew in `response.completed`, and those
whose id changes from event to event (GitHub Copilot), wait for that event, whose form is the one to replay.

Servers differ: llama.cpp sends no indexes and no `.done` for arguments, OpenRouter no `event:` field but a `[DONE]`, some an empty
`output` at the end. So an item is found by index, else by id, else it is the latest one of its kind; what the end leaves out is finished
from what came; sequence numbers are not needed and not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from dragoman.errors import ProviderError
from dragoman.event import Failed, MessageStart, MessageStop
from dragoman.fragments import scrub
from dragoman.message import Citation, Opaque, Refusal, ServerToolUse, Text, Thinking
from dragoman.request import ProviderTool, Request
from dragoman.response import RateLimits, StopDetails, StopReason
from dragoman.wire.base import Headers
from dragoman.wire.decoder import AnswerDecoder, load_json
from dragoman.wire.framing import Framing, Key
from dragoman.wire.json_values import as_object, as_objects, as_string, is_list, is_object
from dragoman.wire.openai_errors import decode_error, is_error, rate_limits, request_id_of, stream_error
from dragoman.wire.openai_responses.blocks_in import PARAGRAPH, image_shell, pair_shell, reasoning_block, result_block
from dragoman.wire.openai_responses.events import ARGUMENTS, DONE, FREE_TEXT, PROGRESS, SILENT, STATUS_OF_EVENT, STOP_OF_REASON, WHOLE
from dragoman.wire.openai_responses.items import Item, Items, id_of
from dragoman.wire.openai_responses.kinds import CALLS, ENCRYPTED, WIRE
from dragoman.wire.openai_responses.settle import Settler
from dragoman.wire.openai_responses.usage import response_extra, usage_of
from dragoman.wire.sse import Frame

__all__ = ["ResponsesDecoder"]


class _TextEvent(msgspec.Struct, gc=False):
    """A delta of text, which nearly all events are: read without its padding and log probabilities."""

    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int | None = None
    content_index: int | None = None
    item_id: str | None = None


_read_text = msgspec.json.Decoder(_TextEvent).decode


class ResponsesDecoder(AnswerDecoder):
    """The state of one answer. `limit` is the output limit in tokens, for servers that call an answer completed which it cut."""

    def __init__(
        self, *, label: str, provider: str, request: Request | None, status: int, headers: Headers, limit: int | None = None
    ) -> None:
        model = request.model if request is not None else ""
        super().__init__(label=label, wire=WIRE, provider=provider, model=model, status=status, headers=headers)
        tools = request.tools if request is not None else ()
        own_tools = frozenset([tool.name for tool in tools if not isinstance(tool, ProviderTool) or tool.type == "custom"])
        self._framing = Framing(self._emit, wire=WIRE)
        self._settler = Settler(self._framing, self._notice)
        self._items = Items(own_tools)
        self._id = ""
        self._error: ProviderError | None = None
        self._limit = limit
        self._where: tuple[Any, ...] | None = None  # what the latest text delta said of its place
        self._text_key: Key = None  # the block there, while it is open
        self._approvals = 0

    @property
    def rate_limits(self) -> RateLimits | None:
        """The `x-ratelimit-*` headers."""
        return rate_limits(self.headers)

    def _header_request_id(self) -> str:
        return request_id_of(self.headers)

    # ---- the three forms of an answer

    def _frames(self, frames: list[Frame]) -> None:
        """As the base, with a short way for more text of the block that was written to last."""
        for event, data in frames:
            if event == b"response.output_text.delta":
                try:
                    text = _read_text(data)
                except (msgspec.MsgspecError, UnicodeEncodeError):
                    pass  # `_frame` copes with what is odd
                else:
                    if (text.output_index, text.content_index, text.item_id) == self._where:
                        self._framing.text(self._text_key, text.delta)
                        continue
            self._frame(data, event)
            if self._ended:
                return

    def _frame(self, data: bytes, event: bytes, *, last: bool = False) -> None:
        try:
            value: Any = load_json(data)
        except ValueError:
            if not last and data.strip() not in (b"", b"[DONE]"):
                self._protocol_error("an event's data is not JSON", body=data)
            return
        if not is_object(value):
            self._protocol_error("an event's data is JSON but not an object", body=data)
            return
        kind = value.get("type")
        if not isinstance(kind, str):
            kind = value["type"] = event.decode("utf-8", "replace") or ("error" if "error" in value else "")
        if is_error(value):
            kind = "error"
        handle = self._EVENTS.get(kind)
        if handle is not None:
            handle(self, value)
        elif kind in STATUS_OF_EVENT:
            self._finished(kind, value)
        elif kind not in SILENT:
            self._other(kind, value)

    def _body(self, body: dict[str, Any]) -> None:
        if "output" not in body and (body.get("error") or is_error(body)):
            self._fail(self._stream_error(body))
        elif is_list(body.get("output")) or "status" in body:
            self._finished("", {"response": body})
        else:
            self._protocol_error(_foreign(body))

    def _decode_error(self, body: bytes) -> ProviderError:
        return decode_error(self.status, self.headers, body, label=self.label, provider=self.provider)

    def _stream_error(self, value: dict[str, Any]) -> ProviderError:
        return stream_error(value, label=self.label, provider=self.provider, request_id=self.request_id)

    def _terminal(self) -> MessageStop | Failed | None:
        """The input ended without a terminal event: an `error` event is the answer's end, anything else is incomplete."""
        for item in self._items.unsettled():
            if item.done is not None:  # its whole form came, and was held
                self._settler.settle(item, item.done)
        return None if self._error is None else Failed(self._error, usage=self.usage if self._started else None)

    # ---- begin and end

    def _created(self, value: dict[str, Any]) -> None:
        response = as_object(value.get("response"))
        identity = as_string(response.get("id"))
        if not self._started:
            self._begin(response)
        elif identity != self._id and self._id:
            self._protocol_error(f"a second response.created with another id ({identity[:100]!r} after {self._id[:100]!r})")

    def _begin(self, response: dict[str, Any]) -> None:
        if self._started:
            return
        self._id = self._framing.response_id = as_string(response.get("id"))
        self.model = as_string(response.get("model")) or self.model
        self._start(MessageStart(self._id, self.model, provider=self.provider, wire=WIRE, request_id=self.request_id))

    def _finished(self, kind: str, value: dict[str, Any]) -> None:
        """The end: `response.completed` and its kin, or a whole body (`kind` is then empty)."""
        response = as_object(value.get("response"))
        self._begin(response)
        status = as_string(response.get("status")) or STATUS_OF_EVENT.get(kind, "")
        if status in ("in_progress", "") and kind:
            status = STATUS_OF_EVENT[kind]
        failed = status == "failed"
        self._settle_final(response, status)
        if self._ended:
            return
        self.usage = usage_of(response)
        if failed or self._error is not None:
            self._fail(
                self._error
                or self._stream_error(as_object(response.get("error")) or {"message": "the response failed, with no reason given"})
            )
            return
        if not status:
            return  # a body without a status: incomplete
        reason = as_string(as_object(response.get("incomplete_details")).get("reason"))
        stop, raw = self._stop(status, reason)
        if self._limit is not None and self.usage.output >= self._limit and status in DONE:
            stop = "max_tokens"
            self._notice("cut_by_limit", "the answer is said to be completed but used all tokens it was allowed")
        self._end(
            MessageStop(
                stop,
                raw_stop=raw,
                stop_details=_stop_details(response, reason),
                usage=self.usage,
                extra=response_extra(response, value, self._id),
            )
        )

    def _stop(self, status: str, reason: str) -> tuple[StopReason, str]:
        if status in DONE:
            if self._approvals:
                return "action_required", status
            if self._framing.calls:
                return "tool_use", status
            return "refusal" if self._settler.refused else "end_turn", status
        raw = reason or status  # queued, in_progress: a background response that nobody here polls for
        return STOP_OF_REASON.get(raw, "unknown"), raw

    def _error_event(self, value: dict[str, Any]) -> None:
        """Held: `response.failed` follows on OpenAI, and may carry usage."""
        if self._error is None:
            self._error = self._stream_error(value)

    # ---- items

    def _added(self, value: dict[str, Any]) -> None:
        item = as_object(value.get("item"))
        index = value.get("output_index")
        known = self._items.get(index) if isinstance(index, int) else None
        if known is None:
            self._open(index, item)
        elif known.kind != item.get("type"):
            self._protocol_error(f"output item {index} was added twice, as {known.kind} and as {str(item.get('type'))[:50]}")

    def _open(self, index: Any, item: dict[str, Any]) -> Item:
        """A new item, and its block."""
        self._begin({})
        opened = self._items.add(self._items.free_index(index), item)
        start, key = self._framing.start, opened.key
        match opened.role:
            case "reasoning":
                start(key, Thinking(""))
            case "call":
                extra = None if opened.kind == "function_call" else {"kind": opened.kind}
                name = as_string(item.get("name")) or CALLS[opened.kind].name
                self._framing.tool(key, as_string(item.get("call_id")), name, extra=extra)
            case "pair":
                start(key, pair_shell(item))
            case "use":
                start(key, ServerToolUse(as_string(item.get("call_id")), "shell", {}))
            case "result":
                start(key, result_block(item))
            case "image":
                start(key, image_shell(item))
            case "opaque":
                start(key, Opaque(item, wire=WIRE))
                self._approvals += opened.kind == "mcp_approval_request"
            case "message":
                pass  # its parts are the blocks
        return opened

    def _done(self, value: dict[str, Any]) -> None:
        final = as_object(value.get("item"))
        item = self._items.find(value, as_string(final.get("type")), id=id_of(final)) or self._open(value.get("output_index"), final)
        if item.settled:
            return
        if item.kind != as_string(final.get("type")):
            self._protocol_error(f"output item {item.index} was added as {item.kind} and ended as {str(final.get('type'))[:50]}")
            return
        item.done = final
        self._where = None
        if item.role == "reasoning":
            self._settler.catch_up(item.key, reasoning_block(final).text, self._framing.thinking)
        if item.kind not in ENCRYPTED and not item.unstable:
            self._settler.settle(item, final)

    def _settle_final(self, response: dict[str, Any], status: str) -> None:
        """Finish all items: by the response's own list, else by their `done`, else, unless the answer failed, by what came."""
        self._settler.whole = status in DONE
        self._where = None
        taken: set[int] = set()
        for position, final in enumerate(as_objects(response.get("output"))):
            item = self._items.match(position, final, taken) or self._open(position, final)
            taken.add(item.index)
            if not item.settled:
                self._settler.settle(item, final)
        for item in self._items.unsettled():
            if item.done is not None or status != "failed":
                self._settler.settle(item, item.done)

    def _target(self, value: dict[str, Any], event: str, kind: str) -> Item | None:
        """The open item that a delta goes to. A text or reasoning opens its item if nothing did; for a call that is an error."""
        item = self._items.find(value, kind)
        if item is None and kind in ("message", "reasoning"):
            item = self._open(value.get("output_index"), {"type": kind, "id": as_string(value.get("item_id"))})
        if item is not None and item.kind == kind and item.role != "opaque" and not item.settled:
            return item
        state = (
            "no item was added"
            if item is None
            else f"the item is {'a finished' if item.settled else 'an open'} one of type {item.kind} ({item.role})"
        )
        self._protocol_error(f"{event} for output item {value.get('output_index', '(no index)')}: {state}")
        return None

    # ---- messages

    def _part_added(self, value: dict[str, Any]) -> None:
        part = as_object(value.get("part"))
        kind = part.get("type")
        if kind == "reasoning_text":  # some servers have no reasoning_part.added
            self._reasoning_part(value)
            return
        item = self._target(value, "content_part.added", "message")
        if item is not None and kind in ("output_text", "refusal"):
            key = self._part(item, value.get("content_index"), refusal=kind == "refusal")
            self._framing.text(key, as_string(part.get("text")) or as_string(part.get("refusal")))

    def _part(self, item: Item, index: Any, *, refusal: bool = False) -> Key:
        """The block of a content part, opened if it is new."""
        if not isinstance(index, int):
            index = max(item.parts, default=0)
        key = item.parts.get(index)
        if key is None:
            key = item.parts[index] = (item.index, index)
            self._framing.start(key, Refusal("") if refusal else Text(""))
        return key

    def _text(self, value: dict[str, Any]) -> None:
        item = self._target(value, "output_text.delta", "message")
        if item is not None:
            self._text_key = self._part(item, value.get("content_index"))
            self._where = (value.get("output_index"), value.get("content_index"), value.get("item_id"))
            self._framing.text(self._text_key, as_string(value.get("delta")))

    def _refusal(self, value: dict[str, Any]) -> None:
        item = self._target(value, "refusal.delta", "message")
        if item is not None:
            self._framing.text(self._part(item, value.get("content_index"), refusal=True), as_string(value.get("delta")))

    def _annotation(self, value: dict[str, Any]) -> None:
        item = self._target(value, "output_text.annotation.added", "message")
        annotation = as_object(value.get("annotation"))
        if item is not None and annotation:
            key = self._part(item, value.get("content_index"))
            self._framing.citation(key, Citation(as_string(annotation.get("type")), annotation))
            self._settler.cited[key] = self._settler.cited.get(key, 0) + 1

    # ---- reasoning

    def _reasoning_part(self, value: dict[str, Any]) -> None:
        item = self._target(value, "a part of a reasoning", "reasoning")
        if item is not None:
            self._enter_part(item, value)

    def _enter_part(self, item: Item, value: dict[str, Any]) -> None:
        """A blank line before each part of a reasoning but the first."""
        field = "summary" if "summary_index" in value else "content"
        number = value.get("summary_index", value.get("content_index"))
        part = (field, number if isinstance(number, int) else 0)
        if item.part is not None and part != item.part:
            self._framing.thinking(item.key, PARAGRAPH)
        item.part_begun = item.part_begun and part == item.part
        item.part = part

    def _thinking(self, value: dict[str, Any]) -> None:
        item = self._target(value, "a delta of a reasoning", "reasoning")
        if item is not None:
            self._enter_part(item, value)
            item.part_begun = True
            self._framing.thinking(item.key, as_string(value.get("delta")))

    # ---- calls

    def _arguments(self, value: dict[str, Any]) -> None:
        """More JSON of a call's arguments."""
        kind = value["type"]
        item = self._target(value, kind, ARGUMENTS.get(kind, "function_call"))
        if item is not None:
            self._framing.tool_input(item.key, as_string(value.get("delta")))

    def _free_text(self, value: dict[str, Any]) -> None:
        """More free text of a call's input: code, a diff, a command, a custom tool's input."""
        kind = value["type"]
        item = self._target(value, kind, FREE_TEXT[kind])
        if item is not None and item.writer is not None:
            number = value.get("command_index")
            text = as_string(value.get("delta")) or as_string(value.get("command"))
            self._framing.tool_input(item.key, item.writer.piece(text, number if isinstance(number, int) else 0))

    # ---- texts and inputs that come whole

    def _whole(self, value: dict[str, Any]) -> None:
        """What a `.done` event says that no delta has said. Each says it of one text, once; what fits no open item says nothing new."""
        kind, field = WHOLE[value["type"]]
        text = as_string(value.get(field))
        item = self._items.find(value, kind)
        if item is None and kind in ("message", "reasoning") and text:
            item = self._open(value.get("output_index"), {"type": kind, "id": as_string(value.get("item_id"))})
        if item is None or item.settled or item.kind != kind or item.role == "opaque":
            return
        number = value.get("content_index" if kind == "message" else "command_index")
        place = (kind, number) if kind != "reasoning" else (value.get("summary_index"), value.get("content_index"))
        if not text or place in item.whole:
            return
        item.whole.add(place)
        if kind == "message":
            key = self._part(item, number, refusal=field == "refusal")
            self._settler.catch_up(key, scrub(text), self._framing.text)
        elif kind == "reasoning":
            self._whole_reasoning(item, value, text)
        elif item.writer is None:
            self._settler.catch_up(item.key, scrub(text), self._framing.tool_input)
        else:
            self._whole_input(item, text, number if isinstance(number, int) else 0)

    def _whole_reasoning(self, item: Item, value: dict[str, Any], text: str) -> None:
        self._enter_part(item, value)
        if not item.part_begun:
            item.part_begun = True
            self._framing.thinking(item.key, text)

    def _whole_input(self, item: Item, text: str, number: int) -> None:
        """A call's input of free text."""
        assert item.writer is not None
        rest = item.writer.rest(scrub(text), number)
        if rest:
            self._framing.tool_input(item.key, item.writer.piece(rest, number))
        call = CALLS.get(item.kind)
        if item.role == "call" and call is not None and item.kind != "shell_call":  # of a shell's commands nobody says which is the last
            given = text if call.form == "text" else {**as_object(item.start.get(call.field)), call.streamed: text}
            item.ended = {**{key: value for key, value in item.start.items() if key != "status"}, call.field: given}

    # ---- everything else

    def _other(self, kind: str, value: dict[str, Any]) -> None:
        if not kind:
            self._protocol_error(_foreign(value))
            return
        index = value.get("output_index")
        self._opaque(value, kind, self._framing.index((index,)) if isinstance(index, int) else None)
        if not (kind.startswith("response.") and kind.count(".") == 2 and kind.rpartition(".")[2] in PROGRESS):
            self._notice("unknown_event", f"an event of unknown type {kind[:100]!r} was passed on")

    _EVENTS: ClassVar[dict[str, Callable[[ResponsesDecoder, dict[str, Any]], None]]] = {
        "response.output_text.delta": _text,
        "response.refusal.delta": _refusal,
        "response.output_text.annotation.added": _annotation,
        "response.content_part.added": _part_added,
        "response.reasoning_summary_text.delta": _thinking,
        "response.reasoning_text.delta": _thinking,
        "response.reasoning_summary_part.added": _reasoning_part,
        "response.reasoning_part.added": _reasoning_part,
        "response.function_call_arguments.delta": _arguments,
        "response.mcp_call_arguments.delta": _arguments,
        **dict.fromkeys(FREE_TEXT, _free_text),
        **dict.fromkeys(WHOLE, _whole),
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.created": _created,
        "error": _error_event,
    }
    """What each event does; those that end an answer are in STATUS_OF_EVENT."""


def _foreign(value: dict[str, Any]) -> str:
    """What a JSON object is that is no part of this dialect."""
    if "choices" in value:
        return "this is an answer of Chat Completions, not of the Responses API; use the openai-chat wire for this server"
    return f"a JSON object that is no response (keys: {', '.join(sorted(map(str, value)))[:100]})"


def _stop_details(response: dict[str, Any], reason: str) -> StopDetails | None:
    if reason != "content_filter":
        return None
    filters = response.get("content_filters")
    return StopDetails("filter", extra={WIRE: {"content_filters": filters}} if filters else {})
