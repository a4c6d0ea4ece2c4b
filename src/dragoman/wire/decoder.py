"""What every dialect's decoder shares: how an answer begins, which form it has, and how it ends.

Strategy. Status and content type decide the form once: an event stream, a JSON body (also where a stream was asked for), an error
body, or something that is not the protocol at all. A dialect adds the meaning of a frame (`_frame`), of a body (`_body`) and of an
error (its wire's `decode_error`). The order contract of `event.py` is kept here: what comes before MessageStart is held until it,
the terminal event is held until the wire's end mark or the end of input, nothing follows it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from math import isfinite
from typing import Any, Literal

import msgspec

from dragoman.accumulator import Accumulator
from dragoman.errors import ERROR_BODY_LIMIT, IncompleteStreamError, ProtocolError, ProviderError
from dragoman.event import Event, Failed, MessageStart, MessageStop, Notice, OpaqueEvent
from dragoman.response import RateLimits, Response, Usage
from dragoman.wire.base import Headers, Wire, lower_headers
from dragoman.wire.json_values import is_object
from dragoman.wire.sse import EventTooLargeError, Frame, SSEParser

__all__ = ["BLOCK_LIMIT", "BODY_LIMIT", "AnswerDecoder", "TooManyBlocksError", "ValueDecoder", "fold", "load_json"]

BODY_LIMIT = 64 * 1024 * 1024
"""Bytes of a JSON answer that are read; more is a ProtocolError."""

BLOCK_LIMIT = 10_000
"""Blocks that one answer may have; more is a ProtocolError. Citations cut a long answer into hundreds; a thousand was never seen."""

EXCERPT = 1024
"""Bytes of an answer that is not the protocol, kept in `error.body`."""

Form = Literal["unknown", "stream", "json", "error", "foreign"]


def load_json(data: bytes | str) -> Any:
    """The value of a JSON text from the wire. Raises ValueError.

    msgspec reads nearly everything; what it refuses and the standard library takes is lone surrogates and, by replacement, bytes that
    are not UTF-8. NaN, Infinity and numbers beyond a double are refused by both.
    """
    try:
        try:
            return msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeEncodeError):
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _refuse(text)


class TooManyBlocksError(ValueError):
    """An answer has more than BLOCK_LIMIT blocks."""

    def __init__(self) -> None:
        super().__init__(f"the answer has more than {BLOCK_LIMIT} blocks")


class AnswerDecoder(ABC):
    """Base of the dialects' decoders. `label` begins error texts (`Anthropic`), `wire` and `provider` name the origin of events."""

    def __init__(self, *, label: str, wire: str, provider: str, model: str, status: int, headers: Headers) -> None:
        self._ended = False
        self._sse = SSEParser()
        self.label = label
        self.wire = wire
        self.provider = provider
        self.model = model
        self.status = status
        self.headers = lower_headers(headers)
        self.request_id = self._header_request_id()
        self._usage_so_far: Usage | None = None
        self._form: Form = self._form_of_headers()
        self._buffered = bytearray()
        self._before_start: list[Event] = []
        self._started = False
        self._out: list[Event] = []

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return self._usage_so_far or Usage()

    @usage.setter
    def usage(self, usage: Usage) -> None:
        self._usage_so_far = usage

    @property
    def rate_limits(self) -> RateLimits | None:
        """What the headers said about limits; a dialect that has such headers overrides this."""
        return None

    # ---- the two entrances

    def feed(self, data: bytes) -> list[Event]:
        """Events that these bytes complete."""
        if self._ended or not data:
            return []
        if self._form == "unknown":
            data = self._sniff(data)
        if self._form == "stream":
            try:
                self._frames(self._sse.feed(data))
            except (EventTooLargeError, TooManyBlocksError) as error:
                self._protocol_error(str(error))
        elif self._form != "unknown":
            self._buffer(data)
        out = self._out
        self._out = []
        return out

    def close(self, error: ProviderError | None = None) -> list[Event]:
        """The remaining events, the last of them terminal; nothing if one was given before."""
        if self._ended:
            return []
        if self._form == "unknown":  # nothing but white space, or nothing at all
            self._form = "stream"
        try:
            if self._form == "stream":
                self._close_stream(error)
            elif self._form == "json":
                self._close_json(error)
            elif self._form == "error":
                self._fail(self._decode_error(bytes(self._buffered)))
            else:
                self._fail(self._foreign())
        except TooManyBlocksError as too_many:
            self._protocol_error(str(too_many))
        return self._take()

    # ---- what a dialect adds

    @abstractmethod
    def _frame(self, data: bytes, event: bytes, *, last: bool = False) -> None:
        """One frame of the stream. `last`: it stood unfinished at the end of input; if it is not JSON, ignore it."""

    @abstractmethod
    def _body(self, body: dict[str, Any]) -> None:
        """A whole answer, as the events that a stream of it would have given, up to the held terminal event."""

    @abstractmethod
    def _decode_error(self, body: bytes) -> ProviderError:
        """The error that this status and body mean."""

    @abstractmethod
    def _terminal(self) -> MessageStop | Failed | None:
        """The held end of the answer with all blocks closed, or None while no stop reason has come."""

    def _header_request_id(self) -> str:
        return self.headers.get("request-id") or self.headers.get("x-request-id", "")

    # ---- emitting

    def _take(self) -> list[Event]:
        out, self._out = self._out, []
        return out

    def _start(self, event: MessageStart) -> None:
        self._started = True
        self._out.append(event)
        self._out += self._before_start
        self._before_start.clear()

    def _emit(self, event: Event) -> None:
        """An event that may come before MessageStart and is then held until it."""
        (self._out if self._started else self._before_start).append(event)

    def _notice(self, code: str, message: str, *, index: int | None = None) -> None:
        self._emit(Notice(code, message, index=index))

    def _opaque(self, data: dict[str, Any], kind: str, index: int | None = None) -> None:
        self._emit(OpaqueEvent(data, wire=self.wire, kind=kind, index=index))

    def _fail(self, error: ProviderError) -> None:
        """End in this error; its provider, model and request id are filled in where it has none."""
        error.provider = error.provider or self.provider
        error.model = error.model or self.model
        error.request_id = error.request_id or self.request_id
        if error.status is None and self.status >= 400:
            error.status = self.status
        self._end(Failed(error, usage=self.usage if self._started else None))

    def _protocol_error(self, detail: str, *, body: bytes = b"") -> None:
        self._fail(ProtocolError(f"{self.label} request failed: protocol error: {detail}", body=body[:EXCERPT].decode("utf-8", "replace")))

    def _end(self, event: MessageStop | Failed) -> None:
        self._ended = True
        self._out.append(event)

    # ---- the form of the answer

    def _form_of_headers(self) -> Form:
        content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not 200 <= self.status < 300:
            return "error"
        if content_type == "text/event-stream":
            return "stream"
        if content_type.endswith("json"):
            return "json"
        return "foreign" if content_type else "unknown"

    def _sniff(self, data: bytes) -> bytes:
        """Without a content type the first byte that is not white space decides: `{` opens JSON, `<` a page, all else a stream."""
        self._buffered += data
        head = bytes(self._buffered[:64]).removeprefix(b"\xef\xbb\xbf").lstrip()
        if not head and len(self._buffered) < 64:
            return b""
        self._form = "json" if head.startswith(b"{") else "foreign" if head.startswith(b"<") else "stream"
        data = bytes(self._buffered)
        self._buffered.clear()
        return data

    def _buffer(self, data: bytes) -> None:
        limit = {"json": BODY_LIMIT, "error": ERROR_BODY_LIMIT}.get(self._form, EXCERPT)
        if self._form == "json" and len(self._buffered) + len(data) > limit:
            self._protocol_error(f"the answer is larger than {limit} bytes")
            return
        self._buffered += data[: max(0, limit - len(self._buffered))]

    def _foreign(self) -> ProviderError:
        content_type = self.headers.get("content-type", "") or "no content type"
        return ProtocolError(
            f"{self.label} request failed: protocol error: HTTP {self.status} with {content_type[:100]}, not an event stream or JSON "
            "(is a proxy or login page in between, or the base URL wrong?)",
            status=self.status,
            body=bytes(self._buffered[:EXCERPT]).decode("utf-8", "replace"),
        )

    # ---- streams and bodies

    def _frames(self, frames: list[Frame]) -> None:
        """The frames that have come, until one ends the answer. A dialect may override this with a tighter loop."""
        for event, data in frames:
            self._frame(data, event)
            if self._ended:
                return

    def _close_stream(self, error: ProviderError | None) -> None:
        for event, data in self._sse.close():
            self._frame(data, event, last=True)
            if self._ended:
                return
        self._finish(error)

    def _close_json(self, error: ProviderError | None) -> None:
        data = bytes(self._buffered)
        try:
            body = load_json(data)
        except ValueError as cause:
            if error is None and data.strip():
                error = IncompleteStreamError(f"{self.label} request failed: the JSON answer is cut or malformed ({cause})")
            self._finish(error)
            return
        if is_object(body):
            self._body(body)
            if not self._ended:
                self._finish(None)
        else:
            self._protocol_error("the answer is JSON but not an object", body=data)

    def _finish(self, error: ProviderError | None) -> None:
        """The end of input: the held end if a stop reason has come, whatever the transport said; else the failure."""
        terminal = self._terminal()
        if terminal is None:
            self._fail(error or IncompleteStreamError(f"{self.label} request failed: the stream ended without a stop reason"))
        elif isinstance(terminal, Failed):
            self._fail_held(terminal)
        else:
            self._end(terminal)

    def _fail_held(self, terminal: Failed) -> None:
        error = terminal.error
        error.provider, error.model, error.request_id = self.provider, self.model, error.request_id or self.request_id
        self._end(terminal)


