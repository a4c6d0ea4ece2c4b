"""The same bytes to h11 and to ours: random answers, whole, cut or damaged, and what both make of them.

A `Reply` is an answer that HTTP allows, made of random parts; `damaged` changes some of its bytes. `by_h11` and `by_ours` read it, in the
same pieces. For an undamaged answer, whole or cut short, both must say the same. For a damaged one ours may refuse what h11 takes,
never the other way round, and what both take must be the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import h11

from dragoman.transport.direct.answer import Answer

__all__ = ["LIMIT", "Outcome", "Reply", "by_h11", "by_ours", "compare", "damaged", "pieces", "random_reply"]

LIMIT = 64 * 1024

TOKEN = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
VALUE = "\t !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~\x80\xa0\xe9\xff"
OWN = {"content-length", "transfer-encoding", "connection", "upgrade", "keep-alive", "proxy-connection"}
"""Headers that decide about the body or the connection: a reply has them only on purpose."""

_BLANK_LINE_AFTER_INTERIM = re.compile(rb"\r\n\r\n[\r\n]+HTTP/")

Framing = Literal["length", "chunked", "close", "none"]


@dataclass(frozen=True)
class Reply:
    """An answer, and what must come of it."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    framing: Framing
    keep: bool
    data: bytes = field(repr=False)

    @property
    def closes(self) -> bool:
        return self.framing == "close"


@dataclass(frozen=True)
class Outcome:
    """What a parser made of some bytes and the end of the connection after them."""

    end: Literal["complete", "incomplete", "protocol"]
    status: int = 0
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    reusable: bool = False


def random_reply(rng: random.Random) -> Reply:
    status = rng.choice([200, 200, 200, 201, 204, 304, 400, 404, 418, 429, 500, 529, 599, rng.randint(200, 599)])
    version = rng.choice(["1.1"] * 6 + ["1.0"])
    framing: Framing = "none" if status in (204, 304) else rng.choice(["length", "chunked", "close"])
    if version == "1.0" and framing == "chunked":
        framing = "length"
    keep = rng.random() < 0.8
    body = b"" if framing == "none" else rng.randbytes(rng.choice([0, 0, 1, 2, 10, 100, 3000]))
    headers = [header for _ in range(rng.randint(0, 5)) if (header := _header(rng))[0].lower() not in OWN]
    if framing == "length":
        headers.append((rng.choice(["Content-Length", "content-length"]), "0" * rng.choice([0, 0, 2]) + str(len(body))))
    elif framing == "chunked":
        headers.append(("Transfer-Encoding", rng.choice(["chunked", "Chunked", "CHUNKED"])))
    if not keep:
        headers.append(("Connection", rng.choice(["close", "Close"])))
    elif version == "1.0":
        keep = False
    rng.shuffle(headers)
    reason = rng.choice(["", " ", " OK", " Not Found at all", " \xe9\xff"])
    lines = [f"HTTP/{version} {status}{reason}"]
    lines += [f"{name}:{rng.choice(['', ' ', '  ', chr(9)])}{value}{rng.choice(_after(name))}" for name, value in headers]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    interim = b"".join(
        b"HTTP/1.1 %d %s\r\n%s\r\n" % (rng.choice([100, 102, 103]), rng.choice([b"", b"Wait"]), rng.choice([b"", b"link: </a>\r\n"]))
        for _ in range(rng.choice([0, 0, 0, 0, 1, 2]))
    )
    framed = _chunked(rng, body) if framing == "chunked" else body
    return Reply(status, headers, body, framing, keep, interim + head + framed)


def _after(name: str) -> list[str]:
    """What may stand after a value. `Transfer-Encoding: chunked` and a tab ours refuses: llhttp does not take it for chunked."""
    return ["", "", " ", "" if name.lower() == "transfer-encoding" else "\t"]


def _header(rng: random.Random) -> tuple[str, str]:
    name = "".join(rng.choices(TOKEN, k=rng.randint(1, 12)))
    return name, "".join(rng.choices(VALUE, k=rng.randint(0, 20))).strip(" \t")


