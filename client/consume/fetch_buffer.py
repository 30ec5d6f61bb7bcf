"""The queue between fetches and polls: fetched slices wait here, within a bound of bytes.

A partition is fetched again while at most `max_partition_bytes` of it wait, and less than `prefetch_bytes` of
all together. So the next fetch is under way while the application works, and an application that does not
poll stops the fetches. Partitions take turns: one with a long queue does not delay the others.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Generic

from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.consumer_record import ConsumerRecord
from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.errors import UnreadableRecordError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.waiting.signal import Signal


class FetchBuffer(Generic[KeyT, ValueT]):
    """The slices of all partitions."""

    def __init__(
        self, settings: ConsumerSettings, assignment: Assignment[KeyT, ValueT], counts: Counter[str]
    ) -> None:
        self.news = Signal()
        """Set when a reader should look again."""
        self._settings = settings
        self._assignment = assignment
        self._counts = counts
        self._turns: deque[AssignedPartition[KeyT, ValueT]] = deque()
        """Partitions with slices, the next to deliver first; some may have lost theirs meanwhile."""
        self._end: BaseException | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes that wait."""
        return sum(partition.buffered_bytes for partition in self._assignment)

    def has_room(self, partition: AssignedPartition[KeyT, ValueT]) -> bool:
        """Whether the partition may be fetched now, apart from the bound for all."""
        return partition.buffered_bytes <= self._settings.max_partition_bytes

    def add(self, partition: AssignedPartition[KeyT, ValueT], slice_: FetchedSlice[KeyT, ValueT]) -> None:
        if partition not in self._turns:
            self._turns.append(partition)
        partition.slices.append(slice_)
        partition.buffered_bytes += slice_.size_bytes
        self._counts["bytes-consumed-total"] += slice_.size_bytes
        self.news.set()

    def take(self, count_max: int) -> list[ConsumerRecord[KeyT, ValueT]]:
        """At most `count_max` records.

        Raises the error of a partition, or the error that ended the consumer, if there is no record before
        it.
        """
        taken: list[ConsumerRecord[KeyT, ValueT]] = []
        self.check_open()
        idle_count = 0
        while len(taken) < count_max and idle_count < len(self._turns):
            partition = self._turns[0]
            if not partition.slices:
                self._turns.popleft()
                continue
            if not partition.is_readable:
                idle_count += 1
                self._turns.rotate(-1)
                continue
            try:
                self._take_from(partition, count_max, taken)
            except UnreadableRecordError:
                if not taken:
                    raise
                break
            idle_count = 0
        if not taken:
            self._raise_error()
        self._counts["records-consumed-total"] += len(taken)
        return taken

    def end(self, reason: BaseException) -> None:
        """Polls raise this from now on."""
        self._end = self._end or reason
        self.news.set()

    def check_open(self) -> None:
        """Raises the error that ended the consumer."""
        if self._end is not None:
            raise self._end

    def take_decoded(self) -> ConsumerRecord[KeyT, ValueT] | None:
        """The next record if it is decoded already; `take` is for all other cases."""
        if self._end is not None or not self._turns:
            return None
        partition = self._turns[0]
        if not partition.slices or not partition.is_readable:
            return None
        found = partition.slices[0].take_decoded()
        if found is None:
            return None
        record, next_offset = found
        self._assignment.deliver(partition, (record,), next_offset)
        self._counts["records-consumed-total"] += 1
        return record

    def _take_from(
        self,
        partition: AssignedPartition[KeyT, ValueT],
        count_max: int,
        taken: list[ConsumerRecord[KeyT, ValueT]],
    ) -> None:
        """Take from the partition's first slice. When it is exhausted, the next partition has its turn."""
        slice_, position = partition.slices[0], partition.progress.position
        assert position is not None, "a slice belongs to a position"
        try:
            records, next_offset = slice_.take(position, count_max - len(taken))
        except UnreadableRecordError as error:
            self._assignment.deliver(partition, (), error.offset)
            raise
        self._assignment.deliver(partition, records, next_offset)
        taken += records
        if slice_.is_exhausted:
            partition.slices.popleft()
            partition.buffered_bytes -= slice_.size_bytes
            self._turns.rotate(-1)
            self._assignment.on_change()

    def _raise_error(self) -> None:
        for partition in self._assignment:
            if partition.error is not None and partition.is_readable:
                raise partition.error
