"""From a host to addresses in the order in which they are tried, and what every socket is set to."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from errno import EADDRNOTAVAIL
from itertools import chain, zip_longest
from typing import Any, TypeAlias

from dragoman.transport.direct.options import KEEPALIVE_SECONDS

__all__ = ["Address", "literal", "new_socket", "ordered"]

Address: TypeAlias = tuple[int, tuple[Any, ...]]
"""Family, and what `connect` takes."""

_KEEPALIVE = [
    (socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL")
    if hasattr(socket, name)
]
_SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *_KEEPALIVE]


def literal(host: str, port: int) -> list[Address]:
    """The address of a host that is one itself, for which nobody needs to be asked; else nothing."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port) if family == socket.AF_INET else (host, port, 0, 0))]
    return []


def ordered(found: Iterable[tuple[Any, ...]]) -> list[Address]:
    """What `getaddrinfo` found, the two families taking turns and the resolver's first choice first (RFC 8305, section 4). Raises OSError
    if it found nothing.
    """
    addresses: list[Address] = list(dict.fromkeys((entry[0], entry[4]) for entry in found))
    if not addresses:
        raise OSError(EADDRNOTAVAIL, "No address associated with hostname")
    first = [address for address in addresses if address[0] == addresses[0][0]]
    other = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain.from_iterable(zip_longest(first, other)) if address is not None]


def new_socket(family: int) -> socket.socket:
    """A socket that does not block. Raises OSError, for a family that the system does not have."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        for option in _SOCKET_OPTIONS:
            sock.setsockopt(*option)
    except OSError:
        sock.close()
        raise
    return sock
