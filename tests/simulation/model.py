"""What the clients of a run were told, and what therefore must be true: the yardstick of its checks.

The model knows nothing of how the broker works. It holds what was confirmed to whom and when, and raises
`Violation` where something that a client is told contradicts it. Where an answer was lost or two requests ran
side by side, it believes whatever either order allows. What an administrator resets opens a new generation,
of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from tests.conformance.share_member import RELEASE, RENEW


class Violation(AssertionError):  # noqa: N818  it is what was done, not a thing of its own
    """The broker broke a promise."""


@dataclass(slots=True)
class PartitionModel:
    """The records of one partition."""

    name: str
    sent: set[bytes] = field(default_factory=set[bytes])
    """Every value that a producer has ever sent here."""
    confirmed: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Values by offset, as producers were told."""
    offset_by_value: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Where values were seen, confirmed or not."""
    is_deleted: bool = False
    """The topic's deletion was asked for: nothing is promised any more."""
    generation: int = 0
    """Grows when records were lost that nobody promised to keep: an answer from before counts no more."""

    def confirm(self, base_offset: int, values: Sequence[bytes]) -> None:
        """A producer was told that its records are in the log from `base_offset` on."""
        if self.is_deleted:
            return
        for offset, value in enumerate(values, base_offset):
            known = self.confirmed.get(offset)
            if known is not None and known != value:
                raise Violation(f"{self.name}: {value!r} and {known!r} are both confirmed at {offset}")
            self.confirmed[offset] = value
            self._place(offset, value)

    def saw(self, records: Sequence[tuple[int, bytes | None]]) -> None:
        """A consumer got these records in one answer."""
        previous_offset = -1
        for offset, value in records:
            if offset <= previous_offset:
                raise Violation(f"{self.name}: offset {offset} came behind {previous_offset}")
            previous_offset = offset
            if value not in self.sent:
                raise Violation(f"{self.name}: nobody has sent {value!r}, which is at {offset}")
            known = self.confirmed.get(offset)
            if known is not None and known != value:
                raise Violation(f"{self.name}: {offset} holds {value!r}, confirmed was {known!r}")
            self._place(offset, value)

    def cut(self, log_end_offset: int, *, may_lose_confirmed: bool) -> None:
        """The log was recovered after a crash, and ends at `log_end_offset`."""
        lost = [offset for offset in self.confirmed if offset >= log_end_offset]
        if lost and not may_lose_confirmed:
            raise Violation(f"{self.name}: ends at {log_end_offset}, but {max(lost)} was confirmed")
        self.generation += may_lose_confirmed
        for offset in lost:
            del self.confirmed[offset]
        for value in [one for one, offset in self.offset_by_value.items() if offset >= log_end_offset]:
            del self.offset_by_value[value]

    def _place(self, offset: int, value: bytes) -> None:
        if self.offset_by_value.setdefault(value, offset) != offset:
            where = self.offset_by_value[value]
            raise Violation(f"{self.name}: {value!r} is at {where} and again at {offset}")


class Lease(NamedTuple):
    """A record that a member was told to hold."""

    member_id: str
    until_ms: float
    """It holds it until then at least."""
    is_in_force: Callable[[], bool]
    """Whether nothing has ended it that the holder needn't know of: a crash, a lost connection."""


class Fact(NamedTuple):
    """Something confirmed about a record."""

    what: int
    """An acknowledge type, or a delivery count."""
    told_ms: float
    log_end_offset: int
    """Where the log ended by then: if it still ends there or behind, this is recorded in it."""


