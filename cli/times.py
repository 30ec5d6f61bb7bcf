"""Times and durations on the command line. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(?:\d+(?:ms|s|m|h|d))+")
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d)")


def parse_time_ms(text: str) -> int:
    """The time in ms since 1970; UTC without a zone. Raises ValueError, whose message says the remedy."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time such as 2026-01-31T12:00, which is UTC") from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """The duration in ms, such as `90s` or `1h30m`. Raises ValueError, whose message says the remedy."""
    if not text.isascii() or _DURATION.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 90s, 15m, 1h30m or 7d")
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))
