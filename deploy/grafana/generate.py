"""Writes the Grafana dashboard from the table of metrics and a list of prices.

    python deploy/grafana/generate.py             # writes dashboards/dragoman.json
    python deploy/grafana/generate.py --check     # exit 1 if it is not up to date
    python deploy/grafana/generate.py --prices    # asks dragoman's price lists anew and writes prices.json (needs the extra `prices`)

Strategy. Every query is put together from `names.METRICS`, so a metric that is renamed is renamed here too, and none can be drawn that
nobody emits. Metric names are as Prometheus writes them with `UnderscoreEscapingWithSuffixes`. The cache types are part of input:
no query adds the types up. Cost is tokens times the prices in prices.json; cache writes count at the 5-minute price, and a model that
is not in that list has no line. It is an estimate to watch: what a call cost exactly, Langfuse and `dragoman.cost` say.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoman.telemetry import names

HERE = Path(__file__).parent
DASHBOARD = HERE / "dashboards" / "dragoman.json"
PRICES = HERE / "prices.json"

PRICED_MODELS = (
    "claude-opus-5",
    "claude-opus-4-6",
    "claude-sonnet-5-5",
    "claude-sonnet-5",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
    "gpt-5",
    "gpt-5-mini",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
)
"""Models that the cost panel knows; add your own and run with --prices."""

DATED = "(-20[0-9-]+|-latest)?"
"""A model's id may end in the date of its version."""

_UNITS = {"s": "_seconds", "{token}": "", "{error}": ""}
"""The suffix that Prometheus gives to each unit."""


# ---- names as Prometheus has them


def prometheus_name(metric: names.Metric) -> str:
    """`gen_ai.client.operation.duration` in seconds is `gen_ai_client_operation_duration_seconds`; a counter ends in `_total`."""
    return metric.name.replace(".", "_") + _UNITS[metric.unit] + ("" if metric.buckets else "_total")


def label(attribute: str) -> str:
    """`error.type` is `error_type`."""
    return attribute.replace(".", "_")


MODEL, PROVIDER, ERROR, TOKEN = label(names.REQUEST_MODEL), label(names.PROVIDER), label(names.ERROR_TYPE), label(names.TOKEN_TYPE)
CHOSEN = f'{MODEL}=~"$model", {PROVIDER}=~"$provider"'
"""What the variables at the top of the dashboard choose."""

DURATION, FIRST_CHUNK, PER_CHUNK, TOKENS, ERRORS = (
    prometheus_name(metric)
    for metric in (names.DURATION, names.TIME_TO_FIRST_CHUNK, names.TIME_PER_OUTPUT_CHUNK, names.TOKEN_USAGE, names.PROVIDER_ERRORS)
)


# ---- queries


def quantile(q: float, histogram: str, by: str = "") -> str:
    groups = "le" if not by else f"le, {by}"
    return f"histogram_quantile({q:g}, sum by ({groups}) (rate({histogram}_bucket{{{CHOSEN}}}[$__rate_interval])))"


def tokens(kind: str) -> str:
    return f'{TOKENS}_sum{{{CHOSEN}, {TOKEN}="{kind}"}}'


def token_rate(kind: str) -> str:
    return f"sum by ({MODEL}) (rate({tokens(kind)}[$__rate_interval]))"


def cost(model: str, price: dict[str, float]) -> str:
    """US dollars per hour of one model. The cache's tokens are in input too, so they count at the difference to its price."""
    per_token = {
        "input": price["input"],
        "output": price["output"],
        "cache_read": price["cache_read"] - price["input"],
        "cache_write": price["cache_write"] - price["input"],
    }
    mine = model.replace(".", "[.]") + DATED
    terms = [
        f'rate({TOKENS}_sum{{{MODEL}=~"{mine}", {CHOSEN}, {TOKEN}="{kind}"}}[$__rate_interval]) * {value:.6g}'
        for kind, value in per_token.items()
        if value
    ]
    return f"sum({' or '.join(terms)}) * 3600 / 1e6"


# ---- panels


def target(expression: str, legend: str, ref: str) -> dict[str, Any]:
    return {"datasource": PROMETHEUS, "expr": expression, "legendFormat": legend, "refId": ref}


PROMETHEUS = {"type": "prometheus", "uid": "prometheus"}
TEMPO = {"type": "tempo", "uid": "tempo"}


def panel(title: str, description: str, unit: str, queries: list[tuple[str, str]], *, kind: str = "timeseries") -> dict[str, Any]:
    """A panel of PromQL queries, each with its legend."""
    return {
        "title": title,
        "description": description,
        "type": kind,
        "datasource": PROMETHEUS,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}} if kind == "timeseries" else {},
        "targets": [target(expression, legend, f"Q{n}") for n, (expression, legend) in enumerate(queries, 1)],
    }


def trace_panel(title: str, description: str, query: str, *, kind: str) -> dict[str, Any]:
    """A panel of one TraceQL query."""
    return {
        "title": title,
        "description": description,
        "type": kind,
        "datasource": TEMPO,
        "fieldConfig": {"defaults": {"min": 0}, "overrides": []},
        "options": {},
        "targets": [{"datasource": TEMPO, "queryType": "traceql", "query": query, "limit": 50, "tableType": "spans", "refId": "Q1"}],
    }


