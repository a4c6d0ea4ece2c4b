"""`Answer`: what is taken for an answer, and what is refused."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

from dragoman.transport.direct.answer import Answer
from dragoman.transport.direct.faults import RemoteProtocolError

LIMIT = 1000
OK = b"HTTP/1.1 200 OK\r\n"


def fed(*parts: bytes, bodiless: bool = False) -> Answer:
    answer = Answer(LIMIT, bodiless=bodiless)
    for part in parts:
        answer.feed(part)
    return answer


def one_by_one(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


class TestFraming:
    @pytest.mark.parametrize("cut", [lambda data: [data], one_by_one], ids=["whole", "byte by byte"])
    @pytest.mark.parametrize(
        "rest",
        [
            b"content-length: 3\r\n\r\nabc",
            b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nx-trailer: 1\r\n\r\n",
        ],
        ids=["length", "chunked"],
    )
    def test_body_with_an_end_leaves_the_connection_usable(self, rest: bytes, cut: object) -> None:
        assert callable(cut)
        answer = fed(*cut(OK + rest))
        assert (answer.complete, answer.take(), answer.reusable, answer.fault) == (True, b"abc", True, None)

    def test_body_without_an_end_goes_on_until_the_connection_is_closed(self) -> None:
        answer = fed(OK + b"\r\nab", b"c")
        assert not answer.complete
        answer.eof()
        assert (answer.complete, answer.take(), answer.reusable) == (True, b"abc", False)

    def test_body_that_ends_by_closing_is_cut_if_tls_was_not_ended(self) -> None:
        answer = fed(OK + b"\r\nabc")
        answer.eof(ragged=True)
        assert not answer.complete
        assert isinstance(answer.fault, RemoteProtocolError)

    @pytest.mark.parametrize("head", [b"HTTP/1.1 204 No\r\n\r\n", b"HTTP/1.1 304 No\r\ncontent-length: 10\r\n\r\n"])
    def test_some_statuses_have_no_body(self, head: bytes) -> None:
        answer = fed(head)
        assert (answer.complete, answer.reusable) == (True, True)

    def test_answer_to_head_has_no_body_and_ends_the_connection(self) -> None:
        answer = fed(OK + b"content-length: 10\r\n\r\n", bodiless=True)
        assert (answer.complete, answer.reusable, answer.fault) == (True, False, None)

    @pytest.mark.parametrize("value", [b"close", b"Close", b"close\t", b"x, close"])
    def test_connection_close_is_believed(self, value: bytes) -> None:
        assert not fed(OK + b"connection: " + value + b"\r\ncontent-length: 0\r\n\r\n").reusable

    def test_interim_answers_are_passed_over(self) -> None:
        answer = fed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n" + OK + b"content-length: 0\r\n\r\n")
        assert (answer.status, answer.headers, answer.complete) == (200, [("content-length", "0")], True)

    @pytest.mark.parametrize("excess", [b"HTTP/1.1 200 OK\r\n", b"x", b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"])
    @pytest.mark.parametrize("together", [True, False])
    def test_bytes_after_the_end_are_no_answer_and_end_the_connection(self, excess: bytes, together: bool) -> None:
        head = OK + b"content-length: 1\r\n\r\na"
        answer = fed(head + excess) if together else fed(head, excess)
        assert (answer.status, answer.complete, answer.take(), answer.reusable) == (200, True, b"a", False)


@pytest.mark.parametrize(
    "rest", [b"content-length: 1\r\n\r\na", b"transfer-encoding: gzip\r\n\r\n", b"\r\na"], ids=["whole", "refused", "ended"]
)
def test_an_answer_at_its_end_is_not_held_by_its_parser(rest: bytes) -> None:
    class Watched(Answer):
        __slots__ = ("__weakref__",)

    gc.disable()  # else it would find the cycle
    try:
        answer = Watched(LIMIT)
        answer.feed(OK + rest)
        answer.eof()
        seen = ref(answer)
        del answer
        assert seen() is None
    finally:
        gc.enable()


class TestRefusal:
    @pytest.mark.parametrize(
        "data",
        [
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"\r\nHTTP/1.1 200 OK\r\n\r\n",
            b"RTSP/1.0 200 OK\r\n\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"HTTP/0.9 200 OK\r\n\r\n",
            b"HTTP/1.1 099 OK\r\n\r\n",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1 200 O\0K\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\n\r\n",
            OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
            OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n",
            OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n",
            OK + b"content-length: +2\r\n\r\n",
            OK + b"content-length: 99999999999999999999\r\n\r\n",
            OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
            OK + b"transfer-encoding: gzip\r\n\r\n",
            OK + b"transfer-encoding: chunked\t\r\n\r\n",
            OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
            OK + b"transfer-encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n",
            OK + b"transfer-encoding: chunked\r\n\r\n0\r\ncontent-length: 5\r\n\r\n",
            OK + b"x: a\r\n folded\r\n\r\n",
            OK + b"x : a\r\n\r\n",
            OK + b"x: a\0\r\n\r\n",
            OK + b"x: a\rb\r\n\r\n",
            OK + b"x: y\n\n",
        ],
    )
    def test_of_what_could_be_read_in_two_ways(self, data: bytes) -> None:
        for parts in ([data], one_by_one(data)):
            answer = fed(*parts)
            assert isinstance(answer.fault, RemoteProtocolError)
            assert not answer.reusable

    def test_comes_after_what_came_before(self) -> None:
        answer = fed(OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n")
        assert (answer.head, answer.take(), type(answer.fault)) == (True, b"a", RemoteProtocolError)
        answer.feed(b"1\r\nb\r\n")
        assert answer.pieces == []

    def test_of_an_end_too_early(self) -> None:
        answer = fed(OK + b"content-length: 2\r\n\r\na")
        answer.eof()
        assert (answer.take(), answer.ended, type(answer.fault)) == (b"a", True, RemoteProtocolError)


class TestLimit:
    @pytest.mark.parametrize(
        "data",
        [
            OK + b"x: " + b"a" * LIMIT,
            OK + b"x: a\r\n" * (LIMIT // 5),
            OK + b"x" * (LIMIT + 1),
            b"HTTP/1.1 200 " + b"a" * (LIMIT + 1),
            b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * (LIMIT // 10),
            OK + b"transfer-encoding: chunked\r\n\r\n1;" + b"a" * (LIMIT + 1),
            OK + b"transfer-encoding: chunked\r\n\r\n0\r\nx: " + b"a" * (LIMIT + 1),
            OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"x: a\r\n" * (LIMIT // 5) + b"\r\n",
        ],
        ids=["value", "many", "name", "reason", "interim", "extension", "trailer", "trailers"],
    )
    def test_of_header_bytes(self, data: bytes) -> None:
        assert fed(*one_by_one(data)).fault is not None
        answer = fed(data)
        assert answer.fault is not None or len(data) <= LIMIT + 200 or not answer.complete

    def test_is_for_headers_not_for_the_body(self) -> None:
        chunk = b"1\r\na\r\n"
        answer = fed(*one_by_one(OK + b"transfer-encoding: chunked\r\n\r\n" + chunk * LIMIT))
        assert (answer.fault, answer.size) == (None, LIMIT)


def test_an_interrupt_within_the_parser_passes() -> None:
    class Interrupted(Answer):
        def on_headers_complete(self) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(LIMIT).feed(OK + b"content-length: 1\r\n\r\na")
