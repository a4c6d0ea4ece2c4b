"""Synthesised block framing: fragments of content in, BlockStart / deltas / BlockStop out, for dialects that have no framing.

Strategy. A dialect names each block by a key of its own (`("text",)`, `("tool", 3)`, `("summary", "rs_1")`) and hands over fragments as
they come; the first fragment under a key opens the block, further ones are deltas, `stop` finishes it. Several blocks may be open
at once (a text goes on after a call). The order contract of `event.py` is kept here and only here: indexes 0, 1, 2 … in start order,
kinds with deltas start empty, `BlockStop.block` is the finished block with its tool JSON parsed once and its `extra` added.

An empty fragment neither opens a block nor makes an event (many hosts begin every answer with `content: ""`); a block that shall exist
though it is empty is opened by `start`. Everything is linear: fragments go to lists and are joined once, at the stop.

Surrogates: JSON can cut a pair over two fragments. A trailing high half is held back and joined to the next fragment of its block;
what stays alone becomes U+FFFD, except in thinking, which is kept as it came (it may be signed).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from dragoman.accumulator import merge_extra
from dragoman.event import BlockStart, BlockStop, CitationDelta, Event, SignatureDelta, TextDelta, ThinkingDelta, ToolInputDelta
from dragoman.fragments import Fragments, parse_input, scrub
from dragoman.message import Audio, Block, Citation, Extra, InvalidReason, InvalidToolUse, Refusal, ServerToolUse, Text, Thinking, ToolUse
from dragoman.wire.decoder import BLOCK_LIMIT, TooManyBlocksError

__all__ = ["SYNTHETIC_ID", "Framing", "Key", "escape_json"]

Key: TypeAlias = Hashable
"""A dialect's own name for a block that is open."""

SYNTHETIC_ID = "synthetic_id"
"""`extra[wire][SYNTHETIC_ID]` is True on a call whose id we made: the wire leaves the id out again when it writes the call."""

_REPLACEMENT = "\ufffd"


def escape_json(text: str) -> str:
    """`text` as it stands inside the quotes of a JSON string."""
    return msgspec.json.encode(scrub(text)).decode()[1:-1]


class _Open:
    """One open block: its start, and what has come since."""

    __slots__ = ("citations", "extra", "field", "fragments", "held", "index", "signature", "start")

    def __init__(self, index: int, start: Block, extra: Extra) -> None:
        self.index = index
        self.start = start
        self.extra = extra
        self.fragments = Fragments()
        self.held = ""  # a trailing high surrogate
        self.field = ""  # the one string field of a call whose input is free text
        self.signature: list[str] = []
        self.citations: list[Citation] = []

    def join(self, piece: str, *, lone: bool = False) -> str:
        """`piece` with pairs rejoined and a trailing high half held back; `lone` keeps the other halves, else they become U+FFFD."""
        piece = self.held + piece
        self.held = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self.held, piece = piece[-1], piece[:-1]
        if lone:
            return _rejoin(piece)
        return scrub(piece)


