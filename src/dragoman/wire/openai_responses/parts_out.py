"""The parts inside items: texts, pictures, files and sound of ours as the wire's content parts.

Strategy. One block gives one part, except a document that is text or made of blocks, which becomes the texts and pictures it holds. What
the API has no form for (a film, a picture made of text) is a problem, reported with its path; what merely cannot be said (a wish for
citations) is a Notice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.fragments import scrub
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
    Refusal,
    Source,
    Text,
    Url,
)
from dragoman.wire.openai_responses.kinds import WIRE

__all__ = ["PartWriter", "data_url", "image_source"]

_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav"}
"""The names of sound formats that the API takes."""

_SUFFIXES = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "application/json": "json",
}
_Part = dict[str, Any]


def data_url(source: Base64) -> str:
    """The bytes as a `data:` URL."""
    media_type = "image/jpeg" if source.media_type == "image/jpg" else source.media_type
    return f"data:{media_type};base64,{source.data}"


def image_source(source: Source) -> _Part | None:
    """The keys that say where a picture comes from, or None if it has no form here."""
    match source:
        case Base64():
            return {"image_url": data_url(source)}
        case Url(url):
            return {"image_url": url}
        case FileId(id):
            return {"file_id": id}
        case _:
            return None


class PartWriter:
    """Writes parts; `problem(path, rule, text, fix)` and `note(code, text, path=)` are told what does not fit."""

    def __init__(self, problem: Callable[[str, str, str, str], object], note: Callable[..., object]) -> None:
        self._problem = problem
        self._note = note

    # ---- what the model said

    def output_text(self, block: Text, *, own: bool) -> _Part:
        """A text of an assistant turn. Citations of another provider are not the model's to see again."""
        extra = {key: value for key, value in block.extra.get(WIRE, {}).items() if key != "item"} if own else {}
        annotations = [citation.data for citation in block.citations] if own and WIRE in block.extra else []
        return {"type": "output_text", "text": scrub(block.text), "annotations": annotations, **extra}

    def refusal(self, block: Refusal, *, own: bool) -> _Part:
        """A refusal of an assistant turn."""
        extra = {key: value for key, value in block.extra.get(WIRE, {}).items() if key != "item"} if own else {}
        return {"type": "refusal", "refusal": scrub(block.text), **extra}

    # ---- what the model is given

    def input_parts(self, block: Block, path: str) -> list[_Part]:
        """A block of a user or system turn, or of a tool's result."""
        match block:
            case Text(text) | Refusal(text):
                return [{"type": "input_text", "text": scrub(text), **block.extra.get(WIRE, {})}]
            case Image():
                return self._image(block, path)
            case Document():
                return self._document(block, path)
            case Audio():
                return self._audio(block, path)
            case Opaque(data, wire=wire):
                if wire == WIRE:
                    return [data]
                self._note("block_left_out", f"a block of the {wire} dialect is left out", path=path)
                return []
            case _:
                self._problem(path, f"no_{block.type}", f"the Responses API takes no {block.type} here", "leave it out, or say it as text")
                return []

    def _image(self, block: Image, path: str) -> list[_Part]:
        source = image_source(block.source)
        if source is None:
            self._problem(path, "image_source", "an image cannot be text", "give its bytes (Base64), a Url or a FileId")
            return []
        return [{"type": "input_image", **source, **block.extra.get(WIRE, {})}]

    def _document(self, block: Document, path: str) -> list[_Part]:
        if block.cite:
            self._note("citations_unsupported", "the Responses API cannot be asked to cite a document", path=path)
        head = [f"{block.title}\n"] if block.title and isinstance(block.source, PlainText | Parts) else []
        lead: list[_Part] = [{"type": "input_text", "text": scrub(text)} for text in [*([block.context] if block.context else []), *head]]
        extra = block.extra.get(WIRE, {})
        match block.source:
            case PlainText(text):
                return [*lead, {"type": "input_text", "text": scrub(text)}]
            case Parts(content=content):
                return [*lead, *(part for i, b in enumerate(content) for part in self.input_parts(b, f"{path}.source.content[{i}]"))]
            case Base64() as source:
                name = block.title or f"document.{_SUFFIXES.get(source.media_type, 'bin')}"
                return [*lead, {"type": "input_file", "filename": name, "file_data": data_url(source), **extra}]
            case Url(url):
                return [*lead, {"type": "input_file", "file_url": url, **extra}]
            case FileId(id):
                return [*lead, {"type": "input_file", "file_id": id, **extra}]

    def _audio(self, block: Audio, path: str) -> list[_Part]:
        source = block.source
        if not isinstance(source, Base64):
            self._problem(path, "audio_source", "sound must be given as bytes here", "use Base64")
            return []
        form = _FORMATS.get(source.media_type, source.media_type.partition("/")[2])
        return [{"type": "input_audio", "input_audio": {"data": source.data, "format": form}, **block.extra.get(WIRE, {})}]
