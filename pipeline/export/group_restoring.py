"""Moves groups of the target to their positions in the source, by offsets of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.leaders import Leaders
from barnabas.client.errors import BrokerError
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.committed_offsets import commit, commit_ranges
from barnabas.pipeline.export.in_flight import Inexact, InFlightReplay, WantedState
from barnabas.pipeline.export.manifest import (
    AVAILABLE,
    CommittedOffset,
    CommittedRange,
    ConsumerGroup,
    InFlight,
    ShareGroup,
    SharePosition,
)
from barnabas.pipeline.export.offset_marks import Place
from barnabas.pipeline.export.requests import with_retries
from barnabas.pipeline.export.restore_partition import RestoredPartition
from barnabas.pipeline.export.restore_state import RestoredTopic
from barnabas.pipeline.export.settings import Kind, apply_settings
from barnabas.pipeline.export.share_groups import alter_start_offsets
from barnabas.pipeline.export.target_limits import TargetLimits, read_limits
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

EARLY_SETTINGS: Final = frozenset(
    {
        "errors.deadletterqueue.copy.record.enable",
        "errors.deadletterqueue.topic.name",
        "share.auto.offset.reset",
        "share.dead.letter.copy.headers.enable",
        "share.dead.letter.on.failure",
        "share.delay.header",
        "share.delayed.records.max",
        "share.delivery.count.limit",
        "share.isolation.level",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
    }
)
"""The settings by which the records in flight are restored: limits, dead letters, and the header with a
delay, because the target itself holds back the records that wait by their own delay.

