"""The dashboard: every metric and label in it is one that is emitted, and its cost is the cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import Failed, MessageStart, MessageStop, OverloadedError, ProviderError, Request, TextDelta, Usage
from dragoman.event import BlockStart
from dragoman.message import Text
from dragoman.testing import ScriptedProvider
from tests.deploy.test_collector import DEPLOY, script
from tests.telemetry.recorder import Recorder

DASHBOARD = DEPLOY / "grafana" / "dashboards" / "dragoman.json"
BOARD: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"] if "expr" in target]
PROMTOOL = os.environ.get("PROMTOOL_BIN") or shutil.which("promtool")
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason="no promtool found, and PROMTOOL_BIN is not set")


def emitted() -> tuple[set[str], set[str]]:
    """The metrics and labels that calls really produce, as Prometheus writes them: names from the SDK, suffixes by its rules."""
    recorder = Recorder()
    start = MessageStart("m", "x", provider="p", wire="w")
    usage = Usage(input=1, output=1, cache_read=1, cache_write_5m=1)
    provider = ScriptedProvider(
        [
            [start, BlockStart(0, Text("")), TextDelta(0, "a"), TextDelta(0, "b"), MessageStop("end_turn", usage=usage)],
            [Failed(OverloadedError("text"))],
        ]
    )
    provider.telemetry = recorder.telemetry()
    provider.complete(Request("hi"))
    with pytest.raises(ProviderError):
        provider.complete(Request("hi"))
    suffixes = {"s": "_seconds", "{token}": "", "{error}": ""}
    metrics: set[str] = set()
    labels: set[str] = {"le"}
    for name, metric in recorder.raw_metrics():
        base = name.replace(".", "_") + suffixes[metric.unit]
        histogram = type(metric.data).__name__ == "Histogram"
        metrics |= {f"{base}_bucket", f"{base}_sum", f"{base}_count"} if histogram else {f"{base}_total"}
        labels |= {key.replace(".", "_") for point in metric.data.data_points for key in point.attributes}
    return metrics, labels


def test_the_file_is_what_the_generator_writes() -> None:
    generate = script("grafana/generate")
    assert DASHBOARD.read_text(encoding="utf-8") == generate.as_text(generate.dashboard(generate.read_prices()))


def test_every_metric_is_one_that_is_emitted() -> None:
    metrics, _ = emitted()
    variables = [variable["definition"] for variable in BOARD["templating"]["list"]]
    named = {name for text in [*EXPRESSIONS, *variables] for name in re.findall(r"\b(?:gen_ai_client|dragoman)_\w+", text)}
    assert named <= metrics
    assert len({re.sub(r"_(bucket|sum|count|total)$", "", name) for name in named}) == 5


def test_nothing_else_is_called_in_a_query() -> None:
    known = {"histogram_quantile", "rate", "sum", "by", "or", "vector", "le", "e6"}
    for expression in EXPRESSIONS:
        bare = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]', "", expression)
        words = set(re.findall(r"[A-Za-z_]\w*", bare)) - known
        assert {word for word in words if not word.startswith(("gen_ai_", "dragoman_", "error_"))} == set()


def test_every_label_is_one_that_is_emitted() -> None:
    _, labels = emitted()
    for expression in EXPRESSIONS:
        matched = {name for braces in re.findall(r"\{([^}]*)\}", expression) for name in re.findall(r"(\w+)=?[=!~]", braces)}
        grouped = {name for names in re.findall(r"by \(([^)]*)\)", expression) for name in re.split(r",\s*", names)}
        assert matched | grouped <= labels


@pytest.mark.parametrize(
    "title",
    [
        "Latency",
        "Time to first chunk",
        "Tokens per second by model",
        "Cost per hour by model",
        "Error rate",
        "Cache hit share",
        "Retries",
    ],
)
def test_it_shows(title: str) -> None:
    assert title in {panel["title"] for panel in BOARD["panels"]}


def test_what_is_asked_of_traces_is_an_attribute_of_the_span() -> None:
    from dragoman.telemetry import names

    queries = [target["query"] for panel in BOARD["panels"] for target in panel["targets"] if "query" in target]
    assert queries
    for query in queries:
        asked = re.findall(r'span\.(?:"([^"]+)"|([\w.]+))', query)
        assert {quoted or plain for quoted, plain in asked} <= {names.LANGFUSE_RETRY_COUNT, names.REQUEST_MODEL}


def test_panels_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)


def test_no_query_adds_up_token_types_but_the_costs() -> None:
    """The cache types are part of input, so a sum over types would count them twice."""
    for expression in EXPRESSIONS:
        if "token_usage" in expression:
            assert len(re.findall(r"token_usage_sum\{", expression)) == len(re.findall(r"gen_ai_token_type=", expression))


# ---- asked of Prometheus itself


def plain(expression: str) -> str:
    """A query without Grafana's variables."""
    return expression.replace("$__rate_interval", "5m").replace("$model", ".*").replace("$provider", ".*")


@needs_promtool
def test_prometheus_can_read_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"query_{n}", "expr": plain(expression)} for n, expression in enumerate(EXPRESSIONS)]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    done = subprocess.run([str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_promtool
def test_prometheus_computes_the_cost_that_the_tokens_have(tmp_path: Path) -> None:
    """Input 10 uncached, 200 read, 60 written, output 50, each minute, at 3, 0.3, 3.75 and 15 dollars per million."""
    [cost] = [expression for expression in EXPRESSIONS if '=~"claude-sonnet-4-5(' in expression]
    per_minute = {"input": 270, "output": 50, "cache_read": 200, "cache_write": 60}
    labels = 'gen_ai_request_model="claude-sonnet-4-5-20250929",gen_ai_provider_name="anthropic"'
    series = [
        {"series": f'gen_ai_client_token_usage_sum{{{labels},gen_ai_token_type="{kind}"}}', "values": f"0+{count}x60"}
        for kind, count in per_minute.items()
    ]
    expected = (10 * 3 + 200 * 0.3 + 60 * 3.75 + 50 * 15) / 1e6 * 60
    test = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [
                    {
                        "expr": f"round({plain(cost)} * 1e9)",
                        "eval_time": "30m",
                        "exp_samples": [{"labels": "{}", "value": round(expected * 1e9)}],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps(test), encoding="utf-8")
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
