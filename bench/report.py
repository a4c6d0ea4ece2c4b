"""The results as a page: `docs/benchmarks.md` between its two marks, and the plots beside it.

`python bench/report.py bench/results/A.json bench/results/B.json` writes the page of earlier runs anew; where two measured the same case,
the later file counts. What stands outside of the marks is written by hand and left alone.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cases import CASES, CONTESTANTS
from environments import ROOT
from plot import Bar, Line, bars, figure, lines

__all__ = ["REQUIRED", "merged", "write"]

PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = ROOT / "docs" / "benchmarks"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
_LABELS = {contestant.key: contestant.label for contestant in CONTESTANTS}
_OURS = ("httpx2", "direct", "traced", "unchecked")

Results = dict[str, Any]


class Requirement(NamedTuple):
    """A ratio that must hold: `of` gives it, or None where it was not measured."""

    work: str
    must: str
    of: Callable[[Results], float | None]
    holds: Callable[[float], bool]


def _values(results: Results, case: str, who: str) -> list[float]:
    return results["cases"].get(case, {}).get(who, {}).get("values", [])


def _ratio(over: tuple[str, str], under: tuple[str, str]) -> Callable[[Results], float | None]:
    """The median of the rounds' ratios; where two cases ran one after the other, the ratio of their medians."""

    def of(results: Results) -> float | None:
        a, b = _values(results, *over), _values(results, *under)
        if not a or not b:
            return None
        if over[0] == under[0]:
            return statistics.median(x / y for x, y in zip(a, b, strict=False))
        return statistics.median(a) / statistics.median(b)

    return of


_PEERS = tuple(contestant.key for contestant in CONTESTANTS if contestant.key not in (*_OURS, "bare", "callbacks", "raw", "anthropic"))


def _best_peer(case: str, ours: str, *, whole: bool = False) -> Callable[[Results], float | None]:
    """The quickest of the others, over ours; the SDK's `stream()` has a row of its own. `whole`: of those that make a final message."""

    def of(results: Results) -> float | None:
        rows = results["cases"].get(case, {})
        peers = [
            row["median"] for who, row in rows.items() if who in _PEERS and "median" in row and not (whole and who.endswith(" events"))
        ]
        mine = rows.get(ours, {}).get("median")
        return min(peers) / mine if peers and mine else None

    return of


def _first_token(case: str, ours: str) -> Callable[[Results], float | None]:
    """Time to first token above the raw reader, ours over the SDK's."""

    def of(results: Results) -> float | None:
        rows = results["cases"].get(case, {})
        p50 = {who: row["first"]["p50"] for who, row in rows.items() if "first" in row}
        if not {"raw", ours, "anthropic"} <= p50.keys():
            return None
        return (p50[ours] - p50["raw"]) / (p50["anthropic"] - p50["raw"])

    return of


def _call(case: str) -> Callable[[Results], float | None]:
    def of(results: Results) -> float | None:
        theirs, ours = (results["cases"].get(case, {}).get(who, {}).get("cpu") for who in ("anthropic", "httpx2"))
        return None if theirs is None or ours is None else theirs / ours

    return of


def _cold(name: str) -> Callable[[Results], float | None]:
    return lambda results: results.get("cold", {}).get("httpx2", {}).get(name)


def _cold_call(results: Results) -> float | None:
    """Import, client and first call from a new process: the SDK over ours."""
    rows = [results.get("cold", {}).get(who) for who in ("anthropic", "direct")]
    theirs, ours = (None if row is None else row["import"] + row["client"] + row["first call"] for row in rows)
    return None if theirs is None or ours is None else theirs / ours


def _cold_ratio(name: str) -> Callable[[Results], float | None]:
    def of(results: Results) -> float | None:
        theirs, ours = (results.get("cold", {}).get(who, {}).get(name) for who in ("anthropic", "httpx2"))
        return None if theirs is None or ours is None else theirs / ours

    return of