def _rejoin(text: str) -> str:
    """Surrogates that stand as a pair become their character; lone ones stay."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class Framing:
    """The blocks of one answer. `emit` takes each event as it arises (an `AnswerDecoder` gives its `_emit`).

    `response_id` is the answer's id, from which ids of calls without one are made: set it when it is known, before the first call.
    Methods that take a fragment open the block when its key is not open, do nothing for an empty fragment, and may be called in any order.
    """

    def __init__(self, emit: Callable[[Event], object], *, wire: str, response_id: str = "") -> None:
        self.wire = wire
        self.response_id = response_id
        self._emit = emit
        self._open: dict[Key, _Open] = {}
        self._count = 0
        self._calls = 0

    # ---- what there is

    @property
    def count(self) -> int:
        """Blocks started so far: the next index."""
        return self._count

    @property
    def calls(self) -> int:
        """Calls for the caller to run (ToolUse) started so far."""
        return self._calls

    @property
    def open_keys(self) -> list[Key]:
        """The keys of the open blocks, in start order."""
        return list(self._open)

    def index(self, key: Key) -> int | None:
        """The index of the block open under this key, or None."""
        entry = self._open.get(key)
        return None if entry is None else entry.index

    def raw(self, key: Key) -> str:
        """The text, transcript, reasoning or input JSON that has come for an open block. Costs one join. Raises KeyError."""
        return self._open[key].fragments.text()

    # ---- opening

    def start(self, key: Key, block: Block) -> int:
        """Open `block` under `key` and return its index; if the key is open already, only return it.

        A kind with deltas is given empty (`Text("")`, `ToolUse(id, name, {})`); other kinds as far as they are known. What its `extra`
        holds is kept.
        """
        entry = self._open.get(key)
        if entry is not None:
            return entry.index
        return self._start(key, block).index

    def tool(self, key: Key, id: str, name: str, *, extra: dict[str, Any] | None = None) -> int:
        """Open a ToolUse; without an id it gets `call_{response id}_{block index}`. `extra` is this wire's own."""
        entry = self._open.get(key)
        if entry is not None:
            return entry.index
        if not id:
            id = f"call_{self.response_id}_{self._count}"
            extra = {**(extra or {}), SYNTHETIC_ID: True}
        return self._start(key, ToolUse(id, name, {}, extra={self.wire: extra} if extra else {})).index

    def _start(self, key: Key, block: Block) -> _Open:
        if self._count >= BLOCK_LIMIT:
            raise TooManyBlocksError
        extra: Extra = getattr(block, "extra", {})
        entry = self._open[key] = _Open(self._count, block, extra)
        self._count += 1
        self._calls += isinstance(block, ToolUse)
        self._emit(BlockStart(entry.index, block))
        return entry

    # ---- fragments

    def text(self, key: Key, piece: str) -> None:
        """More of a Text (opened if need be), or of a Refusal or Audio transcript that is open under `key`."""
        if not piece:
            return
        entry = self._open.get(key) or self._start(key, Text(""))
        if entry.held or not piece.isascii():
            piece = entry.join(piece)
            if not piece:
                return
        entry.fragments.add(piece)
        self._emit(TextDelta(entry.index, piece))

    def refusal(self, key: Key, piece: str) -> None:
        """More of a Refusal."""
        if piece:
            self.start(key, Refusal(""))
            self.text(key, piece)

    def thinking(self, key: Key, piece: str) -> None:
        """More of a Thinking; lone surrogates are kept."""
        if not piece:
            return
        entry = self._open.get(key) or self._start(key, Thinking(""))
        if entry.held or not piece.isascii():
            piece = entry.join(piece, lone=True)
            if not piece:
                return
        entry.fragments.add(piece)
        self._emit(ThinkingDelta(entry.index, piece))

    def signature(self, key: Key, signature: str) -> None:
        """The signature of a Thinking, or more of it; opens an empty one if need be."""
        if not signature:
            return
        entry = self._open.get(key) or self._start(key, Thinking(""))
        self._let_go(entry)
        entry.signature.append(signature)
        self._emit(SignatureDelta(entry.index, signature))

    def tool_input(self, key: Key, piece: str) -> None:
        """More input JSON of the call open under `key` (ToolUse or ServerToolUse). Raises KeyError if none is: only `tool` names a call."""
        entry = self._open[key]
        if not piece:
            return
        if entry.held or not piece.isascii():
            piece = entry.join(piece)
            if not piece:
                return
        entry.fragments.add(piece)
        self._emit(ToolInputDelta(entry.index, piece))

    def tool_string(self, key: Key, piece: str, *, field: str = "input") -> None:
        """More of a call whose input is free text: sent as the JSON object `{field: text}`, escaped, its end written by `stop`.

        An empty piece makes the input `{field: ""}`. Raises KeyError if no call is open under `key`.
        """
        entry = self._open[key]
        if not entry.field:
            entry.field = field
            self._input(entry, f'{{"{escape_json(field)}":"')
        if piece:
            piece = entry.join(piece)
            if piece:
                self._input(entry, escape_json(piece))

    def citation(self, key: Key, citation: Citation) -> None:
        """One more citation of a Text; opens an empty one if need be."""
        entry = self._open.get(key) or self._start(key, Text(""))
        entry.citations.append(citation)
        self._emit(CitationDelta(entry.index, citation))

    def remember(self, key: Key, **items: Any) -> None:
        """Add to this wire's `extra` of an open block, for its BlockStop. Raises KeyError."""
        entry = self._open[key]
        entry.extra = merge_extra(entry.extra, {self.wire: items})

    def _input(self, entry: _Open, json: str) -> None:
        entry.fragments.add(json)
        self._emit(ToolInputDelta(entry.index, json))

    # ---- whole blocks

    def put(self, block: Block) -> int:
        """A block that came whole: start, deltas of its content, stop. Returns its index."""
        key = object()
        match block:
            case Text(text, citations=citations):
                self.start(key, replace(block, text="", citations=[]))
                self.text(key, text)
                for citation in citations:
                    self.citation(key, citation)
            case Refusal(text):
                self.start(key, replace(block, text=""))
                self.text(key, text)
            case Audio(transcript=transcript):
                self.start(key, replace(block, transcript=""))
                self.text(key, transcript)
            case Thinking(text, signature=signature):
                self.start(key, replace(block, text="", signature=""))
                self.thinking(key, text)
                self.signature(key, signature)
            case ToolUse(input=value) | ServerToolUse(input=value):
                self.start(key, replace(block, input={}))
                self.tool_input(key, msgspec.json.encode(value).decode())
            case _:
                self.start(key, block)
        index = self._open[key].index
        self.stop(key)
        return index

    # ---- closing

    def stop(
        self, key: Key, *, block: Block | None = None, cut: bool = False, invalid: InvalidReason | None = None, **changes: Any
    ) -> Block | None:
        """Finish the block open under `key` and return it; None if none is.

        `block` is the finished block where the wire gives it whole (`extra` gathered here is added under its own); `changes` replace
        fields of the finished one (`source=` of an Audio). `cut`: the answer ended in the middle (length, filter), so a call whose
        input has not begun is incomplete, not `{}`. `invalid`: a call that must not be run, whatever its input, for this reason.
        """
        entry = self._open.get(key)
        if entry is None:
            return None
        self._let_go(entry)
        if entry.field and not cut:
            self._input(entry, '"}')
        del self._open[key]
        finished = _finished(entry, cut=cut, invalid=invalid) if block is None else _with_extra(block, entry.extra)
        if changes:
            finished = replace(finished, **changes)
        self._emit(BlockStop(entry.index, finished))
        return finished

    def stop_all(self, *, cut: bool = False) -> None:
        """Finish every open block, in start order."""
        for key in list(self._open):
            self.stop(key, cut=cut)

    def _let_go(self, entry: _Open) -> None:
        """A held high surrogate that nothing followed."""
        if not entry.held:
            return
        held, entry.held = entry.held, ""
        if isinstance(entry.start, Thinking):
            entry.fragments.add(held)
            self._emit(ThinkingDelta(entry.index, held))
        elif isinstance(entry.start, ToolUse | ServerToolUse):
            self._input(entry, _REPLACEMENT)
        else:
            entry.fragments.add(_REPLACEMENT)
            self._emit(TextDelta(entry.index, _REPLACEMENT))


def _finished(entry: _Open, *, cut: bool, invalid: InvalidReason | None) -> Block:
    start, content, extra = entry.start, entry.fragments.text(), entry.extra
    match start:
        case Text():
            return replace(start, text=content, citations=entry.citations, extra=extra)
        case Refusal():
            return replace(start, text=content, extra=extra)
        case Audio():
            return replace(start, transcript=content, extra=extra)
        case Thinking():
            return replace(start, text=content, signature="".join(entry.signature), extra=extra)
        case ToolUse(id, name) | ServerToolUse(id, name):
            value = invalid or ("incomplete" if cut and not content else parse_input(content))
            if isinstance(value, dict):
                return replace(start, input=value, extra=extra)
            if isinstance(start, ServerToolUse):
                extra = {**extra, "dragoman": {"server_tool": True}}  # nobody has to answer it
            return InvalidToolUse(id, name, content, reason=value, extra=extra)
        case block:
            return _with_extra(block, extra)


def _with_extra(block: Block, extra: Extra) -> Block:
    own: Extra | None = getattr(block, "extra", None)
    return block if not extra or own is None or own is extra else replace(block, extra=merge_extra(extra, own))
