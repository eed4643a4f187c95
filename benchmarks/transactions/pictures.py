"""Line charts as SVG, written by hand: a few lines over a few points need no library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 320, 56, 44, 34, 120
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#7f7f7f", "#ff7f0e", "#17becf")


def chart(title: str, along: str, up: str, places: Sequence[str], lines: Mapping[str, Sequence[float]]) -> str:
    """A picture of lines, each with a value at every point; values start at 0."""
    most = _round_up(max((v for line in lines.values() for v in line), default=1.0))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(n: int) -> float:
        return LEFT + wide * n / max(1, len(places) - 1)

    def y(value: float) -> float:
        return TOP + high * (1 - value / most)

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{along}</text>',
        f'<text x="14" y="{TOP + high / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {TOP + high / 2:.0f})">{up}</text>',
    ]
    for step in range(5):
        value = most * step / 4
        drawn.append(
            f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    drawn += [
        f'<text x="{x(n):.1f}" y="{TOP + high + 16}" text-anchor="middle">{p}</text>' for n, p in enumerate(places)
    ]
    for number, (name, values) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in enumerate(values))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = TOP + 14 + 18 * number
        drawn.append(
            f'<line x1="{LEFT + wide + 14}" x2="{LEFT + wide + 34}" y1="{at - 4}" y2="{at - 4}" stroke="{colour}" '
            f'stroke-width="2"/><text x="{LEFT + wide + 40}" y="{at}">{name}</text>'
        )
    return "\n".join([*drawn, "</svg>"]) + "\n"


def _round_up(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= value)
