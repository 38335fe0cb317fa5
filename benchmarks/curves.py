"""Draw curves as SVG without a library: a panel for each quantity, with a logarithmic horizontal axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 400, 240
LEFT, RIGHT, TOP, BOTTOM = 50, 14, 34, 42
COLOURS = ("#0b6e99", "#c2571a", "#3a7d44", "#7a3e9d")


class Panel(NamedTuple):
    """A panel with curves over the same horizontal axis.

    `curves` is a dict from a curve's name to its values, in the order of `xs`.
    """

    title: str
    xs: Sequence[float]
    curves: dict[str, Sequence[float]]


def picture(panels: Sequence[Panel], axis: str) -> str:
    """Return an SVG with the panels side by side; `axis` is the label below the horizontal axis."""
    width = WIDTH * len(panels)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" '
        f'width="{width}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        lines += [f'<g transform="translate({number * WIDTH} 0)">', *_panel(panel, axis), "</g>"]
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, axis: str) -> list[str]:
    first, last = math.log10(min(panel.xs)), math.log10(max(panel.xs))
    highest = _round_up(max(value for values in panel.curves.values() for value in values))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(x: float) -> float:
        return LEFT + (math.log10(x) - first) / ((last - first) or 1) * (right - LEFT)

    def down(y: float) -> float:
        return bottom - y / highest * (bottom - TOP)

    lines = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(panel.title)}</text>']
    for step in range(5):
        value = highest * step / 4
        y = down(value)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    lines += [
        f'<text x="{across(x):.1f}" y="{bottom + 16}" text-anchor="middle">{x:,g}</text>' for x in panel.xs
    ]
    lines.append(
        f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(axis)}</text>'
    )
    for number, (name, values) in enumerate(panel.curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [f"{across(x):.1f},{down(y):.1f}" for x, y in zip(panel.xs, values, strict=True)]
        lines.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        lines += [
            f'<circle cx="{point.partition(",")[0]}" cy="{point.partition(",")[2]}" r="3" fill="{colour}"/>'
            for point in points
        ]
        lines.append(f'<text x="{LEFT + 90 * number}" y="30" fill="{colour}">{escape(name)}</text>')
    return lines


def _round_up(value: float) -> float:
    """Return the next 1, 2, 4, 6, 8 or 10 times a power of ten that is not below the value."""
    unit = 10 ** math.floor(math.log10(value)) if value > 0 else 1
    return next(step * unit for step in (1, 2, 4, 6, 8, 10) if step * unit >= value)
