"""One answer, from bytes to status, headers and body: llhttp does the parsing, this decides what is acceptable.

Strategy. Sans-I/O, like h11: `feed` takes what came, `eof` is told how the connection ended, and the rest are attributes. llhttp runs
in its strict mode. There is a parser from the first byte to the end of the answer or what is refused, and no longer: it holds this object
as this holds it. What it leaves open is decided here, always towards refusing: another protocol or version, a second framing of the
body, an upgrade nobody asked for, heads and trailers beyond a limit. A fault never hides what came before it: the pieces of the body
are there, then the fault.

Bytes after the end of an answer nobody has asked for; they are never taken for an answer to the next request: the connection is then
not used again.
"""

from __future__ import annotations

import re

import httptools

from dragoman.transport.direct.faults import Fault, RemoteProtocolError

__all__ = ["Answer"]

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING = (b"content-length", b"transfer-encoding")
_VERSIONS = ("1.0", "1.1")
_BODILESS = (204, 304)
_SWITCHING = 101


class Answer:
    """The answer to one request, as far as it has come.

    `max_header_bytes` bounds the head together with all interim (1xx) heads before it, and later whatever stands between two pieces of
    the body: chunk extensions, trailers. `bodiless`: the request was HEAD.
    """

    __slots__ = (
        "_bodiless",
        "_bytes_of_headers",
        "_interim",
        "_limit",
        "_over_at",
        "_parser",
        "_raw_headers",
        "_since_body",
        "_until_close",
        "begun",
        "complete",
        "ended",
        "excess",
        "fault",
        "head",
        "headers",
        "keep_alive",
        "on_body",
        "pieces",
        "size",
        "status",
    )

    def __init__(self, max_header_bytes: int, *, bodiless: bool = False) -> None:
        self.begun = False
        """Whether a byte has come."""
        self.head = False
        """Whether `status` and `headers` are known."""
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []
        """The body's bytes that were not taken yet."""
        self.size = 0
        """How many they are, at most: their framing counts, too."""
        self.complete = False
        """Whether the body is at its end."""
        self.ended = False
        """Whether the peer has closed the connection."""
        self.keep_alive = False
        """Whether the peer means to keep the connection."""
        self.excess = False
        """Whether bytes came after the end, or anything else forbids another request on the connection."""
        self.fault: Fault | None = None
        self.on_body = self.pieces.append
        self._parser: httptools.HttpResponseParser | None = None
        self._limit = max_header_bytes
        self._bodiless = bodiless
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._bytes_of_headers = 0
        self._since_body = 0
        self._over_at: int | None = None
        self._interim = False
        self._until_close = False

    @property
    def reusable(self) -> bool:
        """Whether another request may follow on the same connection."""
        return self.complete and self.keep_alive and not self.excess and not self.ended

    def feed(self, data: memoryview | bytes) -> None:
        """Take bytes; nothing of them is kept but copies."""
        parser = self._parser
        if parser is None and (parser := self._begin(data)) is None:
            self.excess = self.excess or self.complete
            return
        pieces = self.pieces
        had = len(pieces)
        try:
            parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise (error.__context__ or error) from None  # KeyboardInterrupt, MemoryError
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self.complete:
                self.excess = True
            elif self.fault is None:
                fault = RemoteProtocolError("not HTTP")
                fault.__cause__ = error
                self._break(fault)
        if self._over_at is not None:
            del pieces[self._over_at :]
        if len(pieces) > had:
            self.size += len(data)
            self._since_body = 0
        elif self.fault is None:
            self._since_body += len(data)
            if self._since_body > self._limit and not self.complete:
                self._break(RemoteProtocolError("more header bytes than max_header_bytes"))

    def _begin(self, data: memoryview | bytes) -> httptools.HttpResponseParser | None:
        """The parser, once the first byte has come; None: nothing more is parsed."""
        if self.begun or self.complete or self.fault is not None:
            return None
        self.begun = True
        if data[0] != 0x48:  # the H of HTTP: llhttp would pass over line breaks, and also reads RTSP and ICE
            self._break(RemoteProtocolError("not HTTP"))
            return None
        self._parser = parser = httptools.HttpResponseParser(self)
        return parser

    def eof(self, *, ragged: bool = False) -> None:
        """The peer has closed the connection; `ragged`: without TLS's own end, so that what came may have been cut by anyone."""
        self.ended = True
        if self.complete or self.fault is not None:
            return
        if self.head and self._until_close and not ragged:
            self._end()
        else:
            self._break(RemoteProtocolError("closed too early"))

    def broken(self, fault: Fault) -> None:
        """The connection broke: reset by the peer, or its TLS is damaged."""
        self.excess = True
        if not self.complete and self.fault is None:
            self._break(fault)

    def take(self) -> bytes:
        """The body's bytes that have come since the last time."""
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()  # not another list: the parser appends to this one
        self.size = 0
        return data

    def release(self) -> None:
        """Nothing more will be fed, which would make a new parser where no byte has come yet: frees the one there is."""
        self._parser = None

    # ---- called by the parser, which calls `on_body`, a list's own `append`, without a step of Python

    def on_message_begin(self) -> None:
        if self.complete:
            self.excess = True

    def on_status(self, reason: bytes) -> None:
        self._bytes_of_headers += len(reason)
        if reason != b"OK" and not self.complete and self.fault is None and _CONTROL.search(reason):
            self._refuse("a control character in the status line")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.complete or self.fault is not None:
            return
        self._bytes_of_headers += len(name) + len(value) + 4
        if self._bytes_of_headers > self._limit:
            self._refuse("more header bytes than max_header_bytes")
        elif not self.head:
            self._raw_headers.append((name, value))
        elif name.lower() in _FRAMING:
            self._refuse("a trailer that would frame the body")

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self.complete or self.fault is not None or parser is None:
            return
        status = parser.get_status_code()
        raw, self._raw_headers = self._raw_headers, []
        headers: list[tuple[str, str]] = []
        codings: list[bytes] = []
        sized = closing = False
        for raw_name, raw_value in raw:
            name, value = raw_name.decode("latin-1"), raw_value.strip(b" \t").decode("latin-1")
            headers.append((name, value))
            name = name.lower()
            if name == "transfer-encoding":
                codings.append(raw_value.rstrip(b" ").lower())
            elif name == "content-length":
                sized = True
            elif name == "connection":
                closing = closing or "close" in value.lower()
        # `chunked` and a tab: llhttp does not take it for chunked, others do; such a body could be read in two ways
        if parser.get_http_version() not in _VERSIONS or codings not in ([], [b"chunked"]):
            self._refuse("a version or transfer coding that was not asked for")
            return
        if status < 200:
            self._interim = True
            if status < 100 or status == _SWITCHING:
                self._refuse("a status that cannot be")
            return
        self.status, self.headers, self.head = status, headers, True
        self.keep_alive = parser.should_keep_alive() and not closing
        self._bytes_of_headers = 0
        self._until_close = not sized and not codings and status not in _BODILESS
        if self._bodiless:  # llhttp would wait for a body
            self.keep_alive = False
            self._end()

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif self.fault is None and not self.complete:
            self._end()

    # ---- what comes after this in the same bytes is not of the body

    def _end(self) -> None:
        self.complete = True
        self._parser = None
        self._over_at = len(self.pieces)

    def _refuse(self, text: str) -> None:
        self._break(RemoteProtocolError(text))
        self._over_at = len(self.pieces)

    def _break(self, fault: Fault) -> None:
        self.fault = fault
        self._parser = None
