"""Signals: outside of a transaction they cancel the work, inside they wait for its end."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from barnabas.cli.dead_letters.stopping import stop_request


async def hear() -> None:
    """Lets the loop handle a signal."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_block_without_an_error(number: signal.Signals) -> None:
    steps: list[str] = []
    with stop_request() as request:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()
        steps.append("never")
    assert (request.is_asked, steps) == (True, [])


async def test_work_in_progress_is_finished_and_nothing_follows() -> None:
    steps: list[str] = []
    with stop_request() as request:
        with request.finishing():
            os.kill(os.getpid(), signal.SIGINT)
            await hear()
            steps.append("finished")
        steps.append("never")
    assert (request.is_asked, steps) == (True, ["finished"])


async def test_a_second_signal_cancels_work_in_progress() -> None:
    steps: list[str] = []
    with stop_request() as request, request.finishing():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            await hear()
        steps.append("never")
    assert (request.is_asked, steps) == (True, [])


async def test_without_a_signal_the_block_ends_by_itself() -> None:
    with stop_request() as request, request.finishing():
        await hear()
    assert not request.is_asked


async def test_a_cancellation_from_elsewhere_is_raised() -> None:
    async def work() -> None:
        with stop_request():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