def _median(case: str, who: str) -> Callable[[Results], float | None]:
    return lambda results: results["cases"].get(case, {}).get(who, {}).get("median")


def _at_most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


def _at_least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


REQUIRED: tuple[Requirement, ...] = (
    Requirement("codec, bytes to response, over a bare decode, 64 KiB per read", "≤ 5", _median("over bare", "httpx2"), _at_most(5)),
    Requirement("the same, one event per read", "reported", _median("over bare one", "httpx2"), lambda _: True),
    Requirement("SDK `stream()` over the codec", "≥ 20", _ratio(("sync", "anthropic"), ("codec", "httpx2")), _at_least(20)),
    Requirement("SDK over dragoman through httpx2, sync", "≥ 4", _ratio(("sync", "anthropic"), ("sync", "httpx2")), _at_least(4)),
    Requirement("SDK over dragoman through httpx2, async", "≥ 4", _ratio(("async", "anthropic"), ("async", "httpx2")), _at_least(4)),
    Requirement(
        "tool input, 50,000 fragments: SDK over dragoman",
        "≥ 50",
        _ratio(("tool 50000 8", "anthropic"), ("tool 50000 8", "httpx2")),
        _at_least(50),
    ),
    Requirement(
        "tool input, 50,000 over 10,000 fragments", "≤ 6", _ratio(("tool 50000 8", "httpx2"), ("tool 10000 8", "httpx2")), _at_most(6)
    ),
    Requirement(
        "request of 1.1 MB, validated and serialized: SDK (which does not validate) over dragoman",
        "≥ 5",
        _ratio(("build", "anthropic"), ("build", "httpx2")),
        _at_least(5),
    ),
    Requirement("the same, serialized only, like the SDK", "≥ 5", _ratio(("build", "anthropic"), ("build", "unchecked")), _at_least(5)),
    Requirement("first token above the raw reader: dragoman over SDK, sync", "≤ 0.5", _first_token("first sync", "direct"), _at_most(0.5)),
    Requirement(
        "first token above the raw reader: dragoman over SDK, async", "≤ 0.5", _first_token("first async", "direct"), _at_most(0.5)
    ),
    Requirement("the same, through httpx2, sync", "reported", _first_token("first sync", "httpx2"), lambda _: True),
    Requirement("the same, through httpx2, async", "reported", _first_token("first async", "httpx2"), lambda _: True),
    Requirement("CPU of a warm call of 20 deltas: SDK over dragoman through httpx2, sync", "reported", _call("first sync"), lambda _: True),
    Requirement(
        "CPU of a warm call of 20 deltas: SDK over dragoman through httpx2, async", "reported", _call("first async"), lambda _: True
    ),
    Requirement("full speed, sync: direct over raw", "≤ 6", _ratio(("sync", "direct"), ("sync", "raw")), _at_most(6)),
    Requirement("full speed, async: direct over raw", "≤ 6", _ratio(("async", "direct"), ("async", "raw")), _at_most(6)),
    Requirement("full speed, sync: SDK over direct", "≥ 20", _ratio(("sync", "anthropic"), ("sync", "direct")), _at_least(20)),
    Requirement("full speed, async: SDK over direct", "≥ 20", _ratio(("async", "anthropic"), ("async", "direct")), _at_least(20)),
    Requirement("200 paced streams: direct over raw", "≤ 1.9", _ratio(("paced", "direct"), ("paced", "raw")), _at_most(1.9)),
    Requirement(
        "the same, over a reader that wakes no task: in callbacks",
        "reported",
        _ratio(("paced", "direct"), ("paced", "callbacks")),
        lambda _: True,
    ),
    Requirement("200 paced streams: SDK over direct", "≥ 4", _ratio(("paced", "anthropic"), ("paced", "direct")), _at_least(4)),
    Requirement(
        "200 paced streams: best peer that makes a final message over direct",
        "≥ 3",
        _best_peer("paced", "direct", whole=True),
        _at_least(3),
    ),
    Requirement(
        "the same, with the SDK's bare events on aiohttp among the peers", "reported", _best_peer("paced", "direct"), lambda _: True
    ),
    Requirement("200 paced streams, TLS: direct over raw", "≤ 1.7", _ratio(("paced tls", "direct"), ("paced tls", "raw")), _at_most(1.7)),
    Requirement("1,000 streams at once: best peer over direct", "≥ 6", _best_peer("concurrent", "direct"), _at_least(6)),
    Requirement(
        "1,000 streams at once, memory at the peak: direct over SDK",
        "≤ 0.5",
        _ratio(("concurrent memory", "direct"), ("concurrent memory", "anthropic")),
        _at_most(0.5),
    ),
    Requirement("first token above the raw reader: direct over SDK, async", "≤ 0.2", _first_token("first async", "direct"), _at_most(0.2)),
    Requirement("first call of a cold process: SDK over direct", "≥ 6", _cold_call, _at_least(6)),
    Requirement("import: SDK over dragoman (40 ms where the SDK takes 754)", "≥ 19", _cold_ratio("import"), _at_least(19)),
    Requirement("import, ms of CPU, as loaded as the machine was", "reported", _cold("import"), lambda _: True),
    Requirement("modules after import", "≤ 200", _cold("modules"), _at_most(200)),
    Requirement("growth over 50,000 deltas, MB", "≤ 4", _median("memory", "httpx2"), _at_most(4)),
)


