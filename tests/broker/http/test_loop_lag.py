"""The lag of the event loop."""

from __future__ import annotations

import asyncio
import time

import pytest

from barnabas.broker.http import loop_lag
from barnabas.broker.http.loop_lag import NAME, LoopLag
from barnabas.runtime.metrics import Metrics


async def test_work_that_keeps_the_loop_busy_is_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_lag, "INTERVAL_SECONDS", 0.01)
    metrics, measured = Metrics(), asyncio.Event()
    lag = LoopLag(metrics)
    busy_until = time.monotonic() + 0.1
    while time.monotonic() < busy_until:
        pass
    asyncio.get_running_loop().call_later(0.01, measured.set)
    await measured.wait()
    lag.close()
    values = metrics.snapshot()
    assert values[f"{NAME}_count"] >= 1
    assert values[f"{NAME}_sum"] >= 80
    assert values[f"{NAME}_bucket{{le=50}}"] < values[f"{NAME}_count"]
