"""Makes batches of the records that a query acquires, and settles the batches when they are done.

Spark asks for the offset behind `start` only when everything up to `start` is done, so this call acknowledges
the batch. (`commit` comes only after the next batch was acquired, which the locks of this one might prevent.)
Acknowledgements that are not confirmed go into the ledger, and with it into the next offset.

All methods run on one loop, one call at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from barnabas.client.errors import BrokerUnavailableError, ConsumerError
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.available_now import AvailableNow
from barnabas.pipeline.share_source.decisions import NONE, DecisionFiles, Decisions
from barnabas.pipeline.share_source.group import ShareGroup, explained
from barnabas.pipeline.share_source.group_admin import GroupPosition
from barnabas.pipeline.share_source.group_member import GroupMember
from barnabas.pipeline.share_source.last_batch import LastBatch
from barnabas.pipeline.share_source.leader_session import Fetched
from barnabas.pipeline.share_source.ledger import UNKNOWN_OFFSET, DoneLedger
from barnabas.pipeline.share_source.metrics import UNKNOWN_LAG, ShareMetrics
from barnabas.pipeline.share_source.offset import RANGES_PER_BATCH_MAX, ShareOffset
from barnabas.pipeline.share_source.ranges import OffsetRange, offset_count
from barnabas.pipeline.share_source.settings import RECORDS_PER_BATCH_MAX, ShareSettings
from barnabas.pipeline.share_source.state_files import StateFiles
from barnabas.pipeline.share_source.verdicts import ACCEPT, REJECT, redelivered, verdicts_on
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import TopicIdPartition

log = logging.getLogger(__name__)

ACQUIRE_MS_MAX: Final = 5_000
"""The longest time to fill a batch: producers may write faster than the query acquires."""
POSITIONS_MS: Final = 5_000
"""The time between two requests for the group's start offsets and lag."""
POSITIONS_IDLE_MS: Final = 1_000
"""The same while no records come, so that the progress soon shows that the group is done."""
AVAILABLE_NOW_FETCH_MS: Final = 100
"""The least wait of a fetch with Trigger.AvailableNow, which fetches again until the run is over."""

_MS_PER_SECOND: Final = 1000

_Settlement = dict[TopicIdPartition, list[AckBatch]]


