"""One block of ours as one of the wire (spec: anthropic.md §5): a table from our class to a function.

Strategy. The functions are the hot path of a request: a long history is a thousand blocks, nearly all of them text, tool_use and
tool_result without marks or extras, so those cost one dict and no copy of any content. All that is shared by the blocks of one request
is in `Writer`: tool ids, notices, problems, which betas are needed, whether marks were seen.

A function returns the wire block, or None for a block that is left out. A block that is left out or may not carry a cache mark hands
its mark on (`Writer.pending`); `cache.py` finds the block that carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeAlias, cast

from dragoman.errors import Problem
from dragoman.event import Notice
from dragoman.message import (
    Audio,
    Base64,
    Block,
    CacheControl,
    Document,
    Extra,
    FileId,
    Image,
    InvalidToolUse,
    Opaque,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Source,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
)
from dragoman.wire.anthropic.betas import BETAS, content_features
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.cache import MARKS, MovedMark, WireBlock, carry
from dragoman.wire.anthropic.tool_ids import ToolIds

__all__ = ["BLOCKS", "DEBRIS", "Table", "Writer", "is_json", "is_plain", "with_extra", "write_content"]

INVALID_JSON = "INVALID_JSON"
"""The key under which the text of an invalid input is sent (the vendor's documentation of fine-grained tool streaming)."""

DEBRIS = frozenset({"index", "partial_json"})
"""Keys of stream events that never belong into a finished block (case 88)."""

MEDIA_TYPES = {"image/jpg": "image/jpeg"}
"""Media types that the API takes only under their registered name (case 49)."""

_DEPTH_LIMIT = 500


class Writer:
    """What the blocks of one request share while it is written."""

    __slots__ = (
        "_notes",
        "base",
        "block",
        "features",
        "foreign",
        "ids",
        "keep_marks",
        "message",
        "moved",
        "nested",
        "pending",
        "problems",
        "replays_thinking",
        "thinking_as_text",
        "toolsets",
    )

    def __init__(self, *, keep_marks: bool, thinking_as_text: bool) -> None:
        self.ids = ToolIds()
        self.keep_marks = keep_marks
        self.thinking_as_text = thinking_as_text
        self.foreign = False
        """Whether the message at hand was written in another dialect."""
        self.replays_thinking = True
        """Whether the thinking of the message at hand may be sent back."""
        self.pending: MovedMark | None = None
        """The mark of the block at hand, if it has to move."""
        self.moved = False
        """Whether any turn holds a `MovedMark`."""
        self.toolsets: dict[str, str] = {}
        """Tool id → the toolset that the call belongs to; its result has to say it too (anthropic.md §7)."""
        self.features: dict[str, None] = {}
        self.problems: list[Problem] = []
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}
        self.base = "messages"
        self.message = 0
        self.block = 0
        self.nested: int | None = None

    def path(self) -> str:
        """Where in the request the block at hand is."""
        if self.base != "messages":
            return f"{self.base}[{self.block}]"
        nested = "" if self.nested is None else f".content[{self.nested}]"
        return f"messages[{self.message}].content[{self.block}]{nested}"

    def note(self, code: str, message: str, path: str | None = None) -> None:
        """Report a change. The same one at many places is reported once, with the first place and the count."""
        first, count = self._notes.get((code, message), (path or self.path(), 0))
        self._notes[code, message] = (first, count + 1)

    def notices(self) -> list[Notice]:
        """All that was reported."""
        return [
            Notice(code, message if count == 1 else f"{message} ({count} times)", path=path)
            for (code, message), (path, count) in self._notes.items()
        ]

    def problem(self, rule: str, message: str, fix: str, path: str | None = None) -> None:
        """Report what cannot be written."""
        self.problems.append(Problem(path or self.path(), rule, message, fix))

    def hand_on(self, mark: WireBlock) -> None:
        """The block at hand cannot carry its mark: another has to."""
        if self.keep_marks:
            self.pending = MovedMark(mark)


def with_extra(w: Writer, wire: WireBlock, extra: Extra) -> WireBlock:
    """`wire` with what the block carries for this dialect; keys that have a field win. Other dialects' extra is left out."""
    for name, values in extra.items():
        if name != WIRE:
            w.note("extra_left_out", f"what a block carries for the {name} dialect is left out")
            continue
        for key, value in values.items():
            if key in wire or (key == "cache_control" and not w.keep_marks):
                continue
            if key in DEBRIS:
                w.problem("stream_debris", f"`{key}` belongs to a stream event, not to a finished block", "send finished blocks only")
            if not is_json(value):
                w.problem("not_json", f"`{key}` holds a value that JSON has no form for", "use plain JSON values", f"{w.path()}.extra")
            wire[key] = value
    return wire


