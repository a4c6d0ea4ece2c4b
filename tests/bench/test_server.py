"""The mock server of the benchmarks gives every client the same arrivals."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCH)
    yield importlib.import_module("server")
    for name in ("server", "material"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("between", [0.0, 0.00001, 0.0003, 0.0207], ids=["at once", "quickly", "slowly", "seldom"])
def test_paced_events_are_spread_evenly_however_quickly_they_were_asked_for(server: Any, between: float) -> None:
    pace, streams = 0.02, 200
    asked = [1000 + n * between for n in range(streams)]
    beats = [server.next_beat(now, pace) for now in asked]
    assert all(beat <= now < beat + pace for beat, now in zip(beats, asked, strict=True))
    shifts = sorted(beat % pace for beat in beats)
    gaps = [b - a for a, b in zip(shifts, [*shifts[1:], shifts[0] + pace], strict=True)]
    assert max(gaps) < 2.7 * pace / streams  # by the three-gap theorem, with the golden ratio at most 2.62 of the mean
