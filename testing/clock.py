"""The clock of a broker for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from barnabas.testing.control import Control

_MS_PER_SECOND = 1000


class Clock:
    """Moves the wall-clock time and the monotonic time of the broker together. Both run on in between."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def advance(self, seconds: float, *, sessions: bool = False) -> None:
        """Advance the clock from timer to timer, and return when all work that became due is written: locks
        that expire, back-off, transactions, retention.

        Members of groups with an open connection keep their membership, unless `sessions` is set.
        Raises ControlError for a negative number, more than 366 days, or while another advance is under way.
        """
        self._control.ask(
            "POST", "clock/advance", {"ms": round(seconds * _MS_PER_SECOND), "sessions": sessions}
        )

    def now(self) -> datetime:
        """The broker's wall-clock time, in UTC."""
        wall_ms = cast("int", self._control.ask("GET", "clock")["wall_ms"])
        return datetime.fromtimestamp(wall_ms / _MS_PER_SECOND, UTC)