def merged(runs: Sequence[Results]) -> Results:
    """Several runs as one."""
    whole: Results = {"cases": {}, "runs": []}
    for run in runs:
        whole["cases"] |= run["cases"]
        whole["runs"] += run["runs"]
        if "cold" in run:
            whole["cold"] = run["cold"]
    return whole


def write(results: Results) -> None:
    """Write the page and the plots."""
    PLOTS.mkdir(exist_ok=True)
    for name, svg in _plots(results):
        (PLOTS / f"{name}.svg").write_text(svg)
    page = PAGE.read_text()
    before, after = page[: page.index(BEGIN) + len(BEGIN)], page[page.index(END) :]
    PAGE.write_text(f"{before}\n\n{chr(10).join(_measured(results))}\n{after}")
    print(PAGE)


def _measured(results: Results) -> Iterator[str]:
    for run in results["runs"]:
        load = f"load {run['load before'][0]:.1f} before and {run['load after'][0]:.1f} after"
        when = f"{run['began'][:16].replace('T', ' ')} UTC, {run['minutes']} minutes"
        yield f"* {when}, Python {run['python']}, {run['machine']}, {load}: `{run['command']}`"
    yield ""
    yield f"Noise of the runs: {_noise(results)}"
    yield ""
    yield from _required(results)
    for name, _ in _plots(results):
        yield f"![{name.replace('-', ' ')}](benchmarks/{name}.svg)"
        yield ""
    yield from _cold_table(results)
    for case in CASES:
        if case.key in results["cases"]:
            yield from _case_table(case.title, case.unit, results["cases"][case.key])


def _noise(results: Results) -> str:
    spreads = [
        max(row["values"]) / min(row["values"])
        for rows in results["cases"].values()
        for row in rows.values()
        if len(row.get("values", [])) > 2 and min(row["values"]) > 0
    ]
    if not spreads:
        return "too few rounds to say."
    return (
        f"the slowest round of a contestant took {statistics.median(spreads):.2f} times the CPU of its quickest (median over all), "
        f"at worst {max(spreads):.1f} times."
    )


def _required(results: Results) -> Iterator[str]:
    yield "| what must hold | must be | measured | |"
    yield "| --- | --: | --: | --- |"
    for row in REQUIRED:
        value = row.of(results)
        if value is not None:
            verdict = "" if row.must == "reported" else "holds" if row.holds(value) else "**does not hold**"
            yield f"| {row.work} | {row.must} | {figure(value)} | {verdict} |"
    yield ""


