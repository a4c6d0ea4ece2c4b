"""Chat answers as events: the stream, and the whole body through the same code.

Strategy. Nearly every chunk is a piece of text, of reasoning or of one call's arguments: one typed decode (`chunk.py`), one append, one
event. Whatever has more in it is decoded as a plain dict and taken key by key, so that nothing is lost: content becomes blocks through
`Framing`, the rest lands in `Response.extra`, `Message.extra` or the `extra` of its block. A whole body is one chunk whose `message` is
its `delta`.

No host frames blocks, so all of them stay open to the end: text goes on after a call (seen: text, call, text, call in one answer), an
annotation may come before its text, sound after the usage. The end is held for `[DONE]` or the end of input, because usage follows the
finish reason, in a chunk with or without choices, and so may an error.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.errors import ContextOverflowError, ProviderError
from dragoman.event import Failed, MessageStart, MessageStop, UsageUpdate
from dragoman.message import Citation, Opaque
from dragoman.request import Request
from dragoman.response import RateLimits, StopDetails, StopReason, Usage
from dragoman.wire.base import Headers
from dragoman.wire.decoder import AnswerDecoder, load_json
from dragoman.wire.framing import Framing
from dragoman.wire.json_values import as_list, as_object, as_objects, as_string
from dragoman.wire.openai_chat.calls import Calls
from dragoman.wire.openai_chat.chunk import Choice, common
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.media import Sound, image_of
from dragoman.wire.openai_chat.names import WIRE
from dragoman.wire.openai_chat.reasoning import THINKING, Reasoning
from dragoman.wire.openai_chat.stops import FAILURES, STOP_REASONS
from dragoman.wire.openai_chat.usage import usage_of
from dragoman.wire.openai_errors import decode_error, is_error, rate_limits, request_id_of, stream_error

__all__ = ["OpenAIChatDecoder"]

_MISSES: Final = 16
"""After so many chunks in a row that the typed shape refused, it is no longer tried: this host's chunks are just different."""

_TEXT: Final = "text"
_REFUSAL: Final = "refusal"

_CHUNK_KEYS = frozenset({"id", "object", "model", "choices", "usage", "obfuscation", "p", "error", "service_tier", "stream_options"})
"""Keys of a chunk that are read or mean nothing; all others are kept."""

_TELLING_KEYS = ("id", "usage", "error")
"""An object without choices and without any of these is no chunk."""

_MESSAGE_KEYS = frozenset({"citations", "search_results", "related_questions"})
"""Keys of a chunk that belong to the message (Perplexity)."""

_CHOICE_KEYS = frozenset({"index", "delta", "message", "text", "finish_reason", "logprobs", "error"})
"""Perplexity repeats the whole message beside each delta, Together its content under `text`."""

_DELTA_KEYS = frozenset(
    {
        "role",
        "content",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "refusal",
        "tool_calls",
        "function_call",
        "audio",
        "annotations",
        "images",
        "channel",
        "name",  # Hugging Face's router says "assistant" once more
        "token_id",  # Together
        "padding",  # Copilot
    }
)
"""Keys of a delta or message that are read or mean nothing; all others go to `Message.extra`."""

_LOGPROBS_OF = {"content": _TEXT, "refusal": _REFUSAL, "reasoning_content": THINKING}


