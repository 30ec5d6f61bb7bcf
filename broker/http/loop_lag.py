"""Measures how late the event loop runs its timers: the time for which other work kept it busy.

Every client waits that long in addition. It is measured only while HTTP is served.
"""

from __future__ import annotations

import asyncio
from typing import Final

from barnabas.runtime.metrics import Histogram, Metrics

INTERVAL_SECONDS: Final = 0.5
"""The time between two measurements."""

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
NAME: Final = "barnabas_event_loop_lag_ms"


class LoopLag:
    """Measures from its creation until `close`."""

    def __init__(self, metrics: Metrics) -> None:
        self._loop = asyncio.get_running_loop()
        self._lag_ms = Histogram(BOUNDS_MS)
        metrics.histograms(NAME, lambda: [({}, self._lag_ms)])
        self._timer = self._later()

    def close(self) -> None:
        self._timer.cancel()

    def _later(self) -> asyncio.TimerHandle:
        due = self._loop.time() + INTERVAL_SECONDS
        return self._loop.call_at(due, self._measure, due)

    def _measure(self, due: float) -> None:
        self._lag_ms.observe(round(max(self._loop.time() - due, 0.0) * 1000))
        self._timer = self._later()
