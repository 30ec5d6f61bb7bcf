"""Work in steps: in a thread, with the loop's turn in between, one computation at a time."""

import asyncio
import threading

import pytest

from barnabas.runtime.stepwise import Steps, StepwiseWork, do_at_once
from barnabas.storage.filesystem import RealFileSystem
from tests.storage.memory_filesystem import MemoryFileSystem


def counting(count: int, seen: list[str], name: str = "") -> Steps[int]:
    for number in range(count):
        seen.append(f"{name}{number}")
        yield
    return count


def failing() -> Steps[None]:
    yield
    raise ValueError("the work's own")


async def test_each_step_is_one_call_of_a_thread() -> None:
    filesystem, seen = MemoryFileSystem(), list[str]()
    assert await StepwiseWork(filesystem).run(counting(3, seen)) == 3
    assert (seen, filesystem.run_count) == (["0", "1", "2"], 4)


async def test_no_step_is_done_on_the_loop() -> None:
    threads = set[int]()

    def noting() -> Steps[None]:
        threads.add(threading.get_ident())
        yield
        threads.add(threading.get_ident())

    await StepwiseWork(RealFileSystem()).run(noting())
    assert threading.get_ident() not in threads and threads


async def test_two_computations_run_one_after_the_other() -> None:
    work, seen = StepwiseWork(MemoryFileSystem()), list[str]()
    await asyncio.gather(work.run(counting(2, seen, "a")), work.run(counting(2, seen, "b")))
    assert seen == ["a0", "a1", "b0", "b1"]


async def test_an_error_fails_only_its_own_work() -> None:
    work, seen = StepwiseWork(MemoryFileSystem()), list[str]()
    with pytest.raises(ValueError, match="own"):
        await work.run(failing())
    assert await work.run(counting(1, seen)) == 1


def test_small_work_is_done_at_once() -> None:
    seen = list[str]()
    assert do_at_once(counting(3, seen)) == 3
    with pytest.raises(ValueError, match="own"):
        do_at_once(failing())