def is_json(value: Any, depth: int = _DEPTH_LIMIT) -> bool:
    """Whether a value is plain JSON: no NaN, no set (whose order is not stable), no object that an encoder would have to guess."""
    cls = value.__class__
    if cls is dict:
        if depth <= 0:
            return False
        for key, item in value.items():
            if key.__class__ is not str and not isinstance(key, str):
                return False
            if item.__class__ is not str and not is_json(item, depth - 1):
                return False
        return True
    if cls is list or cls is tuple:
        return depth > 0 and all(item.__class__ is str or is_json(item, depth - 1) for item in value)
    if cls is float:
        return isfinite(value)
    if cls is str or cls is int or cls is bool or value is None:
        return True
    return _is_json_subclass(value, depth)


def _is_json_subclass(value: Any, depth: int) -> bool:
    if isinstance(value, str | int):
        return True
    if isinstance(value, dict):
        return is_json(dict(value), depth)  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, float) and isfinite(value)


# ---- one function per block type


def _text(w: Writer, block: Text) -> WireBlock | None:
    text = block.text
    if not text or text.isspace():
        if block.cache is not None:
            w.hand_on(MARKS[block.cache.ttl])
        return None
    wire: WireBlock = {"type": "text", "text": text}
    if not block.extra and block.cache is None and not block.citations:
        return wire
    if block.citations:
        if w.foreign:
            w.note("citations_left_out", "citations in the form of another dialect are left out")
        else:
            wire["citations"] = [c.data if "type" in c.data else {"type": c.kind, **c.data} for c in block.citations]
            if not is_json(wire["citations"]):
                w.problem("not_json", "a citation holds a value that JSON has no form for", "use plain JSON values")
    return _finished(w, wire, block.cache, block.extra)


def _refusal(w: Writer, block: Refusal) -> WireBlock | None:
    if not block.text or block.text.isspace():
        return None
    return _finished(w, {"type": "text", "text": block.text}, None, block.extra)


def _image(w: Writer, block: Image) -> WireBlock | None:
    source = block.source
    if isinstance(source, PlainText | Parts):
        w.problem("image_source", "an image cannot be text", "give its bytes (Base64), a Url or a FileId")
        return None
    return _finished(w, {"type": "image", "source": _source(w, source)}, block.cache, block.extra)


def _document(w: Writer, block: Document) -> WireBlock | None:
    wire: WireBlock = {"type": "document", "source": _source(w, block.source)}
    if block.title is not None:
        wire["title"] = block.title
    if block.context is not None:
        wire["context"] = block.context
    if block.cite:
        wire["citations"] = {"enabled": True}
    return _finished(w, wire, block.cache, block.extra)


def _source(w: Writer, source: Source) -> WireBlock:
    match source:
        case Base64(media_type, data):
            return {"type": "base64", "media_type": MEDIA_TYPES.get(media_type, media_type), "data": data}
        case Url(url):
            return {"type": "url", "url": url}
        case FileId(id):
            return {"type": "file", "file_id": id}
        case PlainText(text):
            return {"type": "text", "media_type": "text/plain", "data": text}
        case Parts(content):
            return {"type": "content", "content": write_content(w, content)}


def _thinking(w: Writer, block: Thinking) -> WireBlock | None:
    if block.signature and w.replays_thinking:
        wire: WireBlock = {"type": "thinking", "thinking": block.text, "signature": block.signature}
        return _unmarked(w, wire, block.extra) if block.extra else wire
    if w.thinking_as_text and block.text and not block.text.isspace():
        w.note("thinking_as_text", "thinking that cannot be sent back as thinking is sent as text")
        return {"type": "text", "text": block.text}
    w.note("thinking_left_out", "thinking that is unsigned or was written by another model is left out")
    return None


def _redacted_thinking(w: Writer, block: RedactedThinking) -> WireBlock | None:
    if not w.replays_thinking:
        w.note("thinking_left_out", "thinking that is unsigned or was written by another model is left out")
        return None
    wire: WireBlock = {"type": "redacted_thinking", "data": block.data}
    return _unmarked(w, wire, block.extra) if block.extra else wire


def _tool_use(w: Writer, block: ToolUse) -> WireBlock:
    input = block.input
    wire: WireBlock = {"type": "tool_use", "id": w.ids.call(block.id), "name": block.name, "input": input}
    for value in input.values():
        cls = value.__class__
        if cls is not str and cls is not int and not is_json(value):
            w.problem("not_json", "the input holds a value that JSON has no form for", "use plain JSON values", f"{w.path()}.input")
    if block.extra or block.cache is not None:
        _finished(w, wire, block.cache, block.extra)
        if "toolset_name" in wire:
            w.toolsets[wire["id"]] = wire["toolset_name"]
    return wire


def _invalid_tool_use(w: Writer, block: InvalidToolUse) -> WireBlock:
    wire: WireBlock = {"type": "tool_use", "id": w.ids.call(block.id), "name": block.name, "input": {INVALID_JSON: block.raw}}
    return _finished(w, wire, None, block.extra)


