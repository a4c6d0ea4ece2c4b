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


def test_a_wait_is_measured_whole_though_bytes_came_within_it(time: Time) -> None:
    clocks = Clocks(Timeouts(idle=60), now=time)
    clocks.resume()
    time.now += 3
    clocks.received()
    time.now += 4
    assert (clocks.pause(), clocks.total_used) == (7, 7)


@pytest.mark.parametrize("phase", ["connect", "idle"])
def test_arrived_is_a_pause_after_bytes(time: Time, phase: str) -> None:
    clocks = Clocks(Timeouts(idle=60, content_idle=100), now=time)
    if phase == "idle":
        clocks.received()
    clocks.resume()
    time.now += 5
    assert clocks.arrived() == 5
    time.now += 1000  # the consumer works
    assert clocks.limit() == (60, "idle")
    assert (clocks.arrived(), clocks.total_used) == (0, 5)


def test_content_idle_begins_with_the_first_byte(time: Time) -> None:
    clocks = Clocks(Timeouts(first_byte=120, content_idle=10), now=time)
    clocks.resume()
    clocks.connected()
    time.now += 100
    clocks.received()
    time.now += 4
    assert clocks.limit() == (6, "content_idle")


@pytest.mark.parametrize(
    ("more", "steady"), [({}, True), ({"idle": None}, True), ({"total": 9}, False), ({"content_idle": 9}, False)], ids=str
)
def test_the_limit_of_a_read_stays_the_same_unless_more_than_idle_runs(more: dict[str, float | None], steady: bool) -> None:
    clocks = Clocks(Timeouts(**more))  # type: ignore[arg-type]
    assert not clocks.steady
    clocks.received()
    assert clocks.steady is steady


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
