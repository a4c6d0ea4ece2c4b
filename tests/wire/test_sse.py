"""Server-sent events: the WHATWG rules and only they, whatever the chunking."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.sse import EventTooLargeError, Frame, SSEParser


def parse(data: bytes, cuts: list[int] | None = None) -> list[Frame]:
    parser = SSEParser()
    positions = [0, *(cuts or []), len(data)]
    frames = [frame for a, b in itertools.pairwise(positions) for frame in parser.feed(data[a:b])]
    return frames + parser.close()


def datas(data: bytes) -> list[bytes]:
    return [found for _, found in parse(data)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_ends_a_line(end: bytes) -> None:
    assert parse(end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])) == [(b"a", b"1"), (b"", b"2")]


@pytest.mark.parametrize("gap", [b"\n\n", b"\r\r", b"\r\n\r\n", b"\n\r\n", b"\n\r", b"\r\n\n", b"\r\n\r"], ids=lambda gap: gap.hex())
def test_any_two_line_ends_end_an_event_at_once(gap: bytes) -> None:
    assert SSEParser().feed(b"data: 1" + gap) == [(b"", b"1")]


def test_a_crlf_cut_between_cr_and_lf_is_one_line_end() -> None:
    parser = SSEParser()
    assert parser.feed(b"data: 1\r") == []
    assert parser.feed(b"\ndata: 2\r\n\r") == [(b"", b"1\n2")]
    assert parser.feed(b"\ndata: 3\r\n\r\n") == [(b"", b"3")]


def test_data_lines_are_joined_by_lf() -> None:
    assert datas(b"data: a\ndata:b\ndata:  c\n\n") == [b"a\nb\n c"]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert datas(b"data:x\n\ndata: x\n\ndata:  x\n\n") == [b"x", b"x", b" x"]


def test_comments_and_unknown_fields_are_skipped() -> None:
    assert parse(b": hello\n:\n:ping\nid: 7\nretry: 10\ndatax: no\neventual: no\ndata: 1\n\n: keep\n\n") == [(b"", b"1")]


def test_a_field_without_a_colon_has_the_empty_value() -> None:
    assert parse(b"event: a\nevent\ndata\ndata: x\n\n") == [(b"", b"\nx")]


def test_the_last_event_field_wins_and_does_not_outlive_its_event() -> None:
    assert parse(b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n") == [(b"b", b"1"), (b"", b"2")]


def test_events_without_data_are_not_delivered() -> None:
    assert parse(b"event: a\n\ndata:\n\ndata: \n\n\n\n\ndata: 1\n\n") == [(b"", b"1")]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
def test_unicode_separators_are_data(separator: str) -> None:
    assert datas(f"data: a{separator}b\n\n".encode()) == [f"a{separator}b".encode()]


def test_one_byte_order_mark_at_the_start_is_stripped() -> None:
    assert datas(b"\xef\xbb\xbfdata: 1\n\n") == [b"1"]
    assert datas(b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n") == [b"2"]
    assert datas(b"data: \xef\xbb\xbf1\n\n") == [b"\xef\xbb\xbf1"]


def test_a_byte_order_mark_may_be_split() -> None:
    parser = SSEParser()
    assert [parser.feed(piece) for piece in (b"\xef", b"\xbb", b"\xbfda", b"ta: 1\n\n")] == [[], [], [], [(b"", b"1")]]


def test_what_only_begins_like_a_byte_order_mark_is_kept() -> None:
    assert datas(b"\xefdata: 1\n\ndata: 2\n\n") == [b"2"]
    parser = SSEParser()
    assert parser.feed(b"\xef\xbb") == []
    assert parser.close() == []


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r", b"\r\n"])
def test_a_last_event_without_its_blank_line_is_delivered_at_the_end(tail: bytes) -> None:
    assert parse(b"data: 1\n\nevent: e\ndata: 2" + tail) == [(b"", b"1"), (b"e", b"2")]


def test_an_event_larger_than_the_limit_is_refused_in_every_shape() -> None:
    for data in (b"data: " + b"x" * 100, b"data: 1\r\ndata: " + b"x" * 100, b"data: " + b"x" * 100 + b"\n\n"):
        for size in (1, len(data)):
            with pytest.raises(EventTooLargeError, match="64 bytes"):
                feed_all(SSEParser(limit=64), [data[at : at + size] for at in range(0, len(data), size)])


def feed_all(parser: SSEParser, pieces: list[bytes]) -> None:
    for piece in pieces:
        parser.feed(piece)


def test_many_events_below_the_limit_pass_in_one_chunk() -> None:
    assert len(SSEParser(limit=64).feed(b"data: 0123456789\n\n" * 1000)) == 1000


def test_a_megabyte_byte_by_byte_is_not_searched_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = 0

    class Buffer(bytearray):
        def rfind(self, sub: bytes, start: int = 0) -> int:  # type: ignore[override]
            nonlocal searched
            searched += len(self) - start
            return super().rfind(sub, start)

    parser = SSEParser()
    parser._buffer = Buffer()
    size = 1 << 20
    for _ in range(size):
        parser.feed(b"x")
    assert searched <= 2 * size


LINES = st.sampled_from([b"data: 1", b"data:2", b"data", b"event: e", b": c", b"", b"", b"data: \xe2\x80\xa8x", b"id: 1"])
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=30), st.data())
def test_no_result_depends_on_the_chunking(lines: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    stream = b"".join(line + end for line, end in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    assert parse(stream, cuts) == parse(stream) == parse(stream, list(range(len(stream))))


@given(st.lists(st.tuples(LINES, ENDS), max_size=30))
def test_the_fast_mode_agrees_with_the_rules(lines: list[tuple[bytes, bytes]]) -> None:
    stream = b"".join(line + end for line, end in lines)
    assert parse(stream) == reference(stream)


def reference(stream: bytes) -> list[Frame]:
    """The rules, written down as directly as can be."""
    frames: list[Frame] = []
    data: list[bytes] = []
    event = b""
    for line in [*stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        if not line:
            if b"\n".join(data):
                frames.append((event, b"\n".join(data)))
            data, event = [], b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ") if value.startswith(b" ") else value
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
    return frames
