"""The span as text for a terminal: the same attributes and events, in one piece, with no backend and no OpenTelemetry."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import suppress

import pytest

from dragoman import Failed, OverloadedError, ProviderError, Request, Tenant, TraceInfo
from dragoman.event import Event, Retrying
from dragoman.telemetry import console_telemetry
from dragoman.testing import ScriptedProvider
from tests.telemetry.recorder import Recorder


def shown(provider: ScriptedProvider, request: Request | None = None) -> list[str]:
    text = io.StringIO()
    provider.telemetry = console_telemetry(text)
    with suppress(ProviderError):
        provider.complete(request or Request("SECRET"))
    return text.getvalue().splitlines()


def test_an_answer_is_shown_with_all_attributes(recorder: Recorder) -> None:
    lines = shown(ScriptedProvider.of("Hello"))
    provider = ScriptedProvider.of("Hello")
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("SECRET"))
    assert lines[0].startswith("span chat scripted-1  CLIENT  0.")
    assert [line.split()[0] for line in lines[1:]] == sorted(recorder.attributes)
    assert any(line.split() == ["gen_ai.response.finish_reasons", "end_turn"] for line in lines)


def test_a_failure_is_shown_with_its_events() -> None:
    error = OverloadedError("SECRET", status=529)
    script: list[Event] = [Retrying(1, 0.5, error), Failed(error)]
    lines = shown(ScriptedProvider([script]))
    assert lines[0].endswith(" s  ERROR overloaded")
    assert "provider.retry  attempt=1  delay_ms=500  error.type=overloaded  http.response.status_code=529" in lines[-2]
    assert lines[-1].endswith("exception  exception.type=dragoman.errors.OverloadedError")


def test_content_stays_behind_the_gates(open_gate: None) -> None:
    assert not any("SECRET" in line for line in shown(ScriptedProvider.of("SECRET")))
    opened = Request("SECRET", trace=TraceInfo(tenant=Tenant("acme", trace_llm_content=True)))
    assert any("SECRET" in line for line in shown(ScriptedProvider.of("Hello"), opened))


def test_control_characters_do_not_reach_the_terminal(open_gate: None) -> None:
    request = Request("hi", trace=TraceInfo(user_id="\x1b[2Ju"))
    [line] = [line for line in shown(ScriptedProvider.of("Hello"), request) if "langfuse.user.id" in line]
    assert "\x1b" not in line
    assert r"\x1b[2Ju" in line


def test_no_opentelemetry_is_needed() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from dragoman import Request
from dragoman.telemetry import console_telemetry
from dragoman.testing import ScriptedProvider
provider = ScriptedProvider.of("Hello")
provider.telemetry = console_telemetry()
provider.complete(Request("hi"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.startswith("span chat scripted-1")
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["a", "b"])
def test_standard_error_is_looked_up_at_each_call(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    telemetry = console_telemetry()
    text = io.StringIO()
    monkeypatch.setattr(sys, "stderr", text)
    provider = ScriptedProvider.of("Hello", model=name)
    provider.telemetry = telemetry
    provider.complete(Request("hi"))
    assert text.getvalue().startswith(f"span chat {name}")
