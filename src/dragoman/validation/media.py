"""Bytes and values inside blocks: media types against the bytes they claim to describe, and numbers that JSON cannot hold.

Strategy. Sixteen characters of base64 show what a picture is, so the cost does not grow with it. A type that contradicts its bytes is a
problem; bytes that nothing is known of are left to the provider.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, cast

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import Base64, Document, Image, Opaque, Parts, PlainText, Text, Url, sniff_image

__all__ = [
    "DEPTH_LIMIT",
    "IMAGE_TYPES",
    "PDF",
    "are_plain",
    "check_document",
    "check_image",
    "image_type",
    "is_base64",
    "is_broken",
    "is_plain",
    "json_problem",
    "not_json",
]

IMAGE_TYPES = frozenset({"image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"})
"""What may be sent as an image; `image/jpg` is written as `image/jpeg`."""

DEPTH_LIMIT = 500
"""How deep a JSON value may nest."""

_NO_FORM = ("holds a value that JSON has no form for", "use plain JSON values")
_TOO_DEEP = (f"nests deeper than {DEPTH_LIMIT} levels, or holds itself", "nest it less, or leave it out")

_PATH_LIMIT = 400
"""Characters of a path into a value that are shown."""
_SHOWN = 80
"""The same where it only leads ever deeper."""

_LEAVES = frozenset({str, int, bool, type(None)})
"""The types whose every value is JSON."""

_LISTS = frozenset({list})

PDF = "application/pdf"
"""The media type of the one kind of document that is sent as bytes."""

_MEDIA_TYPE = re.compile(
    r"(application|audio|font|image|message|model|multipart|text|video)/[\w.+-]{1,80}(; ?[\w-]{1,20}=[\w-]{1,40})?",
    re.ASCII | re.IGNORECASE,
).fullmatch
_HEAD = 16
"""Characters of base64 that are looked at: the twelve bytes that `sniff_image` needs."""


def _head(data: str) -> bytes | None:
    """The first bytes behind base64 text, None if it is not base64."""
    text = data[:_HEAD]
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii.Error is one; so is text that is not ASCII
        return None


def is_base64(data: str) -> bool:
    """Whether text begins as base64 does; empty text is none."""
    return bool(data) and _head(data) is not None


def image_type(data: str) -> str:
    """The media type that base64 text shows (`image/png` …, `application/pdf`), or `""`."""
    head = _head(data)
    if not head:
        return ""
    return PDF if head.startswith(b"%PDF") else sniff_image(head)


def check_image(block: Image, path: str, rules: ModelRules, *, claude: bool, out: list[Problem]) -> None:
    """Append what is wrong with an image."""
    if not rules.image_input:
        out.append(Problem(path, "image_input", f"{rules.id} sees no images", "leave it out, or choose another model"))
    source = block.source
    if isinstance(source, Base64):
        if claude and source.media_type not in IMAGE_TYPES:
            text = "{} is no image type that can be sent"
            _refuse_type(source, path, "image_type", text, "convert it to PNG, JPEG, GIF or WebP", out)
        else:
            _check_bytes(source, path, out)
    elif isinstance(source, Url):
        _check_url(source, path, out)
    elif isinstance(source, PlainText | Parts):
        out.append(Problem(f"{path}.source", "image_source", "an image cannot come from text", "use Base64, Url or FileId"))


def _check_bytes(source: Base64, path: str, out: list[Problem]) -> None:
    if not source.data:
        out.append(Problem(f"{path}.source.data", "base64", "is empty", "give the bytes as base64, or leave the block out"))
    elif _head(source.data) is None:
        fix = "give the bytes alone, as standard base64" if source.data.startswith("data:") else "encode the bytes as standard base64"
        out.append(Problem(f"{path}.source.data", "base64", "is not base64", fix))
    else:
        shown = image_type(source.data)
        declared = "image/jpeg" if source.media_type == "image/jpg" else source.media_type
        if shown and shown != declared:
            said = f"says `{source.media_type}`" if _MEDIA_TYPE(source.media_type) else "is no media type"
            text = f"{said}, but its bytes are `{shown}`"
            out.append(Problem(f"{path}.source.media_type", "media_mismatch", text, f'use "{shown}"'))


def _refuse_type(source: Base64, path: str, rule: str, text: str, fix: str, out: list[Problem]) -> None:
    """A media type that cannot be sent. What is none at all may be the data, which no text may quote."""
    if _MEDIA_TYPE(source.media_type):
        text = text.format(f"`{source.media_type}`")
    else:
        text, fix = "is no media type", 'give one like "image/png"; the order is Base64(media_type, data)'
    out.append(Problem(f"{path}.source.media_type", rule, text, fix))


def _check_url(source: Url, path: str, out: list[Problem]) -> None:
    if not source.url.strip():
        out.append(Problem(f"{path}.source.url", "url", "is empty", "give the address, or leave the block out"))
    elif source.url.startswith("data:"):
        out.append(Problem(f"{path}.source.url", "url", "a data: URL is not fetched", "give its bytes as Base64"))


def check_document(block: Document, path: str, rules: ModelRules, *, claude: bool, out: list[Problem]) -> None:
    """Append what is wrong with a document."""
    source = block.source
    if isinstance(source, Base64):
        if claude and source.media_type != PDF:
            text = "a document of {} cannot be sent as bytes"
            _refuse_type(source, path, "document_type", text, "use application/pdf, or PlainText for text", out)
        else:
            _check_bytes(source, path, out)
        if not rules.pdf_input:
            out.append(Problem(path, "pdf_input", f"{rules.id} reads no PDF", "send its text instead, or choose another model"))
    elif isinstance(source, Url):
        _check_url(source, path, out)
    elif isinstance(source, Parts):
        for i, part in enumerate(source.content):
            where = f"{path}.source.content[{i}]"
            if isinstance(part, Image):
                check_image(part, where, rules, claude=claude, out=out)
            elif not isinstance(part, Text | Opaque):
                out.append(Problem(where, "block_unsupported", "a document holds text and images only", "move it out of the document"))


def is_broken(text: str) -> bool:
    """Whether half a character (a lone surrogate) is in a text; two halves that stand together are one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            return True
    return False


