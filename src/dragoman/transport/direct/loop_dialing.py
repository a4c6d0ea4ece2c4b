"""A new connection on an asyncio loop: happy eyeballs over all addresses of a host, then TLS.

Whoever loses, and whoever wins while the task is being cancelled, is closed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

from dragoman.transport.direct.addresses import Address, literal, new_socket, ordered
from dragoman.transport.direct.faults import ConnectError
from dragoman.transport.direct.loop_connection import LoopConnection
from dragoman.transport.direct.options import HAPPY_EYEBALLS_DELAY
from dragoman.transport.direct.request import Key
from dragoman.transport.direct.tls import TLS

__all__ = ["connected"]


async def connected(
    loop: asyncio.AbstractEventLoop,
    key: Key,
    context: ssl.SSLContext | None,
    make: Callable[[socket.socket], LoopConnection],
) -> LoopConnection:
    """A new connection to `key`, by TLS if there is a context. Raises ConnectError; ConfigError for a context that cannot be used."""
    _, host, port = key
    try:
        sock = await _dial(loop, host, port)
    except (OSError, UnicodeError) as error:
        raise ConnectError(host) from error
    connection = make(sock)
    try:
        await loop.create_connection(lambda: connection, sock=sock)
        if context is not None:
            await connection.start_tls(TLS(context, host))
    except BaseException as error:  # a cancelled handshake, too
        connection.abort()
        if isinstance(error, OSError):
            raise ConnectError(host) from error
        raise
    return connection


async def _dial(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """A connected socket: happy eyeballs over all addresses of the host. Raises OSError."""
    addresses = literal(host, port) or ordered(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    if len(addresses) == 1:
        return await _connect(loop, addresses[0])
    errors: list[OSError] = []
    pending: set[asyncio.Task[socket.socket]] = set()
    waiting = list(reversed(addresses))
    winner: socket.socket | None = None
    try:
        while winner is None:
            if waiting:
                pending.add(loop.create_task(_connect(loop, waiting.pop())))
            elif not pending:
                raise errors[0]
            done, pending = await asyncio.wait(
                pending, timeout=HAPPY_EYEBALLS_DELAY if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if isinstance(error, OSError):
                    errors.append(error)
                elif winner is None:
                    winner = task.result()
                else:
                    task.result().close()
        return winner
    finally:
        if pending:
            await _leave(pending, winner)


async def _leave(pending: set[asyncio.Task[socket.socket]], winner: socket.socket | None) -> None:
    """End the attempts that have lost. If that is cancelled, close the winner, too."""
    for task in pending:
        task.cancel()
    try:
        for result in await asyncio.gather(*pending, return_exceptions=True):
            if isinstance(result, socket.socket):
                result.close()
    except BaseException:  # the task is being cancelled, and nobody will get the winner
        if winner is not None:
            winner.close()
        raise


async def _connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    sock = new_socket(address[0])
    try:
        await loop.sock_connect(sock, address[1])
    except OSError as error:
        sock.close()
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from None  # asyncio's own words hold the address, not the reason
    except BaseException:  # this attempt has lost, or the task is being cancelled
        sock.close()
        raise
    return sock
