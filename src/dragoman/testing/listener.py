"""The socket that a `WireServer` listens on, or does not: refused connections and a full backlog, both on loopback.

A refused port stays bound, so that no other program takes it. A backlog is filled with connections of our own until the kernel lets
a connect hang; that is the only loopback way to a connect timeout, and it needs no address outside the machine.
"""

from __future__ import annotations

import select
import socket
from typing import Literal, TypeAlias

__all__ = ["BACKLOG", "Accept", "listening_socket"]

Accept: TypeAlias = Literal["all", "refuse", "never"]

BACKLOG = 4096
"""Connections that may wait to be accepted: a thousand clients may come at once."""

_FILL_LIMIT = 64
"""Connections that are tried at most to fill a backlog of none."""
_SETTLED = 0.05
"""Seconds after which a loopback connect that has not finished will not: the kernel answers at once or drops the SYN."""


def listening_socket(address: tuple[str, int], accept: Accept) -> list[socket.socket]:
    """The bound socket first; then whatever must stay open with it. Raises OSError if the address is taken."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named: asyncio sets TCP_NODELAY only where it is
    sockets = [listener]
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        if accept == "all":
            listener.listen(BACKLOG)
            listener.setblocking(False)
        elif accept == "never":
            listener.listen(0)
            sockets += _fill(listener)
    except BaseException:  # an interrupt while the queue is filled, too: nothing stays open
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _fill(listener: socket.socket) -> list[socket.socket]:
    waiting: list[socket.socket] = []
    for _ in range(_FILL_LIMIT):
        client = socket.socket(listener.family, socket.SOCK_STREAM)
        client.setblocking(False)
        client.connect_ex(listener.getsockname())
        waiting.append(client)
        if not select.select([], [client], [], _SETTLED)[1]:
            break
    return waiting
