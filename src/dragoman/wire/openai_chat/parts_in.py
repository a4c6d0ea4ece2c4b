"""Content parts of a received request as our blocks: the other way round from `parts_out`.

A part whose every key has a place in a block becomes that block; keys without one go to its `extra`; a part of any other shape is an
Opaque, whole.
"""

from __future__ import annotations

from typing import Any

from dragoman.message import Audio, Base64, Block, CacheControl, Document, FileId, Image, Opaque, Text, Thinking, Url, Video
from dragoman.wire.json_values import as_object, as_objects, as_string, is_list, is_object
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.media import AUDIO_FORMATS
from dragoman.wire.openai_chat.names import WIRE

__all__ = ["read_cache", "read_content", "read_part"]


def read_content(content: Any, dialect: Dialect) -> list[Block] | None:
    """The blocks of a message's content: a string, or a list of parts; null is nothing. None for what is neither."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if is_list(content) and all(is_object(part) for part in content):
        return [read_part(part, dialect) for part in as_objects(content)]
    return None


def read_part(part: dict[str, Any], dialect: Dialect) -> Block:
    """One content part."""
    kind = part.get("type")
    cache, rest = read_cache({key: value for key, value in part.items() if key not in ("type", kind)}, dialect)
    block: Block | None = None
    if kind == "text" and isinstance(part.get("text"), str):
        block = Text(part["text"], cache=cache, extra=_extra(rest))
    elif kind == "image_url":
        block = _image(as_object(part.get("image_url")), cache, rest)
    elif kind == "video_url":
        video = as_object(part.get("video_url"))
        if video.keys() == {"url"} and isinstance(video["url"], str):
            block = Video(_source(video["url"]), cache=cache, extra=_extra(rest))
    elif kind == "input_audio":
        block = _audio(as_object(part.get("input_audio")), cache, rest)
    elif kind == "file":
        block = _document(as_object(part.get("file")), cache, rest, urls=dialect.file_urls)
    elif kind == "thinking" and not rest and cache is None:
        block = _thinking(part.get("thinking"))
    return Opaque(part, wire=WIRE) if block is None else block


def read_cache(rest: dict[str, Any], dialect: Dialect) -> tuple[CacheControl | None, dict[str, Any]]:
    """The cache mark among the keys of an object, and the other keys; a mark that the dialect does not write, or of another form, stays."""
    mark = rest.get("cache_control")
    if not dialect.cache_marks or not is_object(mark) or mark.get("type") != "ephemeral" or not mark.keys() <= {"type", "ttl"}:
        return None, rest
    ttl = mark.get("ttl", "5m")
    if ttl not in ("5m", "1h"):
        return None, rest
    return CacheControl("1h" if ttl == "1h" else "5m"), {key: value for key, value in rest.items() if key != "cache_control"}


def _image(image: dict[str, Any], cache: CacheControl | None, rest: dict[str, Any]) -> Block | None:
    if not image.keys() <= {"url", "detail"} or not isinstance(image.get("url"), str):
        return None
    own = {**rest, "detail": image["detail"]} if "detail" in image else rest
    return Image(_source(image["url"]), cache=cache, extra=_extra(own))


def _audio(audio: dict[str, Any], cache: CacheControl | None, rest: dict[str, Any]) -> Block | None:
    name, data = audio.get("format"), audio.get("data")
    if audio.keys() != {"data", "format"} or not isinstance(name, str) or not isinstance(data, str):
        return None
    return Audio(Base64(AUDIO_FORMATS.get(name, f"audio/{name}"), data), cache=cache, extra=_extra(rest))


def _document(file: dict[str, Any], cache: CacheControl | None, rest: dict[str, Any], *, urls: bool) -> Block | None:
    title = file.get("filename")
    if title is not None and not isinstance(title, str):
        return None
    if file.keys() <= {"file_id", "filename"} and isinstance(file.get("file_id"), str):
        return Document(FileId(file["file_id"]), title=title, cache=cache, extra=_extra(rest))
    data = file.get("file_data")
    if (
        file.keys() != {"file_data", "filename"}
        or not isinstance(data, str)
        or not data.startswith(("data:", *(("https://", "http://") if urls else ())))
    ):
        return None
    return Document(_source(data), title=title, cache=cache, extra=_extra(rest))


def _thinking(pieces: Any) -> Block | None:
    if not is_list(pieces) or not all(is_object(piece) and piece.keys() == {"type", "text"} for piece in pieces):
        return None
    text = "".join([as_string(piece["text"]) for piece in as_objects(pieces)])
    return Thinking(text, extra={WIRE: {"field": "content"}}) if len(pieces) == 1 else None


def _source(url: str) -> Base64 | Url:
    head, comma, data = url.partition(";base64,")
    return Base64(head[5:], data) if comma and head.startswith("data:") else Url(url)


def _extra(own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {WIRE: own} if own else {}
