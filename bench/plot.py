"""Plots as SVG, by hand: bars and lines on a logarithmic axis, on a panel of their own that follows the reader's dark or light setting."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

__all__ = ["Bar", "Line", "bars", "lines"]

WIDTH = 820
_STYLE = """<style>
.panel{fill:#ffffff;stroke:#d0d7de} text{fill:#1f2328;font:13px system-ui,sans-serif} .title{font-weight:600;font-size:15px}
.small{fill:#59636e;font-size:11px} .grid{stroke:#d0d7de} .ours{fill:#0969da} .peer{fill:#8c959f} .floor{fill:#59a36b}
.line{fill:none;stroke-width:2.5} .s0{stroke:#0969da} .s1{stroke:#54aeff} .s2{stroke:#cf222e} .s3{stroke:#bf8700} .s4{stroke:#8250df}
.s5{stroke:#1b7c83} .s6{stroke:#8c959f} .s7{stroke:#bc4c00}
@media (prefers-color-scheme:dark){.panel{fill:#0d1117;stroke:#3d444d} text{fill:#f0f6fc} .small{fill:#9198a1} .grid{stroke:#3d444d}
.ours{fill:#4493f8} .peer{fill:#7d8590} .floor{fill:#3fb950} .s0{stroke:#4493f8} .s1{stroke:#1f6feb} .s2{stroke:#f85149}
.s3{stroke:#d29922} .s4{stroke:#ab7df8} .s5{stroke:#39c5cf} .s6{stroke:#9198a1} .s7{stroke:#f0883e}}
</style>"""


class Bar(NamedTuple):
    """One bar; `kind` is `ours`, `peer` or `floor`."""

    label: str
    value: float
    kind: str


class Line(NamedTuple):
    """One line: its points in the order of x."""

    label: str
    points: Sequence[tuple[float, float]]


def figure(value: float) -> str:
    """Three digits, the way one reads them."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars, shorter is better. Zeros and less are shown at the left end."""
    left, right, top, step = 240, 70, 62, 26
    low, high = _decades([row.value for row in rows])
    height = top + step * len(rows) + 34

    def x(value: float) -> float:
        return left + (log10(max(value, 10**low)) - low) / (high - low) * (WIDTH - left - right)

    parts = [f'<text class="small" x="20" y="46">{escape(unit)}, logarithmic; shorter is better</text>']
    for decade in range(low, high + 1):
        at = x(10**decade)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 6}" y2="{height - 28}"/>')
        parts.append(f'<text class="small" x="{at:.1f}" y="{height - 12}" text-anchor="middle">{_tick(decade)}</text>')
    for n, row in enumerate(rows):
        y = top + n * step
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{escape(row.label)}</text>')
        parts.append(f'<rect class="{row.kind}" x="{left}" y="{y + 1}" width="{max(x(row.value) - left, 2):.1f}" height="18" rx="2"/>')
        parts.append(f'<text x="{x(row.value) + 6:.1f}" y="{y + 15}">{figure(row.value)}</text>')
    return _document(title, height, parts)


def lines(title: str, x_name: str, unit: str, series: Sequence[Line]) -> str:
    """Lines on two logarithmic axes: a straight one of slope 1 is linear, steeper is worse."""
    left, right, top, bottom, height = 64, 250, 62, 52, 400
    points = [point for line in series for point in line.points]
    x_low, x_high = log10(min(x for x, _ in points)), log10(max(x for x, _ in points))
    low, high = _decades([y for _, y in points])

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = (log10(point[0]) - x_low) / (x_high - x_low)
        up = (log10(point[1]) - low) / (high - low)
        return left + across * (WIDTH - left - right), height - bottom - up * (height - top - bottom)

    parts = [f'<text class="small" x="20" y="46">{escape(unit)} by {escape(x_name)}, both logarithmic; lower is better</text>']
    for decade in range(low, high + 1):
        y = place((10**x_low, 10**decade))[1]
        parts.append(f'<line class="grid" x1="{left}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="small" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(decade)}</text>')
    for value in sorted({x for x, _ in points}):
        at = place((value, 10**low))[0]
        parts.append(f'<text class="small" x="{at:.1f}" y="{height - bottom + 18}" text-anchor="middle">{value:,.0f}</text>')
    ends = sorted((place(line.points[-1])[1], n) for n, line in enumerate(series))
    labels: dict[int, float] = {}
    free = 0.0
    for y, n in ends:
        labels[n] = free = max(y + 4, free + 16)
    for n, line in enumerate(series):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line.points))
        parts.append(f'<polyline class="line s{n % 8}" points="{path}"/>')
        end = place(line.points[-1])
        parts.append(
            f'<line class="line s{n % 8}" x1="{end[0]:.1f}" y1="{end[1]:.1f}" x2="{WIDTH - right + 14}" y2="{labels[n] - 4:.1f}"/>'
        )
        parts.append(f'<text x="{WIDTH - right + 18}" y="{labels[n]:.1f}">{escape(line.label)}</text>')
    return _document(title, height, parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = floor(log10(min(positive) * 0.999)), ceil(log10(max(positive)))
    return low, max(high, low + 1)


def _tick(decade: int) -> str:
    return f"{10**decade:,}" if decade >= 0 else f"{10.0**decade:g}"


def _document(title: str, height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
    panel = f'<rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="6"/>'
    return "\n".join([head, _STYLE, panel, f'<text class="title" x="20" y="27">{escape(title)}</text>', *parts, "</svg>", ""])
