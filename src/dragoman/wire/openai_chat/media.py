"""Sound and pictures in answers."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from dragoman.message import Audio, Base64, Block, Image, Opaque, Url
from dragoman.request import Request
from dragoman.wire.framing import Framing
from dragoman.wire.json_values import as_object, as_string
from dragoman.wire.openai_chat.names import WIRE

__all__ = ["AUDIO_FORMATS", "Sound", "image_of"]

AUDIO_FORMATS = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "pcm16": "audio/pcm",
}
"""OpenAI's names of formats, and their media types."""

_AUDIO = "audio"


class Sound:
    """The spoken answer: transcript and sound come in turns, `expires_at` last of all, after the usage. The answer does not say its
    format; the request did.
    """

    def __init__(self, framing: Framing, request: Request | None) -> None:
        self._framing = framing
        asked = as_object(request.extra_body.get("audio")).get("format") if request is not None else None
        self._media_type = AUDIO_FORMATS.get(as_string(asked), "application/octet-stream")
        self._pieces: list[str] = []

    @property
    def heard(self) -> bool:
        """Whether there is any."""
        return self._framing.index(_AUDIO) is not None

    def add(self, audio: dict[str, Any]) -> None:
        """Take a piece; an empty one, or one with nothing in it (Snowflake), is nothing."""
        if not any(audio.values()):
            return
        self._framing.start(_AUDIO, Audio(Base64(self._media_type, "")))
        self._framing.text(_AUDIO, as_string(audio.get("transcript")))
        data = as_string(audio.get("data"))
        if data:
            self._pieces.append(data)
        rest = {key: value for key, value in audio.items() if key not in ("transcript", "data") and value is not None}
        if rest:
            self._framing.remember(_AUDIO, **rest)

    def close(self) -> None:
        """Finish the block with all of its sound."""
        if self.heard:
            self._framing.stop(_AUDIO, source=Base64(self._media_type, joined_base64(self._pieces)))


def joined_base64(pieces: list[str]) -> str:
    """The base64 text of all pieces together; pieces that were padded on their own are decoded first."""
    if not any(piece.endswith("=") for piece in pieces[:-1]):
        return "".join(pieces)
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode("ascii")
    except (binascii.Error, ValueError):
        return "".join(pieces)


def image_of(image: dict[str, Any]) -> Block:
    """A picture of the answer (OpenRouter's `images`), from its data or web URL; one of another shape is kept whole."""
    url = as_string(as_object(image.get("image_url")).get("url"))
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Image(Base64(head[5:], data))
    return Image(Url(url)) if url else Opaque(image, wire=WIRE)
