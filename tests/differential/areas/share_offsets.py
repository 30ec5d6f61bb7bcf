"""Start offset and lag of a share group after every step, and the ranges that its fetches acquire:
acknowledgements in the middle of batches, releases, locks that expire, records at their delivery limit,
transactions that were aborted, a log start that moves, and offsets that an administrator sets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Record, encode_records
from tests.differential.areas.groups import group_is_ready
from tests.differential.areas.share_members import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Member,
    Partition,
    ShareGroup,
)
from tests.differential.renumbering import Numbering
from tests.differential.stage import RECORDS_AT_MS, Stage, batch

_STEPS = 32
_LOCK_MS = 1_000
_LONG_LOCK_MS = 30_000
_PASSED_OVER_MAX = 32
"""The number of records that one read skips in Barnabas; Kafka skips any number, up to `MaxBytes`."""
_NO_ROLL = str(2**63 - 1)
"""Markers have the present time, records an old one: they would not be in one segment."""
_TRANSACTIONAL = 1 << 4
_NOTICING_FETCHES = 3
"""Kafka's first fetch from below the log start returns nothing, and the next one returns the records."""

_PLAIN, _FAILING, _NARROW, _BOUNDED = "plain", "failing", "narrow", "bounded"
"""The kinds of histories: anything; records that are delivered again and again; fetches of few bytes among
few records; a window of 100 records without redelivery, because in Kafka the space in the window also bounds
redelivered records.
"""

_SIZES = [[1], [3], [5, 5], [10], [2, 2, 2, 2], [16], [40, 3, 30]]
_FAILING_SIZES = [[6], [10], [16]]
_ANY_TYPE = [ACCEPT, REJECT, GAP, RELEASE]
_TYPES = {
    _PLAIN: [[ACCEPT], [RELEASE], [ACCEPT, RELEASE], _ANY_TYPE],
    _FAILING: [[RELEASE], [RELEASE], [RELEASE], _ANY_TYPE],
    _NARROW: [[ACCEPT], [RELEASE], _ANY_TYPE],
    _BOUNDED: [[ACCEPT], [ACCEPT, REJECT, GAP]],
}
"""The acknowledge types of one request."""

_Step = Callable[[Member], Awaitable[None]]


@dataclass(frozen=True)
class _UnwrittenLag:
    """The name of the lag while Kafka still counts removed records: see the rule of this name."""

    lag_unwritten: int


def _unwritten_lag(response: Any) -> _UnwrittenLag:
    return _UnwrittenLag(response.groups[0].topics[0].partitions[0].lag)


class _Producer:
    """A producer of one transaction after the other."""

    def __init__(self, stage: Stage) -> None:
        self.transactional_id = stage.name("x")
        self._stage = stage
        self._producer_id = -1
        self._epoch = -1
        self._sequence = 0

    async def batch(self, size: int) -> bytes:
        """The next batch of its transaction."""
        if self._producer_id < 0:
            await self._stage.until(self._has_id)
        records = [Record(number, RECORDS_AT_MS, b"key", b"value") for number in range(size)]
        data = encode_records(
            records,
            attributes=_TRANSACTIONAL,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
        )
        self._sequence += size
        return data

    async def end(self, *, is_committed: bool) -> None:
        """End the transaction, and wait until the marker is written: Kafka answers before."""
        response = await self._stage.ask(
            0,
            "end_txn",
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_committed,
        )
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        self._sequence = 0
        await self._stage.until(self._is_ended)

    async def _has_id(self) -> bool:
        name = self.transactional_id
        found = await self._stage.quietly(0, "find_coordinator", key_type=1, coordinator_keys=[name])
        if found.coordinators[0].error_code:
            return False
        response = await self._stage.quietly(
            0, "init_producer_id", 4, transactional_id=name, transaction_timeout=60_000, producer_id=-1
        )
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        has_id: bool = response.error_code is ErrorCode.none
        return has_id

    async def _is_ended(self) -> bool:
        described = await self._stage.quietly(
            0, "describe_transactions", transactional_ids=[self.transactional_id]
        )
        state: str = described.transaction_states[0].transaction_state
        return state.startswith("Complete")


