"""The batches of a query over a scripted group: the test chooses the losses and their times."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.pipeline.share_source.batches import ShareBatches
from barnabas.pipeline.share_source.decisions import NONE, Decision, DecisionFiles, Decisions
from barnabas.pipeline.share_source.group import ShareGroup
from barnabas.pipeline.share_source.ledger import LEDGER_RANGES_MAX
from barnabas.pipeline.share_source.metrics import UNKNOWN_LAG, ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import OffsetRange, union
from barnabas.pipeline.share_source.settings import parse_settings
from tests.pipeline.share_source.scripted import ORDERS, ScriptedGroup

START = ShareOffset(group_id="g", member_id="m")


class Driver(ShareBatches):
    """A query's driver in a group in the test's hand."""

    def __init__(self, group: ScriptedGroup, decisions: KeptDecisions | None = None, **options: str) -> None:
        super().__init__(parse_settings({"servers": "h:1", "group": "g", "topics": "orders", **options}))
        self._scripted = group
        if decisions is not None:
            self._files = cast("DecisionFiles", decisions)

    async def _opened(self) -> ShareGroup:
        self._group = cast("ShareGroup", self._scripted)
        return self._group


def logged(offset: ShareOffset) -> ShareOffset:
    """As it comes out of Spark's log."""
    return ShareOffset.from_json(json.loads(json.dumps(offset.to_json())))


def offsets_of(batch: ShareOffset) -> list[int]:
    return [one for first, last, _ in batch.batch.get(ORDERS, []) for one in range(first, last + 1)]


def is_released(offset: int) -> bool:
    """When it is first seen."""
    return offset % 5 == 0 and offset % 7 != 1


class KeptDecisions:
    """The files of a query, in memory."""

    def __init__(self) -> None:
        self.decisions = NONE

    def read(self) -> Decisions:
        return self.decisions

    def clear(self) -> None:
        self.decisions = NONE


class Query:
    """A query and its log. Some records are released when they are first seen, every seventh is rejected."""

    def __init__(self, count_max: int) -> None:
        self.group = ScriptedGroup(40)
        self.log = START
        self.emitted = Counter[int]()
        self._decisions = KeptDecisions()
        self._count_max = count_max
        self.start()

    def start(self) -> None:
        """A driver on the offsets in the log."""
        self._driver = Driver(self.group, self._decisions)

    async def trigger(self, *, is_logged: bool = True) -> None:
        end = await self._driver.next_offset(self.log, self._count_max)
        if end is not None and is_logged:
            self.log = logged(end)
            self.emitted.update(offsets_of(self.log))
            await self.run_batch()

    async def run_batch(self) -> None:
        """Also when it is run again."""
        await self._driver.begin_batch(self.log)
        batch = offsets_of(self.log)
        released = [OffsetRange(one, one) for one in batch if is_released(one) and self.emitted[one] == 1]
        rejected = [OffsetRange(one, one) for one in batch if one % 7 == 1]
        self._decisions.decisions = Decisions({("orders", 0): released}, {("orders", 0): rejected})

    async def happen(self, event: str) -> None:
        match event:
            case "locks end":
                self.group.end_locks()
            case "request lost" | "answer lost":
                self.group.next_loss = "request" if event == "request lost" else "answer"
            case "killed while it acquires":
                await self.trigger(is_logged=False)
                await self.group.close()
                self.start()
            case "killed" | "killed while a batch runs":
                await self.group.close()
                self.start()
                if event == "killed while a batch runs":
                    await self.run_batch()
            case _:
                await self.trigger()


EVENTS = st.sampled_from(
    [
        "trigger",
        "locks end",
        "request lost",
        "answer lost",
        "killed",
        "killed while it acquires",
        "killed while a batch runs",
    ]
)


