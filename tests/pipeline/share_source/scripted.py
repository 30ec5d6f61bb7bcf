"""A group of one topic partition under a test's control, in place of `ShareGroup` and without a broker.

It has a state for each offset, as a broker has, and delivers the available records in order. A test may let
locks end, and lose acknowledgements before or after they were processed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, cast
from uuid import UUID

from barnabas.pipeline.share_requests import AckBatches
from barnabas.pipeline.share_source.group_admin import GroupPosition
from barnabas.pipeline.share_source.held_ranges import Batch, HeldRanges
from barnabas.pipeline.share_source.leader_session import Fetched, LeaderSession
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.ranges import AcquiredRange, join_acquired
from barnabas.pipeline.share_source.settling import Unsettled, settle
from barnabas.pipeline.share_source.verdicts import RELEASE
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

ORDERS = TopicIdPartition(UUID(int=1), 0)
DELIVERY_COUNT_MAX = 1_000
FOREVER_MS = 2**62
PRODUCED_TOGETHER = 7
"""A fetch acquires this number of records, or none."""

Loss = Literal["request", "answer"]


class ScriptedGroup:
    """The broker's state; also the `ShareGroup` and its member, for one driver after the other."""

    def __init__(self, offset_count: int) -> None:
        self.available = dict.fromkeys(range(offset_count), 0)
        """By offset, how often it was delivered before."""
        self.locked: dict[int, int] = {}
        self.assignment: frozenset[TopicIdPartition] = frozenset({ORDERS})
        self.topic_names = {ORDERS.topic_id: "orders"}
        self.end_offset = offset_count
        self.next_loss: Loss | None = None
        """The fate of the next acknowledgement."""
        self.told_start_offset: int | None = None
        """A start offset that the coordinator reports instead of the true one."""
        self.is_reading = self.is_answered = True
        self.held_ranges = HeldRanges()
        self.members: list[ScriptedGroup] = [self]
        """The members of the group, which share `available`."""

    def another_member(self) -> ScriptedGroup:
        """One more member of the same group."""
        other = ScriptedGroup(0)
        other.available, other.end_offset = self.available, self.end_offset
        self.members.append(other)
        other.members = self.members
        return other

    @property
    def start_offset(self) -> int:
        locked = (offset for one in self.members for offset in one.locked)
        return min((*self.available, *locked), default=self.end_offset)

    def end_locks(self) -> None:
        """All locks end, and the member does not learn of it."""
        self.available |= {one: count for one, count in self.locked.items() if count < DELIVERY_COUNT_MAX}
        self.locked = {}

    # As a `ShareGroup`.

    async def open(self) -> None:
        """Nothing is needed."""

    async def close(self) -> None:
        self.end_locks()

    def join(self, _member_id: str, _metrics: ShareMetrics) -> ScriptedGroup:
        self.held_ranges = HeldRanges()
        return self

    def topic_name(self, topic_id: UUID) -> str | None:
        return self.topic_names.get(topic_id)

    async def positions(
        self, partitions: Iterable[TopicIdPartition]
    ) -> dict[TopicIdPartition, GroupPosition]:
        lag = len(self.available) + len(self.locked)
        start_offset = self.start_offset if self.told_start_offset is None else self.told_start_offset
        return dict.fromkeys(partitions, GroupPosition(start_offset, lag))

    known_positions = positions

    async def log_start_offsets(self, partitions: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
        return dict.fromkeys(partitions, 0)

    async def delivery_count_max(self) -> int:
        return DELIVERY_COUNT_MAX

    async def end_offsets(self) -> dict[TopicIdPartition, int]:
        return {ORDERS: self.end_offset}

    # As a `GroupMember`.

    async def fetch(self, record_count: int, _max_wait_ms: int) -> Sequence[Fetched]:
        return self._deliver(-(-record_count // PRODUCED_TOGETHER) * PRODUCED_TOGETHER)

    def _deliver(self, count: int) -> Sequence[Fetched]:
        offsets = sorted(self.available)[:count] if self.assignment else []
        acquired = join_acquired(AcquiredRange(one, one, self.available[one] + 1) for one in offsets)
        for one in offsets:
            self.locked[one] = self.available.pop(one) + 1
        return [Fetched({ORDERS: acquired}, [], FOREVER_MS)] if acquired else []

    async def fetch_from(
        self, _partitions: frozenset[TopicIdPartition], record_count: int, _max_wait_ms: int
    ) -> Sequence[Fetched]:
        return self._deliver(record_count)

    async def release(self, _batch: Batch) -> None:
        """A driver that is gone has no locks."""

    def keep(self) -> None:
        """Locks hold until `end_locks`."""

    async def settle(self, settlement: AckBatches) -> list[Unsettled]:
        loss, self.next_loss = self.next_loss, None
        refused = [] if loss == "request" else await settle(cast("LeaderSession", self), settlement)
        if loss is None:
            return refused
        self.end_locks()
        self.held_ranges.lose(ORDERS)
        return [
            Unsettled(partition, batch, ErrorCode.network_exception)
            for partition, batches in settlement.items()
            for batch in batches
        ]

    # As a `LeaderSession`.

    async def acknowledge(self, settlement: AckBatches) -> dict[TopicIdPartition, ErrorCode]:
        return {partition: self._take(batches) for partition, batches in settlement.items()}

    def _take(self, batches: Sequence[AckBatch]) -> ErrorCode:
        if not self.locked.keys() >= {one for batch in batches for one in _offsets(batch)}:
            return ErrorCode.invalid_record_state
        for batch in batches:
            delivered = {one: self.locked.pop(one) for one in _offsets(batch)}
            if RELEASE in batch.types:
                self.available |= delivered
        return ErrorCode.none


def _offsets(batch: AckBatch) -> range:
    return range(batch.first_offset, batch.last_offset + 1)