class _Group(ShareGroup):
    """A group on one partition; its offsets are compared whenever both brokers must have written them.

    Kafka writes the records that a fetch has found to be gone only with the next acknowledgement: `unwritten`
    is true until then.
    """

    kind = _PLAIN
    unwritten = False
    is_committed = False
    has_aborted = False

    def __init__(self, stage: Stage, topics: dict[str, UUID]) -> None:
        super().__init__(stage, topics, 1)
        self.producer = _Producer(stage)
        self.base_offsets: list[int] = []
        """Offsets of the producer batches."""
        self.log_start = 0
        """A record's number; the ranges that members hold are numbers, too."""

    @property
    def partition(self) -> Partition:
        return self.partitions[0]

    @property
    def numbering(self) -> Numbering:
        return self.stage.numbering(*self.partition)

    def steps(self) -> dict[_Step, int]:
        """The possible next steps, with their weights."""
        if self.kind == _FAILING:
            return {
                self.produce: 1,
                self.fetch: 18,
                self.acknowledge: 8,
                self.release_all: 8,
                self.end_session: 4,
            }
        steps: dict[_Step, int] = {
            self.produce: 4,
            self.produce_in_transaction: 2,
            self.fetch: 9,
            self.acknowledge: 9,
        }
        if self.kind == _BOUNDED:
            return steps
        return {
            **steps,
            self.release_all: 2,
            self.end_session: 2,
            self.expire: 1,
            self.delete_records: 1,
        }

    async def prepare(self) -> None:
        self.is_committed = self.chance.random() < 0.5
        if self.is_committed:
            await self.set("share.isolation.level", "read_committed")
        await self.set("share.delivery.count.limit", self.chance.choice(["2", "3", "4", "5", "5", "7", "10"]))
        self.kind = self.chance.choice([_PLAIN, _PLAIN, _FAILING, _FAILING, _NARROW, _BOUNDED])
        if self.kind == _BOUNDED:
            await self.set("share.partition.max.record.locks", "100")
        await self.begin()
        if self.chance.random() < 0.8:
            await self.write_first()

    async def write_first(self) -> None:
        """Before the first acknowledgement Kafka returns -1."""
        member = self.members[0]
        self.note_batch((await self.stage.produce(*self.partition, batch(1))).base_offset, 1)
        await self.fetch(member)
        await self.release_all(member)

    async def look(self) -> None:
        """Start offset and lag, after all writes."""
        await self.stage.settle()
        topics = [{"topic_name": self.topic_names[0], "partitions": [0]}]
        groups = [{"group_id": self.group_id, "topics": topics}]
        shown = _unwritten_lag if self.unwritten else None
        await self.stage.ask(0, "describe_share_group_offsets", groups=groups, shown=shown)

    # Records.

    async def produce(self, _member: Member) -> None:
        sizes = self.chance.choice(_FAILING_SIZES if self.kind == _FAILING else _SIZES)
        if await self.is_full(sum(sizes)):
            return
        for size in sizes:
            answer = await self.stage.produce(*self.partition, batch(size))
            self.note_batch(answer.base_offset, size)

    async def is_full(self, record_count: int) -> bool:
        """Whether this number of further records would exceed the limit."""
        end = self.numbering.number(await self.end_offset())
        return self.kind == _NARROW and end + record_count > _PASSED_OVER_MAX

    def note_batch(self, base_offset: int, size: int) -> None:
        self.numbering.add(base_offset, size)
        self.base_offsets.append(base_offset)

    async def produce_in_transaction(self, _member: Member) -> None:
        """A transaction that ends immediately; its marker counts as a record."""
        sizes = self.chance.choice([[1], [4], [2, 3]])
        if await self.is_full(sum(sizes) + 1):
            return
        for size in sizes:
            data = await self.producer.batch(size)
            transactional_id = self.producer.transactional_id
            answer = await self.stage.produce(*self.partition, data, transactional_id=transactional_id)
            self.note_batch(answer.base_offset, size)
        is_committed = self.chance.random() < 0.4
        await self.producer.end(is_committed=is_committed)
        self.note_batch(await self.end_offset() - 1, 1)
        self.has_aborted |= not is_committed

    async def end_offset(self) -> int:
        partitions = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}]
        topics = [{"name": self.topic_names[0], "partitions": partitions}]
        response = await self.stage.quietly(0, "list_offsets", topics=topics, replica_id=-1)
        offset: int = response.topics[0].partitions[0].offset
        return offset

    # Members.

    def limits(self) -> dict[str, Any]:
        return {
            "max_wait": 0,
            "max_records": self.chance.choice([4, 500, 500] if self.kind == _FAILING else [1, 4, 7, 30, 500]),
            "batch_size": self.chance.choice([1] if self.kind == _FAILING else [1, 2, 5, 500]),
            "max_bytes": self.chance.choice([100, 200, 400, 800]) if self.kind == _NARROW else 1 << 20,
            "share_acquire_mode": 0 if self.kind == _BOUNDED else self.chance.choice([0, 1]),
        }

    async def fetch(self, member: Member) -> None:
        first = member.session_epoch == 0
        asked = {**self.fetch_fields(member, member.session_epoch), **self.limits()}
        topics = self.topics({}, first=first)
        response = await self.stage.ask(member.number, "share_fetch", 2, **asked, topics=topics)
        self.note_fetched(member, response)
        self.unwritten |= self.is_committed and self.has_aborted

    def note_fetched(self, member: Member, response: Any) -> None:
        """Ranges that touch become one: with `share.state.store=log` they come in pieces."""
        held, member.held = member.held, []
        super().note_fetched(member, response)
        number = self.numbering.number
        for partition, first_offset, last_offset in member.held:
            first, last = number(first_offset), number(last_offset)
            if held and held[-1][2] + 1 == first:
                held[-1] = (partition, held[-1][1], last)
            else:
                held.append((partition, first, last))
        member.held = held

    def batches(self, first: int, last: int, types: list[int]) -> list[dict[str, Any]]:
        """Acknowledgements of a range of records, without the offsets between them."""
        batches: list[dict[str, Any]] = []
        for number in range(first, last + 1):
            offset, of_record = self.numbering.offset(number), types[(number - first) % len(types)]
            if batches and batches[-1]["last_offset"] + 1 == offset:
                batches[-1]["last_offset"] = offset
                batches[-1]["acknowledge_types"].append(of_record)
            else:
                one = {"first_offset": offset, "last_offset": offset, "acknowledge_types": [of_record]}
                batches.append(one)
        if len(types) == 1:
            batches = [{**one, "acknowledge_types": types} for one in batches]
        return batches

    async def acknowledge(self, member: Member) -> None:
        """A piece of one of the ranges that the member holds, with one type or one type for each record."""
        if not member.held:
            return
        held = self.chance.choice(member.held)
        partition, first, last = held
        low = self.chance.choice([first, first, self.chance.randint(first, last)])
        high = self.chance.choice([last, last, self.chance.randint(low, last)])
        member.held.remove(held)
        rest = [(partition, first, low - 1), (partition, high + 1, last)]
        member.held += [one for one in rest if one[1] <= one[2]]
        wanted = self.chance.choice(_TYPES[self.kind])
        count = self.chance.choice([1, 1, high - low + 1])
        types = [self.chance.choice(wanted) for _ in range(count)]
        if self.chance.random() < 0.1:
            member.held.append((partition, low, high))
            renewals = {partition: self.batches(low, high, [RENEW])}
            await self.send_acknowledgements(member, renewals, renews=True)
            return
        await self.send_acknowledgements(member, {partition: self.batches(low, high, types)})
        self.unwritten = False

    async def release_all(self, member: Member) -> None:
        """Each range with a batch of its own."""
        if not member.held:
            return
        held = sorted(member.held, key=lambda one: one[1])
        batches = [batch for _, first, last in held for batch in self.batches(first, last, [RELEASE])]
        member.held.clear()
        await self.send_acknowledgements(member, {self.partition: batches})
        self.unwritten = False

    async def expire(self, member: Member) -> None:
        """The member's locks end after a second."""
        await self.set("share.record.lock.duration.ms", str(_LOCK_MS))
        held = list(member.held)
        await self.fetch(member)
        if member.held != held:
            await self.stage.elapse(_LOCK_MS + 300)
            self.unwritten = False
        member.held = held
        await self.set("share.record.lock.duration.ms", str(_LONG_LOCK_MS))

    # Actions of an administrator.

    async def delete_records(self, member: Member) -> None:
        """Up to a batch, because Kafka delivers the earlier records of the same batch again. Kafka follows
        the log's start when it would fetch from below it, so no member holds a record then.
        """
        if not self.base_offsets:
            return
        offset = self.chance.choice(self.base_offsets)
        self.log_start = max(self.log_start, self.numbering.number(offset))
        if self.chance.random() < 0.5:
            await self.truncate(offset)
            await self.acknowledge(member)
        else:
            await self.truncate(offset)
        for one in self.members:
            await self.end_session(one)
        await self.fetch_what_is_left(member)

    async def truncate(self, offset: int) -> None:
        partitions = [{"partition_index": 0, "offset": offset}]
        topics = [{"name": self.topic_names[0], "partitions": partitions}]
        await self.stage.ask(
            0,
            "delete_records",
            topics=topics,
            timeout=10_000,
            shown=lambda answer: answer.topics[0].partitions[0].error_code,
        )

    async def fetch_what_is_left(self, member: Member) -> None:
        """The brokers need different numbers of fetches; the last answer is compared."""
        self.unwritten = True
        for fetches_left in reversed(range(_NOTICING_FETCHES)):
            first = member.session_epoch == 0
            asked = {**self.fetch_fields(member, member.session_epoch), "max_wait": 0}
            asked["topics"] = self.topics({}, first=first)
            response = await self.stage.quietly(member.number, "share_fetch", 2, **asked)
            self.note_fetched(member, response)
            if member.held or not fetches_left:
                self.stage.record("share_fetch", 2, asked, response)
                return

    async def alter_offsets(self) -> None:
        """After the group is empty. Kafka's leader would continue from its old state until a write is
        refused, and with a start below the log's it would count removed records.
        """
        for one in self.members:
            await self.end_session(one)
        first = self.members[0]
        await self.stage.ask(**self.heartbeat(first, -1, None))
        record_count = self.numbering.number(await self.end_offset())
        start_offset = self.numbering.offset(self.chance.randint(self.log_start, record_count))
        partitions = [{"partition_index": 0, "start_offset": start_offset}]
        topics = [{"topic_name": self.topic_names[0], "partitions": partitions}]
        await self.stage.ask(0, "alter_share_group_offsets", group_id=self.group_id, topics=topics)
        self.unwritten = False
        await self.look()


async def play(stage: Stage) -> None:
    topic_id = await stage.create_topic("t", segment__ms=_NO_ROLL, retention__ms="-1")
    await stage.until(lambda: group_is_ready(stage))
    group = _Group(stage, {"t": topic_id})
    await group.prepare()
    steps = group.steps()
    count = 2 * _STEPS if group.kind == _FAILING else _STEPS
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=count):
        await action(stage.chance.choice(group.members))
        await group.look()
    await group.alter_offsets()
