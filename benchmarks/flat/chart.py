"""A line chart as SVG, readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 44, 44
COLORS = ("#2f6feb", "#d97706", "#0f9d76")
GREY = "#7d8590"


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    title: str
    across: str
    """What the x axis counts."""
    up: str
    """The unit of the y axis, which begins at zero."""
    lines: Sequence[Line]

    def svg(self) -> str:
        most_x = max(x for line in self.lines for x, _ in line.points) or 1.0
        steps = _ticks(max(y for line in self.lines for _, y in line.points) or 1.0)

        def at(x: float, y: float) -> tuple[float, float]:
            across = LEFT + x / most_x * (WIDTH - LEFT - RIGHT)
            return round(across, 1), round(HEIGHT - BOTTOM - y / steps[-1] * (HEIGHT - TOP - BOTTOM), 1)

        parts = [_text(LEFT, 20, self.title, weight="600", fill="currentColor")]
        for y in steps:
            _, height = at(0, y)
            parts.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height}" y2="{height}" stroke="{GREY}" stroke-opacity=".25"/>'
            )
            parts.append(_text(LEFT - 8, height + 4, short(y), anchor="end"))
        marks = sorted({x for line in self.lines for x, _ in line.points}) if _few(self.lines) else _ticks(most_x, beyond=False)
        parts += [_text(at(x, 0)[0], HEIGHT - BOTTOM + 18, short(x), anchor="middle") for x in marks]
        parts.append(_text(WIDTH - RIGHT, HEIGHT - 8, self.across, anchor="end"))
        parts.append(_text(LEFT, 36, self.up))
        for number, line in enumerate(self.lines):
            parts += _drawn(line, COLORS[number % len(COLORS)], [at(x, y) for x, y in line.points])
        if len(self.lines) > 1:
            parts += _legend(self.lines)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        style = f'font-family="system-ui, sans-serif" font-size="12" fill="{GREY}" color="{GREY}" role="img"'
        return f"{head} {style}>\n<title>{escape(self.title)}</title>\n" + "\n".join(parts) + "\n</svg>\n"


def short(number: float) -> str:
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _few(lines: Sequence[Line]) -> bool:
    return max(len(line.points) for line in lines) <= 8


def _ticks(most: float, *, beyond: bool = True) -> list[float]:
    """About four round steps from zero, the last one at or beyond the largest value."""
    rough = most / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    count = math.ceil(most / step - 1e-9) if beyond else math.floor(most / step + 1e-9)
    return [step * n for n in range(count + 1)]


def _drawn(line: Line, color: str, places: Sequence[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x},{y}" for x, y in places)
    parts = [f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" stroke-linejoin="round"/>']
    if len(places) <= 8:
        for (x, y), (_, value) in zip(places, line.points, strict=True):
            parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{color}"><title>{short(value)}</title></circle>')
    return parts


def _legend(lines: Sequence[Line]) -> list[str]:
    parts = []
    x = WIDTH - RIGHT
    for number, line in reversed(list(enumerate(lines))):
        parts.append(_text(x, 36, line.name, anchor="end", fill=COLORS[number % len(COLORS)]))
        x -= 7 * len(line.name) + 18
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "400", fill: str | None = None) -> str:
    color = f' fill="{fill}"' if fill else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}"{color}>{escape(text)}</text>'