def _chunked(rng: random.Random, body: bytes) -> bytes:
    data = b""
    while body:
        size = rng.randint(1, max(1, min(len(body), rng.choice([1, 5, 50, 4000]))))
        number = rng.choice(["{:x}", "{:X}", "0{:x}"]).format(size)
        extension = rng.choice(["", "", "", ";a", ";a=b", ';a="b c"'])
        data += f"{number}{extension}\r\n".encode() + body[:size] + b"\r\n"
        body = body[size:]
    trailers = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in (_header(rng) for _ in range(rng.choice([0, 0, 1, 2]))))
    return data + rng.choice([b"0", b"000"]) + b"\r\n" + trailers + b"\r\n"


_SPLICES = [
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"0", b"-", b"+", b";", b"\xff", b"ffffffff", b"chunked"),
    *(b"content-length: 3\r\n", b"transfer-encoding: chunked\r\n", b"transfer-encoding: gzip\r\n"),
    *(b"HTTP/1.1 200 OK\r\n\r\n", b"connection: upgrade\r\nupgrade: x\r\n"),
]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with one to three of them changed, dropped, doubled, or something put between them."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(data)) if data else 0
        match rng.randrange(4):
            case 0:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + rng.choice([1, 1, 2, 20]) :]
            case 2:
                data = data[:at] + data[at : at + 20] + data[at:]
            case _:
                data = data[:at] + rng.choice(_SPLICES) + data[at:]
    return data


def pieces(rng: random.Random, data: bytes) -> list[bytes]:
    """The bytes, cut anywhere; none of the pieces is empty."""
    if rng.random() < 0.2:
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted({rng.randrange(len(data)) for _ in range(rng.randint(0, 8))} | {0, len(data)}) if data else [0]
    return [data[start:end] for start, end in pairwise(cuts)]


def by_h11(parts: Sequence[bytes]) -> Outcome:
    """What h11 makes of these pieces and the end of the connection."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LIMIT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    status, headers, body = 0, [], b""
    try:
        for number, part in enumerate([*parts, b""]):
            if part or connection.their_state in (h11.SEND_RESPONSE, h11.SEND_BODY):
                connection.receive_data(part)
            while True:
                event = connection.next_event()
                if isinstance(event, h11.Response):
                    status = event.status_code
                    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items()]
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    more = connection.trailing_data[0] + b"".join(parts[number + 1 :])
                    reusable = connection.their_state is h11.DONE and not more.strip(b"\r\n")  # line breaks alone do no harm
                    return Outcome("complete", status, headers, body, reusable)
                elif not isinstance(event, h11.InformationalResponse):
                    break
    except h11.RemoteProtocolError:
        return Outcome("incomplete" if not part else "protocol", status, headers, body)
    return Outcome("incomplete", status, headers, body)


def by_ours(parts: Sequence[bytes]) -> Outcome:
    """What our `Answer` makes of them."""
    answer = Answer(LIMIT)
    for part in parts:
        answer.feed(memoryview(part))
    reusable = answer.reusable
    refused = answer.fault is not None
    answer.eof()
    body = answer.take() if answer.pieces else b""
    if answer.complete:
        return Outcome("complete", answer.status, answer.headers, body, reusable)
    return Outcome("protocol" if refused else "incomplete", answer.status, answer.headers, body)


def _plain(outcome: Outcome) -> list[tuple[str, str]]:
    """The headers; h11 writes some values anew."""
    return [(name, value.lower() if name.lower() in OWN else value) for name, value in outcome.headers]


def compare(reply: Reply | None, parts: Sequence[bytes]) -> None:
    """Fails unless ours says what h11 says; `reply` None: the bytes are damaged, and ours may refuse them."""
    ours, theirs = by_ours(parts), by_h11(parts)
    if reply is None and _BLANK_LINE_AFTER_INTERIM.search(b"".join(parts)):
        return  # llhttp passes over it, h11 does not; nothing depends on it
    if reply is not None or ours.end == "complete":
        assert (ours.end, ours.status, _plain(ours), ours.body) == (theirs.end, theirs.status, _plain(theirs), theirs.body)
        assert theirs.reusable or not ours.reusable
    elif ours.end == "incomplete":
        assert theirs.end in ("incomplete", "protocol")
    if ours.status and theirs.status:
        assert (ours.status, _plain(ours)) == (theirs.status, _plain(theirs))
