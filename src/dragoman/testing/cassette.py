"""The file of a cassette: real exchanges, recorded once (`recorder`) and replayed for ever, byte for byte (`replay`).

Strategy. Of each exchange it holds the request's method, path and body, and of the answer its status and the exact pieces in which its
body arrived, with their times. It is one JSON file that people can read and review: pieces are text where they are UTF-8, base64 where
not. Requests are known by a fingerprint of what they ask (method, path, the body's meaning), so neither keys nor header order matter.

Only headers on a short list are written. The bodies do hold prompts and answers: treat the file as you treat those.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.wire.base import HTTPRequest

__all__ = [
    "RATE_LIMITS",
    "REQUEST_HEADERS",
    "RESPONSE_HEADERS",
    "Cassette",
    "CassetteError",
    "Exchange",
    "Piece",
    "check_writable",
    "fingerprint",
]

VERSION = 1
REQUEST_HEADERS = frozenset({"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta"})
"""Request headers that a cassette may hold."""

RESPONSE_HEADERS = frozenset(
    {
        "apim-request-id",
        "content-type",
        "date",
        "mistral-correlation-id",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-generation-id",
        "x-request-id",
        "x-should-retry",
    }
)
"""Response headers that a cassette may hold; `anthropic-ratelimit-*` and `x-ratelimit-*` are kept as well."""

RATE_LIMITS = ("anthropic-ratelimit-", "x-ratelimit-", "ratelimit-")
"""How the names of the headers about rate limits begin."""


class CassetteError(DragomanError):
    """A cassette that cannot be read or written. No provider failed, so nothing tries again."""


class Piece(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of an answer's body as it arrived: `at` seconds after the request was sent; text, or base64 if it is not UTF-8."""

    at: float
    text: str = ""
    base64: str = ""

    @classmethod
    def of(cls, at: float, data: bytes) -> Piece:
        """The piece for these bytes."""
        try:
            return cls(at, text=data.decode())
        except UnicodeDecodeError:
            return cls(at, base64=base64.b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes."""
        return base64.b64decode(self.base64, validate=True) if self.base64 else self.text.encode()


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request and what came of it. `failure` is set if the transport failed, before or after some pieces."""

    fingerprint: str
    method: str
    path: str
    request_headers: dict[str, str] = {}
    request_body: Any = None
    status: int = 0
    response_headers: list[tuple[str, str]] = []
    pieces: list[Piece] = []
    failure: dict[str, str] | None = None


class Cassette(msgspec.Struct, frozen=True, kw_only=True):
    """A file of exchanges, in the order they were sent."""

    dragoman_cassette: int = VERSION
    exchanges: list[Exchange] = []

    @classmethod
    def load(cls, path: str | Path) -> Cassette:
        """Read a cassette. Raises CassetteError naming the file and what is wrong."""
        try:
            cassette = msgspec.json.decode(Path(path).read_bytes(), type=cls)
        except OSError as error:
            raise CassetteError(f"{path}: {error.strerror or error}") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CassetteError(f"{path}: not a cassette: {error}") from error
        if cassette.dragoman_cassette > VERSION:
            raise CassetteError(f"{path}: a cassette of version {cassette.dragoman_cassette}; this dragoman reads up to {VERSION}")
        for i, exchange in enumerate(cassette.exchanges):
            for j, piece in enumerate(exchange.pieces):
                try:
                    _ = piece.data
                except ValueError as error:  # binascii's; or half a character
                    raise CassetteError(f"{path}: exchanges[{i}].pieces[{j}] holds no bytes: {error}") from error
        return cassette

    def save(self, path: str | Path) -> None:
        """Write the file, whole or not at all, and the folders above it. Raises CassetteError naming the file and what is wrong."""
        with _part_of(path) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
            part.replace(path)


def check_writable(path: str | Path) -> None:
    """Raises CassetteError as `Cassette.save` would. A file that is there stays as it is."""
    with _part_of(path) as part:
        part.touch()


@contextmanager
def _part_of(path: str | Path) -> Generator[Path]:
    """The file that is written first, beside the one that it becomes. It does not stay. Raises CassetteError."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a device would be gone
            raise CassetteError(f"{path}: cannot be written: it is there and is not a file")
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise CassetteError(f"{path}: cannot be written: {error.strerror or error}") from error
    except ValueError as error:  # a path that no file can have
        raise CassetteError(f"{path!s:.200}: cannot be written: {error}") from error


def fingerprint(request: HTTPRequest) -> str:
    """What a request asks, as 16 hexadecimal digits: method, path and the meaning of its body (JSON in any spelling)."""
    try:
        meaning = json.dumps(msgspec.json.decode(request.body), sort_keys=True, separators=(",", ":")).encode()
    except msgspec.MsgspecError:
        meaning = request.body
    return hashlib.sha256(b"\n".join((request.method.encode(), request.path.encode(), meaning))).hexdigest()[:16]
