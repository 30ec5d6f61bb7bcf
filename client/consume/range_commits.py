"""Commits of a consumer's ranges: when they are due, in which requests, and after a refusal.

All processed records of all partitions are committed together, in requests of at most REQUEST_RANGES_MAX
ranges. A commit is due at intervals (if automatic), and with more than `max_num_ranges_to_commit` ranges.

The broker limits the ranges of a partition. If it refuses some, they are halved, the lower half first,
because a range that touches the stable offset adds none. If a single range is refused, the partition is
*full*: it keeps its ranges and delivers nothing until the broker accepts its lowest range.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.offset_commits import OffsetCommits
from barnabas.client.errors import BrokerError, CommitFailedError, ConsumerError
from barnabas.client.group.offsets import GroupMetadata
from barnabas.client.group.ranges import REQUEST_RANGES_MAX, RangesToCommit, commit_group_ranges
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.client.waiting.patience import Retries
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)


class _Portion(NamedTuple):
    """Ranges of one partition that fit into one request."""

    name: TopicPartition
    partition: TopicIdPartition
    progress: IndividualProgress
    era: int
    ranges: list[OffsetRange]

    def give_back(self) -> None:
        self.progress.give_back(self.ranges, self.era)

    def halves(self) -> list[_Portion]:
        middle = len(self.ranges) // 2
        return [self._replace(ranges=self.ranges[:middle]), self._replace(ranges=self.ranges[middle:])]


class RangeCommits(Generic[KeyT, ValueT]):
    """`run` it in a task."""

    def __init__(
        self,
        coordinators: Coordinators,
        commits: OffsetCommits[KeyT, ValueT],
        assignment: Assignment[KeyT, ValueT],
        settings: ConsumerSettings,
        retries: Retries,
        counts: Counter[str],
        on_room: Callable[[], None],
    ) -> None:
        """`on_room` is called when a full partition may be read again."""
        self._coordinators = coordinators
        self._commits = commits
        self._assignment = assignment
        self._settings = settings
        self._retries = retries
        self._counts = counts
        self._on_room = on_room
        self._due = Signal()
        self._will_count = False
        self._turn = asyncio.Lock()

    def note_processed(self) -> None:
        """There are more ranges to commit; they are counted once in a turn of the loop."""
        if not self._will_count:
            self._will_count = True
            asyncio.get_running_loop().call_soon(self._count)

    def _count(self) -> None:
        self._will_count = False
        if self.waiting_count > self._settings.max_num_ranges_to_commit:
            self._due.set()

    @property
    def waiting_count(self) -> int:
        """The ranges that wait to be committed."""
        return sum(progress.processed_count for _, progress in _individual(self._assignment))

    async def run(self) -> None:
        """Commit when it is due, until cancelled."""
        while True:
            await self._due.wait(self._pause_ms())
            self._due.clear()
            await self.commit_quietly()

    async def commit(self) -> None:
        """Commit all processed records. Waits while the broker holds too many ranges.

        Raises `CommitFailedError`, `BrokerError` (INVALID_COMMIT_OFFSET_SIZE if the stable offset does not
        move in time; the ranges are kept), and `BrokerUnavailableError`.
        """
        patience = self._retries.patience()
        while (refused := await self._commit(self._assignment)) is not None:
            await patience.pause(refused)

    async def commit_quietly(
        self, partitions: Iterable[AssignedPartition[KeyT, ValueT]] | None = None
    ) -> None:
        """Commit the processed records of these partitions, or of all. An error is only logged."""
        if not self._commits.is_member:
            return
        try:
            await self._commit(self._assignment if partitions is None else partitions)
        except ConsumerError as error:
            log.warning("A commit of ranges failed, and will be repeated: %s", error)

    async def begin(self, positions: Mapping[TopicIdPartition, int]) -> None:
        """Commit the positions at which a group without committed offsets begins."""
        commits = {partition: RangesToCommit(begins_at=position) for partition, position in positions.items()}
        await self._commits.as_member(lambda member: commit_group_ranges(self._coordinators, member, commits))

    def _pause_ms(self) -> int | None:
        is_full = any(progress.is_full for _, progress in _individual(self._assignment))
        settings = self._settings
        return settings.auto_commit_interval_ms if settings.enable_auto_commit or is_full else None

    async def _commit(self, partitions: Iterable[AssignedPartition[KeyT, ValueT]]) -> BrokerError | None:
        """Returns the refusal of a partition that is full."""
        async with self._turn:
            portions = deque(_portions(partitions))
            refused: BrokerError | None = None
            try:
                while portions:
                    lot = _next_lot(portions)
                    refused = await self._send(lot, portions) or refused
            finally:
                for portion in portions:
                    portion.give_back()
            return refused

    async def _send(self, lot: Collection[_Portion], portions: deque[_Portion]) -> BrokerError | None:
        try:
            refusals = await self._commits.as_member(lambda member: self._request(member, lot))
        except BaseException:
            for portion in lot:
                portion.give_back()
            raise
        self._counts["commit-total"] += 1
        full: BrokerError | None = None
        for portion in lot:
            refusal = refusals.get(portion.partition)
            if refusal is None:
                self._note_committed(portion)
            elif len(portion.ranges) > 1:
                portions.extendleft(reversed(portion.halves()))
            else:
                full = refusal
                self._note_full(portion, portions)
        return full

    async def _request(
        self, member: GroupMetadata, lot: Collection[_Portion]
    ) -> dict[TopicIdPartition, BrokerError]:
        """One attempt. The member's present epoch stands for its present shares: with it, ranges of a share
        that was lost would count for the one that has replaced it.
        """
        if any(portion.progress.is_given_up for portion in lot):
            raise CommitFailedError(member.group_id, "the consumer has given up partitions meanwhile")
        # A group keeps its committed offset. The position counts only if an administrator has deleted it.
        commits = {
            portion.partition: RangesToCommit(portion.ranges, portion.progress.begins_at) for portion in lot
        }
        return await commit_group_ranges(self._coordinators, member, commits)

    def _note_committed(self, portion: _Portion) -> None:
        portion.progress.note_committed_ranges(portion.ranges)
        if portion.progress.is_full:
            portion.progress.is_full = False
            self._on_room()

    def _note_full(self, refused: _Portion, portions: deque[_Portion]) -> None:
        """Keep all ranges of the partition for later."""
        if not refused.progress.is_full:
            log.warning(
                "The group has too many ranges beyond the committed offset of %s-%d; this consumer delivers "
                "no more records of it until the committed offset moves",
                *refused.name,
            )
            refused.progress.is_full = True
            self._due.set()  # from now on, commits are tried at intervals
        refused.give_back()
        for portion in [portion for portion in portions if portion.progress is refused.progress]:
            portions.remove(portion)
            portion.give_back()


def _individual(
    partitions: Iterable[AssignedPartition[KeyT, ValueT]],
) -> list[tuple[AssignedPartition[KeyT, ValueT], IndividualProgress]]:
    return [(partition, partition.individual) for partition in partitions if partition.individual is not None]


def _portions(partitions: Iterable[AssignedPartition[KeyT, ValueT]]) -> Iterator[_Portion]:
    """All processed ranges. Those of a full partition begin with the lowest one alone."""
    for partition, progress in _individual(partitions):
        ranges = progress.take_processed()
        start = 0
        while start < len(ranges):
            end = 1 if progress.is_full and start == 0 else start + REQUEST_RANGES_MAX
            yield _Portion(
                partition.name, partition.ownership.partition, progress, progress.era, ranges[start:end]
            )
            start = end


def _next_lot(portions: deque[_Portion]) -> list[_Portion]:
    """Takes the first portions that fit into one request, each of another partition."""
    lot = [portions.popleft()]
    count = len(lot[0].ranges)
    while portions and portions[0].partition != lot[-1].partition:
        count += len(portions[0].ranges)
        if count > REQUEST_RANGES_MAX:
            break
        lot.append(portions.popleft())
    return lot
