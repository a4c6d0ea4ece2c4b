"""Fixtures of the telemetry tests: a fresh recorder, closed gates, and no complaint from OpenTelemetry itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.telemetry.recorder import Recorder


@pytest.fixture(autouse=True)
def closed_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's gate is closed unless a test opens it."""
    monkeypatch.delenv("DRAGOMAN_TRACE_LLM_CONTENT", raising=False)


@pytest.fixture
def open_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's gate is open."""
    monkeypatch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", "true")


@pytest.fixture
def recorder(caplog: pytest.LogCaptureFixture) -> Iterator[Recorder]:
    """A recorder. OpenTelemetry logs a warning when a span is ended twice or an attribute has a bad type: none may come."""
    with caplog.at_level(logging.WARNING, logger="opentelemetry"):
        yield Recorder()
    complaints = [r.getMessage() for r in caplog.records if r.name.startswith("opentelemetry")]
    assert complaints == []
