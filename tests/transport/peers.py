"""Peers that only the transport tests need: proxies that really tunnel, and a server that speaks HTTP/2."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import h2.config
import h2.connection
import h2.events


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port whose connections are each served by a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            Thread(target=guarded, args=(peer,), daemon=True).start()

    def guarded(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            serve(peer)

    thread = Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side closes."""

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    back = Thread(target=carry, args=(other, one), daemon=True)
    back.start()
    carry(one, other)
    back.join()
    other.close()


@contextmanager
def connect_proxy(context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """An HTTP proxy for CONNECT, with TLS if it has a context; its port and the heads of the requests it got."""
    heads: list[bytes] = []

    def serve(plain: socket.socket) -> None:
        with context.wrap_socket(plain, server_side=True) if context is not None else plain as peer:
            tunnel(peer)

    def tunnel(peer: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += peer.recv(65536)
        heads.append(head)
        host, port = head.split(b" ", 2)[1].rsplit(b":", 1)
        with socket.create_connection((host.decode(), int(port))) as target:
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            pump(peer, target)

    with listening(serve) as port:
        yield port, heads


@contextmanager
def socks_proxy() -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """A SOCKS5 proxy without authentication; its port and where it was asked to connect to. It always connects to loopback."""
    asked: list[tuple[str, int]] = []

    def serve(peer: socket.socket) -> None:
        peer.recv(2 + 255)
        peer.sendall(b"\x05\x00")
        kind = peer.recv(4)[3]
        host = socket.inet_ntoa(peer.recv(4)) if kind == 1 else peer.recv(peer.recv(1)[0]).decode()
        (port,) = struct.unpack(">H", peer.recv(2))
        asked.append((host, port))
        with socket.create_connection(("127.0.0.1", port)) as target:
            peer.sendall(b"\x05\x00\x00\x01" + socket.inet_aton("127.0.0.1") + struct.pack(">H", port))
            pump(peer, target)

    with listening(serve) as port:
        yield port, asked


@contextmanager
def http2_server(context: ssl.SSLContext, *, finish: bool = True) -> Iterator[tuple[int, list[int]]]:
    """A TLS server that answers each HTTP/2 request with `x`, and ends the answer or not; its port and streams per connection."""
    context.set_alpn_protocols(["h2"])
    connections: list[int] = []

    def serve(peer: socket.socket) -> None:
        with context.wrap_socket(peer, server_side=True) as secure:
            index = len(connections)
            connections.append(0)
            protocol = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
            protocol.initiate_connection()
            secure.sendall(protocol.data_to_send())
            while data := secure.recv(65536):
                for event in protocol.receive_data(data):
                    if isinstance(event, h2.events.StreamEnded) and event.stream_id is not None:
                        connections[index] += 1
                        protocol.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                        protocol.send_data(event.stream_id, b"x", end_stream=finish)
                secure.sendall(protocol.data_to_send())

    with listening(serve) as port:
        yield port, connections