All others are set afterwards. Those that decide which records a member gets, and when, would keep records
from the member that repeats the group's work.
"""


class GroupRestorer:
    """Restores groups one after another; each may be restored again. `close` it once."""

    def __init__(
        self,
        cluster: Cluster,
        topics: Mapping[str, RestoredTopic],
        partitions: Sequence[RestoredPartition],
    ) -> None:
        self._cluster = cluster
        self._leaders = Leaders(cluster)
        self._topics = topics
        self._places = {(partition.topic, partition.partition): partition.places for partition in partitions}

    def close(self) -> None:
        self._leaders.close()

    async def restore_share_group(self, group: ShareGroup) -> list[str]:
        """Restores settings, start offsets and records in flight; returns refusals and inexact states.

        Raises `PipelineError` if the group has members, and the client's errors.
        """
        early = {name: value for name, value in group.settings.items() if name in EARLY_SETTINGS}
        late = {name: value for name, value in group.settings.items() if name not in early}
        # An earlier run may have set them. A target that does not know them refuses that, too.
        await apply_settings(self._cluster, Kind.GROUP, group.group_id, dict.fromkeys(late))
        refused = await apply_settings(self._cluster, Kind.GROUP, group.group_id, early)
        settings = {name: value for name, value in early.items() if name not in refused}
        notes = list(refused.values())
        await self._set_starts(group)
        for position in group.positions:
            notes += await self._restore_in_flight(replace(group, settings=settings), position)
        notes += (await apply_settings(self._cluster, Kind.GROUP, group.group_id, late)).values()
        return notes

    async def _set_starts(self, group: ShareGroup) -> None:
        starts = {
            (position.topic, position.partition): self._place(position, position.start_offset).offset
            for position in group.positions
        }
        try:
            await alter_start_offsets(self._cluster, group.group_id, starts)
        except BrokerError as error:
            if error.code is ErrorCode.non_empty_group:
                raise PipelineError(
                    f"The share group {group.group_id} has members in the target: stop them, and try again."
                ) from error
            raise

    async def restore_consumer_group(self, group: ConsumerGroup) -> list[str]:
        """Commits the group's offsets and ranges; returns a sentence if the target refuses them."""
        offsets = [self._in_target(committed) for committed in group.offsets]
        try:
            await commit(self._cluster, group.group_id, offsets)
        except BrokerError as error:
            return [f"The offsets of the consumer group {group.group_id} are refused: {error}"]
        return await self._restore_ranges(group.group_id, offsets)

    def _in_target(self, committed: CommittedOffset) -> CommittedOffset:
        """The offset and the ranges by offsets of the target, without ranges that have no records there."""
        places = self._places[committed.topic, committed.partition]
        ranges = [
            CommittedRange(
                places[committed_range.first_offset].offset,
                places[committed_range.last_offset + 1].offset - 1,
            )
            for committed_range in committed.ranges
        ]
        kept = tuple(
            committed_range
            for committed_range in ranges
            if committed_range.first_offset <= committed_range.last_offset
        )
        return replace(committed, offset=places[committed.offset].offset, ranges=kept)

    async def _restore_ranges(self, group_id: str, offsets: Sequence[CommittedOffset]) -> list[str]:
        """Commits the ranges beyond the offsets, which are of the target."""
        ranges = {
            TopicIdPartition(
                UUID(self._topics[committed.topic].topic_id), committed.partition
            ): committed.ranges
            for committed in offsets
            if committed.ranges
        }
        try:
            await commit_ranges(self._cluster, group_id, ranges)
        except BrokerError as error:
            range_count = sum(map(len, ranges.values()))
            told = f"The consumer group {group_id} gets records again that it has committed individually"
            return [f"{told}, in {counted(range_count, 'range')}: {error}"]
        return []

    async def _restore_in_flight(self, group: ShareGroup, position: SharePosition) -> list[str]:
        name = f"{position.topic}-{position.partition}"
        told = f"The share group {group.group_id} gets"
        if position.in_flight is None:
            return [f"{told} the records of {name} again that it accepted above its start."]
        wanted, record_count = self._wanted(position)
        if not wanted:
            return []
        partition = TopicIdPartition(UUID(self._topics[position.topic].topic_id), position.partition)
        limits = await with_retries(lambda: self._limits(group, partition))
        inexact = await self._replay(group.group_id, partition, limits, wanted, record_count)
        notes: list[str] = []
        if inexact.new_count:
            records = counted(inexact.new_count, "record")
            notes.append(
                f"{told} {records} of {name} as if they were new: the target locks "
                f"{limits.locks_max} at a time (share.partition.max.record.locks)."
            )
        if inexact.less_delivered_count:
            records = counted(inexact.less_delivered_count, "record")
            notes.append(
                f"{told} {records} of {name} once more, with lower delivery "
                f"counts than before: the target allows {limits.deliveries_max} "
                "(share.delivery.count.limit)."
            )
        if inexact.lost_letter_count:
            records = counted(inexact.lost_letter_count, "record")
            notes.append(
                f"{told} no dead letters for {records} of {name} that waited for "
                "them: the target writes none for the group (errors.deadletterqueue.topic.name)."
            )
        return notes

    async def _limits(self, group: ShareGroup, partition: TopicIdPartition) -> TargetLimits:
        connection = await self._leaders.connection(partition)
        node_id = self._cluster.view.leader(partition)
        assert node_id is not None, "it is connected to"
        return await read_limits(connection, node_id, group.group_id, group.settings)

    async def _replay(
        self,
        group_id: str,
        partition: TopicIdPartition,
        limits: TargetLimits,
        wanted: Sequence[WantedState],
        record_count: int,
    ) -> Inexact:
        connection = await with_retries(lambda: self._leaders.connection(partition))
        try:
            return await InFlightReplay(connection, group_id, partition, limits).run(wanted, record_count)
        except BrokerError as error:
            # A leader with the group's state in memory only learns now that the state was set again.
            if error.code is not ErrorCode.fenced_state_epoch:
                raise
        return await InFlightReplay(connection, group_id, partition, limits).run(wanted, record_count)

    def _wanted(self, position: SharePosition) -> tuple[list[WantedState], int]:
        """The states by offsets of the target up to the last record that was delivered, and the number of
        records from the start offset on without those that never were.
        """
        start = self._place(position, position.start_offset)
        wanted: list[WantedState] = []
        end, waiting_count = start, 0
        in_flight = list(position.in_flight or ())
        while in_flight and _was_never_delivered(in_flight[-1]):
            in_flight.pop()
        for records in in_flight:
            first = self._place(position, records.first_offset)
            behind = self._place(position, records.last_offset + 1)
            if first.position < behind.position:
                wanted.append(WantedState(first.offset, behind.offset, records.state, records.delivery_count))
                end = behind
                waiting_count += _was_never_delivered(records) * (behind.position - first.position)
        return wanted, end.position - start.position - waiting_count

    def _place(self, position: SharePosition, offset: int) -> Place:
        return self._places[position.topic, position.partition][offset]


def _was_never_delivered(records: InFlight) -> bool:
    """Whether these records wait for their first delivery."""
    return records.state == AVAILABLE and not records.delivery_count
