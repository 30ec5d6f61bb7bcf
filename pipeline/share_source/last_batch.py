"""The last batch of an earlier driver: finds the records that still belong to this query.

A restarted query acquires the records of that batch again (`reclaiming`). Other members may have got some of
them meanwhile.

    not in Spark's commit log    the batch is repeated without these, if `stateDir` keeps a note of it:
                                 a record that was left out once never comes back into this batch
    in Spark's commit log        they may be processed twice: by this query and by the other member

A record that no other member can get stays in a repeated batch: one that was delivered for the last time, one
that the log no longer holds (see `failOnDataLoss`), one of a deleted topic or group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from barnabas.pipeline.share_source.group import ShareGroup
from barnabas.pipeline.share_source.group_member import GroupMember
from barnabas.pipeline.share_source.held_ranges import Batch
from barnabas.pipeline.share_source.ledger import UNKNOWN_OFFSET, DoneLedger
from barnabas.pipeline.share_source.metrics import ShareMetrics
from barnabas.pipeline.share_source.offset import ShareOffset
from barnabas.pipeline.share_source.ranges import (
    AcquiredRange,
    OffsetRange,
    intersect,
    join_acquired,
    offset_count,
    partition_acquired,
    union,
)
from barnabas.pipeline.share_source.reclaiming import TakesIn, reclaim
from barnabas.pipeline.share_source.state_files import StateFiles
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

DELIVERY_COUNT_MIN: Final = 2
"""The least delivery limit of a group: stands for one that the broker doesn't report."""
RANGES_SHOWN_MAX: Final = 20
"""Ranges that one line of the log names."""


class LastBatch:
    """The last batch, at one start of a query."""

    def __init__(
        self,
        group: ShareGroup,
        member: GroupMember,
        files: StateFiles | None,
        metrics: ShareMetrics,
        take_in: TakesIn,
    ) -> None:
        """`take_in` gets all acquired ranges, and lets them wait in the member's held_ranges."""
        self._group = group
        self._member = member
        self._files = files
        self._metrics = metrics
        self._take_in = take_in

    async def repeat(self, offset: ShareOffset) -> ShareOffset:
        """The batch to be repeated; its locks are held, as far as it has any.

        Raises `PipelineError` and `ConsumerError`.
        """
        noted = None if self._files is None else await asyncio.to_thread(self._files.repeated, offset)
        before = dict(offset.batch if noted is None else noted.batch)
        sought = await self._sought(before)
        await self._write(offset, _delivered_again(before))
        missing = await reclaim(self._member, sought, self._take_in)
        reclaimed = {
            partition: self._member.held_ranges.take_out(partition, union(ranges))
            for partition, ranges in sought.items()
        }
        gone = await self._gone(missing)
        if self._files is None:
            self._report_kept(offset, gone)
            return offset
        after = _without(before, gone)
        await self._write(
            offset,
            {partition: _newest(after[partition], reclaimed.get(partition, [])) for partition in after},
        )
        self._report_omitted(offset, gone)
        return _restricted(offset, after)

    async def as_repeated(self, offset: ShareOffset) -> ShareOffset:
        """A batch that is done, without the ranges that an earlier driver left out when it repeated it."""
        noted = None if self._files is None else await asyncio.to_thread(self._files.repeated, offset)
        return offset if noted is None else _restricted(offset, noted.batch)

    async def confirm(
        self, offset: ShareOffset, done: Mapping[TopicIdPartition, list[OffsetRange]], ledger: DoneLedger
    ) -> None:
        """Acquires ranges that are done and not acknowledged, and reports those that are not available.

        `done` has the batch's ranges that were in the ledger before the group's start offsets were read.
        This query or another member has acknowledged the ranges below these offsets. Without `stateDir` the
        two cases can't be distinguished, and are not reported. Raises `PipelineError` and `ConsumerError`.
        """
        sought = await self._sought(_parts(offset.batch, ledger.ranges_of(offset.batch)))
        missing = await reclaim(self._member, sought, self._take_in)
        if self._files is not None:
            doubtful = {
                partition: union(
                    missing.get(partition, []), _in_front_of(ledger.start_offsets.get(partition), ranges)
                )
                for partition, ranges in done.items()
            }
            missing = _parts(offset.batch, doubtful)
        self._report_twice(offset, missing)

    async def _sought(self, batch: Batch) -> Batch:
        """The ranges that the group may deliver again."""
        known = {
            partition: ranges
            for partition, ranges in batch.items()
            if partition.topic_id in self._group.topic_names
        }
        positions = await self._group.known_positions(known)
        gone = {partition for partition, at in positions.items() if at.start_offset == UNKNOWN_OFFSET}
        return {partition: ranges for partition, ranges in known.items() if partition not in gone}

    async def _gone(self, missing: Batch) -> Batch:
        """The missing ranges that other members have or had."""
        if not missing:
            return {}
        count_max = await self._group.delivery_count_max() or DELIVERY_COUNT_MIN
        log_starts = await self._group.log_start_offsets(missing)
        gone: Batch = {}
        for partition, ranges in missing.items():
            deliverable = [
                acquired_range for acquired_range in ranges if acquired_range.delivery_count < count_max
            ]
            removed = OffsetRange(0, (log_starts.get(partition) or 0) - 1)
            rest, _ = partition_acquired(deliverable, [removed] if removed.last_offset >= 0 else [])
            if rest:
                gone[partition] = rest
        return gone

    async def _write(self, offset: ShareOffset, batch: Batch) -> None:
        if self._files is not None:
            omitted = described(offset, _without(dict(offset.batch), batch))
            await asyncio.to_thread(self._files.write_repeated, replace(offset, batch=batch), omitted)

    def _report_twice(self, offset: ShareOffset, missing: Batch) -> None:
        self._metrics.twice += _report(
            "Batch %d was done and not acknowledged when the query ended. Other members of the group may "
            "have got %d of its offsets, which are then processed twice: %s",
            offset,
            missing,
        )

    def _report_kept(self, offset: ShareOffset, gone: Batch) -> None:
        self._metrics.twice += _report(
            "Batch %d is repeated with %d offsets that other members of the group have got: %s. The option "
            "stateDir lets a query leave them out",
            offset,
            gone,
        )

    def _report_omitted(self, offset: ShareOffset, omitted: Batch) -> None:
        self._metrics.omitted += _report(
            "Batch %d is repeated without %d offsets that other members of the group have got: %s. If the "
            "sink had the batch already, these are processed twice",
            offset,
            omitted,
        )


