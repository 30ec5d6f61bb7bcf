"""The answers that the clients of a run got, and the facts that follow from them: the yardstick of its
checks.

The model does not know how the broker works. It keeps the confirmations of all clients with their times, and
raises `Violation` if an answer contradicts them. Where an answer was lost, or two requests overlapped, it
accepts the results of both orders. A reset by an administrator begins a new generation, about which nothing
is known.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from tests.conformance.share_member import RELEASE, RENEW

BACKOFF_MAX_MS = 2_000
"""`share.retry.backoff.max.ms` of all groups with a back-off."""
_JITTER = 0.2
"""The default of `share.retry.backoff.jitter`."""
_TRIES_MS_MAX = 600_000
"""A producer repeats a batch for less than this time."""
_PRODUCER_EXPIRATION_MS = 86_400_000
"""The default of `producer.id.expiration.ms`."""


class Violation(AssertionError):  # noqa: N818  named as an event
    """The broker broke a promise."""


@dataclass(slots=True)
class PartitionModel:
    """The records of one partition."""

    name: str
    sent: set[bytes] = field(default_factory=set[bytes])
    """Every value that producers have sent here."""
    confirmed: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Confirmed values by offset."""
    offset_by_value: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """The offset at which each value was seen, confirmed or not."""
    repeated_since: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """The values that idempotent producers send until they are confirmed, and the lowest wall time since the
    first try.
    """
    repeatable: set[bytes] = field(default_factory=set[bytes])
    """Values that may be in the log several times, because their producer expired between two tries."""
    is_deleted: bool = False
    """A client requested the topic's deletion: nothing is promised any longer."""
    generation: int = 0
    """Grows when records were lost that were not promised to survive. An answer from before no longer counts.
    """

    @contextmanager
    def repeating(self, values: Sequence[bytes], wall_ms: int) -> Generator[None]:
        """An idempotent producer sends these values from now on, until this context ends."""
        self.repeated_since.update(dict.fromkeys(values, wall_ms))
        try:
            yield
        finally:
            for value in values:
                del self.repeated_since[value]

    def set_clock(self, wall_ms: int) -> None:
        """The broker's clock was set to this time.

        As in Apache Kafka, the broker forgets a producer whose last batch is older than
        `producer.id.expiration.ms`, and takes the next try for a new batch.
        """
        for value, since_ms in self.repeated_since.items():
            self.repeated_since[value] = min(since_ms, wall_ms)
            if wall_ms + _TRIES_MS_MAX - since_ms >= _PRODUCER_EXPIRATION_MS:
                self.repeatable.add(value)

    def confirm(self, base_offset: int, values: Sequence[bytes]) -> None:
        """A producer got the confirmation that its records are in the log from `base_offset` on."""
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
                raise Violation(f"{self.name}: offset {offset} came after {previous_offset}")
            previous_offset = offset
            if value not in self.sent:
                raise Violation(f"{self.name}: no producer has sent {value!r}, which is at {offset}")
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
        if self.offset_by_value.setdefault(value, offset) != offset and value not in self.repeatable:
            where = self.offset_by_value[value]
            raise Violation(f"{self.name}: {value!r} is at {where} and again at {offset}")


class Lease(NamedTuple):
    """A record that a member holds, according to the broker's answer."""

    member_id: str
    until_ms: float
    """The member holds it at least until then."""
    is_in_force: Callable[[], bool]
    """False after an event that may end the lock without an answer to the holder: a crash, a lost connection.
    """


class Fact(NamedTuple):
    """Something confirmed about a record."""

    what: int
    """An acknowledge type, or a delivery count."""
    told_ms: float
    log_end_offset: int
    """The log's end at that time. If the log still ends there or later, this fact is in it."""


class Wait(NamedTuple):
    """A record whose release was confirmed is not delivered before `until_ms`, unless the broker's wall clock
    was set since (it has been set `clock_changes` times), because due times are wall-clock times.
    """

    until_ms: float
    clock_changes: int


