"""The partitions that a consumer has now, each with its state.

A fetched slice belongs to one `generation` of its partition: after a `seek` the older slices are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Generic

from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.ownership import Ownership
from barnabas.client.consume.progress import HasOffset, OrderedProgress, Progress
from barnabas.client.errors import ConsumerError, MisuseError
from barnabas.client.record_content import KeyT, ValueT
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.identity import TopicIdPartition


class AssignedPartition(Generic[KeyT, ValueT]):
    """One partition, from its assignment to its revocation."""

    __slots__ = (
        "buffered_bytes",
        "end_offset",
        "error",
        "fetch_offset",
        "generation",
        "individual",
        "is_held",
        "is_paused",
        "name",
        "ordered",
        "ownership",
        "progress",
        "reset_to",
        "retry_at_ms",
        "slices",
    )

    def __init__(
        self, ownership: Ownership, topic: str, individual: IndividualProgress | None = None
    ) -> None:
        self.ownership = ownership
        self.name = TopicPartition(topic, ownership.partition.partition)
        self.individual = individual
        """The progress if offsets are committed individually."""
        self.ordered: OrderedProgress | None = None
        """The progress otherwise."""
        self.progress: Progress
        if individual is None:
            self.progress = self.ordered = OrderedProgress()
        else:
            self.progress = individual
        self.generation = 0
        self.fetch_offset: int | None = None
        """The next offset to fetch; None until the position is known."""
        self.reset_to: int | None = None
        """EARLIEST or LATEST: find the position there. None with an unknown position: look for the committed
        offset."""
        self.is_paused = False
        self.is_held = True
        """Whether the partition is being assigned or revoked; nothing is delivered meanwhile."""
        self.error: ConsumerError | None = None
        """Polls raise it until the application seeks."""
        self.retry_at_ms = 0
        """When to fetch again after an error."""
        self.slices: deque[FetchedSlice[KeyT, ValueT]] = deque()
        self.buffered_bytes = 0
        self.end_offset: int | None = None
        """The end of the readable records, as of the last fetch."""

    @property
    def is_readable(self) -> bool:
        is_full = self.individual is not None and self.individual.is_full
        return not (self.is_paused or self.is_held or is_full)

    @property
    def needs_position(self) -> bool:
        return self.fetch_offset is None and self.error is None

    @property
    def needs_ranges(self) -> bool:
        """Whether the group's committed ranges must be known before the partition is read."""
        return self.individual is not None and not self.individual.is_known and self.error is None

    @property
    def lag(self) -> int | None:
        """Records between the position and the end, as of the last fetch."""
        position, end_offset = self.progress.position, self.end_offset
        return None if position is None or end_offset is None else max(end_offset - position, 0)

    def seek(self, offset: int) -> None:
        """Continue at this offset; fetched records are dropped."""
        self.drop_slices()
        self.progress.seek(offset)
        self.fetch_offset = offset
        self.reset_to = None

    def reset(self, reset_to: int) -> None:
        """Continue at EARLIEST or LATEST."""
        self.drop_slices()
        self.progress.lose_position()
        self.fetch_offset = None
        self.reset_to = reset_to

    def go_back(self) -> None:
        """Continue at the first record that the group has not committed."""
        self.drop_slices()
        self.progress.lose_position()
        if self.individual is not None:
            self.individual.forget_uncommitted()
        self.fetch_offset = self.reset_to = None

    def fail(self, error: ConsumerError) -> None:
        """Deliver nothing, and raise the error, until the application seeks."""
        self.drop_slices()
        self.fetch_offset = None
        self.error = error

    def drop_slices(self) -> None:
        self.generation += 1
        self.slices.clear()
        self.buffered_bytes = 0
        self.error = None
        self.retry_at_ms = 0


class Assignment(Generic[KeyT, ValueT]):
    """The partitions by name and by id."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        """`on_change` is called when there may be more to fetch or to find."""
        self.on_change = on_change
        self._by_name: dict[TopicPartition, AssignedPartition[KeyT, ValueT]] = {}
        self._by_id: dict[TopicIdPartition, AssignedPartition[KeyT, ValueT]] = {}
        self._unsettled: list[AssignedPartition[KeyT, ValueT]] = []
        """Partitions with records that were delivered since the last `settle`."""

    def __iter__(self) -> Iterator[AssignedPartition[KeyT, ValueT]]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def owned(self) -> frozenset[Ownership]:
        return frozenset(partition.ownership for partition in self)

    @property
    def names(self) -> frozenset[TopicPartition]:
        return frozenset(self._by_name)

    @property
    def fetched(self) -> frozenset[TopicIdPartition]:
        """The partitions to fetch from."""
        return frozenset(self._by_id)

    def find(self, partition: TopicIdPartition) -> AssignedPartition[KeyT, ValueT] | None:
        return self._by_id.get(partition)

    def named(self, name: TopicPartition) -> AssignedPartition[KeyT, ValueT]:
        """The partition. Raises `MisuseError` if it is not assigned to this consumer."""
        found = self._by_name.get(TopicPartition(*name))
        if found is None:
            raise MisuseError(f"{name[0]}-{name[1]} is not assigned to this consumer.")
        return found

    def select(self, names: Collection[TopicPartition] | None) -> list[AssignedPartition[KeyT, ValueT]]:
        """These partitions, or all. Raises `MisuseError` if one is not assigned."""
        return list(self) if names is None else [self.named(name) for name in names]

    def add(self, partitions: Collection[AssignedPartition[KeyT, ValueT]]) -> None:
        for partition in partitions:
            self._by_name[partition.name] = partition
            self._by_id[partition.ownership.partition] = partition

    def remove(self, partitions: Collection[AssignedPartition[KeyT, ValueT]]) -> None:
        for partition in partitions:
            partition.drop_slices()
            partition.is_held = True
            if partition.individual is not None:
                partition.individual.give_up()
            del self._by_name[partition.name]
            del self._by_id[partition.ownership.partition]

    def deliver(
        self, partition: AssignedPartition[KeyT, ValueT], records: Sequence[HasOffset], next_offset: int
    ) -> None:
        """These records have been delivered; the partition has no others before `next_offset`."""
        partition.progress.deliver(records, next_offset)
        if not self._unsettled or self._unsettled[-1] is not partition:
            self._unsettled.append(partition)

    def settle(self) -> None:
        """The application has processed all records that were delivered."""
        for partition in self._unsettled:
            partition.progress.settle()
        self._unsettled.clear()

    def to_commit(
        self, partitions: Collection[AssignedPartition[KeyT, ValueT]] | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that are processed and not committed."""
        found: dict[TopicPartition, int] = {}
        for partition in self if partitions is None else partitions:
            offset = None if partition.ordered is None else partition.ordered.to_commit()
            if offset is not None:
                found[partition.name] = offset
        return found

    def note_committed(self, name: TopicPartition, offset: int) -> None:
        found = self._by_name.get(name)
        if found is not None and found.ordered is not None:
            found.ordered.note_committed(offset)
