"""Renews the locks of all records that a query holds (KIP-1222).

All locks are renewed at every third of a lock's duration, so two rounds may fail before a lock ends. If the
broker cannot renew, or the group has renewals switched off, that is logged once: batches that take longer
than a lock then lose it, and their records are recognized when they are redelivered (`ledger`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.pipeline.share_source.held_ranges import HeldRanges
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.ranges import OffsetRange, offset_count, subtract, union
from barnabas.pipeline.share_source.sessions import ShareSessions
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

ROUNDS_PER_LOCK: Final = 3
ROUNDS_REFUSED_MAX: Final = 2
"""Rounds without an accepted renewal. After them, all locks had ended if renewals were accepted before;
otherwise the group has them switched off. A broker gives the same error for both."""

_RENEW: Final = (int(AcknowledgeType.RENEW),)
_MS_PER_SECOND: Final = 1000


class Renewals:
    """The renewals of one member. `begin` whenever something was acquired, `stop` once."""

    def __init__(
        self, sessions: ShareSessions, held_ranges: HeldRanges, metrics: ShareMetrics, settling: asyncio.Lock
    ) -> None:
        """`settling` is locked while ranges are settled, so that these aren't renewed at the same time."""
        self._sessions = sessions
        self._held_ranges = held_ranges
        self._metrics = metrics
        self._settling = settling
        self._task: asyncio.Task[None] | None = None
        self._refused_round_count = 0
        self._has_renewed = False
        """Whether a renewal was accepted, since all locks had ended the last time."""
        self._is_hopeless = False

    @property
    def is_hopeless(self) -> bool:
        """Whether renewals have stopped for good."""
        return self._is_hopeless

    def begin(self) -> None:
        """Records are held: renews their locks until no record is held."""
        if self._is_hopeless or (self._task is not None and not self._task.done()):
            return
        if not self._sessions.can_renew:
            self._give_up("the broker is too old for it")
            return
        self._task = asyncio.get_running_loop().create_task(self._run())

    def raise_failure(self) -> None:
        """Raises the permanent error that has ended the renewals, if there is one."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    def stop(self) -> None:
        self._is_hopeless = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Raises `ConsumerError`."""
        while not self._is_hopeless and self._held_ranges.partitions:
            lock_ms = self._sessions.lock_ms
            if lock_ms is None:
                return
            await asyncio.sleep(lock_ms / ROUNDS_PER_LOCK / _MS_PER_SECOND)
            async with self._settling:
                await self._renew(lock_ms)

    async def _renew(self, lock_ms: int) -> None:
        """One round."""
        held = {partition: self._held_ranges.held(partition) for partition in self._held_ranges.partitions}
        deadline_ms = self._now_ms() + lock_ms
        settlement = {
            partition: [AckBatch(first, last, _RENEW) for first, last in ranges]
            for partition, ranges in held.items()
        }
        refused: dict[TopicIdPartition, list[OffsetRange]] = {}
        for partition, batch, _ in await self._sessions.settle(settlement):
            refused.setdefault(partition, []).append(OffsetRange(batch.first_offset, batch.last_offset))
        renewed_count = 0
        for partition, ranges in held.items():
            taken = subtract(ranges, union(refused.get(partition, [])))
            self._held_ranges.renew(partition, taken, deadline_ms)
            renewed_count += offset_count(taken)
        self._metrics.renewed += renewed_count
        self._note_refused(refused, renewed_count)

    def _note_refused(self, refused: dict[TopicIdPartition, list[OffsetRange]], renewed_count: int) -> None:
        """Handles refused renewals: those locks have ended, unless all renewals were refused."""
        if renewed_count:
            self._has_renewed = True
            self._refused_round_count = 0
            self._lose(refused)
        elif refused and self._held_ranges.partitions:
            self._refused_round_count += 1
            if self._refused_round_count >= ROUNDS_REFUSED_MAX:
                self._note_all_refused(refused)

    def _note_all_refused(self, refused: dict[TopicIdPartition, list[OffsetRange]]) -> None:
        if not self._has_renewed:
            self._give_up("the group has it switched off, or all locks had ended")
            return
        self._has_renewed = False
        self._refused_round_count = 0
        self._lose(refused)

    def _lose(self, ended: dict[TopicIdPartition, list[OffsetRange]]) -> None:
        for partition, ranges in ended.items():
            self._metrics.expired += self._held_ranges.lose(partition, ranges)

    def _give_up(self, reason: str) -> None:
        self._is_hopeless = True
        log.warning(
            "Locks are not renewed: %s. Batches should take less time than a lock does, or records are "
            "delivered to other members of the group as well.",
            reason,
        )

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * _MS_PER_SECOND)