def _cold_table(results: Results) -> Iterator[str]:
    rows = results.get("cold", {})
    if not rows:
        return
    yield "### Cold start and footprint"
    yield ""
    yield "CPU milliseconds; memory of the process after the import, after its first call; what is installed, without bytecode."
    yield ""
    yield "| | import | client | first call | second | modules | MB | MB | distributions | MB | .py files |"
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |"
    for who, row in rows.items():
        times = " | ".join(figure(row[name]) for name in ("import", "client", "first call", "second call"))
        memory = f"{row['resident after import'] / 1e6:.0f} | {row['resident after first call'] / 1e6:.0f}"
        size = f"{row['distributions']:.0f} | {row['megabytes']:.1f} | {row['python files']:.0f}"
        yield f"| {_LABELS[who]} | {times} | {row['modules']:.0f} | {memory} | {size} |"
    yield ""


def _case_table(title: str, unit: str, rows: dict[str, Any]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    latency = any("whole" in row for row in rows.values())
    ours = rows.get("httpx2", {})
    if latency:
        yield "| µs | first, p50 | p99 | whole, p50 | p99 | CPU per call |"
        yield "| --- | --: | --: | --: | --: | --: |"
    else:
        yield f"| | {unit} | times httpx2's |"
        yield "| --- | --: | --: |"
    for who, row in rows.items():
        if "failed" in row:
            yield f"| {_LABELS[who]} | {row['failed']} |" + " |" * (4 if latency else 1)
        elif latency:
            first, whole = row.get("first"), row["whole"]
            begun = f"{figure(first['p50'])} | {figure(first['p99'])}" if first else "| "
            cpu = figure(row["cpu"]) if "cpu" in row else ""
            yield f"| {_LABELS[who]} | {begun} | {figure(whole['p50'])} | {figure(whole['p99'])} | {cpu} |"
        else:
            ratio = statistics.median(row["values"]) / ours["median"] if ours.get("median") else None
            yield f"| {_LABELS[who]} | {figure(row['median'])} | {figure(ratio) if ratio is not None else ''} |"
    yield ""


# ---- plots

_BARS = (
    ("full-speed", "sync", "CPU per delta, one stream at full speed, sync"),
    ("paced", "paced", "CPU per delta, 200 streams, one event per 20 ms each, async"),
    ("request", "send", "CPU to build and send a request of 1.1 MB"),
    ("concurrent", "concurrent", "CPU of 1,000 streams of 200 deltas at once"),
)
_TOOL = tuple((case.job["answer"][1], case.key) for case in CASES if case.key.startswith("tool ") and case.key.endswith(" 8"))


def _plots(results: Results) -> Iterator[tuple[str, str]]:
    units = {case.key: case.unit for case in CASES}
    for name, key, title in _BARS:
        rows = {who: row for who, row in results["cases"].get(key, {}).items() if "median" in row}
        if rows:
            yield name, bars(title, units[key], [Bar(_LABELS[who], row["median"], _kind(who)) for who, row in rows.items()])
    series = []
    for who, label in _LABELS.items():
        points = [(float(n), median) for n, key in _TOOL if (median := results["cases"].get(key, {}).get(who, {}).get("median"))]
        if len(points) > 1:
            series.append(Line(label, points))
    if series:
        yield "tool-input", lines("CPU of a tool call's input", "fragments", "ms", series)
    cold = results.get("cold", {})
    if cold:
        yield "import", bars("CPU of the import", "ms", [Bar(_LABELS[who], row["import"], _kind(who)) for who, row in cold.items()])


def _kind(who: str) -> str:
    return "floor" if who in ("bare", "callbacks", "raw") else "ours" if who in _OURS else "peer"


if __name__ == "__main__":
    write(merged([json.loads(Path(name).read_text()) for name in sys.argv[1:]]))
