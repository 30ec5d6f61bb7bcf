"""Charts as plain HTML boxes: they fit any width, keep their text at its size, and need no scripts.

A bar stands for one number. Numbers far apart get a logarithmic scale, where a single record is visible
beside a million of them. A chart is an image for a screen reader; its numbers are in a table beside it.
Colours are the page's CSS variables, so one drawing serves light and dark mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from html import escape
from math import ceil, log10
from typing import Final, NamedTuple

LINEAR_RATIO_MAX: Final = 20
"""If the largest number is more than this many times the smallest, the scale is logarithmic."""
TICKS_MAX: Final = 6

_LEAST: Final = 0.5
"""The beginning of a logarithmic scale, so that 1 has a bar."""
_TICK_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, *(days * 1440 for days in range(1, 101)))
_TICKS_END: Final = 0.85
"""A tick behind this part of the axis has no room for its text."""


class Bars(NamedTuple):
    """A label, and one bar for each series; a series is a colour, `--series-<name>`."""

    label: str
    values: Mapping[str, int]


class Scale:
    """From numbers to lengths between 0 and 1."""

    def __init__(self, values: Iterable[int]) -> None:
        positive = [value for value in values if value > 0]
        most, least = max(positive, default=1), min(positive, default=1)
        self.is_logarithmic = most > LINEAR_RATIO_MAX * least
        self.top = 10 ** ceil(log10(most)) if self.is_logarithmic else most
        self.bottom = 1 if self.is_logarithmic else 0

    def length(self, value: int) -> float:
        """0 for nothing, 1 for `top`."""
        if value <= 0:
            return 0.0
        return log10(value / _LEAST) / log10(self.top / _LEAST) if self.is_logarithmic else value / self.top

    @property
    def hint(self) -> str:
        """The addition to a caption."""
        return " Logarithmic scale." if self.is_logarithmic else ""


def horizontal_bars(description: str, rows: Sequence[Bars], scale: Scale) -> str:
    """One row for each label: the label, and its bars with their values."""
    drawn = "".join(_horizontal_row(row, scale) for row in rows)
    return f'<div class="bars" role="img" aria-label="{escape(description)}">{drawn}</div>'


def _horizontal_row(row: Bars, scale: Scale) -> str:
    bars = "".join(
        f'<div class="track"><i style="--share:{scale.length(value):.4f};--series:var(--series-{series})">'
        f"</i><b>{value:,}</b></div>"
        for series, value in row.values.items()
    )
    return f'<div class="row"><span>{escape(row.label)}</span><div>{bars}</div></div>'


class TimeLane(NamedTuple):
    """One series over time, by the start of each step; steps without a value are empty."""

    series: str
    values: Mapping[datetime, int]


def time_lanes(description: str, lanes: Sequence[TimeLane], step: timedelta, scale: Scale) -> str:
    """The lanes below each other over one axis, which has every step from the first to the last."""
    starts = _steps(lanes, step)
    drawn = "".join(_lane(lane, starts, scale) for lane in lanes)
    return (
        f'<div class="lanes" role="img" aria-label="{escape(description)}">'
        f'{drawn}<div class="ticks">{_ticks(starts, step)}</div></div>'
    )


def _steps(lanes: Sequence[TimeLane], step: timedelta) -> list[datetime]:
    first = min(start for lane in lanes for start in lane.values)
    last = max(start for lane in lanes for start in lane.values)
    return [first + number * step for number in range(round((last - first) / step) + 1)]


def _lane(lane: TimeLane, starts: Sequence[datetime], scale: Scale) -> str:
    total = sum(lane.values.values())
    bars = "".join(_vertical_bar(lane, start, scale) for start in starts)
    return (
        f'<div class="lane" style="--series:var(--series-{lane.series})"><p><span class="key"></span>'
        f"{escape(lane.series)}: <b>{total:,}</b></p>"
        f'<div class="axis"><span>{_short(scale.top)}</span><span>{scale.bottom}</span></div>'
        f'<div class="plot">{bars}</div></div>'
    )


def _short(value: int) -> str:
    """For the axis, which is narrow."""
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:,}"


def _vertical_bar(lane: TimeLane, start: datetime, scale: Scale) -> str:
    value = lane.values.get(start, 0)
    told = f"{_moment(start)}, {lane.series}: {value:,}"
    return f'<i style="--share:{scale.length(value):.4f}" title="{escape(told)}"></i>'


def _ticks(starts: Sequence[datetime], step: timedelta) -> str:
    every = _tick_step(starts[-1] - starts[0] + step, step)
    ticks: list[str] = []
    day = None
    for number, start in enumerate(starts):
        at = number / len(starts)
        if int(start.timestamp()) % int(every.total_seconds()) or at > _TICKS_END:
            continue
        date = "" if start.date() == day else f"{start:%m-%d}"
        day = start.date()
        time = "" if every >= timedelta(days=1) else f"{start:%H:%M}"
        ticks.append(f'<span style="--at:{at:.4f}">{"<br>".join(filter(None, (time, date)))}</span>')
    return "".join(ticks)


def _tick_step(whole: timedelta, step: timedelta) -> timedelta:
    """A round time between two ticks, of whole steps."""
    for minutes in _TICK_MINUTES:
        every = timedelta(minutes=minutes)
        if every % step == timedelta() and whole / every <= TICKS_MAX:
            return every
    return ceil(whole / TICKS_MAX / step) * step


def _moment(value: datetime) -> str:
    """A time to the minute, in the time zone of Spark's session."""
    return f"{value:%Y-%m-%d %H:%M}"


def legend(names: Mapping[str, str]) -> str:
    """The legend of the colours: names by series."""
    items = "".join(
        f'<li><span class="key" style="--series:var(--series-{series})"></span>{escape(name)}</li>'
        for series, name in names.items()
    )
    return f'<ul class="legend" aria-hidden="true">{items}</ul>'
