"""How many records each leader may fetch, and which reader gets them."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.client.errors import ConsumerClosedError, WrongGroupTypeError
from barnabas.client.share.held_record import HeldRecord, RecordState
from barnabas.client.share.options import Settings
from barnabas.client.share.prefetch_queue import PrefetchQueue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=1), 0)
FAR = 2**60


class Bench:
    def __init__(self, **options: Any) -> None:
        self.room_count = 0
        self.queue: PrefetchQueue[Any, Any] = PrefetchQueue(Settings(**options), self._note_room)

    def _note_room(self) -> None:
        self.room_count += 1

    def add(self, count: int, *, lock_deadline_ms: int = FAR, delivery_count: int = 1) -> list[HeldRecord]:
        records = [
            HeldRecord(PARTITION, offset, delivery_count, 0, lock_deadline_ms) for offset in range(count)
        ]
        self.queue.add(cast("Any", records))
        return records

    async def reader(self, count_max: int) -> asyncio.Task[None]:
        """A reader who waits."""
        waiting = asyncio.create_task(self.queue.wait(count_max))
        await asyncio.sleep(0)
        return waiting

    @property
    def wanted(self) -> tuple[int, int]:
        """How much each of two leaders may fetch."""
        return self.queue.wanted_count(1), self.queue.wanted_count(2)


async def test_nothing_is_fetched_before_a_reader_comes() -> None:
    assert Bench().wanted == (0, 0)


async def test_a_reader_who_waits_makes_every_leader_fetch() -> None:
    bench = Bench(max_records=7, prefetch_records=0)
    waiting = await bench.reader(1)
    assert bench.wanted == (7, 7)
    bench.add(1)
    await waiting
    assert bench.wanted == (0, 0)


async def test_fetching_ahead_ends_when_enough_waits() -> None:
    bench = Bench(prefetch_records=3)
    waiting = await bench.reader(10)
    bench.add(10)
    await waiting
    bench.queue.take(7)
    assert bench.wanted == (0, 0)
    bench.queue.take(1)
    assert bench.wanted == (500, 500)


async def test_on_room_is_called_when_there_is_room() -> None:
    bench = Bench(prefetch_records=3)
    bench.add(5)
    before = bench.room_count
    bench.queue.take(1)
    assert bench.room_count == before
    bench.queue.take(2)
    assert bench.room_count > before


async def test_nothing_is_fetched_ahead_for_a_reader_who_has_stopped() -> None:
    bench = Bench(prefetch_records=100)
    bench.queue.take(1)
    assert bench.wanted == (500, 500)
    bench.add(1)
    assert bench.wanted == (0, 0)


async def test_nothing_is_fetched_ahead_after_a_redelivery() -> None:
    bench = Bench(prefetch_records=100)
    waiting = await bench.reader(1)
    bench.add(1, delivery_count=2)
    await waiting
    bench.queue.take(1)
    assert bench.wanted == (0, 0)
    await bench.reader(1)
    assert bench.wanted == (500, 500)
    bench.add(1)
    bench.queue.take(1)
    assert bench.wanted == (500, 500)


async def test_nothing_is_fetched_after_the_end() -> None:
    bench = Bench()
    bench.queue.take(1)
    bench.queue.end(WrongGroupTypeError(ErrorCode.group_id_not_found))
    assert bench.wanted == (0, 0)


async def test_record_limit_asks_for_no_more_than_readers_and_prefetch_need() -> None:
    bench = Bench(acquire_mode="record_limit", prefetch_records=10)
    waiting = await bench.reader(3)
    assert bench.wanted == (20, 0)
    bench.queue.pass_turn(1)
    assert bench.wanted == (0, 20)
    waiting.cancel()


async def test_record_limit_without_prefetch_asks_only_for_the_waiting_readers() -> None:
    bench = Bench(acquire_mode="record_limit", prefetch_records=0, max_records=4)
    one, other = await bench.reader(1), await bench.reader(2)
    assert bench.wanted == (3, 0)
    another = await bench.reader(20)
    assert bench.wanted == (4, 0)
    for waiting in (one, other, another):
        waiting.cancel()


async def test_leaders_take_turns_in_the_order_in_which_they_asked() -> None:
    bench = Bench(acquire_mode="record_limit")
    bench.queue.take(1)
    for _ in range(2):
        for turn in (1, 2):
            assert [one for one, count in zip((1, 2), bench.wanted, strict=True) if count] == [turn]
            bench.queue.pass_turn(turn)


async def test_a_leader_that_cannot_fetch_does_not_block_the_others() -> None:
    bench = Bench(acquire_mode="record_limit")
    bench.queue.take(1)
    assert bench.queue.wanted_count(1)
    assert not bench.queue.wanted_count(2)
    bench.queue.pass_turn(1)
    assert bench.queue.wanted_count(2)


async def test_records_whose_lock_has_ended_are_skipped() -> None:
    bench = Bench()
    bench.add(2, lock_deadline_ms=0)
    lost, *_ = bench.add(2)
    lost.state = RecordState.LOST
    assert [record.offset for record in bench.queue.take(10)] == [1]


async def test_the_end_wakes_readers_and_fails_all_later_calls() -> None:
    bench = Bench()
    waiting = await bench.reader(1)
    bench.queue.end()
    await waiting
    await bench.queue.wait(1)
    with pytest.raises(ConsumerClosedError):
        bench.queue.take(1)


async def test_the_first_reason_to_end_is_raised() -> None:
    bench = Bench()
    bench.queue.end(WrongGroupTypeError(ErrorCode.group_id_not_found))
    bench.queue.end()
    with pytest.raises(WrongGroupTypeError):
        bench.queue.take(1)


async def test_records_that_arrive_after_the_end_are_dropped() -> None:
    bench = Bench()
    bench.queue.end()
    bench.add(3)
    with pytest.raises(ConsumerClosedError):
        bench.queue.take(1)
