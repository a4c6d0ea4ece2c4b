"""Content encodings: unpacked in bounded pieces, and refused when they are not what they say."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from dragoman.transport.direct.content import PIECE, unpacker_for
from dragoman.transport.direct.faults import DecodingError

TEXT = b"dragoman " * 40_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def unpacked(encoding: str, *parts: bytes) -> bytes:
    unpacker = unpacker_for([("Content-Encoding", encoding)])
    assert unpacker is not None
    data = b"".join(piece for part in parts for piece in unpacker.unpack(part))
    unpacker.finish()
    return data


PACKED = {
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "Deflate": raw_deflate(TEXT),
    "gzip, identity": gzip.compress(TEXT),
    "deflate, gzip": gzip.compress(zlib.compress(TEXT)),
}


@pytest.mark.parametrize(("encoding", "packed"), PACKED.items())
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_any_cut_gives_the_same(encoding: str, packed: bytes, size: int) -> None:
    assert unpacked(encoding, *(packed[at : at + size] for at in range(0, len(packed), size))) == TEXT


def test_gzip_of_several_members() -> None:
    both = gzip.compress(b"one") + gzip.compress(b"two")
    assert unpacked("gzip", both) == unpacked("gzip", *(both[at : at + 1] for at in range(len(both)))) == b"onetwo"


def test_empty_body_of_an_encoded_answer() -> None:
    assert unpacked("gzip") == b""


@pytest.mark.parametrize("headers", [[], [("content-encoding", "identity")], [("content-encoding", "")]])
def test_nothing_to_do(headers: list[tuple[str, str]]) -> None:
    assert unpacker_for(headers) is None


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip, gzip, gzip, gzip"])
def test_encoding_that_was_not_asked_for(encoding: str) -> None:
    with pytest.raises(DecodingError):
        unpacker_for([("content-encoding", encoding)])


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", b"plain"),
        ("deflate", b"plain"),
        ("gzip", gzip.compress(TEXT)[:-1]),
        ("gzip", gzip.compress(TEXT) + b"more"),
        ("deflate", zlib.compress(TEXT) + b"more"),
        ("deflate", zlib.compress(TEXT)[:-5]),
        ("deflate", b"x"),
    ],
    ids=["gzip", "deflate", "cut gzip", "rubbish after gzip", "rubbish after deflate", "cut deflate", "one byte"],
)
def test_what_is_not_the_encoding(encoding: str, data: bytes) -> None:
    with pytest.raises(DecodingError):
        unpacked(encoding, data)


def test_a_bomb_goes_off_one_piece_at_a_time() -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    unpacker = unpacker_for([("content-encoding", "deflate")])
    assert unpacker is not None
    tracemalloc.start()
    sizes = [len(piece) for piece in unpacker.unpack(bomb)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (sum(sizes), max(sizes)) == (64 << 20, PIECE)
    assert peak < 2 << 20
