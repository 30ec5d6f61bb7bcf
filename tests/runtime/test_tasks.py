"""Tasks: the outcomes of coroutines as completions, and the end of their owner."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from barnabas.runtime.completion import Completion
from barnabas.runtime.tasks import Tasks


async def double(gate: Completion[int]) -> int:
    return 2 * await gate


async def test_work_that_has_ended_gives_its_result() -> None:
    gate, tasks = Completion[int](), Tasks()
    outcome = tasks.run(partial(double, gate))
    assert not outcome.done
    gate.complete(4)
    assert await outcome == 8


async def test_work_that_fails_gives_its_error() -> None:
    gate, tasks = Completion[int](), Tasks()
    outcome = tasks.run(partial(double, gate))
    gate.fail(ZeroDivisionError())
    await tasks.drained()
    assert isinstance(outcome.error, ZeroDivisionError)


async def test_a_follower_of_the_work_runs_before_any_other_callback() -> None:
    """Nothing may come between the opening of a log and the append to it."""
    events: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(events.append, "another callback")

    tasks = Tasks()
    tasks.run(work).when_done(lambda _: events.append("follower"))
    await tasks.drained()
    assert events == ["follower", "another callback"]


async def test_draining_waits_for_all_work_under_way_and_no_later_work() -> None:
    first, second, later, tasks = Completion[int](), Completion[int](), Completion[int](), Tasks()
    outcomes = [tasks.run(partial(double, first)), tasks.run(partial(double, second))]
    drained = asyncio.ensure_future(tasks.drained())
    await asyncio.sleep(0)
    outcomes.append(tasks.run(partial(double, later)))
    first.complete(1)
    await asyncio.sleep(0)
    assert not drained.done()
    second.complete(2)
    await drained
    assert [one.done for one in outcomes] == [True, True, False]
    later.complete(3)
    await tasks.drained()
    assert outcomes[-1].result() == 6


async def test_draining_without_work_ends_at_once() -> None:
    waiting = Tasks().drained()
    with pytest.raises(StopIteration):
        waiting.send(None)


async def test_cancelled_work_ends_and_its_outcome_stays_open() -> None:
    gate, tasks = Completion[int](), Tasks()
    outcome, task = tasks.run(partial(double, gate)), tasks.start(double(gate))
    await asyncio.sleep(0)
    await tasks.cancel()
    assert (outcome.done, task.cancelled()) == (False, True)
    await tasks.drained()


async def test_work_that_is_cancelled_before_it_begins_leaves_nothing_behind() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    tasks = Tasks()
    outcome = tasks.run(work)
    await tasks.cancel()
    assert (begun, outcome.done) == ([], False)
