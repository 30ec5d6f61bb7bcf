"""Strips of records as SVG: a row for each step, a square for each offset, a colour for each key."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from html import escape
from typing import NamedTuple

_SQUARE, _GAP, _ROW, _LEFT, _TOP, _LEGEND_WIDTH = 34, 4, 48, 300, 40, 330
_COLOURS = {"a": "#4c78a8", "b": "#f58518", "c": "#54a24b"}


class Look(Enum):
    """The state of a record in a picture."""

    NEW = "not delivered yet"
    HELD = "held by a member (its number)"
    WAITING = "waits for its key"
    FINAL = "final (share group) or committed"


class Square(NamedTuple):
    """One record; `text` is drawn on it."""

    key: str
    look: Look
    text: str = ""


class Step(NamedTuple):
    """A row: the event, and the records after it. `stable` is the number of records up to the stable
    offset.
    """

    event: str
    squares: Sequence[Square]
    stable: int | None = None


def svg(title: str, steps: Sequence[Step]) -> str:
    """The picture, on white, so that it can be read on dark pages, too."""
    count = len(steps[0].squares)
    width = _LEFT + count * (_SQUARE + _GAP) + 10
    height = _TOP + (len(steps) + 2) * _ROW + 10
    font = 'font-family="sans-serif" font-size="13"'
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    pattern = 'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"'
    stripe = '<rect width="3" height="6" fill="#ffffff" fill-opacity="0.65"/>'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font} role="img">',
        f"<title>{escape(title)}</title>",
        f'<defs><pattern id="wait" {pattern}>{stripe}</pattern></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(10, 24, "offset", "#444444"),
        *(_text(_x(index) + _SQUARE / 2, 24, str(index), "#444444", "middle") for index in range(count)),
    ]
    for row, step in enumerate(steps):
        parts += _row(_TOP + row * _ROW, step)
    parts += _legend(_TOP + len(steps) * _ROW + 10)
    return "\n".join([*parts, "</svg>", ""])


def _row(y: int, step: Step) -> list[str]:
    parts = [_text(10, y + 22, step.event, "#222222")]
    for index, square in enumerate(step.squares):
        parts += _square(_x(index), y, square)
    if step.stable is not None:
        x = _x(step.stable) - _GAP / 2
        parts.append(
            f'<line x1="{x}" y1="{y - 5}" x2="{x}" y2="{y + _SQUARE + 5}" stroke="#d62728" stroke-width="3"/>'
        )
    return parts


def _square(x: float, y: float, square: Square) -> list[str]:
    colour = _COLOURS[square.key]
    is_final = square.look is Look.FINAL
    fill = f'fill="{colour}"' if not is_final else f'fill="{colour}" fill-opacity="0.18"'
    box = f'x="{x}" y="{y}" width="{_SQUARE}" height="{_SQUARE}" rx="4"'
    parts = [f"<rect {box} {fill}/>"]
    if square.look is Look.WAITING:
        parts.append(f'<rect {box} fill="url(#wait)"/>')
    if square.look is Look.HELD:
        parts.append(f'<rect {box} fill="none" stroke="#000000" stroke-width="3"/>')
    label = square.text or (square.key if not is_final else "✓")
    parts.append(_text(x + _SQUARE / 2, y + 22, label, colour if is_final else "#ffffff", "middle"))
    return parts


def _legend(y: int) -> list[str]:
    """Two rows of two."""
    parts: list[str] = []
    for number, look in enumerate(Look):
        x, row_y = 10 + number % 2 * _LEGEND_WIDTH, y + number // 2 * _ROW
        parts += _square(x, row_y, Square("a", look, "1" if look is Look.HELD else ""))
        parts.append(_text(x + _SQUARE + 8, row_y + 22, look.value, "#222222"))
    return parts


def _x(index: int) -> float:
    return _LEFT + index * (_SQUARE + _GAP)


def _text(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'