def _tool_result(w: Writer, block: ToolResult) -> WireBlock:
    wire: WireBlock = {"type": "tool_result", "tool_use_id": w.ids.result(block.tool_use_id)}
    written = write_content(w, block.content)
    if written:
        wire["content"] = written
    if block.is_error:
        wire["is_error"] = True
    if w.toolsets and (toolset := w.toolsets.get(wire["tool_use_id"])):
        wire["toolset_name"] = toolset
    return _finished(w, wire, block.cache, block.extra) if block.extra or block.cache is not None else wire


def _server_tool_use(w: Writer, block: ServerToolUse) -> WireBlock | None:
    if w.foreign:
        w.note("block_left_out", "a server-side tool call of another dialect is left out")
        return None
    own = block.extra.get(WIRE, {})
    wire: WireBlock = {"type": "server_tool_use", "id": block.id, "name": block.name, "input": block.input}
    if "server_name" in own:
        wire["type"] = "mcp_tool_use"
        w.features["mcp_tool_use"] = None
    if not is_json(block.input):
        w.problem("not_json", "the input holds a value that JSON has no form for", "use plain JSON values", f"{w.path()}.input")
    return _finished(w, wire, None, block.extra)


def _server_tool_result(w: Writer, block: ServerToolResult) -> WireBlock | None:
    if w.foreign:
        w.note("block_left_out", "a server-side tool result of another dialect is left out")
        return None
    if block.kind in BETAS:
        w.features[block.kind] = None
    if not is_json(block.content):
        w.problem("not_json", "the content holds a value that JSON has no form for", "use plain JSON values", f"{w.path()}.content")
    return _finished(w, {"type": block.kind, "tool_use_id": block.tool_use_id, "content": block.content}, None, block.extra)


def _opaque(w: Writer, block: Opaque) -> WireBlock | None:
    if block.wire != WIRE:
        w.note("block_left_out", f"a block of the {block.wire} dialect is left out")
        return None
    data = block.data
    kind = data.get("type")
    if not isinstance(kind, str) or kind.endswith("_delta"):
        w.problem("not_a_block", "this is not a content block", "send finished blocks only")
        return None
    if not is_json(data):
        w.problem("not_json", "the block holds a value that JSON has no form for", "use plain JSON values")
        return None
    for feature in content_features(data):
        if feature in BETAS:
            w.features[feature] = None
    return data if w.keep_marks or "cache_control" not in data else {k: v for k, v in data.items() if k != "cache_control"}


def _unwritable(w: Writer, block: Audio | Video) -> None:
    w.problem(f"no_{block.type}", f"the Messages API takes no {block.type}", "leave it out, or send its words as text")


def _unmarked(w: Writer, wire: WireBlock, extra: Extra) -> WireBlock:
    """Thinking never carries a mark (case 3)."""
    with_extra(w, wire, extra)
    mark = wire.pop("cache_control", None)
    if mark is not None:
        w.hand_on(mark)
    return wire


def _finished(w: Writer, wire: WireBlock, cache: CacheControl | None, extra: Extra) -> WireBlock:
    if extra:
        with_extra(w, wire, extra)
    if cache is not None and w.keep_marks:
        wire["cache_control"] = MARKS[cache.ttl]
    return wire


Table: TypeAlias = dict[type, Callable[[Writer, Any], WireBlock | None]]

NESTED: Table = {Text: _text, Refusal: _refusal, Image: _image, Document: _document, Opaque: _opaque}
"""What a tool result or the parts of a document may hold."""

BLOCKS: Table = {
    **NESTED,
    Thinking: _thinking,
    RedactedThinking: _redacted_thinking,
    ToolUse: _tool_use,
    InvalidToolUse: _invalid_tool_use,
    ToolResult: _tool_result,
    ServerToolUse: _server_tool_use,
    ServerToolResult: _server_tool_result,
    Audio: _unwritable,
    Video: _unwritable,
}
"""Our class → the function that writes it."""


def is_plain(block: WireBlock) -> bool:
    """Whether a wire block is text and nothing else, so that its string may stand for it."""
    return len(block) == 2 and block.get("type") == "text"


def write_content(w: Writer, content: Sequence[Block]) -> str | list[WireBlock]:
    """The content of a tool result or document. A mark that finds no block in here is left to the block around it."""
    if len(content) == 1 and isinstance(block := content[0], Text):
        wire = _text(w, block)
        if wire is not None and len(wire) == 2 and w.pending is None:
            return cast("str", wire["text"])
    written: list[WireBlock] = []
    outer = w.nested
    for w.nested, block in enumerate(content):
        write = NESTED.get(block.__class__)
        if write is None:
            w.problem("nested_block", f"{block.__class__.__name__} cannot stand in here", "use text, images and documents")
            continue
        wire = write(w, block)
        if wire is not None:
            written.append(wire)
        if w.pending is not None and carry(written, w.pending["mark"]):
            w.pending = None
    w.nested = outer
    return written[0]["text"] if len(written) == 1 and is_plain(written[0]) else written
