"""`Connections`: which idle connection is used, which is closed, with a clock that the test turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dragoman.transport.idle import Connections, Key
from dragoman.transport.options import Options

if TYPE_CHECKING:
    import httpcore2

A: Key = (None, b"https", b"a", None)
B: Key = (None, b"https", b"b", None)


class FakePool:
    """As much of a pool as counts here: the connections that it has."""

    def __init__(self) -> None:
        self.connections = ["one"]


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def connections(time: Time, **options: Any) -> Connections[httpcore2.ConnectionPool]:
    return Connections(Options(**options), lambda key: cast("httpcore2.ConnectionPool", FakePool()), time)


def test_the_one_used_last_is_used_first() -> None:
    every = connections(Time())
    first, second = every.take(A)[0], every.take(A)[0]
    assert every.give_back(first, usable=True) == every.give_back(second, usable=True) == []
    assert every.take(A)[0] is second
    assert every.take(A)[0] is first
    assert every.take(A)[0] not in (first, second)


def test_others_are_for_other_servers() -> None:
    every = connections(Time())
    first = every.take(A)[0]
    every.give_back(first, usable=True)
    assert every.take(B)[0] is not first


def test_a_fresh_one_is_new_even_if_one_is_idle() -> None:
    every = connections(Time())
    first = every.take(A)[0]
    every.give_back(first, usable=True)
    assert every.take(A, fresh=True)[0] is not first


def test_what_cannot_be_used_again_is_to_be_closed() -> None:
    every = connections(Time())
    first, second = every.take(A)[0], every.take(A)[0]
    assert every.give_back(first, usable=False) == [first.pool]
    cast("FakePool", second.pool).connections.clear()  # the server said `connection: close`
    assert every.give_back(second, usable=True) == [second.pool]
    assert every.clear() == []


def test_old_ones_are_closed_when_the_server_is_called_again() -> None:
    time = Time()
    every = connections(time, keepalive_expiry=60.0)
    old, young = every.take(A)[0], every.take(A)[0]
    every.give_back(old, usable=True)
    time.now = 50
    every.give_back(young, usable=True)
    time.now = 70
    assert every.take(A) == (young, [old.pool])


def test_without_expiry_none_grows_old() -> None:
    time = Time()
    every = connections(time, keepalive_expiry=None)
    first = every.take(A)[0]
    every.give_back(first, usable=True)
    time.now = 1e9
    assert every.take(A) == (first, [])


def test_the_oldest_goes_when_there_are_too_many() -> None:
    time = Time()
    every = connections(time, max_keepalive_connections=2)
    taken = [every.take(key)[0] for key in (A, B, A)]
    closed = []
    for time.now, one in enumerate(taken):
        closed += every.give_back(one, usable=True)
    assert closed == [taken[0].pool]


def test_clear_is_for_those_in_use_too() -> None:
    every = connections(Time())
    used, idle = every.take(A)[0], every.take(A)[0]
    every.give_back(idle, usable=True)
    assert set(every.clear()) == {used.pool, idle.pool}
    assert every.give_back(used, usable=True) == [used.pool]
