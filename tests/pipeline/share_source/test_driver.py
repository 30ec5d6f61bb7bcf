"""The driver in this very process: it ends in time, and what it does to signals it undoes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.batches import ShareBatches
from barnabas.pipeline.share_source.driver import ShareDriver
from barnabas.pipeline.share_source.settings import parse_settings


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShareDriver]:
    """One whose loop runs, though there is no broker."""
    monkeypatch.setattr("barnabas.pipeline.share_source.group.CONNECT_MS", 100)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    driver = ShareDriver(parse_settings({"servers": "127.0.0.1:1", "group": "g", "topics": "orders"}))
    with pytest.raises(PipelineError, match=r"^servers: "):
        driver.prepare_available_now()
    yield driver
    signal.signal(signal.SIGTERM, before)


def test_sigterm_is_what_it_was_once_the_driver_has_stopped(driver: ShareDriver) -> None:
    assert signal.getsignal(signal.SIGTERM) not in {signal.SIG_DFL, signal.SIG_IGN}
    driver.stop()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert not [one for one in threading.enumerate() if one.name == "barnabas-kafka-share"]


def test_only_the_first_sigterm_unwinds_the_stack(
    driver: ShareDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark sends it twice: a second SystemExit would keep `stop` from being called, or cut it short."""
    is_closed = threading.Event()

    async def close(_: ShareBatches) -> None:
        is_closed.set()

    monkeypatch.setattr(ShareBatches, "close", close)
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    driver.stop()
    assert is_closed.is_set()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("blocks_the_loop", [False, True])
def test_a_group_that_cannot_be_left_keeps_nobody_from_ending(
    driver: ShareDriver, monkeypatch: pytest.MonkeyPatch, blocks_the_loop: bool
) -> None:
    monkeypatch.setattr("barnabas.pipeline.share_source.driver.CLOSE_SECONDS", 0.01)
    monkeypatch.setattr("barnabas.pipeline.share_source.loop_thread.STOP_SECONDS", 0.01)
    is_stopped = threading.Event()

    async def close(_: ShareBatches) -> None:
        if blocks_the_loop:
            is_stopped.wait()
        await asyncio.Event().wait()

    monkeypatch.setattr(ShareBatches, "close", close)
    driver.stop()
    is_stopped.set()
