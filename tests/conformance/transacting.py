"""A producer of transactions over the protocol, and the effects that other clients see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.extended.packed import pack_ranges
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from tests.conformance.harness import Client, Lab, Pending, batch

OK = ErrorCode.none
ID, GROUP, TOPIC = "payments", "billing", "t"
TIMEOUT_MS = 60_000


class Transacting:
    """A producer with a transactional id, as a client of one transaction.version speaks."""

    def __init__(self, client: Client, *, version: int = 2, transactional_id: str = ID) -> None:
        self.client = client
        self.version = version
        self.transactional_id = transactional_id
        self.producer = ProducerIdentity(-1, -1)
        self._sequences: dict[int, int] = {}

    @property
    def fields(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer.producer_id,
            "producer_epoch": self.producer.producer_epoch,
        }

    async def init(self) -> ErrorCode:
        answer = await self.client.ask(
            "init_producer_id",
            transactional_id=self.transactional_id,
            transaction_timeout=TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        if answer.error_code is OK:
            self._is_now(answer)
        code: ErrorCode = answer.error_code
        return code

    async def write(self, partition: int = 0, records: int = 2) -> ErrorCode:
        """Produce one batch."""
        if self.version < 2:
            topics = [{"name": TOPIC, "partitions": [partition]}]
            names = {f"v3_and_below_{name}": value for name, value in self.fields.items()}
            added = await self.client.ask("add_partitions_to_txn", 3, **names, v3_and_below_topics=topics)
            code = added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            if code is not OK:
                return ErrorCode(code)
        return await self.produce(partition, records)

    async def produce(self, partition: int = 0, records: int = 2) -> ErrorCode:
        """The same without adding the partition first."""
        sequence = self._sequences.get(partition, 0)
        data = batch(
            records,
            self.client.lab.clock.wall_ms(),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=sequence,
        )
        topic = {"name": TOPIC, "partition_data": [{"index": partition, "records": data}]}
        answer = await self.client.ask(
            "produce",
            12 if self.version >= 2 else 11,
            transactional_id=self.transactional_id,
            acks=-1,
            topic_data=[topic],
        )
        code: ErrorCode = answer.responses[0].partition_responses[0].error_code
        if code is OK:
            self._sequences[partition] = sequence + records
        return code

    async def commit_offset(self, offset: int, group: str = GROUP) -> ErrorCode:
        return await self._commit(group, committed_offset=offset)

    async def commit_ranges(self, group: str, ranges: Iterable[tuple[int, int]]) -> ErrorCode:
        """Commit ranges of offsets, first and last one inclusive."""
        return await self._commit(group, committed_offset=-1, ranges=pack_ranges(ranges))

    def start_commit_ranges(self, group: str, ranges: Iterable[tuple[int, int]]) -> Pending:
        """The same for a commit that may wait (transaction.version 2)."""
        return self._start_commit(group, committed_offset=-1, ranges=pack_ranges(ranges))

    async def committed(self, started: Pending) -> ErrorCode:
        """The outcome of a commit that was started."""
        answer = await self.client.answered(started)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    async def _commit(self, group: str, **fields: Any) -> ErrorCode:
        if self.version < 2:
            added = await self.client.ask("add_offsets_to_txn", 3, **self.fields, group_id=group)
            if added.error_code is not OK:
                return ErrorCode(added.error_code)
        return await self.committed(self._start_commit(group, **fields))

    def _start_commit(self, group: str, **fields: Any) -> Pending:
        partition = {"partition_index": 0, "committed_metadata": "", **fields}
        return self.client.send(
            "txn_offset_commit",
            5 if self.version >= 2 else 4,
            **self.fields,
            group_id=group,
            topics=[{"name": TOPIC, "partitions": [partition]}],
        )

    def start_end(self, *, commit: bool = True) -> Any:
        return self.client.send("end_txn", 5 if self.version >= 2 else 4, **self.fields, committed=commit)

    async def end(self, *, commit: bool = True) -> ErrorCode:
        answer = await self.client.answered(self.start_end(commit=commit))
        if answer.error_code is OK and self.version >= 2:
            self._is_now(answer)
        code: ErrorCode = answer.error_code
        return code

    def _is_now(self, answer: Any) -> None:
        self.producer = ProducerIdentity(answer.producer_id, answer.producer_epoch)
        self._sequences.clear()


async def begun(lab: Lab, *, version: int = 2) -> Transacting:
    """A producer with two records in an open transaction."""
    producer = Transacting(lab.client(), version=version)
    assert await producer.init() is OK
    assert await producer.write() is OK
    return producer


async def ends(lab: Lab, partition: int = 0) -> tuple[int, int]:
    """(last stable offset, high watermark)."""
    found: list[int] = []
    for isolation_level in (1, 0):
        asked = {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}
        answer = await lab.admin.ask(
            "list_offsets",
            isolation_level=isolation_level,
            topics=[{"name": TOPIC, "partitions": [asked]}],
        )
        found.append(answer.topics[0].partitions[0].offset)
    return found[0], found[1]


async def committed(lab: Lab, *, require_stable: bool = False) -> int | ErrorCode:
    """The offset that the group has committed, or the error returned in place of it."""
    asked = {"group_id": GROUP, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    answer = await lab.admin.ask("offset_fetch", 9, groups=[asked], require_stable=require_stable)
    (partition,) = answer.groups[0].topics[0].partitions
    return int(partition.committed_offset) if partition.error_code is OK else ErrorCode(partition.error_code)


async def state(lab: Lab) -> str:
    """The transactional id's state."""
    answer = await lab.admin.ask("list_transactions", state_filters=[], producer_id_filters=[])
    (only,) = answer.transaction_states
    return str(only.transaction_state)
