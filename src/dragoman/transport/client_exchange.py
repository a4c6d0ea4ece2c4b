"""Blocking calls over a client that the user brings: the same answer, with what httpx2's request extensions allow.

The client's own pool, proxies, certificates, hooks, cookies and auth are used; nothing in it is changed and it is never closed. We
cannot put our clocks on its waits, so limits are set where httpx2 takes them: on the request, once for connecting and the head, and
once more before the body. A clock is looked at again after every piece, so `total` and `content_idle` can be late by one read. An
abort shuts the connection's socket; while a request waits for its head on a connection that the client had open already, that socket
is not known, and the wait ends only with its clock.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from httpx2 import TimeoutException

from dragoman.transport.connecting import checked_headers
from dragoman.transport.exchange import Lease
from dragoman.transport.network import Call
from dragoman.wire.base import HTTPRequest

if TYPE_CHECKING:
    import httpx2

__all__ = ["lease_from_client"]


class _Handle:
    """The socket of a response or of a connection that was just made, to be shut by an abort."""

    def __init__(self) -> None:
        self._stream: Any = None

    def hold(self, stream: Any) -> None:
        self._stream = stream

    def drop(self) -> None:
        self._stream = None

    def shut(self) -> None:
        stream = self._stream
        sock = None if stream is None else stream.get_extra_info("socket")
        if isinstance(sock, socket.socket):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


@contextlib.contextmanager
def _timeouts_told(call: Call) -> Generator[None, None, None]:
    try:
        yield
    except TimeoutException:
        call.timed_out()
        raise


def lease_from_client(client: httpx2.Client, request: HTTPRequest, call: Call) -> Lease:
    """Send `request` and wait for the head of the answer. Raises foreign exceptions."""
    handle = _Handle()
    call.clocks.on_abort(handle.shut)
    timeout: dict[str, float | None] = {}

    def trace(event: str, info: dict[str, Any]) -> None:
        call.trace(event, info)
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            handle.hold(info["return_value"])
            call.limit()
        elif event.endswith(".send_request_headers.started"):
            timeout["read"] = timeout["write"] = call.limit()

    timeout["connect"] = timeout["pool"] = call.limit()
    sent = client.build_request(
        request.method, request.url, headers=checked_headers(request), content=request.body, extensions={"trace": trace, "timeout": timeout}
    )
    with _timeouts_told(call):
        response = client.send(sent, stream=True, follow_redirects=False)
    call.came()
    handle.hold(response.extensions.get("network_stream"))

    def body() -> Generator[bytes, None, None]:
        timeout["read"] = call.limit()
        with _timeouts_told(call):
            for data in response.iter_bytes():
                call.came()
                yield data
                call.limit()

    def give_back(finished: bool) -> None:
        if not finished:
            handle.shut()
        handle.drop()
        response.close()

    return Lease(response.status_code, response.headers.multi_items(), body(), give_back, drains=False)