class ShareBatches:
    """The batches of one query, from one start of its driver to the end. `close` it once."""

    def __init__(self, settings: ShareSettings) -> None:
        self._settings = settings
        self._files = None if settings.ack_dir is None else DecisionFiles(settings.ack_dir)
        self._group: ShareGroup | None = None
        self._member: GroupMember | None = None
        self._metrics = ShareMetrics()
        self._ledger = DoneLedger()
        self._finished: int | None = None
        """The sequence of the newest batch that was settled; None before the first start was seen."""
        self._next: ShareOffset | None = None
        """The last returned offset: its batch is under way, or Spark never runs it."""
        self._state = None if settings.state_dir is None else StateFiles(settings.state_dir)
        self._last: LastBatch | None = None
        self._under_way: ShareOffset | None = None
        """The last batch that Spark runs, without the ranges that were left out of it."""
        self._finishing: asyncio.Task[None] | None = None
        self._now: AvailableNow | None = None
        self._positions_due_ms = 0

    @property
    def metrics(self) -> ShareMetrics:
        return self._metrics

    async def prepare_available_now(self) -> None:
        """Notes the ends of all partitions: later records belong to later runs. Raises `PipelineError`."""
        try:
            group = await self._opened()
            ends = await group.end_offsets()
        except ConsumerError as error:
            raise explained(error, self._settings.group) from error
        self._now = AvailableNow(ends, self._settings.available_now_wait_ms, self._now_ms())

    async def next_offset(self, start: ShareOffset, count_max: int | None) -> ShareOffset | None:
        """Settles the batch that ended at `start`, and acquires the next one; None without new records.

        `count_max` is the greatest number of its offsets. Raises `PipelineError` for permanent errors.
        """
        try:
            await self._begin(start)
            if self._next is not None and self._next.sequence > start.sequence:
                return self._next
            await self._finish(start)
            await self._look_at_positions()
            return await self._acquire(start, min(count_max or RECORDS_PER_BATCH_MAX, RECORDS_PER_BATCH_MAX))
        except ConsumerError as error:
            raise explained(error, self._settings.group) from error

    async def begin_batch(self, end: ShareOffset) -> ShareOffset:
        """Spark is about to run a batch, maybe again. Returns the batch with the ranges to read.

        Removes the decisions of earlier batches. Raises `PipelineError`.
        """
        if self._files is not None:
            await asyncio.to_thread(self._files.clear)
        if self._under_way is None or self._under_way.sequence != end.sequence:
            try:
                await self._begin(end)
                await self._forget_what_was_reset()
                self._under_way = await self._entered_last.repeat(end)
            except ConsumerError as error:
                raise explained(error, self._settings.group) from error
        return self._under_way

    async def close(self) -> None:
        """Releases the held records, and leaves the group. At the next start Spark repeats a batch under way.
        A committed batch is acknowledged first."""
        if self._group is None:
            return
        try:
            await self._settle_if_committed()
        except (ConsumerError, PipelineError) as error:
            log.warning("The last batch was not acknowledged: %s", error)
        finally:
            await self._group.close()

    # The start.

    async def _opened(self) -> ShareGroup:
        if self._group is None:
            group = ShareGroup(self._settings)
            try:
                await group.open()
            except BaseException:
                await group.close()
                raise
            self._group = group
        return self._group

    async def _begin(self, start: ShareOffset) -> None:
        """Joins the group, with the state of an earlier driver in `start`."""
        if self._member is not None:
            return
        if start.group_id != self._settings.group:
            raise PipelineError(
                f"group: the checkpoint belongs to {start.group_id}, not to {self._settings.group}; "
                "another group needs another checkpoint."
            )
        group = await self._opened()
        if self._state is not None:
            await asyncio.to_thread(self._state.forget_stop_request)
        self._metrics = replace(start.metrics, lag=UNKNOWN_LAG)
        self._ledger = DoneLedger(start.done, start.rejected, start.start_offsets)
        for partition in list(self._ledger.partitions):
            if self._is_made_anew(group, start, partition):
                self._ledger.forget(partition)
        self._member = group.join(start.member_id, self._metrics)
        self._last = LastBatch(group, self._member, self._state, self._metrics, self._take_in)

    def _is_made_anew(self, group: ShareGroup, start: ShareOffset, partition: TopicIdPartition) -> bool:
        """Whether a subscribed topic has the name of this partition's topic, and another id."""
        name = start.topics.get(partition.topic_id)
        return partition.topic_id not in group.topic_names and name in group.topic_names.values()

    # The end of a batch.

    async def _finish(self, start: ShareOffset) -> None:
        """Settles the batch that ended at `start`, once. Goes on if the caller is interrupted."""
        if self._finishing is None or self._finishing.done():
            self._finishing = asyncio.get_running_loop().create_task(self._finish_once(start))
        await asyncio.shield(self._finishing)

    async def _finish_once(self, start: ShareOffset) -> None:
        if self._finished == start.sequence:
            return
        under_way = self._under_way
        if under_way is not None and under_way.sequence == start.sequence:
            await self._settle_batch(under_way)
            if self._finished is None:
                await self._forget_what_was_reset()
            await self._note_settled(under_way)
        elif self._finished is None:
            await self._finish_of_earlier(start)
        self._finished = start.sequence
        self._next = None
        if self._now is not None:
            self._now.go_on(self._now_ms())

    async def _finish_of_earlier(self, start: ShareOffset) -> None:
        """An earlier driver ran the batch, and may have died before it was acknowledged."""
        if self._state is not None and await asyncio.to_thread(self._state.is_settled, start):
            await self._forget_what_was_reset()
            return
        batch = await self._entered_last.as_repeated(start)
        await self._settle_batch(batch)
        done = self._ledger.ranges_of(batch.batch)
        await self._forget_what_was_reset()
        await self._entered_last.confirm(batch, done, self._ledger)
        await self._note_settled(batch)

    async def _settle_batch(self, batch: ShareOffset) -> None:
        decisions = await self._decisions()
        settlement: _Settlement = {}
        for partition, verdicts in verdicts_on(batch, decisions).items():
            held = self._entered.held_ranges.settle(
                partition, [*verdicts.accept, *verdicts.release, *verdicts.reject]
            )
            verdicts.note_lost(partition, held, self._ledger)
            settlement[partition] = verdicts.of(held)
            self._metrics.released += offset_count(verdicts.release)
            self._metrics.rejected += offset_count(verdicts.reject)
        await self._settle(settlement)

    async def _note_settled(self, batch: ShareOffset) -> None:
        """Notes that the batch is settled, in case the driver dies before Spark logs the next offset."""
        if self._state is None or not batch.batch:
            return
        if not any(self._ledger.ranges_of(batch.batch).values()):
            await asyncio.to_thread(self._state.write_settled, batch)

    async def _settle_if_committed(self) -> None:
        """Acknowledges the last batch if the note in `stateDir` says that Spark has committed it."""
        if self._finishing is not None:
            await asyncio.wait([self._finishing])
        last = self._under_way
        if last is None or self._state is None:
            return
        if await asyncio.to_thread(self._state.is_committed, last):
            await self._finish(last)

    async def _is_asked_to_stop(self) -> bool:
        return self._state is not None and await asyncio.to_thread(self._state.is_asked_to_stop)

    async def _decisions(self) -> Decisions:
        """Reads in another thread: a slow store must not delay heartbeats and renewals."""
        return NONE if self._files is None else await asyncio.to_thread(self._files.read)

    async def _settle(self, settlement: _Settlement) -> None:
        """Acknowledges at the broker; the ledger keeps the ranges that it doesn't confirm."""
        accepted: dict[TopicIdPartition, list[OffsetRange]] = {}
        rejected: dict[TopicIdPartition, list[OffsetRange]] = {}
        for partition, batch, code in await self._entered.settle(settlement):
            first, last, types = batch
            log.debug("%s %d to %d was not acknowledged: %s", partition, first, last, code.name)
            self._metrics.expired += last - first + 1
            if ACCEPT in types:
                accepted.setdefault(partition, []).append(OffsetRange(first, last))
            elif REJECT in types:
                rejected.setdefault(partition, []).append(OffsetRange(first, last))
        for partition, ranges in accepted.items():
            self._ledger.note_done(partition, ranges)
        for partition, ranges in rejected.items():
            self._ledger.note_rejected(partition, ranges)

    # Positions.

    async def _forget_what_was_reset(self) -> None:
        """After a start, before anything is acquired: forgets the ledger if the group was reset."""
        assert self._group is not None
        if self._ledger.partitions:
            partitions = self._entered.assignment | self._ledger.partitions
            self._note_positions(await self._group.known_positions(partitions), is_start=True)

    async def _look_at_positions(self) -> None:
        if self._now_ms() >= self._positions_due_ms:
            await self._positions()

    async def _positions(self) -> Mapping[TopicIdPartition, GroupPosition] | None:
        """Asks for the group's positions, and updates the ledger and the lag."""
        assert self._group is not None
        positions = await self._group.positions(self._entered.assignment | self._ledger.partitions)
        self._note_positions(positions or {}, is_start=False)
        return positions

    def _note_positions(self, positions: Mapping[TopicIdPartition, GroupPosition], *, is_start: bool) -> None:
        self._positions_due_ms = self._now_ms() + POSITIONS_MS
        for partition, (start_offset, _) in positions.items():
            if not is_start and start_offset < self._ledger.start_offsets.get(partition, UNKNOWN_OFFSET):
                continue  # no user can reset a group with members: a broker has lost its last records
            if self._ledger.note_start_offset(partition, start_offset):
                log.warning(
                    "The group %s was reset in %s: its records are read again",
                    self._settings.group,
                    partition,
                )
        lags = [positions[partition].lag for partition in self._entered.assignment if partition in positions]
        if lags and min(lags) >= 0:
            self._metrics.lag = sum(lags)

    # The next batch.

    async def _acquire(self, start: ShareOffset, count_max: int) -> ShareOffset | None:
        while not await self._is_asked_to_stop():
            await self._fill(count_max)
            end = self._take_batch(start, count_max)
            if end is not None:
                return end
            self._positions_due_ms = min(self._positions_due_ms, self._now_ms() + POSITIONS_IDLE_MS)
            if self._now is None:
                return None
            positions = await self._positions()
            assignment = self._entered.assignment
            self._now.note_assignment(assignment, self._now_ms())
            self._now.note_read(self._entered.is_reading, self._now_ms())
            if self._now.is_over(assignment, positions, self._now_ms()):
                return None
        return None

    async def _fill(self, count_max: int) -> None:
        """Acquires until there is enough for a batch, or nothing new comes."""
        held_ranges, before = self._entered.held_ranges, self._end_offsets
        until_ms = self._now_ms() + ACQUIRE_MS_MAX
        while self._now_ms() < until_ms:
            self._metrics.expired += held_ranges.expire(self._now_ms())
            waiting_count = held_ranges.waiting_count(before)
            if waiting_count >= count_max and not self._ledger.is_over_bound:
                return
            max_wait_ms = 0 if waiting_count else self._max_wait_ms
            missing_count = count_max - waiting_count
            redelivered_count = await self._fetch(
                missing_count if missing_count > 0 else count_max, max_wait_ms
            )
            if not redelivered_count and held_ranges.waiting_count(before) <= waiting_count:
                return

    async def _fetch(self, count: int, max_wait_ms: int) -> int:
        """Holds new ranges, settles those of the ledger; returns the number of offsets from the ledger."""
        deduplicated = self._metrics.deduplicated
        try:
            fetched = await self._entered.fetch(count, max_wait_ms)
        except BrokerUnavailableError as error:
            log.info("Nothing can be acquired for the moment: %s", error)
            return 0
        for answer in fetched:
            await self._take_in(answer)
        return self._metrics.deduplicated - deduplicated

    async def _take_in(self, fetched: Fetched) -> None:
        again: _Settlement = {}
        for partition, acquired in fetched.acquired.items():
            found = self._ledger.sort(partition, acquired)
            self._metrics.acquired += offset_count(acquired)
            self._metrics.expired += self._entered.held_ranges.acquire(
                partition, found.new, fetched.lock_deadline_ms
            )
            batches = redelivered(found.accept, ACCEPT) + redelivered(found.reject, REJECT)
            if batches:
                again[partition] = sorted(batches)
        self._entered.keep()
        if again:
            await self._settle_again(again)

    async def _settle_again(self, settlement: _Settlement) -> None:
        ranges = {
            partition: [OffsetRange(*batch[:2]) for batch in batches]
            for partition, batches in settlement.items()
        }
        self._metrics.deduplicated += sum(map(offset_count, ranges.values()))
        for partition, confirmed in ranges.items():
            self._ledger.confirm(partition, confirmed)
        await self._settle(settlement)  # unconfirmed ranges go back into the ledger
        if self._now is not None:
            self._now.note_news(self._now_ms())

    def _take_batch(self, start: ShareOffset, count_max: int) -> ShareOffset | None:
        range_count_max = min(RANGES_PER_BATCH_MAX, self._ledger.room)
        if self._entered.held_ranges.waiting_count(self._end_offsets):
            self._ledger.check_bound()
        batch = self._entered.held_ranges.take_batch(count_max, range_count_max, self._end_offsets)
        if not batch:
            return None
        assert self._group is not None
        self._metrics.emitted += sum(map(offset_count, batch.values()))
        if self._now is not None:
            self._now.note_news(self._now_ms())
        names = {
            partition.topic_id: self._group.topic_name(partition.topic_id)
            for partition in batch.keys() | self._ledger.partitions
        }
        known = self._ledger.start_offsets
        self._next = ShareOffset(
            group_id=start.group_id,
            member_id=start.member_id,
            sequence=start.sequence + 1,
            topics={topic_id: name or start.topics.get(topic_id, "") for topic_id, name in names.items()},
            batch=batch,
            done=dict(self._ledger.done),
            rejected=dict(self._ledger.rejected),
            start_offsets={
                partition: known.get(partition, UNKNOWN_OFFSET)
                for partition in batch.keys() | self._ledger.partitions
            },
            metrics=replace(self._metrics),
        )
        self._under_way = self._next
        return self._next

    @property
    def _entered_last(self) -> LastBatch:
        assert self._last is not None, "the group was not joined"
        return self._last

    @property
    def _entered(self) -> GroupMember:
        assert self._member is not None, "the group was not joined"
        return self._member

    @property
    def _max_wait_ms(self) -> int:
        max_wait_ms = self._settings.max_wait_ms
        return max_wait_ms if self._now is None else max(max_wait_ms, AVAILABLE_NOW_FETCH_MS)

    @property
    def _end_offsets(self) -> Mapping[TopicIdPartition, int] | None:
        return None if self._now is None else self._now.end_offsets

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * _MS_PER_SECOND)