def is_plain(value: Any, depth: int = DEPTH_LIMIT) -> bool:
    """Whether a value is JSON beyond doubt: made of the very types that JSON has. The quick answer for nearly all values."""
    kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        if depth <= 0:
            return False
        for key, item in value.items():
            if type(key) is not str:
                return False
            if type(item) is not str and type(item) not in _LEAVES and not is_plain(item, depth - 1):
                return False
        return True
    if kind is list:
        if depth <= 0:
            return False
        for item in value:  # noqa: SIM110  # a generator would cost a second frame per level
            if type(item) not in _LEAVES and not is_plain(item, depth - 1):
                return False
        return True
    return kind in _LEAVES or (kind is float and math.isfinite(value))


def are_plain(values: Iterable[dict[Any, Any]]) -> bool:
    """`is_plain` of many dicts, as small and flat as the inputs of calls mostly are: their lists are looked at all at once."""
    nested: list[Any] = []
    for value in values:
        for key, item in value.items():
            if type(key) is not str:
                return False
            if type(item) is not str and type(item) not in _LEAVES:
                nested.append(item)
    if _LISTS.issuperset(map(type, nested)) and _LEAVES.issuperset(map(type, chain.from_iterable(nested))):
        return True
    try:
        return all(is_plain(item, DEPTH_LIMIT - 1) for item in nested)
    except RecursionError:  # `not_json` tells
        return False


def not_json(value: object, path: str) -> str:
    """The path of the first thing in a value that JSON has no form for (NaN, a set, an object, too deep a nest), or `""`."""
    problem = json_problem(value, path)
    return "" if problem is None else problem.path


def json_problem(value: object, path: str, limit: int = DEPTH_LIMIT) -> Problem | None:
    """The first thing in a value that JSON has no form for, or that nests deeper than so many levels; None if there is neither.

    A long path ends in `…`: the way into a value that holds itself is as long as one likes.
    """
    try:
        if is_plain(value, limit):
            return None
    except RecursionError:  # the caller's own calls have left too little of the stack
        pass
    stack: list[tuple[object, str, int]] = [(value, path, 0)]
    while stack:
        node, where, depth = stack.pop()
        kind = type(node)
        if kind is str or kind is int or kind is bool or node is None:
            continue
        if isinstance(node, dict) or kind is list or kind is tuple:
            if depth >= limit:
                return Problem(_cut(where, max(_SHOWN, len(path))), "not_json", *_TOO_DEEP)
            for key, item in _items(cast("dict[object, object] | Sequence[object]", node)):
                if type(item) is str:
                    continue
                if key is None:
                    return Problem(where, "not_json", *_NO_FORM)
                stack.append((item, _further(where, key), depth + 1))
        elif not (isinstance(node, str | int) or (isinstance(node, float) and math.isfinite(node))):
            return Problem(where, "not_json", *_NO_FORM)
    return None


def _further(where: str, step: str) -> str:
    """A path one step on, as far as it is shown."""
    return where if where.endswith("…") else _cut(where + step, max(_PATH_LIMIT, len(where)))


def _cut(where: str, limit: int) -> str:
    return where if len(where) <= limit else f"{where[:limit]}…"


def _items(node: dict[object, object] | Sequence[object]) -> Iterator[tuple[str | None, object]]:
    """The members with their path; None as the path of a key that is no text."""
    if isinstance(node, dict):
        for key, item in node.items():
            yield (f".{key}", item) if isinstance(key, str) else (None, None)
    else:
        for i, item in enumerate(node):
            yield f"[{i}]", item