@dataclass(slots=True)
class ShareModel:
    """One group's progress in one partition."""

    name: str
    generation: int = 0
    leases: dict[int, Lease] = field(default_factory=dict[int, Lease])
    final: dict[int, Fact] = field(default_factory=dict[int, Fact])
    """By offset, the confirmed acknowledgement."""
    released: dict[int, Fact] = field(default_factory=dict[int, Fact])
    """By offset, the delivery count of a confirmed release."""
    waits: dict[int, Wait] = field(default_factory=dict[int, Wait])
    """By offset, the wait of a record after its last confirmed release."""
    delivered: dict[int, tuple[int, float]] = field(default_factory=dict[int, tuple[int, float]])
    """By offset, the delivery count of the last delivery that a client received, and when the client had sent
    its request.
    """
    acknowledged: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """By offset, every type that a member has ever sent, with or without success."""
    administered: dict[int, int] = field(default_factory=dict[int, int])
    """By offset, the number of releases that an administrator has requested, with or without success. Records
    whose archiving was requested are there, too."""
    administered_until_ms: dict[int, float] = field(default_factory=dict[int, float])
    """By offset, the time of the answer to an administrator's last release; infinite while it is missing."""
    disputed_until_ms: dict[int, float] = field(default_factory=dict[int, float])
    """By offset, the time of the answer to an administrator's last change; infinite while it is missing. A
    fetch that was sent before may have been executed before the change."""
    incarnation: int | None = None
    """The group's incarnation when something was confirmed."""
    was_reset: bool = False
    skipped_until: int = 0
    """An administrator, or a group that begins at the latest record, has skipped the records below this
    offset.
    """

    def reset(self) -> None:
        """An administrator has reset the state, or is about to."""
        self.was_reset = True
        self.forget()

    def forget(self) -> None:
        """No earlier promise holds any longer."""
        self.generation += 1
        self.leases.clear()
        self.final.clear()
        self.released.clear()
        self.waits.clear()

    def acquired(
        self,
        ranges: Iterable[tuple[int, int, int]],
        lease: Lease,
        *,
        sent_ms: float,
        now_ms: float,
        count_limit: Limit,
        clock_changes: int = 0,
    ) -> None:
        """In answer to a request sent at `sent_ms`, a member acquired these ranges."""
        for first_offset, last_offset, delivery_count in ranges:
            for offset in range(first_offset, last_offset + 1):
                self._check_count(offset, delivery_count, sent_ms, count_limit)
                self._check_delivery(offset, delivery_count, sent_ms)
                self._check_wait(offset, delivery_count, now_ms, clock_changes)
                if now_ms < lease.until_ms and lease.is_in_force():
                    self._lease(offset, lease, sent_ms, now_ms)

    def _check_count(self, offset: int, delivery_count: int, sent_ms: float, limit: Limit) -> None:
        """The limit that counts was in force when the previous delivery ended, as in Kafka. If an
        administrator's release ended it, the record is delivered once more, and no limit counts
        (docs/decisions/0027): the limit may have been lowered below the previous count before.
        """
        before_count, before_ms = self.delivered.get(offset, (0, 0.0))
        if delivery_count == 1:
            count_max = max(limit.values_since(sent_ms))
        elif delivery_count != before_count + 1:
            count_max = max(limit.values_since(0)) + self.administered.get(offset, 0)
        elif self.administered_until_ms.get(offset, -inf) < before_ms:
            count_max = max(limit.values_since(before_ms))
        else:
            count_max = delivery_count
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

    def _check_wait(self, offset: int, delivery_count: int, now_ms: float, clock_changes: int) -> None:
        """An earlier delivery whose answer arrives late tells nothing of the wait."""
        released = self.released.get(offset)
        if released is not None and delivery_count <= released.what:
            return
        wait = self.waits.pop(offset, None)
        if wait is not None and now_ms < wait.until_ms and clock_changes == wait.clock_changes:
            raise Violation(f"{self.name}: {offset} is delivered at {now_ms}, and is due at {wait.until_ms}")

    def _lease(self, offset: int, lease: Lease, sent_ms: float, now_ms: float) -> None:
        if sent_ms < self.disputed_until_ms.get(offset, 0.0):
            return
        held = self.leases.get(offset)
        if held is not None and now_ms < held.until_ms and held.is_in_force():
            raise Violation(
                f"{self.name}: {offset} is given to {lease.member_id} while {held.member_id} holds it"
            )
        self.leases[offset] = lease

    def renewed(self, offsets: Iterable[int], lease: Lease) -> None:
        """A member got the confirmation that its locks on these records were renewed."""
        for offset in offsets:
            if offset in self.leases:
                self.leases[offset] = lease

    def begin_change(self, offsets: Iterable[int], *, releases: bool) -> None:
        """An administrator requests a change that ends the locks on these records. A release permits one more
        delivery than the limit.
        """
        for offset in offsets:
            self.leases.pop(offset, None)
            self.disputed_until_ms[offset] = inf
            self.administered[offset] = self.administered.get(offset, 0) + releases
            if releases:
                self.administered_until_ms[offset] = inf

    def end_change(self, offsets: Iterable[int], now_ms: float, *, releases: bool) -> None:
        """The answer has arrived: the change happened before, or never."""
        self.disputed_until_ms.update(dict.fromkeys(offsets, now_ms))
        if releases:
            self.administered_until_ms.update(dict.fromkeys(offsets, now_ms))

    def give_up(self, member_id: str, offsets: Iterable[int] | None = None) -> None:
        """The member has sent a request by which it may lose these records, or all its records."""
        for offset in list(self.leases if offsets is None else offsets):
            lease = self.leases.get(offset)
            if lease is not None and lease.member_id == member_id:
                del self.leases[offset]

    def confirm(
        self, acknowledged: Mapping[int, tuple[int, int]], now_ms: float, log_end_offset: int
    ) -> None:
        """A member got the confirmation of its acknowledgements: type and delivery count by offset."""
        for offset, (ack_type, delivery_count) in acknowledged.items():
            if ack_type == RELEASE:
                self.released[offset] = Fact(delivery_count, now_ms, log_end_offset)
            elif ack_type != RENEW:
                self.final[offset] = Fact(ack_type, now_ms, log_end_offset)

    def cut(self, log_end_offset: int) -> None:
        """Power was lost without a promise for this log: the records after this offset are gone."""
        self.generation += 1
        self.leases.clear()
        self.waits.clear()
        for facts in (self.final, self.released):
            for offset in [one for one, fact in facts.items() if fact.log_end_offset > log_end_offset]:
                del facts[offset]


