"""The driver ends in time in all cases, and restores the handlers of signals."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
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


def test_the_handler_of_sigterm_is_restored_when_the_driver_stops(driver: ShareDriver) -> None:
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


PROCESS = """
import signal, sys
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source import group, sigterm
from barnabas.pipeline.share_source.batches import ShareBatches
from barnabas.pipeline.share_source.driver import ShareDriver
from barnabas.pipeline.share_source.settings import parse_settings

async def close(_):
    print("left")

ShareBatches.close = close
group.CONNECT_MS = 100
sigterm.PATIENCE_SECONDS = float(sys.argv[1])
driver = ShareDriver(parse_settings({"servers": "127.0.0.1:1", "group": "g", "topics": "orders"}))
try:
    driver.prepare_available_now()
except PipelineError:
    pass
try:
    signal.raise_signal(signal.SIGTERM)
finally:
    signal.raise_signal(signal.SIGTERM)
"""
"""A process that never calls `stop`: the signal has to stop its driver."""


@pytest.mark.parametrize(
    ("patience_seconds", "exit_code", "output"),
    [
        pytest.param(60, 128 + signal.SIGTERM, "left\n", id="it leaves the group when it ends"),
        pytest.param(0, -signal.SIGTERM, "", id="it takes too long"),
    ],
)
def test_a_process_that_gets_sigterm_ends_and_leaves_the_group(
    patience_seconds: int, exit_code: int, output: str
) -> None:
    command = [sys.executable, "-c", PROCESS, str(patience_seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (exit_code, output), done.stderr


@pytest.mark.parametrize("blocks_the_loop", [False, True])
def test_a_group_that_cannot_be_left_does_not_block_the_end(
    driver: ShareDriver, monkeypatch: pytest.MonkeyPatch, blocks_the_loop: bool
) -> None:
    monkeypatch.setattr("barnabas.pipeline.share_source.driver.CLOSE_SECONDS", 0.01)
    monkeypatch.setattr("barnabas.pipeline.share_source.loop_thread.STOP_SECONDS", 0.01)
    is_closing, is_stopped = threading.Event(), threading.Event()

    async def close(_: ShareBatches) -> None:
        is_closing.set()
        if blocks_the_loop:
            is_stopped.wait()
        await asyncio.Event().wait()

    monkeypatch.setattr(ShareBatches, "close", close)
    driver.stop()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert is_closing.is_set()
    is_stopped.set()