def _report(message: str, offset: ShareOffset, ranges: Batch) -> int:
    """Logs the offsets, if there are any, with the number of the batch; returns how many there are."""
    count = sum(map(offset_count, ranges.values()))
    if count:
        log.warning(message, offset.sequence, count, described(offset, ranges))
    return count


def described(offset: ShareOffset, batch: Batch) -> str:
    """The ranges with their topics' names, `RANGES_SHOWN_MAX` at most."""
    ranges = [
        f"{offset.topics[partition.topic_id]}-{partition.partition} {first} to {last}"
        for partition in sorted(batch)
        for first, last in union(batch[partition])
    ]
    more = len(ranges) - RANGES_SHOWN_MAX
    return ", ".join(ranges[:RANGES_SHOWN_MAX]) + (f" and {more} more ranges" if more > 0 else "")


def _in_front_of(start_offset: int | None, ranges: list[OffsetRange]) -> list[OffsetRange]:
    """The offsets below the group's start offset."""
    return intersect(ranges, [OffsetRange(0, start_offset - 1)]) if start_offset else []


def _delivered_again(batch: Batch) -> Batch:
    """The ranges with one delivery more, in case the query dies before it can note the next deliveries: too
    high a count repeats a record, too low a count loses it."""
    return {
        partition: [
            acquired_range._replace(delivery_count=acquired_range.delivery_count + 1)
            for acquired_range in ranges
        ]
        for partition, ranges in batch.items()
    }


def _newest(ranges: Iterable[AcquiredRange], reclaimed: list[AcquiredRange]) -> list[AcquiredRange]:
    """The same offsets, with the new delivery counts of those that were acquired again."""
    others, _ = partition_acquired(ranges, union(reclaimed))
    return join_acquired([*others, *reclaimed])


def _restricted(offset: ShareOffset, batch: Mapping[TopicIdPartition, list[AcquiredRange]]) -> ShareOffset:
    """The offset with only these records of its batch; delivery counts are those of the first run."""
    return replace(
        offset, batch=_parts(offset.batch, {partition: union(batch[partition]) for partition in batch})
    )


def _parts(
    batch: Mapping[TopicIdPartition, list[AcquiredRange]],
    by: Mapping[TopicIdPartition, list[OffsetRange]],
) -> Batch:
    parts = {
        partition: partition_acquired(ranges, by.get(partition, []))[1] for partition, ranges in batch.items()
    }
    return {partition: ranges for partition, ranges in parts.items() if ranges}


def _without(batch: Batch, other: Batch) -> Batch:
    parts = {
        partition: partition_acquired(ranges, union(other.get(partition, [])))[0]
        for partition, ranges in batch.items()
    }
    return {partition: ranges for partition, ranges in parts.items() if ranges}
