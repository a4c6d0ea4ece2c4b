"""Content parts of user and tool messages (OpenAI's API reference, "messages"): a table from our block to a function.

A function returns the part, or None for a block that is left out; what cannot be written is a problem with its path.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman.message import (
    Audio,
    Base64,
    Block,
    Document,
    FileId,
    Image,
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
    Url,
    Video,
)
from dragoman.wire.openai_chat.media import AUDIO_FORMATS
from dragoman.wire.openai_chat.names import WIRE
from dragoman.wire.openai_chat.writer import WireObject, Writer

__all__ = ["is_plain", "write_content", "write_part"]

_FORMATS: Final = {
    **{media_type: name for name, media_type in AUDIO_FORMATS.items()},
    "audio/mp3": "mp3",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
}
"""Media types of sound as OpenAI's names of formats; any other is sent as what stands behind the slash."""

_MEDIA_TYPES: Final = {"image/jpg": "image/jpeg"}


def is_plain(block: Block) -> bool:
    """Whether a block is a text that a bare string says wholly."""
    return isinstance(block, Text) and not block.extra and block.cache is None


def write_content(w: Writer, blocks: Sequence[Block]) -> str | list[WireObject]:
    """The content of a message: a string for one plain text, else a list of parts."""
    if len(blocks) == 1 and isinstance(blocks[0], Text) and is_plain(blocks[0]):
        return blocks[0].text
    path = w.path
    parts: list[WireObject] = []
    for index, block in enumerate(blocks):
        w.path = f"{path}.content[{index}]"
        part = write_part(w, block)
        if part is not None:
            parts.append(part)
    w.path = path
    return parts


def write_part(w: Writer, block: Block) -> WireObject | None:
    """One content part."""
    writer = _WRITERS.get(type(block))
    if writer is None:
        w.problem("block", f"a block of type {block.type} cannot stand here", "move it to the turn it belongs to")
        return None
    return writer(w, block)


def _text(w: Writer, block: Text) -> WireObject:
    return w.finish({"type": "text", "text": block.text}, block.extra, block.cache)


def _refusal(_: Writer, block: Refusal) -> WireObject:
    return {"type": "text", "text": block.text}


def _image(w: Writer, block: Image) -> WireObject | None:
    url = _url(w, block.source, "an image")
    if url is None:
        return None
    image: WireObject = {"url": url}
    own = w.own(block.extra)
    if "detail" in own:
        image["detail"] = own["detail"]
    return w.finish({"type": "image_url", "image_url": image}, block.extra, block.cache)


def _video(w: Writer, block: Video) -> WireObject | None:
    url = _url(w, block.source, "a video")
    return None if url is None else w.finish({"type": "video_url", "video_url": {"url": url}}, block.extra, block.cache)


def _audio(w: Writer, block: Audio) -> WireObject | None:
    source = block.source
    if not isinstance(source, Base64):
        w.problem("source", f"sound by {source.type} cannot be sent", "send its bytes: Audio(Base64(media_type, data))")
        return None
    name = _FORMATS.get(source.media_type) or source.media_type.removeprefix("audio/")
    return w.finish({"type": "input_audio", "input_audio": {"data": source.data, "format": name}}, block.extra, block.cache)


def _document(w: Writer, block: Document) -> WireObject | None:
    file = _file(w, block)
    if file is None:
        return None
    if block.context is not None:
        w.problem("context", "a document's context has no place in this protocol", "write it as a text before the document")
    if block.cite:
        w.note("citations_left_out", "this protocol cannot ask for citations into a document")
    return w.finish({"type": "file", "file": file}, block.extra, block.cache)


def _file(w: Writer, block: Document) -> WireObject | None:
    match block.source:
        case FileId(id):
            return {"file_id": id} if block.title is None else {"file_id": id, "filename": block.title}
        case Base64(media_type, data):
            name = block.title or f"document.{media_type.rpartition('/')[2]}"
            return {"filename": name, "file_data": f"data:{media_type};base64,{data}"}
        case PlainText(text):
            data = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
            return {"filename": block.title or "document.txt", "file_data": f"data:text/plain;base64,{data}"}
        case Url(url) if w.dialect.file_urls:
            return {"filename": block.title or url.rpartition("/")[2] or "document", "file_data": url}
        case Url():
            w.problem("source", "a document by URL cannot be sent to this host", "send its bytes: Document(Base64(media_type, data))")
        case Parts():
            w.problem("source", "a document made of blocks cannot be sent", "send the blocks themselves")
    return None


def _opaque(w: Writer, block: Opaque) -> WireObject | None:
    if block.wire == WIRE:
        return dict(block.data)
    w.note("block_left_out", f"a block of the {block.wire} dialect is left out")
    return None


def _other(w: Writer, block: Block) -> None:
    w.left_out(f"a block of type {block.type}")


def _url(w: Writer, source: Source, what: str) -> str | None:
    match source:
        case Base64(media_type, data):
            return f"data:{_MEDIA_TYPES.get(media_type, media_type)};base64,{data}"
        case Url(url):
            return url
        case _:
            w.problem("source", f"{what} by {source.type} cannot be sent", "send its bytes or its URL")
            return None


_WRITERS: dict[type[Block], Callable[[Writer, Any], WireObject | None]] = {
    Text: _text,
    Refusal: _refusal,
    Image: _image,
    Video: _video,
    Audio: _audio,
    Document: _document,
    Opaque: _opaque,
    Thinking: _other,
    RedactedThinking: _other,
    ServerToolUse: _other,
    ServerToolResult: _other,
}
