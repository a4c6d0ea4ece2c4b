"""`dragoman probe --trace` and `--trace-console`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dragoman.testing import WireServer
from dragoman.testing.answer import Answer
from dragoman.testing.anthropic import anthropic_error, anthropic_stream
from tests.cli.command import TIMEOUT, Outcome, environment, invoke
from tests.telemetry.test_otlp import Receiver, receiver

__all__ = ["receiver"]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def probe(server: WireServer, answer: Answer, *arguments: str, **variables: str) -> Outcome:
    server.add(answer)
    given = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": server.url, "DRAGOMAN_PROVIDER_MAX_RETRIES": "0", **variables}
    return invoke("probe", "--model", "claude-test-1", "--prompt", "Hi", *arguments, **given)


def test_the_console_shows_the_span_below_the_summary(server: WireServer) -> None:
    done = probe(server, anthropic_stream("Hello"), "--trace-console")
    assert (done.code, done.out) == (0, "Hello\n")
    summary, head, *lines = done.err.splitlines()
    assert summary.startswith("end_turn · ")
    assert head.startswith("span chat claude-test-1  CLIENT")
    assert any(line.split() == ["gen_ai.usage.output_tokens", "5"] for line in lines)


def test_the_console_shows_the_span_of_a_failure(server: WireServer) -> None:
    done = probe(server, anthropic_error(529, "overloaded_error"), "--trace-console")
    assert done.code == 1
    assert re.search(r"span chat claude-test-1  CLIENT  [\d.]+ s  ERROR overloaded\n", done.err)


def test_the_span_is_exported_and_its_trace_id_printed(server: WireServer, receiver: Receiver) -> None:
    done = probe(server, anthropic_stream("Hello"), "--trace", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    [traces] = receiver.received["/v1/traces"]
    [span] = ExportTraceServiceRequest.FromString(traces).resource_spans[0].scope_spans[0].spans
    assert done.code == 0
    assert done.err.splitlines()[-1] == f"trace {span.trace_id.hex()}"


def test_a_receiver_that_refuses_is_named_and_the_answer_counts_all_the_same(server: WireServer, receiver: Receiver) -> None:
    receiver.status = 401
    done = probe(server, anthropic_stream("Hello"), "--trace", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert (done.code, done.out) == (0, "Hello\n")
    assert re.fullmatch(r"trace [0-9a-f]{32}", done.err.splitlines()[-2])
    assert f"the trace did not arrive at {receiver.url}" in done.err.splitlines()[-1]
    assert "401" in done.err.splitlines()[-1]
    assert set(receiver.received) == {"/v1/traces"}


def test_both_at_once_is_a_mistake(server: WireServer) -> None:
    done = probe(server, anthropic_stream("Hello"), "--trace", "--trace-console")
    assert done.code == 2
    assert "give one of them" in done.err
    assert server.requests == []


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter"])
def test_without_the_packages_the_extra_that_brings_them_all_is_named(missing: str) -> None:
    code = f"import sys\nsys.modules[{missing!r}] = None\nfrom dragoman.cli import main\nsys.exit(main())"
    command = [sys.executable, "-c", code, "probe", "--prompt", "Hi", "--trace"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=TIMEOUT)
    said = "dragoman: --trace needs OpenTelemetry and its OTLP exporter: pip install 'dragoman[otlp]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_protocol_that_cannot_be_exported_is_a_mistake(server: WireServer) -> None:
    done = probe(server, anthropic_stream("Hello"), "--trace", OTEL_EXPORTER_OTLP_PROTOCOL="grpc")
    assert done.code == 2
    assert "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'" in done.err