def fold(decoder: AnswerDecoder, body: bytes) -> Response:
    """The response of a whole answer: the fold of the events that its decoder gives. Raises ProviderError."""
    accumulator = Accumulator()
    for event in [*decoder.feed(body), *decoder.close()]:
        accumulator.push(event)
    response = accumulator.response()
    limits = decoder.rate_limits
    return response if limits is None else msgspec.structs.replace(response, rate_limits=limits)


class ValueDecoder:
    """A decoder for endpoints that answer with one JSON value instead of a message. Its events only say how the call ended; `result`
    is the value. `label` begins error texts.
    """

    request_id = ""
    rate_limits: RateLimits | None = None

    def __init__(self, wire: Wire, *, label: str) -> None:
        self.result: Any = None
        self._wire = wire
        self._label = label
        self._status = 200
        self._headers: Headers = ()
        self._buffered = bytearray()

    def begin(self, status: int, headers: Headers) -> ValueDecoder:
        """Start on an answer; what an earlier attempt gave is forgotten."""
        self._status, self._headers = status, headers
        self._buffered.clear()
        return self

    def feed(self, data: bytes) -> list[Event]:
        """Keep the bytes."""
        limit = ERROR_BODY_LIMIT if self._status >= 400 else BODY_LIMIT
        if self._status < 400 and len(self._buffered) + len(data) > limit:
            return [Failed(ProtocolError(f"{self._label} request failed: protocol error: the answer is larger than {limit} bytes"))]
        self._buffered += data[: max(0, limit - len(self._buffered))]
        return []

    def close(self, error: ProviderError | None = None) -> list[Event]:
        """Read the value."""
        body = bytes(self._buffered)
        if not 200 <= self._status < 300:
            return [Failed(self._wire.decode_error(self._status, self._headers, body))]
        if error is not None:
            return [Failed(error)]
        try:
            self.result = load_json(body)
        except ValueError:
            excerpt = body[:EXCERPT].decode("utf-8", "replace")
            text = f"{self._label} request failed: protocol error: HTTP {self._status} with a body that is not JSON"
            return [Failed(ProtocolError(text, status=self._status, body=excerpt))]
        return [MessageStop("end_turn")]
