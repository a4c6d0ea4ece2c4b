"""A request as the bytes that go out, and what is refused before anything does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dragoman.errors import ConfigError
from dragoman.transport.direct.request import Heads, Outgoing
from dragoman.value import Secret
from dragoman.wire.base import HTTPRequest


def outgoing(url: str = "https://api.example", path: str = "/v1", method: str = "POST", body: bytes = b"{}", **headers: str) -> Outgoing:
    return Heads().of(HTTPRequest(method=method, base_url=url, path=path, headers=headers, body=body))


def test_whole_head() -> None:
    assert outgoing(path="/v1?a=b c#x", accept="text/event-stream").head == (
        b"POST /v1?a=b%20c HTTP/1.1\r\nhost: api.example\r\naccept: text/event-stream\r\naccept-encoding: identity\r\n"
        b"content-length: 2\r\n\r\n"
    )


def test_get_without_a_body() -> None:
    assert (
        outgoing(method="GET", body=b"", path="").head == b"GET / HTTP/1.1\r\nhost: api.example\r\naccept-encoding: gzip, deflate\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("url", "key", "host"),
    [
        ("https://API.example", (True, "api.example", 443), "api.example"),
        ("http://api.example:80", (False, "api.example", 80), "api.example"),
        ("http://api.example:8080", (False, "api.example", 8080), "api.example:8080"),
        ("https://[::1]:8443", (True, "::1", 8443), "[::1]:8443"),
        ("https://bücher.example", (True, "xn--bcher-kva.example", 443), "xn--bcher-kva.example"),
    ],
)
def test_host(url: str, key: object, host: str) -> None:
    request = outgoing(url)
    assert request.key == key
    assert f"\r\nhost: {host}\r\n".encode() in request.head


def test_given_headers_win() -> None:
    head = outgoing(Host="other", **{"Accept-Encoding": "gzip", "Content-Length": "2"}).head
    assert head == b"POST /v1 HTTP/1.1\r\nHost: other\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n"


def test_path_cannot_break_out_of_its_line() -> None:
    assert outgoing(path="/a\x0b b\u2028é%2F").head.startswith(b"POST /a%0B%20b%E2%80%A8%C3%A9%2F HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"url": "ftp://host"}, "base_url must be http:// or https://"),
        ({"url": "http://ho st"}, "base_url is not a URL"),
        ({"url": "http://host:99999"}, "base_url is not a URL"),
        ({"url": "http://" + "ü" * 80}, "base_url is not a URL"),
        ({"method": "CONNECT"}, "method 'CONNECT'"),
        ({"method": "GET /x HTTP/1.1\r\n"}, "method"),
        ({"x\r\ny": "1"}, "the header"),
        ({"x": "1\r\ny: 2"}, "the header 'x'"),
        ({"transfer-encoding": "chunked"}, "the header 'transfer-encoding'"),
        ({"content-length": "3"}, "the header 'content-length'"),
    ],
)
def test_what_cannot_be_sent(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        outgoing(**options)  # type: ignore[arg-type]


def test_the_latest_head_is_used_again_only_for_the_same_request_line_and_headers() -> None:
    heads = Heads()

    def sent(body: bytes = b"{}", **changes: str) -> bytes:
        headers = {"x-api-key": Secret(changes.get("key", "k1")), **({"x": changes["x"]} if "x" in changes else {})}
        request = HTTPRequest(
            method=changes.get("method", "POST"), base_url=changes.get("url", "https://h"), path="/v1", headers=headers, body=body
        )
        same = Heads().of(request)
        remembered = heads.of(request)
        assert (remembered.head, remembered.key, remembered.where) == (same.head, same.key, same.where)
        return remembered.head

    first = sent()
    assert sent(b"longer") == first.replace(b"content-length: 2", b"content-length: 6")
    assert b"x-api-key: k2\r\n" in sent(key="k2")
    assert b"x: y\r\n" in sent(x="y")
    assert sent(url="https://other").count(b"host: other\r\n") == 1
    assert b"content-length" not in sent(b"", method="GET")
    assert sent() == first
    with pytest.raises(ConfigError, match="the header 'x'"):
        sent(x="1\r\ny: 2")
    assert sent() == first


def test_a_head_with_a_length_of_its_own_is_checked_each_time() -> None:
    heads = Heads()
    request = HTTPRequest(base_url="https://h", path="/", headers={"content-length": "2"}, body=b"{}")
    assert heads.of(request).head.count(b"content-length: 2\r\n") == 1
    with pytest.raises(ConfigError, match="the header 'content-length'"):
        heads.of(replace(request, body=b"{} "))


def test_no_local_variable_shows_a_key_where_a_header_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Heads().of(HTTPRequest(base_url="https://h", path="/", headers={"x-api-key": Secret("s3cret"), "x": "1\n"}, body=b"{}"))
    frames = [entry.frame.f_locals for entry in caught.traceback if "transport/direct" in str(entry.path)]
    assert frames
    assert not any("s3cret" in repr(value) for frame in frames for value in frame.values())


def test_repr_shows_no_secret() -> None:
    assert "secret" not in repr(outgoing("https://u:secret@h", "/secret", body=b"secret", **{"x-api-key": "secret"}))
