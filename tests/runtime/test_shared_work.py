"""Work that several callers share."""

from __future__ import annotations

import asyncio
import errno

import pytest

from barnabas.runtime.shared_work import SharedWork


class Work:
    """Counts its runs, and fails or waits if it is told to."""

    def __init__(self) -> None:
        self.run_count = 0
        self.is_broken = False
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self) -> int:
        self.run_count += 1
        await self.may_end.wait()
        if self.is_broken:
            raise OSError(errno.EIO, "the disk forgot")
        return self.run_count


@pytest.fixture
def work() -> Work:
    return Work()


async def test_callers_at_the_same_time_share_a_run(work: Work) -> None:
    shared = SharedWork(work)
    assert await asyncio.gather(*(shared.run() for _ in range(100))) == [1] * 100


async def test_callers_during_a_run_share_the_next(work: Work) -> None:
    shared = SharedWork(work)
    work.may_end.clear()
    first = asyncio.ensure_future(shared.run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert work.run_count == 1
    others = [asyncio.ensure_future(shared.run()) for _ in range(10)]
    await asyncio.sleep(0)
    work.may_end.set()
    assert await asyncio.gather(first, *others) == [1] + [2] * 10


async def test_a_failure_reaches_all_callers_that_waited_and_no_others(work: Work) -> None:
    shared = SharedWork(work)
    work.is_broken = True
    outcomes = await asyncio.gather(*(shared.run() for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OSError] * 3
    work.is_broken = False
    assert await shared.run() == 2


async def test_a_cancelled_caller_does_not_cancel_the_run_of_others(work: Work) -> None:
    shared = SharedWork(work)
    impatient, patient = (asyncio.ensure_future(shared.run()) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == 1