@dataclass(slots=True)
class ShareModel:
    """One group's way through one partition."""

    name: str
    generation: int = 0
    leases: dict[int, Lease] = field(default_factory=dict[int, Lease])
    final: dict[int, Fact] = field(default_factory=dict[int, Fact])
    """By offset, the acknowledgement that was confirmed."""
    released: dict[int, Fact] = field(default_factory=dict[int, Fact])
    """By offset, the delivery count that a release was confirmed at."""
    delivered: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    """By offset, the count of the last delivery that a client was told of, and when it had asked for it."""
    acknowledged: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """By offset, every type that a member has ever sent, whatever came of it."""
    incarnation: int | None = None
    """The group's, as it was when something was confirmed."""
    was_reset: bool = False
    skipped_until: int = 0
    """Below this offset an administrator, or a group that begins at the latest record, has passed over."""

    def reset(self) -> None:
        """An administrator has reset the state, or is about to."""
        self.was_reset = True
        self.forget()

    def forget(self) -> None:
        """Whatever was promised holds no longer."""
        self.generation += 1
        self.leases.clear()
        self.final.clear()
        self.released.clear()

    def acquired(
        self,
        ranges: Iterable[tuple[int, int, int]],
        lease: Lease,
        *,
        sent_ms: float,
        now_ms: float,
        count_limit: Limit,
    ) -> None:
        """A member was told, in answer to a request sent at `sent_ms`, that it holds these ranges."""
        for first_offset, last_offset, delivery_count in ranges:
            for offset in range(first_offset, last_offset + 1):
                self._check_count(offset, delivery_count, sent_ms, count_limit)
                self._check_delivery(offset, delivery_count, sent_ms)
                if now_ms < lease.until_ms and lease.is_in_force():
                    self._lease(offset, lease, now_ms)

    def _check_count(self, offset: int, delivery_count: int, sent_ms: float, limit: Limit) -> None:
        """The limit that counts is the one in force when the delivery before ended, as in Kafka."""
        before_count, before_ms = self.delivered.get(offset, (0, 0.0))
        since_ms = (
            sent_ms if delivery_count == 1 else before_ms if delivery_count == before_count + 1 else 0.0
        )
        count_max = max(limit.values_since(since_ms))
        if not 1 <= delivery_count <= count_max:
            raise Violation(f"{self.name}: {offset} is delivered with count {delivery_count} of {count_max}")
        self.delivered[offset] = delivery_count, sent_ms

    def _check_delivery(self, offset: int, delivery_count: int, sent_ms: float) -> None:
        final, released = self.final.get(offset), self.released.get(offset)
        if final is not None and final.told_ms <= sent_ms:
            raise Violation(f"{self.name}: {offset} is delivered again; type {final.what} was confirmed")
        if released is not None and released.told_ms <= sent_ms and delivery_count <= released.what:
            raise Violation(
                f"{self.name}: {offset} is delivered with count {delivery_count}; a release at "
                f"{released.what} was confirmed"
            )

    def _lease(self, offset: int, lease: Lease, now_ms: float) -> None:
        held = self.leases.get(offset)
        if held is not None and now_ms < held.until_ms and held.is_in_force():
            raise Violation(
                f"{self.name}: {offset} is given to {lease.member_id} while {held.member_id} holds it"
            )
        self.leases[offset] = lease

    def renewed(self, offsets: Iterable[int], lease: Lease) -> None:
        """A member was told that it holds these records for longer."""
        for offset in offsets:
            if offset in self.leases:
                self.leases[offset] = lease

    def give_up(self, member_id: str, offsets: Iterable[int] | None = None) -> None:
        """The member has sent something by which it may lose these records, or all that it has."""
        for offset in list(self.leases if offsets is None else offsets):
            lease = self.leases.get(offset)
            if lease is not None and lease.member_id == member_id:
                del self.leases[offset]

    def confirm(
        self, acknowledged: Mapping[int, tuple[int, int]], now_ms: float, log_end_offset: int
    ) -> None:
        """A member was told that its acknowledgements hold: type and delivery count by offset."""
        for offset, (ack_type, delivery_count) in acknowledged.items():
            if ack_type == RELEASE:
                self.released[offset] = Fact(delivery_count, now_ms, log_end_offset)
            elif ack_type != RENEW:
                self.final[offset] = Fact(ack_type, now_ms, log_end_offset)

    def cut(self, log_end_offset: int) -> None:
        """Power was lost without a promise for it: what was written behind this is gone."""
        self.generation += 1
        self.leases.clear()
        for facts in (self.final, self.released):
            for offset in [one for one, fact in facts.items() if fact.log_end_offset > log_end_offset]:
                del facts[offset]


class Limit:
    """A setting of a group that changes while requests are under way."""

    def __init__(self, value: int) -> None:
        self._until_ms_by_value: dict[int, float] = {value: inf}

    def change(self, value: int) -> None:
        """It is about to change, or may have."""
        self._until_ms_by_value[value] = inf

    def settle(self, value: int, now_ms: float) -> None:
        """The change was confirmed."""
        for other, until_ms in self._until_ms_by_value.items():
            if other != value:
                self._until_ms_by_value[other] = min(until_ms, now_ms)

    def unsettle(self) -> None:
        """Changes may have been lost."""
        for value in self._until_ms_by_value:
            self._until_ms_by_value[value] = inf

    def values_since(self, ms: float) -> list[int]:
        """What it may have been at some time from `ms` on."""
        return [value for value, until_ms in self._until_ms_by_value.items() if until_ms >= ms]


class GroupModel:
    """A group's limits, as far as anyone was told."""

    def __init__(self, delivery_count_max: int, lock_duration_ms: int) -> None:
        self.delivery_count_max = Limit(delivery_count_max)
        self.lock_duration_ms = Limit(lock_duration_ms)


class Model:
    """All that was ever promised in a run."""

    def __init__(self, delivery_count_max: int, lock_duration_ms: int) -> None:
        self.partitions: dict[TopicIdPartition, PartitionModel] = {}
        self.shares: dict[SharePartitionKey, ShareModel] = {}
        self.groups: dict[str, GroupModel] = {}
        self._defaults = delivery_count_max, lock_duration_ms

    def partition(self, partition: TopicIdPartition) -> PartitionModel:
        return self.partitions.setdefault(
            partition, PartitionModel(f"{partition.topic_id.hex[:4]}-{partition.partition}")
        )

    def share(self, group_id: str, partition: TopicIdPartition) -> ShareModel:
        key = SharePartitionKey(group_id, *partition)
        name = f"{group_id}/{partition.topic_id.hex[:4]}-{partition.partition}"
        return self.shares.setdefault(key, ShareModel(name))

    def group(self, group_id: str) -> GroupModel:
        return self.groups.setdefault(group_id, GroupModel(*self._defaults))

    def shares_of(self, group_id: str) -> list[ShareModel]:
        return [share for key, share in self.shares.items() if key.group_id == group_id]

    def forget_topic(self, topic_id: UUID) -> None:
        """It is about to be deleted: nothing is promised of it any more."""
        for partition, known in self.partitions.items():
            if partition.topic_id == topic_id:
                known.is_deleted = True
                known.confirmed.clear()
        for key, share in self.shares.items():
            if key.topic_id == topic_id:
                share.forget()
