"""One block by itself, as it can be sent: what is wrong with it on nobody's account, neither the model's, the settings' nor the provider's.

Strategy. What can be told is told anew (a label, a name, an image that is a document). What cannot be written is left out, as little as
will do: a key of an `extra`, a citation, a block inside another, the block. A block that needs nothing stays the same object, and one
that was mended needs nothing more.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman.message import (
    Audio,
    Base64,
    Block,
    Citation,
    Document,
    Extra,
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
from dragoman.validation.blocks import BLOCKS
from dragoman.validation.dialect import TOOL_NAME
from dragoman.validation.keys import lost_keys
from dragoman.validation.media import PDF, image_type, is_base64, is_broken, not_json
from dragoman.validation.verbatim import DEBRIS

__all__ = ["Change", "mended", "mended_extra"]

_EVENTS_OF = "anthropic"
"""The wire whose histories hold debris of its streams."""

_IN_RESULT = (Text, Image, Audio, Video, Document, Opaque)
_IN_DOCUMENT = (Text, Image, Opaque)

_DATA_URL = r"(?s)data:([\w.+-]+/[\w.+-]+)?(?:;[^;,]*)*;base64,(.*)"
"""The media type, if there is one, and the bytes. Compiled at first use: it is rare."""


class Change(msgspec.Struct, frozen=True):
    """One thing that `repair` did: where in the messages it was given, the rule it served (as in `Problem.rule`), and what was done."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def mended(block: Block, path: str, changes: list[Change]) -> Block | None:
    """A block as it can be sent, None if it cannot be. What was done is added to `changes`."""
    if isinstance(block, Opaque):
        return block if _is_whole(block, path, changes) else None
    extra = mended_extra(block.extra, path, changes, debris=True) if block.extra else block.extra
    if extra is not block.extra:
        block = replace(block, extra=extra)
    match block:
        case Text(citations=[_, *_]):
            return _cited(block, path, changes)
        case ToolUse():
            return _call(block, path, changes)
        case InvalidToolUse():
            return _named(block, path, changes)
        case Image() | Document():
            return _media(block, path, changes)
        case Audio(source=Parts() as held) | Video(source=Parts() as held):
            parts = _parts(held, f"{path}.source", changes)
            return None if parts is None else block if parts is held else replace(block, source=parts)
        case ToolResult():
            content = _inside(block.content, f"{path}.content", _IN_RESULT, "block_role", changes)
            return block if content is block.content else replace(block, content=content)
        case ServerToolUse() if rule := _unwritable(block.input):
            changes.append(Change(f"{path}.input", rule, "a server-side call whose input cannot be written was left out"))
            return None
        case ServerToolResult() if rule := _unwritable(block.content):
            changes.append(Change(f"{path}.content", rule, "a server-side result that cannot be written was left out"))
            return None
        case Thinking() | RedactedThinking() if _is_broken(block):
            changes.append(Change(path, "broken_unicode", "signed thinking that cannot be sent unchanged was left out"))
            return None
        case _:
            return block


def mended_extra(extra: Extra, path: str, changes: list[Change], *, debris: bool) -> Extra:
    """What a block or message carries for each wire, without what cannot be written. `debris`: nor what belongs to events of a stream."""
    kept = {wire: _carried(own, f"{path}.extra.{wire}", changes, debris=debris and wire == _EVENTS_OF) for wire, own in extra.items()}
    return extra if all(kept[wire] is own for wire, own in extra.items()) else {wire: own for wire, own in kept.items() if own}