class OpenAIChatDecoder(AnswerDecoder):
    """Decodes one answer of a chat completions endpoint."""

    def __init__(self, dialect: Dialect, *, request: Request | None = None, status: int = 200, headers: Headers = ()) -> None:
        model = request.model if request is not None else ""
        super().__init__(label=dialect.label, wire=WIRE, provider=dialect.provider, model=model, status=status, headers=headers)
        self._dialect = dialect
        self._framing = Framing(self._emit, wire=WIRE)
        self._reasoning = Reasoning(self._framing)
        self._calls = Calls(self._framing, self._notice)
        self._sound = Sound(self._framing, request)
        self._misses = 0
        self._raw_usage: dict[str, Any] | None = None
        self._service_tier = ""
        self._finish_reason = ""
        self._stop_string: str | None = None
        self._done = False
        self._noticed_late = False
        self._error: ProviderError | None = None  # held, with a finish reason, because usage follows it
        self._extra: dict[str, Any] = {}
        self._message_extra: dict[str, Any] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._filter: dict[str, Any] = {}

    @property
    def rate_limits(self) -> RateLimits | None:
        """The `x-ratelimit-*` headers."""
        return rate_limits(self.headers)

    def _header_request_id(self) -> str:
        return request_id_of(self.headers)

    def _decode_error(self, body: bytes) -> ProviderError:
        return decode_error(self.status, self.headers, body, label=self.label, provider=self.provider)

    # ---- frames

    def _frame(self, data: bytes, event: bytes, *, last: bool = False) -> None:
        if self._misses < _MISSES and self._started and not self._finish_reason:
            try:
                choices = common(data).choices
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._misses += 1
            else:
                self._misses = 0
                if len(choices) == 1 and self._go_on(choices[0]):
                    return
        self._rare_frame(data, event, last=last)

    def _go_on(self, choice: Choice) -> bool:
        """Take a choice that only goes on with what has begun; False: it does something else, and nothing was taken."""
        delta = choice.delta
        if choice.index:
            return False
        thought = delta.reasoning_content or delta.reasoning
        if delta.reasoning_details:
            lone = len(delta.reasoning_details) == 1 and not delta.content and not delta.tool_calls
            return lone and self._reasoning.go_on_detail(delta.reasoning_details[0])
        if delta.tool_calls:
            return not delta.content and not thought and self._calls.go_on(delta.tool_calls)
        if thought and not self._reasoning.go_on(thought, delta.channel):
            return False
        if delta.content:
            self._framing.text(_TEXT, delta.content)
        return True

    def _rare_frame(self, data: bytes, event: bytes, *, last: bool) -> None:
        if data.strip() == b"[DONE]":
            self._done = True
            self._finish(None)
            return
        try:
            value = load_json(data)
        except (ValueError, RecursionError):
            if last:
                return
            if event == b"error":
                self._fail(stream_error(data.decode("utf-8", "replace"), label=self.label, provider=self.provider))
            else:
                self._protocol_error("an event of the stream is not JSON", body=data)
            return
        chunk = as_object(value)
        if (event == b"error" or ("choices" not in chunk and is_error(chunk))) and not chunk.get("error"):
            chunk = {"error": value}
        if "choices" in chunk or any(chunk.get(key) for key in _TELLING_KEYS):
            self._chunk(chunk)
            return
        kind = (as_string(chunk.get("type")) or event.decode("utf-8", "replace") or "unknown")[:100]
        self._opaque(chunk, kind)
        self._notice("unknown_event", f"an event of unknown type {kind!r} was passed on")

    def _body(self, body: dict[str, Any]) -> None:
        self._done = True
        choices = as_objects(body.get("choices"))
        if not choices and is_error(body) and not body.get("error"):
            body = {"error": body}
        if not choices and not body.get("error"):
            self._protocol_error("the answer has no choices (is this an endpoint of the chat completions API?)")
            return
        first = next((choice for choice in choices if not choice.get("index")), None)
        self._chunk({**body, "choices": [] if first is None else [_as_delta(first)]})
        for choice in choices:
            if choice is not first and not self._ended:
                self._opaque(choice, "choice")

    # ---- one chunk

    def _chunk(self, chunk: dict[str, Any]) -> None:
        for key, value in chunk.items():
            if value is None or key in _CHUNK_KEYS:
                continue
            if key == "x_groq":
                self._groq(as_object(value))
            elif key in _MESSAGE_KEYS:
                self._message_extra[key] = value
            else:
                self._extra[key] = value
        self._service_tier = as_string(chunk.get("service_tier")) or self._service_tier
        choices = as_objects(chunk.get("choices"))
        identifier = as_string(chunk.get("id"))
        if not self._started and (choices or identifier):  # Azure begins with a chunk that has neither
            self._begin(identifier, as_string(chunk.get("model")))
        self._use(as_object(chunk.get("usage")), chunk)
        error: Any = chunk.get("error")
        for choice in choices:
            self._choice(choice)
            error = error or choice.get("error")
        if error:
            self._error = stream_error(error, label=self.label, provider=self.provider, request_id=self.request_id)
            if not self._finish_reason:
                self._fail(self._error)

    def _begin(self, identifier: str, model: str) -> None:
        self._framing.response_id = identifier
        in_body = as_string(self._extra.get("request_id")) or as_string(as_object(self._extra.get("x_groq")).get("id"))
        self.request_id = self.request_id or in_body  # Z.ai, Groq
        self.model = model or self.model
        self._start(MessageStart(identifier, self.model, provider=self.provider, wire=WIRE, request_id=self.request_id))

    def _groq(self, own: dict[str, Any]) -> None:
        """Groq's own object: its request id in the first chunk, the usage in the finish chunk."""
        if self._raw_usage is None:
            self._use(as_object(own.get("usage")), {})
        kept = {key: item for key, item in own.items() if key != "usage" and item is not None}
        if kept:
            self._extra["x_groq"] = {**as_object(self._extra.get("x_groq")), **kept}

    def _use(self, raw: dict[str, Any], chunk: dict[str, Any]) -> None:
        if "cost" not in raw and isinstance(chunk.get("cost"), dict):  # Venice bills beside the usage
            raw = {**raw, "cost": chunk["cost"]}
        if not raw or raw == self._raw_usage:
            return
        self._raw_usage = raw
        self.usage = self._usage()
        self._emit(UsageUpdate(self.usage))

    def _usage(self) -> Usage:
        return usage_of(self._raw_usage or {}, self._dialect, model=self.model, service_tier=self._service_tier)

    def _choice(self, choice: dict[str, Any]) -> None:
        if choice.get("index"):
            self._opaque(choice, "choice")
            return
        for key, value in choice.items():
            if value is not None and key not in _CHOICE_KEYS:
                self._extra[key] = value
        self._filter |= as_object(choice.get("content_filter_results"))
        for key in ("stop_reason", "matched_stop"):  # vLLM, SGLang: the stop sequence that ended it
            self._stop_string = as_string(choice.get(key)) or self._stop_string
        self._delta(as_object(choice.get("delta", choice.get("message"))))
        for name, found in as_object(choice.get("logprobs")).items():
            self._logprobs.setdefault(name, []).extend(as_list(found))
        finish = as_string(choice.get("finish_reason")) or as_string(as_object(choice.get("finish_details")).get("type"))
        self._finish_reason = finish or self._finish_reason

    # ---- what a delta brings

    def _delta(self, delta: dict[str, Any]) -> None:
        before = self._framing.count
        self._reasoning.add(delta)
        for annotation in as_objects(delta.get("annotations")):
            self._framing.citation(_TEXT, _citation(annotation))
        self._content(delta.get("content"))
        self._framing.refusal(_REFUSAL, as_string(delta.get("refusal")))
        self._sound.add(as_object(delta.get("audio")))
        for image in as_objects(delta.get("images")):
            self._framing.put(image_of(image))
        if isinstance(delta.get("function_call"), dict):
            self._calls.add_function_call(delta["function_call"])
        for entry in as_objects(delta.get("tool_calls")):
            self._calls.add(entry)
        for key, value in delta.items():
            if value is not None and key not in _DELTA_KEYS:
                self._message_extra[key] = value
        if self._finish_reason and self._framing.count > before and not self._noticed_late:
            self._noticed_late = True
            self._notice("after_stop", "a block began after the finish reason")

    def _content(self, content: Any) -> None:
        """Text, or Mistral's list of parts; a part of unknown type is kept whole, in its place."""
        if isinstance(content, str):
            self._framing.text(_TEXT, content)
            return
        for part in as_objects(content):
            match part.get("type"):
                case "text":
                    self._framing.text(_TEXT, as_string(part.get("text")))
                case "refusal":
                    self._framing.refusal(_REFUSAL, as_string(part.get("refusal")))
                case "thinking":
                    self._reasoning.think(as_string(part.get("thinking")), "content")
                    for piece in as_objects(part.get("thinking")):
                        self._reasoning.think(as_string(piece.get("text")), "content")
                case _:
                    self._framing.put(Opaque(part, wire=WIRE))

    # ---- the end

    def _terminal(self) -> MessageStop | Failed | None:
        raw = self._finish_reason
        if not self._started:
            return None
        self.usage = self._usage()
        if self._error is not None:
            return Failed(self._error, raw_stop=raw, usage=self.usage)
        if not raw and not (self._done and (self._dialect.end_without_finish or self._sound.heard)):
            return None
        if raw in FAILURES:
            error = FAILURES[raw](f"{self.label} request failed: the host broke the answer off (finish reason {raw!r})", type=raw)
            return Failed(error, stop="unknown", raw_stop=raw, usage=self.usage)
        stop = self._stop_reason(raw)
        if stop == "context_exceeded":
            text = f"{self.label} request failed ({raw}): the answer ran into the end of the context window"
            return Failed(ContextOverflowError(text, type=raw), stop=stop, raw_stop=raw, usage=self.usage)
        self._close_blocks(cut=stop in ("max_tokens", "unknown") or raw in ("content_filter", "sensitive"))
        return MessageStop(
            stop,
            raw_stop=raw,
            stop_sequence=self._stop_string if stop == "stop_sequence" else None,
            stop_details=self._stop_details(raw),
            usage=self.usage,
            extra={WIRE: self._extra} if self._extra else {},
            message_extra={WIRE: self._message_extra} if self._message_extra else {},
        )

    def _stop_reason(self, raw: str) -> StopReason:
        """What the finish reason means together with what came: `stop` is also said beside calls, refusals and stop sequences."""
        if not raw:
            self._notice("missing_finish_reason", "the stream ended properly, but no finish reason came")
        stop = STOP_REASONS.get(raw, "unknown") if raw else "end_turn"
        if stop == "unknown":
            self._notice("unknown_stop_reason", f"the finish reason {raw[:100]!r} is not known")
        elif stop == "tool_use" and not self._calls.any:
            self._notice("tool_use_without_call", f"the finish reason is {raw} but there is no tool call")
            return "unknown"
        if stop != "end_turn":
            return stop
        if self._calls.any:
            return "tool_use"
        if self._framing.index(_REFUSAL) is not None:
            return "refusal"
        return "end_turn" if self._stop_string is None else "stop_sequence"

    def _stop_details(self, raw: str) -> StopDetails | None:
        if raw != "content_filter":
            return None
        hit = [name for name, result in self._filter.items() if as_object(result).get("filtered") is True]
        return StopDetails("filter", category=",".join(hit), extra={WIRE: self._filter} if self._filter else {})

    def _close_blocks(self, *, cut: bool) -> None:
        for name, found in self._logprobs.items():
            key = _LOGPROBS_OF.get(name, "")
            if found and self._framing.index(key) is not None:
                self._framing.remember(key, logprobs=found)
            elif found:
                self._extra["logprobs"] = {**as_object(self._extra.get("logprobs")), name: found}
        self._calls.close(cut=cut)
        self._sound.close()
        self._framing.stop_all(cut=cut)


def _as_delta(choice: dict[str, Any]) -> dict[str, Any]:
    """A choice of a whole body as a stream would have brought it: the message as one delta, its calls numbered by their place."""
    message = as_object(choice.get("message"))
    if isinstance(message.get("tool_calls"), list):
        message = {**message, "tool_calls": [{**call, "index": place} for place, call in enumerate(as_objects(message["tool_calls"]))]}
    return {**{key: value for key, value in choice.items() if key != "message"}, "delta": message}


def _citation(annotation: dict[str, Any]) -> Citation:
    """An annotation: its kind, and the object under the key of that name, where the url and title are."""
    kind = as_string(annotation.get("type"))
    return Citation(kind, as_object(annotation.get(kind)) or annotation)
