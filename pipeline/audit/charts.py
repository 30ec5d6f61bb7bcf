"""Charts as inline SVG: bars that lie and bars that stand, in the page's own colours, readable without sight.

A chart is an image to a screen reader, with a title and a description; the numbers stand in a table beside
it. Colours are the page's CSS variables, so that light and dark need one drawing. No scripts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import count
from typing import Final, NamedTuple

WIDTH: Final = 720
_LABEL_WIDTH: Final = 210
_BAR_HEIGHT: Final = 22
_BAR_GAP: Final = 8
_PLOT_HEIGHT: Final = 200
_AXIS_WIDTH: Final = 70
_MARGIN: Final = 14
_VALUE_WIDTH: Final = 90
_AXIS_LABELS_MAX: Final = 6


class Bar(NamedTuple):
    """A label, and its value in parts by series; a series is a colour, `--series-<name>`."""

    label: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


_ids = count(1)


def lying_bars(title: str, description: str, bars: Sequence[Bar]) -> str:
    """One bar a row, its label on the left and its sum on the right."""
    most = max((bar.total for bar in bars), default=0) or 1
    scale = (WIDTH - _LABEL_WIDTH - _VALUE_WIDTH) / most
    shapes: list[str] = []
    for number, bar in enumerate(bars):
        y = _MARGIN + number * (_BAR_HEIGHT + _BAR_GAP)
        middle = y + _BAR_HEIGHT * 0.7
        shapes.append(_text(_LABEL_WIDTH - 8, middle, _cut(bar.label), "end", full=bar.label))
        x = float(_LABEL_WIDTH)
        for series, value in bar.parts.items():
            width = value * scale
            shapes.append(_rectangle(x, y, width, _BAR_HEIGHT, series, f"{bar.label}, {series}: {value:,}"))
            x += width
        shapes.append(_text(x + 6, middle, f"{bar.total:,}", "start"))
    height = 2 * _MARGIN + len(bars) * (_BAR_HEIGHT + _BAR_GAP)
    return _svg(title, description, height, shapes)


def standing_bars(title: str, description: str, bars: Sequence[Bar]) -> str:
    """Bars side by side over one axis, some of them labelled below."""
    most = max((bar.total for bar in bars), default=0) or 1
    bottom = _MARGIN + _PLOT_HEIGHT
    step = (WIDTH - _AXIS_WIDTH - _MARGIN) / max(len(bars), 1)
    shapes = _axis(most, bottom)
    labelled = -(-len(bars) // _AXIS_LABELS_MAX)
    for number, bar in enumerate(bars):
        x, y = _AXIS_WIDTH + number * step, float(bottom)
        for series, value in bar.parts.items():
            height = value / most * _PLOT_HEIGHT
            y -= height
            told = f"{bar.label}, {series}: {value:,}"
            shapes.append(_rectangle(x + step * 0.08, y, step * 0.84, height, series, told))
        if number % max(labelled, 1) == 0:
            shapes.append(_text(x + step * 0.08, bottom + 18, bar.label, "start"))
    return _svg(title, description, bottom + 30, shapes)


def legend(names: Sequence[str]) -> str:
    """Which colour is which series."""
    items = "".join(
        f'<li><span class="key" style="background:var(--series-{name})"></span>{escape(name)}</li>'
        for name in names
    )
    return f'<ul class="legend" aria-hidden="true">{items}</ul>'


def _axis(most: int, bottom: int) -> list[str]:
    shapes: list[str] = []
    for part in range(5):
        y = bottom - _PLOT_HEIGHT * part / 4
        shapes.append(f'<line x1="{_AXIS_WIDTH}" y1="{y:g}" x2="{WIDTH - _MARGIN}" y2="{y:g}" class="grid"/>')
        if most >= 4 or part in (0, 4):
            shapes.append(_text(_AXIS_WIDTH - 8, y + 4, f"{most * part // 4:,}", "end"))
    return shapes


def _rectangle(x: float, y: float, width: float, height: float, series: str, told: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
        f'fill="var(--series-{series})"><title>{escape(told)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str, *, full: str | None = None) -> str:
    hint = f"<title>{escape(full)}</title>" if full is not None and full != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{hint}{escape(text)}</text>'


def _cut(label: str) -> str:
    return label if len(label) <= 30 else f"{label[:14]}…{label[-14:]}"


def _svg(title: str, description: str, height: float, shapes: Sequence[str]) -> str:
    number = next(_ids)
    named = f'aria-labelledby="chart-title-{number} chart-text-{number}"'
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" {named}>'
        f'<title id="chart-title-{number}">{escape(title)}</title>'
        f'<desc id="chart-text-{number}">{escape(description)}</desc>{"".join(shapes)}</svg>'
    )
