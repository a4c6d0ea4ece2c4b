"""Every fault scenario, over both direct transports: the same table, the same expectations, in `tests.testing.test_scenarios`."""

from __future__ import annotations

import pytest

from dragoman.testing.scenarios import SCENARIOS, Scenario
from dragoman.transport.direct import AsyncDirectTransport, DirectTransport
from tests.testing import test_scenarios as table


@pytest.fixture(autouse=True)
def _over_the_direct_transports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "HTTPX2Transport", DirectTransport)
    monkeypatch.setattr(table, "AsyncHTTPX2Transport", AsyncDirectTransport)


@pytest.mark.parametrize("drive", [table.blocking, table.on_a_loop])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(scenario: Scenario, drive: object) -> None:
    table.test_scenario(scenario, drive)
