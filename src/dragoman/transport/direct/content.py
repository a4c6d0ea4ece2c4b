"""Content encodings that a server may insist on: gzip and deflate, in pieces, bounded.

Decoding is lazy: each piece of at most `PIECE` bytes is made when the consumer asks for it, so that a few kilobytes which unpack to
gigabytes never stand in memory. An encoding that we do not know, rubbish after the end and an end that does not come are faults: what
cannot be decoded must not pass as text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from dragoman.transport.direct.faults import DecodingError

__all__ = ["PIECE", "Unpacker", "unpacker_for"]

PIECE = 64 * 1024
"""Bytes of an unpacked piece, at most."""

_CODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Each coding's `wbits`; for deflate those of zlib's form, which the standard means."""

_RAW = -15
"""Deflate without zlib's header, which some servers send instead."""

_DEPTH = 3
"""Codings on top of each other, at most."""


class _Layer:
    """One coding."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflate = None if coding == "deflate" else zlib.decompressobj(_CODINGS[coding])
        self._held = b""
        self._begun = False

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        self._begun = True
        if self._inflate is None:
            self._held += data
            if len(self._held) < 2:
                return
            data, self._held = self._held, b""
            zlib_form = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(_CODINGS["deflate"] if zlib_form else _RAW)
        while True:
            if self._inflate.eof:
                if self._coding == "deflate":
                    raise DecodingError("bytes after the end")
                self._inflate = zlib.decompressobj(_CODINGS[self._coding])  # gzip may have several members
            try:
                piece = self._inflate.decompress(data, PIECE)
            except zlib.error as error:
                raise DecodingError(self._coding) from error
            if piece:
                yield piece
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            if not data and (self._inflate.eof or len(piece) < PIECE):
                return

    def finish(self) -> None:
        if self._begun and (self._inflate is None or not self._inflate.eof):
            raise DecodingError("the end is missing")


class Unpacker:
    """Turns a body's bytes into those of its content."""

    def __init__(self, codings: Sequence[str]) -> None:
        self._layers = [_Layer(coding) for coding in reversed(codings)]

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """The content of these bytes, piece by piece. Raises DecodingError."""
        pieces: Iterator[bytes] = iter((data,))
        for layer in self._layers:
            pieces = _through(layer, pieces)
        return pieces

    def finish(self) -> None:
        """The body is at its end. Raises DecodingError if the content is not."""
        for layer in self._layers:
            layer.finish()


def _through(layer: _Layer, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from layer.unpack(piece)


def unpacker_for(headers: Sequence[tuple[str, str]]) -> Unpacker | None:
    """What undoes the content encoding of an answer, None if it has none. Raises DecodingError for one that we do not know."""
    named = [value for name, value in headers if name.lower() == "content-encoding"]
    if not named:
        return None
    codings = [coding for part in ",".join(named).lower().split(",") if (coding := part.strip()) not in ("", "identity")]
    if len(codings) > _DEPTH or any(coding not in _CODINGS for coding in codings):
        raise DecodingError("an encoding that was not asked for")
    return Unpacker(codings) if codings else None
