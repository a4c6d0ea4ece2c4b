"""The frequent frames of Anthropic's stream, typed: pieces of an open block. And the open block that they are pieces of."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from dragoman.event import TextDelta, ThinkingDelta, ToolInputDelta
from dragoman.fragments import Fragments
from dragoman.message import Block, Citation, ServerToolUse, Text, Thinking, ToolUse

__all__ = ["BlockDelta", "OpenBlock", "frequent"]


class _TextDelta(msgspec.Struct, tag="text_delta", gc=False):
    piece: str = msgspec.field(name="text")


class _InputDelta(msgspec.Struct, tag="input_json_delta", gc=False):
    piece: str = msgspec.field(name="partial_json")


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta", gc=False):
    piece: str = msgspec.field(name="thinking")


class _SignatureDelta(msgspec.Struct, tag="signature_delta", gc=False):
    piece: str = msgspec.field(name="signature")


_Delta: TypeAlias = _TextDelta | _InputDelta | _ThinkingDelta | _SignatureDelta
"""Every frequent delta is a piece of text, under a name of its own."""


class BlockDelta(msgspec.Struct, tag="content_block_delta", gc=False):
    """One more piece of the block with this wire index."""

    index: int
    delta: _TextDelta | _InputDelta | _ThinkingDelta | _SignatureDelta


class _Ping(msgspec.Struct, tag="ping", gc=False):
    pass


frequent = msgspec.json.Decoder(BlockDelta | _Ping).decode
"""The frame that this JSON is; raises msgspec.MsgspecError, RecursionError for all others."""

_Fit: TypeAlias = tuple[type[_Delta] | None, type[TextDelta | ThinkingDelta | ToolInputDelta]]

_FITS: dict[type[Any], _Fit] = {
    Text: (_TextDelta, TextDelta),
    Thinking: (_ThinkingDelta, ThinkingDelta),
    ToolUse: (_InputDelta, ToolInputDelta),
    ServerToolUse: (_InputDelta, ToolInputDelta),
}
"""For each kind of block: the delta that brings more of it, and the event that this becomes."""

_FITS_NOTHING: _Fit = (None, TextDelta)


class OpenBlock:
    """A block that has started: what it was, what came since."""

    __slots__ = ("citations", "event", "fits", "fragments", "held", "index", "input", "pieces", "shell", "signature", "start")

    def __init__(self, index: int, shell: Block, start: dict[str, Any], input: str) -> None:
        self.index = index
        self.shell = shell
        self.start = start
        self.input = input  # a call's input that came with its start, as JSON text
        self.fits, self.event = _FITS.get(type(shell), _FITS_NOTHING)
        self.fragments = Fragments()
        self.pieces = self.fragments.pieces
        self.held = ""  # a high surrogate whose low half may come with the next delta
        self.signature = ""
        self.citations: list[Citation] = []
