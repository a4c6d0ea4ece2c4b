"""`Clocks`: which wait may take how long, with a clock that the test turns."""

from __future__ import annotations

import pytest

from dragoman.transport import Clocks, Timeouts


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_connect_runs_first(time: Time) -> None:
    clocks = Clocks(Timeouts(connect=10, first_byte=120), now=time)
    clocks.resume()
    time.now = 4
    assert clocks.limit() == (6, "connect")
    time.now = 11
    assert clocks.limit() == (0, "connect")


def test_first_byte_begins_with_the_connection(time: Time) -> None:
    clocks = Clocks(Timeouts(connect=10, first_byte=120), now=time)
    clocks.resume()
    time.now = 9
    clocks.connected()
    time.now = 19
    assert clocks.limit() == (110, "first_byte")


def test_idle_begins_anew_with_every_byte(time: Time) -> None:
    clocks = Clocks(Timeouts(idle=60), now=time)
    clocks.resume()
    for _ in range(5):
        time.now += 59
        clocks.received()
    assert clocks.limit() == (60, "idle")


def test_content_idle_begins_anew_with_content_only(time: Time) -> None:
    clocks = Clocks(Timeouts(idle=60, content_idle=100), now=time)
    clocks.resume()
    clocks.received()
    time.now += 50
    clocks.received()
    time.now += 40
    assert clocks.limit() == (10, "content_idle")
    clocks.content()
    assert clocks.limit()[1] == "idle"


def test_total_runs_over_all_phases_and_attempts(time: Time) -> None:
    clocks = Clocks(Timeouts(total=100, idle=None, first_byte=None, connect=None), total_used=50, now=time)
    clocks.resume()
    time.now += 20
    clocks.received()
    time.now += 20
    assert clocks.limit() == (10, "total")
    clocks.pause()
    assert clocks.total_used == 90


def test_nothing_runs_while_the_consumer_works(time: Time) -> None:
    clocks = Clocks(Timeouts(idle=60, total=100), now=time)
    clocks.resume()
    clocks.received()
    time.now += 10
    assert clocks.pause() == 10
    time.now += 1000
    assert clocks.limit() == (50, "idle")


def test_without_timeouts_there_is_no_limit() -> None:
    clocks = Clocks(Timeouts(connect=None, first_byte=None, idle=None))
    clocks.resume()
    assert clocks.limit()[0] is None


def test_reconnect_begins_the_connect_phase_again(time: Time) -> None:
    clocks = Clocks(Timeouts(connect=10, first_byte=120), now=time)
    clocks.resume()
    clocks.connected()
    time.now = 5
    clocks.reconnect()
    assert clocks.limit() == (10, "connect")


@pytest.mark.parametrize(("phase", "text"), [("connect", "connect timeout after 10 s"), ("total", "total timeout after 2.5 s")])
def test_expired_names_phase_and_seconds(phase: str, text: str) -> None:
    error = Clocks(Timeouts(total=2.5)).expired(phase)  # type: ignore[arg-type]
    assert (str(error), error.phase) == (text, phase)


def test_abort_calls_back_once_each_and_those_who_come_late_at_once() -> None:
    clocks = Clocks(Timeouts())
    calls: list[str] = []
    clocks.on_abort(lambda: calls.append("early"))
    clocks.abort()
    clocks.abort()
    clocks.on_abort(lambda: calls.append("late"))
    assert calls == ["early", "late"]
    assert clocks.aborted
