"""The purgatory: operations wait under their keys until they are woken, hurried, expired or withdrawn, and
leave no trace."""

import asyncio
import gc
import weakref

import pytest

from barnabas.protocol.errors import Withdrawn
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.purgatory import DelayedOperation, Purgatory
from tests.broker.network.edge_fakes import ManualClock, ManualTimers, settle

pytestmark = pytest.mark.interpreted


class Shelf:
    """The items under one key, for which the operations of these tests wait."""

    def __init__(self, item_count: int = 0) -> None:
        self.item_count = item_count


class Take(DelayedOperation[str]):
    """Waits for `count` items of a shelf; its result tells how the wait ended."""

    def __init__(self, shelf: Shelf, count: int = 1) -> None:
        super().__init__()
        self.shelf = shelf
        self.count = count
        self.try_count = 0

    def try_complete(self) -> bool:
        self.try_count += 1
        if self.shelf.item_count < self.count:
            return False
        self.shelf.item_count -= self.count
        self.complete(f"took {self.count}")
        return True

    def on_expire(self) -> None:
        self.complete("expired")


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = ManualTimers(self.clock)
        self.deadlines = Deadlines(self.clock, self.timers.call_later)
        self.purgatory = Purgatory(self.deadlines)
        self.shelf = Shelf()

    def watch(self, *keys: str, count: int = 1, deadline_ms: int = 1_500) -> Take:
        operation = Take(self.shelf, count)
        self.purgatory.watch(operation, keys, deadline_ms)
        return operation

    def assert_empty(self) -> None:
        assert (len(self.purgatory), self.purgatory.key_count, len(self.deadlines)) == (0, 0, 0)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_a_wake_completes_an_operation_whose_condition_holds(bench: Bench) -> None:
    operation = bench.watch("a", "b")
    bench.shelf.item_count = 1
    bench.purgatory.wake("b")
    assert await operation == "took 1"
    bench.assert_empty()


async def test_a_woken_operation_that_is_not_complete_stays(bench: Bench) -> None:
    operation = bench.watch("a", count=2)
    for item_count in (1, 2):
        bench.shelf.item_count = item_count
        bench.purgatory.wake("a")
        await settle()
    assert operation.result() == "took 2"
    assert operation.try_count == 2


async def test_other_keys_wake_nothing(bench: Bench) -> None:
    operation = bench.watch("a")
    bench.shelf.item_count = 1
    bench.purgatory.wake("z")
    await settle()
    assert operation.try_count == 0


async def test_after_many_wakes_of_one_pass_an_operation_is_tried_once(bench: Bench) -> None:
    operation = bench.watch("a", "b", "a")
    for key in "abab":
        bench.purgatory.wake(key)
    await settle()
    assert operation.try_count == 1


async def test_an_operation_that_comes_after_the_last_of_a_woken_key_is_woken_by_the_next_change(
    bench: Bench,
) -> None:
    first = bench.watch("a")
    bench.purgatory.wake("a")
    first.withdraw()
    second = bench.watch("a")
    await settle()
    assert not second.done
    bench.shelf.item_count = 1
    bench.purgatory.wake("a")
    assert await second == "took 1"
    bench.assert_empty()


async def test_operations_are_tried_in_the_order_in_which_they_came(bench: Bench) -> None:
    first, second, third = (bench.watch("a") for _ in range(3))
    bench.shelf.item_count = 2
    bench.purgatory.wake("a")
    await settle()
    assert [operation.done for operation in (first, second, third)] == [True, True, False]


async def test_an_operation_expires_at_its_deadline(bench: Bench) -> None:
    operation = bench.watch("a", deadline_ms=1_200)
    bench.timers.advance(199)
    assert not operation.done
    bench.timers.advance(1)
    assert await operation == "expired"
    bench.assert_empty()


async def test_hurry_ends_the_wait_at_once_and_only_once(bench: Bench) -> None:
    operation = bench.watch("a")
    operation.hurry()
    operation.hurry()
    assert await operation == "expired"
    bench.assert_empty()


async def test_an_operation_that_was_hurried_before_it_was_watched_does_not_wait(bench: Bench) -> None:
    operation = Take(bench.shelf)
    operation.hurry()
    bench.purgatory.watch(operation, ["a"], 1_500)
    assert operation.result() == "expired"
    bench.assert_empty()


async def test_an_operation_that_was_withdrawn_before_it_was_watched_leaves_no_trace(bench: Bench) -> None:
    operation = Take(bench.shelf)
    operation.withdraw()
    bench.purgatory.watch(operation, ["a"], 1_500)
    bench.assert_empty()


async def test_withdrawing_acquires_nothing_and_leaves_no_trace(bench: Bench) -> None:
    operation = bench.watch("a")
    bench.shelf.item_count = 1
    bench.purgatory.wake("a")
    operation.withdraw()
    await settle()
    assert isinstance(operation.error, Withdrawn)
    assert bench.shelf.item_count == 1
    bench.assert_empty()


async def test_cancelling_the_task_that_awaits_withdraws_the_operation(bench: Bench) -> None:
    operation = bench.watch("a")
    task = asyncio.ensure_future(_await(operation))
    await settle()
    task.cancel()
    await settle()
    assert task.cancelled()
    bench.assert_empty()


async def _await(operation: Take) -> str:
    return await operation


async def test_a_completing_operation_may_wake_others_without_recursion(bench: Bench) -> None:
    class Chain(Take):
        def try_complete(self) -> bool:
            bench.purgatory.wake("next")
            return super().try_complete()

    first = Chain(bench.shelf)
    bench.purgatory.watch(first, ["a"], 1_500)
    second = bench.watch("next")
    bench.shelf.item_count = 2
    bench.purgatory.wake("a")
    await settle()
    assert (first.result(), second.result()) == ("took 1", "took 1")
    bench.assert_empty()


async def test_an_operation_that_has_to_finish_an_append_first_leaves_and_answers_later(bench: Bench) -> None:
    class Slow(Take):
        def try_complete(self) -> bool:
            return True

    operation = Slow(bench.shelf)
    bench.purgatory.watch(operation, ["a"], 1_500)
    bench.purgatory.wake("a")
    await settle()
    assert not operation.done
    bench.assert_empty()
    operation.hurry()
    operation.complete("appended")
    assert await operation == "appended"


@pytest.mark.parametrize("how", ["wake", "expire"])
async def test_a_failure_is_the_failure_of_its_own_request(bench: Bench, how: str) -> None:
    class Broken(Take):
        def try_complete(self) -> bool:
            raise RuntimeError("broken operation")

        def on_expire(self) -> None:
            raise RuntimeError("broken operation")

    broken = Broken(bench.shelf)
    bench.purgatory.watch(broken, ["a"], 1_500)
    sound = bench.watch("a")
    bench.shelf.item_count = 1
    if how == "wake":
        bench.purgatory.wake("a")
    else:
        bench.timers.advance(1_000)
    with pytest.raises(RuntimeError, match="broken operation"):
        await broken
    assert await sound == ("took 1" if how == "wake" else "expired")
    bench.assert_empty()


async def test_completed_operations_are_not_kept_alive(bench: Bench) -> None:
    operation = bench.watch("a", "b", deadline_ms=1_000_000)
    bench.shelf.item_count = 1
    bench.purgatory.wake("a")
    await operation
    reference = weakref.ref(operation)
    del operation
    await settle()
    gc.collect()
    assert reference() is None
