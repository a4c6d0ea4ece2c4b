"""One block of ours as one of the wire (spec: anthropic.md §5): a table from our class to a function.

Strategy. A long history is a thousand blocks, nearly all of them text, tool_use and tool_result without marks or extras: `write_blocks`
handles these on the spot and copies none of their content. All that is shared by the blocks of one request is in `Writer`.

A function returns the wire block, or None for a block that is left out. Where a mark has to move, a `MovedMark` stands for the block, and
`cache.py` finds the one that carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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
    Message,
    Opaque,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
)
from dragoman.validation.blocks import check_json
from dragoman.validation.media import are_plain
from dragoman.wire.anthropic.betas import BETAS, content_features
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.cache import MARKS, MovedMark, carry, without_marks
from dragoman.wire.anthropic.plain import WireBlock, is_plain
from dragoman.wire.anthropic.writer import Writer, with_extra
from dragoman.wire.json_values import as_object

__all__ = ["BLOCKS", "SYSTEM_BLOCKS", "check_inputs", "write_call"]

INVALID_JSON = "INVALID_JSON"
"""The key under which the text of an invalid input is sent (the vendor's documentation of fine-grained tool streaming)."""

MEDIA_TYPES = {"image/jpg": "image/jpeg"}
"""Media types that the API takes only under their registered name (case 49)."""

THINKING_LEFT_OUT = "thinking that is unsigned or was written by another model is left out"


# ---- one function per block type


def _text(w: Writer, block: Text) -> WireBlock | None:
    if _is_blank(block.text):
        return None if block.cache is None else w.moved_mark(MARKS[block.cache.ttl])
    wire: WireBlock = {"type": "text", "text": block.text}
    if block.citations:
        if w.foreign:
            w.note("citations_left_out", "citations in the form of another dialect are left out", block)
        else:
            wire["citations"] = [c.data if "type" in c.data else {"type": c.kind, **c.data} for c in block.citations]
            for k, citation in enumerate(block.citations):
                w.check_json(citation.data, block, f"citations[{k}].data")
    return _finished(w, wire, block, block.cache, block.extra)


def _refusal(w: Writer, block: Refusal) -> WireBlock | None:
    if _is_blank(block.text):
        return None
    return _finished(w, {"type": "text", "text": block.text}, block, None, block.extra)


def _image(w: Writer, block: Image) -> WireBlock | None:
    source = block.source
    if isinstance(source, PlainText | Parts):
        w.problem(block, "image_source", "an image cannot be text", "give its bytes (Base64), a Url or a FileId")
        return None
    return _finished(w, {"type": "image", "source": _source(source)}, block, block.cache, block.extra)


def _document(w: Writer, block: Document) -> WireBlock | None:
    mark: WireBlock | None = None
    if isinstance(block.source, Parts):
        content, mark = write_content(w, block.source.content)
        wire: WireBlock = {"type": "document", "source": {"type": "content", "content": content}}
    else:
        wire = {"type": "document", "source": _source(block.source)}
    if block.title is not None:
        wire["title"] = block.title
    if block.context is not None:
        wire["context"] = block.context
    if block.cite:
        wire["citations"] = {"enabled": True}
    if mark is not None:
        wire["cache_control"] = mark
    return _finished(w, wire, block, block.cache, block.extra)


def _source(source: Base64 | Url | FileId | PlainText) -> WireBlock:
    match source:
        case Base64(media_type, data):
            return {"type": "base64", "media_type": MEDIA_TYPES.get(media_type, media_type), "data": data}
        case Url(url):
            return {"type": "url", "url": url}
        case FileId(id):
            return {"type": "file", "file_id": id}
        case PlainText(text):
            return {"type": "text", "media_type": "text/plain", "data": text}


def _thinking(w: Writer, block: Thinking) -> WireBlock | None:
    if block.signature and w.replays_thinking:
        w.signed.append((w.message, block))
        wire: WireBlock = {"type": "thinking", "thinking": block.text, "signature": block.signature}
        return _unmarked(w, wire, block, block.extra) if block.extra else wire
    if w.thinking_as_text and not _is_blank(block.text):
        w.note("thinking_as_text", "thinking that cannot be sent back as thinking is sent as text", block)
        mark = _mark_of(block) if w.keep_marks else None
        return {"type": "text", "text": block.text, **({} if mark is None else {"cache_control": mark})}
    return _thinking_left_out(w, block)


def _redacted_thinking(w: Writer, block: RedactedThinking) -> WireBlock | None:
    if not w.replays_thinking:
        return _thinking_left_out(w, block)
    w.signed.append((w.message, block))
    wire: WireBlock = {"type": "redacted_thinking", "data": block.data}
    return _unmarked(w, wire, block, block.extra) if block.extra else wire


def _thinking_left_out(w: Writer, block: Thinking | RedactedThinking) -> WireBlock | None:
    w.note("thinking_left_out", THINKING_LEFT_OUT, block)
    mark = _mark_of(block)
    return None if mark is None else w.moved_mark(mark)


def _mark_of(block: Thinking | RedactedThinking) -> WireBlock | None:
    """The mark that a block has which our model gives none: what a client sent all the same."""
    mark: WireBlock | None = block.extra.get(WIRE, {}).get("cache_control")
    return mark


def _tool_use(w: Writer, block: ToolUse) -> WireBlock:
    wire = write_call(block, w.ids.call(block.id))
    w.inputs.append(block.input)
    if block.extra or block.cache is not None:
        _finished(w, wire, block, block.cache, block.extra)
        if "toolset_name" in wire:
            w.toolsets[wire["id"]] = wire["toolset_name"]
    return wire


def write_call(block: ToolUse, id: str) -> WireBlock:
    """A call without options, under the wire's own id."""
    return {"type": "tool_use", "id": id, "name": block.name, "input": block.input}


def _invalid_tool_use(w: Writer, block: InvalidToolUse) -> WireBlock:
    wire: WireBlock = {"type": "tool_use", "id": w.ids.call(block.id), "name": block.name, "input": {INVALID_JSON: block.raw}}
    return _finished(w, wire, block, None, block.extra)


def _tool_result(w: Writer, block: ToolResult) -> WireBlock:
    wire: WireBlock = {"type": "tool_result", "tool_use_id": w.ids.result(block.tool_use_id)}
    content, mark = write_content(w, block.content)
    if content:
        wire["content"] = content
    if block.is_error:
        wire["is_error"] = True
    if w.toolsets and (toolset := w.toolsets.get(wire["tool_use_id"])):
        wire["toolset_name"] = toolset
    if mark is not None:
        wire["cache_control"] = mark
    return _finished(w, wire, block, block.cache, block.extra) if block.extra or block.cache is not None else wire


def _server_tool_use(w: Writer, block: ServerToolUse) -> WireBlock | None:
    if w.foreign:
        w.note("block_left_out", "a server-side tool call of another dialect is left out", block)
        return None
    wire: WireBlock = {"type": "server_tool_use", "id": block.id, "name": block.name, "input": block.input}
    if "server_name" in as_object(block.extra.get(WIRE)):
        wire["type"] = "mcp_tool_use"
        w.features["mcp_tool_use"] = None
    w.check_json(block.input, block, "input")
    return _finished(w, wire, block, None, block.extra)


def _server_tool_result(w: Writer, block: ServerToolResult) -> WireBlock | None:
    if w.foreign:
        w.note("block_left_out", "a server-side tool result of another dialect is left out", block)
        return None
    if block.kind in BETAS:
        w.features[block.kind] = None
    w.check_json(block.content, block, "content")
    wire: WireBlock = {"type": block.kind, "tool_use_id": block.tool_use_id, "content": block.content}
    return _finished(w, wire if w.keep_marks else without_marks(wire), block, None, block.extra)


def _opaque(w: Writer, block: Opaque) -> WireBlock | None:
    if block.wire != WIRE:
        w.note("block_left_out", f"a block of the {block.wire} dialect is left out", block)
        return None
    data = block.data
    kind = data.get("type")
    if not isinstance(kind, str) or kind.endswith("_delta"):
        w.problem(block, "not_a_block", "this is not a content block", "send finished blocks only")
        return None
    w.check_json(data, block, "data")
    for feature in content_features(data):
        if feature in BETAS:
            w.features[feature] = None
    return data if w.keep_marks else without_marks(data)


def _audio(w: Writer, block: Audio) -> WireBlock | None:
    """What another provider's model said aloud is sent as its words; no turn may be lost because a model has a voice."""
    if not w.foreign:
        _unwritable(w, block)
    elif _is_blank(block.transcript):
        w.note("block_left_out", "sound without a transcript is left out", block)
    else:
        w.note("audio_as_text", "sound of another provider is sent as its transcript", block)
        return {"type": "text", "text": block.transcript}
    return None


def _unwritable(w: Writer, block: Audio | Video) -> None:
    w.problem(block, f"no_{block.type}", f"the Messages API takes no {block.type}", "leave it out, or send its words as text")


def _unknown(w: Writer, block: object) -> None:
    w.problem(w.path(block), "block_role", f"{block.__class__.__name__} cannot stand in here", "see the table of blocks in the reference")


def _unmarked(w: Writer, wire: WireBlock, block: object, extra: Extra) -> WireBlock | None:
    """Thinking never carries a mark (case 3)."""
    with_extra(w, wire, block, extra)
    mark = wire.pop("cache_control", None)
    return wire if mark is None else w.moved_mark(mark, wire)


def _finished(w: Writer, wire: WireBlock, block: object, cache: CacheControl | None, extra: Extra) -> WireBlock:
    if extra:
        with_extra(w, wire, block, extra)
    if cache is not None and w.keep_marks:
        wire["cache_control"] = MARKS[cache.ttl]
    return wire


_Write: TypeAlias = Callable[[Writer, Any], WireBlock | None]


class Table(dict[type, _Write]):
    """Our class → the function that writes it; any other class is a problem."""

    def __missing__(self, key: type) -> _Write:
        return _unknown


SYSTEM_BLOCKS = Table({Text: _text, Opaque: _opaque})
"""What a system message in mid-conversation may hold: text, and changes of the tools."""

NESTED_BLOCKS = Table({Text: _text, Refusal: _refusal, Image: _image, Document: _document, Opaque: _opaque})
"""What a tool result or the parts of a document may hold."""

BLOCKS = Table(
    {
        **NESTED_BLOCKS,
        Thinking: _thinking,
        RedactedThinking: _redacted_thinking,
        ToolUse: _tool_use,
        InvalidToolUse: _invalid_tool_use,
        ToolResult: _tool_result,
        ServerToolUse: _server_tool_use,
        ServerToolResult: _server_tool_result,
        Audio: _audio,
        Video: _unwritable,
    }
)
"""What a user or assistant turn may hold."""


def _is_blank(text: str) -> bool:
    return text == "" or text.isspace()


def check_inputs(w: Writer, messages: Sequence[Message]) -> None:
    """Report the inputs of calls that JSON has no form for, as `problems` does. They are looked at all at once when all is written."""
    if are_plain(w.inputs):
        return
    for i, message in enumerate(messages):
        for j, block in enumerate(message.content if message.role != "system" else ()):
            if isinstance(block, ToolUse):
                check_json(block.input, f"messages[{i}].content[{j}].input", w.problems)


def write_content(w: Writer, content: Sequence[Block]) -> tuple[str | list[WireBlock], WireBlock | None]:
    """The content of a tool result or document, and a mark that found no block in it: the block around carries that."""
    written: list[WireBlock] = []
    left: WireBlock | None = None
    for block in content:
        wire = NESTED_BLOCKS[block.__class__](w, block)
        if isinstance(wire, MovedMark):
            if not carry(written, wire["mark"]):
                left = left or wire["mark"]
        elif wire is not None:
            written.append(wire)
    return written[0]["text"] if len(written) == 1 and is_plain(written[0]) else written, left
