"""Transactions: two producers that begin, write, commit offsets and end, fence each other and continue after
they were fenced; the records that readers of committed records get, and the answers to tools.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import Record, encode_records
from tests.differential.areas.groups import group_is_ready
from tests.differential.stage import RECORDS_AT_MS, Stage, batch
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 24
_PARTITION_COUNT = 2
_NO_ROLL = str(2**63 - 1)
"""Markers have the present time, records an old one: they would not be in one segment."""
_TRANSACTIONAL = 1 << 4
_UNREADY = {
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
}
_ENDING = ("PrepareCommit", "PrepareAbort", "PrepareEpochFence")


class _Producer:
    """The knowledge of a producer about itself. Two may have the same transactional id."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequences = [0] * _PARTITION_COUNT


class _Transactions:
    """Producers, a topic and two groups."""

    def __init__(self, stage: Stage, topic_id: UUID) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topic_id = topic_id
        self.topic = stage.name("t")
        self.group_ids = [stage.name("g"), stage.name("h")]
        first = stage.name("x")
        self.producers = [_Producer(first), _Producer(self.chance.choice([first, stage.name("y")]))]
        self.is_new = self.chance.random() < 0.5
        """Whether partitions are added by writing to them (transaction.version 2), or by a request before."""

    def steps(self) -> dict[Callable[[_Producer], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.initialise: 2,
            self.add_partitions: 3,
            self.add_batched: 2,
            self.produce: 6,
            self.produce_without: 1,
            self.add_offsets: 1,
            self.commit_offsets: 2,
            self.end: 5,
            self.fetch: 4,
            self.list_offsets: 1,
            self.committed: 1,
            self.describe: 2,
            self.describe_producers: 2,
            self.list: 1,
        }

    def version(self, api: str, newest_old: int) -> int:
        """A version of the old protocol up to `newest_old`, or of the new one above."""
        versions = KAFKA_VERSIONS[api]
        return self.chance.choice(
            [one for one in versions if (one > newest_old) == self.is_new]
            if self.is_new
            else [one for one in versions if one <= newest_old]
        )

    def identity(self, producer: _Producer) -> dict[str, Any]:
        """Its id and epoch, sometimes a wrong one."""
        epoch = self.chance.choice([producer.epoch] * 12 + [producer.epoch + 1, max(producer.epoch - 1, 0)])
        return {
            "transactional_id": producer.transactional_id,
            "producer_id": producer.producer_id,
            "producer_epoch": epoch,
        }

    async def is_ready(self) -> bool:
        transactional_id = self.producers[0].transactional_id
        found = await self.stage.quietly(
            0, "find_coordinator", key_type=1, coordinator_keys=[transactional_id]
        )
        described = await self.stage.quietly(0, "describe_transactions", transactional_ids=[transactional_id])
        unused = await self.stage.quietly(
            0, "init_producer_id", 1, transactional_id=None, transaction_timeout=0
        )
        states = [
            found.coordinators[0].error_code,
            described.transaction_states[0].error_code,
            unused.error_code,
        ]
        return not _UNREADY & set(states)

    async def is_ended(self, producer: _Producer) -> bool:
        """Waits until the markers are written: Kafka answers before."""
        ids = [producer.transactional_id]
        described = await self.stage.quietly(0, "describe_transactions", transactional_ids=ids)
        return described.transaction_states[0].transaction_state not in _ENDING

    async def initialise(self, producer: _Producer) -> None:
        version = self.chance.choice(KAFKA_VERSIONS["init_producer_id"])
        goes_on = version >= 3 and producer.producer_id >= 0 and self.chance.random() < 0.3
        response = await self.stage.ask(
            0,
            "init_producer_id",
            version,
            transactional_id=producer.transactional_id,
            transaction_timeout=self.chance.choice([60_000] * 8 + [0, 2_000_000_000]),
            producer_id=producer.producer_id if goes_on else -1,
            producer_epoch=producer.epoch if goes_on else -1,
        )
        await self.stage.until(lambda: self.is_ended(producer))
        if response.error_code is ErrorCode.concurrent_transactions:
            await self.initialise(producer)
        elif response.error_code is ErrorCode.none:
            producer.producer_id, producer.epoch = response.producer_id, response.producer_epoch
            producer.sequences = [0] * _PARTITION_COUNT

    async def add_partitions(self, producer: _Producer) -> None:
        version = self.chance.choice([one for one in KAFKA_VERSIONS["add_partitions_to_txn"] if one <= 3])
        partitions = self.chance.choice([[0], [1], [0, 1], [0, 7]])
        topics = [{"name": self.topic, "partitions": partitions}]
        asked: dict[str, Any] = {**self.identity(producer), "topics": topics}
        named = {f"v3_and_below_{name}": value for name, value in asked.items()}
        await self.stage.ask(0, "add_partitions_to_txn", version, **named, **asked)

    async def add_batched(self, producer: _Producer) -> None:
        """Several transactions at once, as brokers send them; partitions may be verified only."""
        others = [one for one in self.producers if one.transactional_id != producer.transactional_id]
        asked = [
            {
                **self.identity(one),
                "verify_only": self.chance.random() < 0.6,
                "topics": [{"name": self.topic, "partitions": self.chance.choice([[0], [0, 1], [1, 7]])}],
            }
            for one in self.chance.choice([[producer], [producer, *others]])
        ]
        await self.stage.ask(0, "add_partitions_to_txn", self.chance.choice([4, 5]), transactions=asked)

    async def produce(self, producer: _Producer) -> None:
        version = self.version("produce", 11)
        partition, size = self.chance.randrange(_PARTITION_COUNT), self.chance.choice([1, 3])
        identity = self.identity(producer)
        if producer.producer_id < 0:
            return
        records = [Record(number, RECORDS_AT_MS, b"key", b"value") for number in range(size)]
        data = encode_records(
            records,
            attributes=_TRANSACTIONAL,
            producer_id=producer.producer_id,
            producer_epoch=identity["producer_epoch"],
            base_sequence=producer.sequences[partition],
        )
        response = await self.send_records(version, partition, data, producer.transactional_id)
        if response.responses[0].partition_responses[0].error_code is ErrorCode.none:
            producer.sequences[partition] += size

    async def send_records(
        self, version: int, partition: int, data: bytes, transactional_id: str | None
    ) -> Any:
        topic = {
            "name": self.topic,
            "topic_id": self.topic_id,
            "partition_data": [{"index": partition, "records": data}],
        }
        return await self.stage.ask(
            0,
            "produce",
            version,
            transactional_id=transactional_id,
            acks=-1,
            timeout=5_000,
            topic_data=[topic],
        )

    async def produce_without(self, _producer: _Producer) -> None:
        version = self.chance.choice(KAFKA_VERSIONS["produce"])
        await self.send_records(version, self.chance.randrange(_PARTITION_COUNT), batch(2), None)

    async def add_offsets(self, producer: _Producer) -> None:
        version = self.chance.choice(KAFKA_VERSIONS["add_offsets_to_txn"])
        await self.stage.ask(
            0,
            "add_offsets_to_txn",
            version,
            **self.identity(producer),
            group_id=self.chance.choice(self.group_ids),
        )

    async def commit_offsets(self, producer: _Producer) -> None:
        partitions = [
            {
                "partition_index": self.chance.choice([0, 1]),
                "committed_offset": self.chance.randrange(50),
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
        ]
        await self.stage.ask(
            0,
            "txn_offset_commit",
            self.version("txn_offset_commit", 4),
            **self.identity(producer),
            group_id=self.chance.choice(self.group_ids),
            generation_id=self.chance.choice([-1, -1, -1, 3]),
            member_id="",
            group_instance_id=None,
            topics=[{"name": self.topic, "topic_id": self.topic_id, "partitions": partitions}],
        )

    async def end(self, producer: _Producer) -> None:
        response = await self.stage.ask(
            0,
            "end_txn",
            self.version("end_txn", 4),
            **self.identity(producer),
            committed=self.chance.random() < 0.6,
        )
        await self.stage.until(lambda: self.is_ended(producer))
        await self.stage.settle()
        if response.error_code is ErrorCode.none and getattr(response, "producer_epoch", -1) >= 0:
            if producer.epoch != response.producer_epoch:
                producer.sequences = [0] * _PARTITION_COUNT
            producer.producer_id, producer.epoch = response.producer_id, response.producer_epoch

    async def fetch(self, _producer: _Producer) -> None:
        partitions = [
            {
                "partition": index,
                "fetch_offset": self.chance.choice([0, 0, 2, 5]),
                "partition_max_bytes": 1 << 20,
                "current_leader_epoch": -1,
                "last_fetched_epoch": -1,
            }
            for index in range(_PARTITION_COUNT)
        ]
        await self.stage.ask(
            0,
            "fetch",
            self.chance.choice(KAFKA_VERSIONS["fetch"]),
            max_wait=0,
            max_bytes=1 << 20,
            isolation_level=self.chance.choice([0, 1, 1]),
            session_epoch=-1,
            topics=[{"topic": self.topic, "topic_id": self.topic_id, "partitions": partitions}],
        )

    async def list_offsets(self, _producer: _Producer) -> None:
        partitions = [
            {
                "partition_index": index,
                "timestamp": self.chance.choice([-1, -2, RECORDS_AT_MS]),
                "current_leader_epoch": -1,
            }
            for index in range(_PARTITION_COUNT)
        ]
        topics = [{"name": self.topic, "partitions": partitions}]
        await self.stage.ask(0, "list_offsets", replica_id=-1, isolation_level=1, topics=topics)

    async def committed(self, _producer: _Producer) -> None:
        topics = [{"name": self.topic, "partition_indexes": [0, 1]}]
        asked = [
            {"group_id": group_id, "member_id": None, "member_epoch": -1, "topics": topics}
            for group_id in self.group_ids
        ]
        stable = self.chance.random() < 0.6
        await self.stage.ask(0, "offset_fetch", 9, groups=asked, require_stable=stable)

    async def describe(self, _producer: _Producer) -> None:
        ids = sorted({one.transactional_id for one in self.producers} | {self.stage.name("none")})
        await self.stage.ask(0, "describe_transactions", transactional_ids=ids)

    async def list(self, producer: _Producer) -> None:
        ids = self.chance.choice([[], [], [producer.producer_id]])
        await self.stage.ask(
            0,
            "list_transactions",
            self.chance.choice(KAFKA_VERSIONS["list_transactions"]),
            state_filters=self.chance.choice([[], ["Ongoing"], ["CompleteCommit", "CompleteAbort"]]),
            producer_id_filters=ids,
            duration_filter=self.chance.choice([-1, -1, 1_000_000_000]),
            transactional_id_pattern=self.chance.choice([None, self.stage.name("[xy]")]),
            shown=self.only_ours,
        )

    def only_ours(self, response: Any) -> Any:
        """Other histories have transactions of their own."""
        ids = {one.transactional_id for one in self.producers}
        states = tuple(one for one in response.transaction_states if one.transactional_id in ids)
        return dataclasses.replace(response, transaction_states=states)

    async def describe_producers(self, _producer: _Producer) -> None:
        topics = [{"name": self.topic, "partition_indexes": [0, 1, 5]}]
        await self.stage.ask(0, "describe_producers", topics=topics)


async def play(stage: Stage) -> None:
    topic_id = await stage.create_topic("t", _PARTITION_COUNT, segment__ms=_NO_ROLL)
    transactions = _Transactions(stage, topic_id)
    await stage.until(transactions.is_ready)
    await stage.until(lambda: group_is_ready(stage))
    for producer in transactions.producers:
        await transactions.initialise(producer)
    steps = transactions.steps()
    for action in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await action(stage.chance.choice(transactions.producers))
