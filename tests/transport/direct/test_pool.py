"""`Pool`: which connection a call gets, and which must be closed, in steps that look at no other connection."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dragoman.errors import ConfigError, ConnectionFailedError
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from dragoman.transport.direct.options import Options
from dragoman.transport.direct.pool import Pool
from dragoman.transport.direct.request import Key

HERE: Key = (False, "here", 80)
THERE: Key = (True, "there", 443)


@dataclass(eq=False)
class Connection:
    name: str
    key: Key = HERE

    def __repr__(self) -> str:
        return self.name


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened(pool: Pool[Connection], *names: str, key: Key = HERE) -> list[Connection]:
    connections = [Connection(name, key) for name in names]
    for connection in connections:
        assert pool.take(key, fresh=True) == (None, [])
        pool.opened(connection)
    return connections


def idle(pool: Pool[Connection], *names: str, key: Key = HERE) -> list[Connection]:
    connections = opened(pool, *names, key=key)
    for connection in connections:
        assert pool.give_back(connection) == []
    return connections


def test_last_used_is_used_first() -> None:
    pool: Pool[Connection] = Pool(Options())
    a, b = idle(pool, "a", "b")
    assert [pool.take(HERE, fresh=False) for _ in range(3)] == [(b, []), (a, []), (None, [])]


def test_only_for_the_same_destination() -> None:
    pool: Pool[Connection] = Pool(Options())
    idle(pool, "a")
    assert pool.take(THERE, fresh=False) == (None, [])


def test_a_fresh_one_is_asked_for() -> None:
    pool: Pool[Connection] = Pool(Options())
    idle(pool, "a")
    assert pool.take(HERE, fresh=True) == (None, [])


def test_old_ones_are_closed_whatever_their_destination() -> None:
    clock = Clock()
    pool: Pool[Connection] = Pool(Options(keepalive_expiry=60), clock)
    (a,) = idle(pool, "a", key=THERE)
    clock.now += 50
    (b,) = idle(pool, "b")
    clock.now += 11
    assert pool.take(HERE, fresh=False) == (b, [a])


def test_surplus_ones_are_closed_oldest_first() -> None:
    pool: Pool[Connection] = Pool(Options(max_keepalive_connections=2))
    a, b, c = opened(pool, "a", "b", "c")
    assert [pool.give_back(connection) for connection in (a, b, c)] == [[], [], [a]]


def test_limit_is_an_error_at_once() -> None:
    pool: Pool[Connection] = Pool(Options(max_connections=2))
    a, _ = opened(pool, "a", "b")
    with pytest.raises(ConnectionFailedError, match="all 2 connections are in use: raise max_connections") as caught:
        pool.take(HERE, fresh=False)
    assert caught.value.retryable
    pool.drop(a)
    assert pool.take(HERE, fresh=False) == (None, [])


def test_limit_counts_idle_ones_and_closes_the_oldest_for_another_destination() -> None:
    pool: Pool[Connection] = Pool(Options(max_connections=2))
    a, _ = idle(pool, "a", "b")
    assert pool.take(THERE, fresh=False) == (None, [a])


def test_one_that_died_while_idle_is_gone() -> None:
    pool: Pool[Connection] = Pool(Options())
    a, b = idle(pool, "a", "b")
    pool.died(b)
    pool.died(b)
    assert pool.take(HERE, fresh=False) == (a, [])
    pool.died(a)  # in use: its call lets go of it
    assert pool.clear() == ([], [a])


def test_after_clear_what_comes_back_is_closed() -> None:
    pool: Pool[Connection] = Pool(Options(max_connections=2))
    (a,) = idle(pool, "a")
    (b,) = opened(pool, "b")
    assert pool.clear() == ([a], [b])
    assert pool.give_back(b) == [b]
    assert opened(pool, "c", "d")


@pytest.mark.parametrize("transport", [DirectTransport, AsyncDirectTransport])
@pytest.mark.parametrize(
    "option", [{"max_connections": 0}, {"max_keepalive_connections": -1}, {"keepalive_expiry": -1.0}, {"max_header_bytes": 0}], ids=str
)
def test_options_out_of_range(transport: type[DirectTransport], option: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))} must be"):
        transport(**option)  # type: ignore[arg-type]