def panels(prices: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """All panels, in reading order."""
    each = f"{{{{{MODEL}}}}}"
    calls = f"sum(rate({DURATION}_count{{{CHOSEN}}}[$__rate_interval]))"
    failed = f"sum(rate({ERRORS}{{{CHOSEN}}}[$__rate_interval]))"
    retried = f'{{ span."{names.LANGFUSE_RETRY_COUNT}" > 0 }}'
    spread = (0.5, 0.9, 0.99)
    return [
        panel(
            "Latency",
            "How long calls take, with all their attempts.",
            "s",
            [(quantile(q, DURATION), f"p{q * 100:g}") for q in spread],
        ),
        panel(
            "Latency by model",
            "The slowest tenth of each model's calls.",
            "s",
            [(quantile(0.9, DURATION, MODEL), f"p90 {each}")],
        ),
        panel(
            "Time to first chunk",
            "From the start of a streamed call to its first content of any kind.",
            "s",
            [(quantile(q, FIRST_CHUNK), f"p{q * 100:g}") for q in spread],
        ),
        panel(
            "Time between chunks",
            "From each piece of streamed content to the next.",
            "s",
            [(quantile(q, PER_CHUNK), f"p{q * 100:g}") for q in spread],
        ),
        panel(
            "Tokens per second by model",
            "Input includes what the cache gave and took.",
            "short",
            [(token_rate("input"), f"input {each}"), (token_rate("output"), f"output {each}")],
        ),
        panel(
            "Cost per hour by model",
            "Estimated from tokens and the prices in deploy/grafana/prices.json; cache writes at the 5-minute price.",
            "currencyUSD",
            [(cost(model, price), model) for model, price in prices.items()],
        ),
        panel(
            "Error rate",
            "Share of calls that failed for good. Calls that were left early are no errors.",
            "percentunit",
            [(f"({failed} or vector(0)) / ({calls} > 0)", "failed")],
        ),
        panel(
            "Errors by type",
            "Calls per second that failed for good.",
            "short",
            [(f"sum by ({ERROR}, {MODEL}) (rate({ERRORS}{{{CHOSEN}}}[$__rate_interval]))", f"{{{{{ERROR}}}}} {each}")],
        ),
        panel(
            "Cache hit share",
            "Share of the input tokens that came from the prompt cache.",
            "percentunit",
            [(f"({token_rate('cache_read')} or 0 * {token_rate('input')}) / ({token_rate('input')} > 0)", each)],
        ),
        panel(
            "Calls per second by model",
            "All calls: answered, failed and left early.",
            "short",
            [(f"sum by ({MODEL}) (rate({DURATION}_count{{{CHOSEN}}}[$__rate_interval]))", each)],
        ),
        trace_panel(
            "Retries",
            "Calls per second that needed more than one attempt, from the traces.",
            f"{retried} | rate() by (span.{names.REQUEST_MODEL})",
            kind="timeseries",
        ),
        trace_panel("Calls with retries", "The latest calls that needed more than one attempt.", retried, kind="table"),
    ]


def variable(name: str, attribute: str) -> dict[str, Any]:
    """A choice at the top of the dashboard."""
    query = f"label_values({DURATION}_count, {label(attribute)})"
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": PROMETHEUS,
        "query": {"query": query, "refId": name},
        "definition": query,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "refresh": 2,
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard(prices: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The dashboard: two panels to a row."""
    laid_out = [
        {"id": n + 1, **each, "gridPos": {"x": 12 * (n % 2), "y": 8 * (n // 2), "w": 12, "h": 8}} for n, each in enumerate(panels(prices))
    ]
    return {
        "uid": "dragoman",
        "title": "dragoman: model calls",
        "tags": ["dragoman", "llm"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": [variable("model", names.REQUEST_MODEL), variable("provider", names.PROVIDER)]},
        "panels": laid_out,
    }


# ---- prices


def read_prices() -> dict[str, dict[str, float]]:
    """US dollars per million tokens, by model."""
    models: dict[str, dict[str, float]] = json.loads(PRICES.read_text(encoding="utf-8"))["models"]
    return models


def current_prices() -> dict[str, Any]:
    """Prices as dragoman's lists have them today. Asked with few tokens, so of the lowest tier where a model has several."""
    from dragoman import Usage, cost

    asked = Usage(input=1, output=1, cache_read=1, cache_write_5m=1)
    models: dict[str, dict[str, float]] = {}
    for model in PRICED_MODELS:
        priced = cost(asked, model=model)
        if priced is not None:
            found = {item.kind: float(item.price) for item in priced.items}
            models[model] = {
                "input": found["input"],
                "output": found["output"],
                "cache_read": found.get("cache_read", found["input"]),
                "cache_write": found.get("cache_write_5m", found["input"]),
            }
    return {"unit": "USD per million tokens", "date": datetime.now(UTC).date().isoformat(), "models": models}


def as_text(value: dict[str, Any]) -> str:
    """JSON as it is checked in."""
    return json.dumps(value, indent=2) + "\n"


def main() -> int:
    """Write the files, or compare."""
    if "--prices" in sys.argv[1:]:
        PRICES.write_text(as_text(current_prices()), encoding="utf-8")
    text = as_text(dashboard(read_prices()))
    if "--check" in sys.argv[1:]:
        return int(DASHBOARD.read_text(encoding="utf-8") != text)
    DASHBOARD.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
