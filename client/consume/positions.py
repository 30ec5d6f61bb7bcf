"""Finds where to continue: the committed offset of each partition, or the start or end of its log.

Errors are retried while a partition needs a position. A lasting error ends the consumer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Generic

from barnabas.client.cluster.coordinators import Coordinators
from barnabas.client.cluster.topics import EARLIEST, LATEST, Topics
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.group_beginnings import GroupBeginnings
from barnabas.client.consume.offset_commits import OffsetCommits
from barnabas.client.errors import (
    BrokerError,
    BrokerUnavailableError,
    CommitFailedError,
    NoOffsetError,
    TopicGoneError,
    UnknownTopicError,
)
from barnabas.client.group.offsets import fetch_group_offsets
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.waiting.signal import Signal
from barnabas.protocol.errors import ErrorCode

log = logging.getLogger(__name__)

_MS_PER_SECOND: Final = 1000
_RESETS: Final = {"earliest": EARLIEST, "latest": LATEST}
_OF_MEMBERSHIP: Final = frozenset(
    {ErrorCode.stale_member_epoch, ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch}
)
"""Errors that end with the next heartbeat."""


class Positions(Generic[KeyT, ValueT]):
    """`run` it in a task; `look_again` when a partition may need a position."""

    def __init__(
        self,
        assignment: Assignment[KeyT, ValueT],
        commits: OffsetCommits[KeyT, ValueT],
        coordinators: Coordinators,
        topics: Topics,
        beginnings: GroupBeginnings[KeyT, ValueT],
        settings: ConsumerSettings,
        on_failure: Callable[[], None],
    ) -> None:
        """`coordinators` and `topics` should give up at the first error.

        `on_failure` is called when a partition has an error for the next poll.
        """
        self._assignment = assignment
        self._commits = commits
        self._coordinators = coordinators
        self._topics = topics
        self._beginnings = beginnings
        self._settings = settings
        self._on_failure = on_failure
        self._news = Signal()
        self._found = Signal()

    def look_again(self) -> None:
        """A partition may need a position."""
        self._news.set()

    async def run(self) -> None:
        """Find positions until cancelled. Raises `BrokerError` for a lasting error."""
        backoff = self._settings.backoff()
        while True:
            self._news.clear()
            wanting = [
                partition
                for partition in self._assignment
                if partition.needs_position or partition.needs_ranges
            ]
            if not wanting:
                await self._news.wait(None)
                continue
            failure = await self._find(wanting)
            self._found.set()
            self._assignment.on_change()
            if failure is None:
                backoff.reset()
                continue
            log.debug("Positions of the group were not found: %s", failure)
            await asyncio.sleep(backoff.next_ms() / _MS_PER_SECOND)

    async def wait(self, partition: AssignedPartition[KeyT, ValueT]) -> int:
        """The position, once it is known. Raises the partition's error."""
        while partition.progress.position is None or partition.needs_ranges:
            if partition.error is not None:
                raise partition.error
            self._found.clear()
            self.look_again()
            await self._found.wait(None)
        return partition.progress.position

    def reset_out_of_range(self, partition: AssignedPartition[KeyT, ValueT]) -> None:
        """The log does not hold the position: apply the policy."""
        position = partition.progress.position
        reset_to = _RESETS.get(self._settings.auto_offset_reset)
        if reset_to is None:
            self._fail(partition, position)
        elif partition.individual is not None:
            log.info("%s-%d begins after offset %s; the first record is next", *partition.name, position)
            partition.reset(EARLIEST)
        else:
            log.info("%s-%d does not hold offset %s; the position is reset", *partition.name, position)
            partition.reset(reset_to)
        self._news.set()
        self._assignment.on_change()

    async def _find(self, wanting: Sequence[AssignedPartition[KeyT, ValueT]]) -> Exception | None:
        """One try for each partition. Returns a temporary error."""
        failure: Exception | None = None
        try:
            await self._find_committed([partition for partition in wanting if partition.individual is None])
            await self._find_ranges([partition for partition in wanting if partition.needs_ranges])
        except (BrokerUnavailableError, CommitFailedError, TopicGoneError, UnknownTopicError) as error:
            failure = error
        except BrokerError as error:
            if error.code not in _OF_MEMBERSHIP:
                raise
            failure = error
        wanting = [partition for partition in wanting if partition.needs_position]
        by_reset: dict[tuple[str, int], list[AssignedPartition[KeyT, ValueT]]] = {}
        for partition in wanting:
            if partition.reset_to is not None:
                by_reset.setdefault((partition.name.topic, partition.reset_to), []).append(partition)
        for (topic, reset_to), partitions in by_reset.items():
            try:
                await self._find_in_log(topic, reset_to, partitions)
            except (BrokerUnavailableError, TopicGoneError, UnknownTopicError) as error:
                failure = error
        return failure

    async def _find_ranges(self, wanting: Sequence[AssignedPartition[KeyT, ValueT]]) -> None:
        without = await self._beginnings.find(wanting) if wanting else []
        reset_to = _RESETS.get(self._settings.auto_offset_reset)
        for partition in without if reset_to is None else ():
            if partition.needs_position and partition.reset_to is None:
                self._fail(partition, None)
        beginning = [
            partition for partition in without if partition.error is None and partition.reset_to is None
        ]
        if beginning:
            await self._beginnings.begin(beginning, EARLIEST if reset_to is None else reset_to)

    async def _find_committed(self, wanting: Sequence[AssignedPartition[KeyT, ValueT]]) -> None:
        wanting = [partition for partition in wanting if partition.reset_to is None]
        if not wanting:
            return
        generations = [partition.generation for partition in wanting]
        names = [partition.name for partition in wanting]
        found = await fetch_group_offsets(self._coordinators, self._commits.reader_metadata, names)
        for partition, generation in zip(wanting, generations, strict=True):
            if (
                partition.generation != generation
                or not partition.needs_position
                or partition.reset_to is not None
            ):
                continue
            committed = found.get(partition.name)
            if committed is not None:
                partition.seek(committed.offset)
                self._assignment.note_committed(partition.name, committed.offset)
                continue
            partition.reset_to = _RESETS.get(self._settings.auto_offset_reset)
            if partition.reset_to is None:
                self._fail(partition, None)

    def _fail(self, partition: AssignedPartition[KeyT, ValueT], position: int | None) -> None:
        partition.fail(NoOffsetError(*partition.name, position))
        self._on_failure()

    async def _find_in_log(
        self, topic: str, reset_to: int, wanting: Sequence[AssignedPartition[KeyT, ValueT]]
    ) -> None:
        generations = [partition.generation for partition in wanting]
        await self._topics.find([topic])
        found = await self._topics.offsets(
            [partition.ownership.partition for partition in wanting], reset_to, self._settings.isolation
        )
        for partition, generation in zip(wanting, generations, strict=True):
            if partition.generation == generation and partition.needs_position:
                partition.seek(found[partition.ownership.partition] or 0)