def _carried(own: dict[str, Any], path: str, changes: list[Change], *, debris: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in own.items():
        rule = "stream_debris" if debris and key in DEBRIS else _unwritable({key: value})
        if rule:
            changes.append(Change(f"{path}.{key}", rule, "what cannot be sent was left out"))
        else:
            kept[key] = value
    if rule := _unwritable(kept):  # keys that would be one
        changes.append(Change(path, rule, "what cannot be sent was left out"))
        return {}
    return own if len(kept) == len(own) else kept


# ---- what is sent as it is


def _unwritable(value: object) -> str:
    """The rule that keeps a value from being written as JSON, or `""`."""
    if not_json(value, "it"):
        return "not_json"
    return "broken_unicode" if any(True for _ in lost_keys(value)) else ""


def _is_whole(block: Opaque, path: str, changes: list[Change]) -> bool:
    """Whether an opaque block is a block, and JSON."""
    kind: object = block.data.get("type")
    if block.wire == _EVENTS_OF and (not isinstance(kind, str) or kind.endswith("_delta")):
        changes.append(Change(path, "not_a_block", "an event of a stream, or what has no type, was left out"))
        return False
    if rule := _unwritable(block.data):
        changes.append(Change(f"{path}.data", rule, "a block that cannot be written was left out"))
        return False
    return True


def _cited(text: Text, path: str, changes: list[Change]) -> Text:
    kept: list[Citation] = []
    for k, citation in enumerate(text.citations):
        if rule := _unwritable(citation.data):
            changes.append(Change(f"{path}.citations[{k}]", rule, "a citation that cannot be written was left out"))
        else:
            kept.append(citation)
    return text if len(kept) == len(text.citations) else replace(text, citations=kept)


def _is_broken(block: Thinking | RedactedThinking) -> bool:
    if isinstance(block, RedactedThinking):
        return is_broken(block.data)
    return bool(block.signature) and is_broken(block.text + block.signature)


# ---- calls


def _call(call: ToolUse, path: str, changes: list[Change]) -> Block:
    rule = _unwritable(call.input)
    if not rule:
        return _named(call, path, changes)
    changes.append(Change(f"{path}.input", rule, "a call whose input JSON has no form for became an invalid call"))
    return _named(InvalidToolUse(call.id, call.name, _as_text(call.input), reason="invalid_json", extra=call.extra), path, changes)


def _as_text(value: object) -> str:
    """A value for the model to read: as JSON as it can be."""
    try:
        return json.dumps(value, default=repr, skipkeys=True)
    except (ValueError, RecursionError):  # it holds itself
        return repr(value)


def _named(call: ToolUse | InvalidToolUse, path: str, changes: list[Change]) -> ToolUse | InvalidToolUse:
    if TOOL_NAME.fullmatch(call.name):
        return call
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:128] or "tool"
    changes.append(Change(f"{path}.name", "tool_name", f"the name became `{name}`"))
    return replace(call, name=name)


# ---- images and documents, and what other blocks hold


def _inside(blocks: Sequence[Block], path: str, allowed: tuple[type, ...], rule: str, changes: list[Change]) -> Sequence[Block]:
    """The blocks of a tool result or document. The same list if nothing was done."""
    kept: list[Block] = []
    for k, given in enumerate(blocks):
        where = f"{path}[{k}]"
        block = given
        if type(block) not in BLOCKS:
            changes.append(Change(where, "not_a_block", "what is no content block was left out"))
            continue
        if isinstance(block, Refusal):
            changes.append(Change(where, rule, "a refusal became text"))
            block = Text(block.text, extra=block.extra)
        whole = mended(block, where, changes) if isinstance(block, allowed) else block
        if whole is not None and not isinstance(whole, allowed):
            changes.append(Change(where, rule, f"a block of type {whole.type} that cannot stand there was left out"))
        elif whole is not None:
            kept.append(whole)
    return blocks if len(kept) == len(blocks) and all(map(operator.is_, kept, blocks)) else kept


def _media(block: Image | Document, path: str, changes: list[Change]) -> Image | Document | None:
    """An image or document whose source is whole, and which is what its source says."""
    source: Source | None = block.source
    if isinstance(source, Base64 | Url):
        source = _bytes_or_url(source, f"{path}.source", changes)
    elif isinstance(source, Parts):
        source = _parts(source, f"{path}.source", changes)
    if source is None:
        return None
    shown = image_type(source.data) if isinstance(source, Base64) else ""
    if isinstance(block, Image) and (isinstance(source, PlainText | Parts) or shown == PDF):
        changes.append(Change(path, "image_source", "an image of no picture became a document"))
        return Document(source, cache=block.cache)
    if isinstance(block, Document) and shown.startswith("image/"):
        changes.append(Change(path, "document_type", "a document of a picture became an image"))
        return Image(source, cache=block.cache)
    return block if source is block.source else replace(block, source=source)


def _parts(source: Parts, path: str, changes: list[Change]) -> Parts | None:
    content = _inside(source.content, f"{path}.content", _IN_DOCUMENT, "block_unsupported", changes)
    if content is source.content:
        return source
    return Parts(content) if content else None


def _bytes_or_url(source: Base64 | Url, path: str, changes: list[Change]) -> Base64 | Url | None:
    """A source that is a URL to fetch, or bytes under their own media type; None if it is neither."""
    field, text = ("url", source.url) if isinstance(source, Url) else ("data", source.data)
    if match := re.fullmatch(_DATA_URL, text):
        declared = match[1] or getattr(source, "media_type", "application/octet-stream")
        changes.append(Change(f"{path}.{field}", "url" if field == "url" else "base64", "a data: URL became the bytes in it"))
        source = Base64(declared, match[2])
    if isinstance(source, Url):
        if source.url.strip() and not source.url.startswith("data:"):
            return source
        changes.append(Change(f"{path}.url", "url", "a block whose URL is none to fetch was left out"))
        return None
    if not is_base64(source.data):
        changes.append(Change(f"{path}.data", "base64", "a block whose data is empty or no base64 was left out"))
        return None
    shown = image_type(source.data)
    if not shown or shown == source.media_type or (shown == "image/jpeg" and source.media_type == "image/jpg"):
        return source
    changes.append(Change(f"{path}.media_type", "media_mismatch", f"the media type became `{shown}`, as the bytes say"))
    return replace(source, media_type=shown)