class Limit:
    """A group's setting that changes while requests are under way."""

    def __init__(self, value: int) -> None:
        self._until_ms_by_value: dict[int, float] = {value: inf}

    def change(self, value: int) -> None:
        """It is about to change, or may have changed."""
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
        """All values that it may have had at some time since `ms`."""
        return [value for value, until_ms in self._until_ms_by_value.items() if until_ms >= ms]


class GroupModel:
    """A group's limits, as far as they are known from answers."""

    def __init__(self, delivery_count_max: int, lock_duration_ms: int) -> None:
        self.delivery_count_max = Limit(delivery_count_max)
        self.lock_duration_ms = Limit(lock_duration_ms)
        self.key_run_max = Limit(0)
        """As in `ShareLimits`: 0 without an order of keys."""
        self.backoff_ms = Limit(0)

    def delay_ms_min(self, delivery_count: int, sent_ms: float) -> float:
        """The shortest possible delay of a record after this delivery, if its release was sent then."""
        backoff_ms = min(self.backoff_ms.values_since(sent_ms))
        growth = 1 << (delivery_count - 1)
        return min(backoff_ms * growth, BACKOFF_MAX_MS) * (1 - _JITTER)


class Model:
    """All promises of a run."""

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

    def set_clock(self, wall_ms: int) -> None:
        """The broker's clock was set to this time."""
        for partition in self.partitions.values():
            partition.set_clock(wall_ms)

    def shares_of(self, group_id: str) -> list[ShareModel]:
        return [share for key, share in self.shares.items() if key.group_id == group_id]

    def forget_topic(self, topic_id: UUID) -> None:
        """It is about to be deleted: nothing is promised for it any longer."""
        for partition, known in self.partitions.items():
            if partition.topic_id == topic_id:
                known.is_deleted = True
                known.confirmed.clear()
        for key, share in self.shares.items():
            if key.topic_id == topic_id:
                share.forget()