@given(st.lists(EVENTS, max_size=25), st.integers(1, 12))
@example(["trigger", "trigger", "trigger", "locks end", "trigger", "trigger", "locks end"], 3)
@settings(max_examples=150)
def test_each_record_is_in_one_batch_and_in_another_if_released_after_any_loss(
    events: list[str], count_max: int
) -> None:
    query = Query(count_max)

    async def run() -> None:
        for event in [*events, *["trigger"] * 60]:
            await query.happen(event)

    asyncio.run(run())
    assert query.emitted == Counter({one: 1 + is_released(one) for one in range(40)})
    assert not query.group.available
    assert not query.group.locked


async def batches_until_idle(driver: Driver, log: ShareOffset, count_max: int = 1_000_000) -> ShareOffset:
    """The offset at which nothing more comes."""
    while (end := await driver.next_offset(log, count_max)) is not None:
        log = logged(end)
    return log


async def test_a_stopped_query_whose_last_batch_was_decided_upon_record_by_record_starts_again(
    tmp_path: Path,
) -> None:
    group, directory = ScriptedGroup(4 * LEDGER_RANGES_MAX + 7), str(tmp_path)
    driver = Driver(group, ackDir=directory)
    end = await driver.next_offset(START, 4 * LEDGER_RANGES_MAX)
    assert end is not None
    await driver.begin_batch(end)
    rejected: list[tuple[str, int, int, Decision]] = [
        ("orders", 0, one, "reject") for one in offsets_of(end)[::2]
    ]
    DecisionFiles(directory).write(0, rejected)
    await group.close()
    driver = Driver(group, ackDir=directory)
    log = await batches_until_idle(driver, logged(end), 1_000)
    assert driver.metrics.deduplicated == 4 * LEDGER_RANGES_MAX
    assert not log.done
    assert not log.rejected
    assert not group.available
    assert not group.locked


async def test_many_pieces_whose_acknowledgement_is_lost_are_noted_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Piece by piece it would take the square of their number, while heartbeats wait."""
    unions = Mock(wraps=union)
    monkeypatch.setattr("barnabas.pipeline.share_source.ledger.union", unions)
    group, decisions, count = ScriptedGroup(210), KeptDecisions(), 210
    driver = Driver(group, decisions)
    end = await driver.next_offset(START, count)
    assert end is not None
    every_other = [OffsetRange(one, one) for one in range(0, count, 2)]
    decisions.decisions = Decisions({}, {("orders", 0): every_other})
    group.next_loss = "request"
    await batches_until_idle(driver, logged(end))
    assert driver.metrics.expired == driver.metrics.deduplicated == count
    assert not group.available
    assert not group.locked
    assert unions.call_count < 20


async def test_a_slow_store_of_decisions_holds_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    went_on = threading.Event()

    def read(_: DecisionFiles) -> Decisions:
        assert went_on.wait(10), "the loop is blocked"
        return Decisions({}, {})

    monkeypatch.setattr(DecisionFiles, "read", read)
    driver = Driver(ScriptedGroup(7), ackDir=str(tmp_path))
    asyncio.get_running_loop().call_later(0.01, went_on.set)
    assert await driver.next_offset(START, None) is not None


async def test_the_lag_of_a_former_driver_is_not_that_of_the_moment() -> None:
    group = ScriptedGroup(7)
    group.assignment = frozenset()
    driver = Driver(group)
    start = ShareOffset(group_id="g", member_id="m", metrics=replace(ShareMetrics(), acquired=5, lag=5))
    await driver.next_offset(start, None)
    assert driver.metrics.lag == UNKNOWN_LAG
    assert driver.metrics.acquired == 5


async def test_a_start_offset_that_goes_back_while_the_query_runs_makes_nothing_new_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.pipeline.share_source.batches.POSITIONS_MS", 0)
    group, log, emitted = ScriptedGroup(21), START, Counter[int]()
    driver = Driver(group)
    for _ in range(2):
        log = await driver.next_offset(log, 7) or log
        emitted.update(offsets_of(log))
    group.next_loss, group.told_start_offset = "request", 0
    while (end := await driver.next_offset(log, 7)) is not None:
        log = end
        emitted.update(offsets_of(log))
    assert emitted == Counter(range(21))
