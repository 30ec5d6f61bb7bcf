"""Rounds of renewals against a broker in the test's hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast
from uuid import UUID

import pytest

from barnabas.pipeline.share_requests import AckBatches
from barnabas.pipeline.share_source.held_ranges import HeldRanges
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.ranges import AcquiredRange
from barnabas.pipeline.share_source.renewals import Renewals
from barnabas.pipeline.share_source.sessions import ShareSessions
from barnabas.pipeline.share_source.settling import Unsettled
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

ORDERS = TopicIdPartition(UUID(int=1), 0)


class ScriptedSessions:
    """Takes every renewal or none."""

    lock_ms = 3
    can_renew = True
    takes = True

    async def settle(self, settlement: AckBatches) -> list[Unsettled]:
        return [
            Unsettled(partition, batch, ErrorCode.invalid_record_state)
            for partition, batches in settlement.items()
            for batch in batches
            if not self.takes
        ]


class Renewing:
    """Renewals of a holding of ten offsets."""

    def __init__(self) -> None:
        self.sessions = ScriptedSessions()
        self.held_ranges = HeldRanges()
        self.metrics = ShareMetrics()
        sessions = cast("ShareSessions", self.sessions)
        self.renewals = Renewals(sessions, self.held_ranges, self.metrics, asyncio.Lock())

    def acquire(self) -> None:
        self.held_ranges.acquire(ORDERS, [AcquiredRange(0, 9, 1)], 2**62)
        self.renewals.begin()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  the renewals notify nobody
        await asyncio.sleep(0.001)


async def test_locks_that_have_all_ended_are_lost_and_later_ones_are_renewed_again() -> None:
    renewing = Renewing()
    renewing.acquire()
    await until(lambda: renewing.metrics.renewed > 0)
    renewing.sessions.takes = False
    await until(lambda: renewing.metrics.expired == 10)
    assert renewing.held_ranges.partitions == set()
    renewing.sessions.takes = True
    before = renewing.metrics.renewed
    renewing.acquire()
    await until(lambda: renewing.metrics.renewed > before)
    renewing.renewals.stop()


async def test_renewals_end_without_losses_if_none_is_ever_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    renewing = Renewing()
    renewing.sessions.takes = False
    renewing.acquire()
    await until(lambda: renewing.renewals.is_hopeless)
    assert renewing.held_ranges.held(ORDERS) == [(0, 9)]
    assert caplog.text.count("Locks are not renewed") == 1
