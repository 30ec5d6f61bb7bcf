"""Produce, Fetch without sessions, ListOffsets, DeleteRecords, OffsetForLeaderEpoch on one topic."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

from barnabas.protocol.record_batch import Compression, build_batch
from barnabas.protocol.records import Record, encode_records
from tests.differential.stage import NEWEST, RECORDS_AT_MS, Stage, batch
from tests.differential.versions import KAFKA_VERSIONS

_PARTITION_COUNT = 3
_STEPS = 14
_NO_TOPIC = UUID(int=5)
_MAX_TIMESTAMP = -3

_Step = Callable[[], Awaitable[Any]]


@dataclasses.dataclass(frozen=True)
class _LatestOfRest:
    """The answer about the greatest timestamp in a log from which records were deleted: its fields have names
    of their own for the rule "greatest timestamp of deleted records".
    """

    partition_index: int
    error_code: Any
    timestamp_of_rest: int
    offset_of_rest: int
    leader_epoch_of_rest: int

    @classmethod
    def of(cls, answer: Any) -> _LatestOfRest:
        return cls(
            answer.partition_index, answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch
        )


class _Log:
    """The topic of a history."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.topic_id = UUID(int=0)
        self.start = [0] * _PARTITION_COUNT
        self.end = [0] * _PARTITION_COUNT
        self.sequence = 0

    async def begin(self) -> None:
        configs = self.chance.choice([{}, {}, {"segment__bytes": "1048576"}, {"max__message__bytes": "1000"}])
        self.topic_id = await self.stage.create_topic("t", _PARTITION_COUNT, **configs)

    def steps(self) -> dict[_Step, int]:
        """The possible next steps, with their weights."""
        return {
            self.produce: 5,
            self.produce_badly: 2,
            self.fetch: 5,
            self.list_offsets: 3,
            self.delete_records: 1,
            self.leader_epochs: 1,
        }

    def version(self, api: str) -> int:
        return self.chance.choice(KAFKA_VERSIONS[api])

    def partition(self) -> int:
        return self.chance.choice([0, 0, 0, 1, 2, _PARTITION_COUNT, -1])

    def offset(self, partition: int) -> int:
        end = self.end[partition] if 0 <= partition < _PARTITION_COUNT else 3
        return self.chance.choice([0, 0, end, self.chance.randint(0, end + 1), end + 5, -1])

    def leader_epoch(self) -> int:
        return self.chance.choice([-1, -1, -1, 0, 0, 3])

    def topic(self, version: int, by_id: int, name: str = "name") -> dict[str, Any]:
        """The topic in the form of a version, or a missing one."""
        exists = self.chance.random() < 0.92
        if version >= by_id:
            return {"topic_id": self.topic_id if exists else _NO_TOPIC}
        return {name: self.stage.name("t" if exists else "nothing")}

    async def produce(self) -> None:
        version, partition = self.version("produce"), self.partition()
        data, size = self.batch()
        response = await self.stage.ask(
            0,
            "produce",
            version,
            acks=self.chance.choice([-1, 1, -1, 1, 2]),
            timeout=5_000,
            topic_data=[
                {**self.topic(version, 13), "partition_data": [{"index": partition, "records": data}]}
            ],
        )
        if response is not None and response.responses:
            answer = response.responses[0].partition_responses[0]
            if answer.error_code == 0:
                self.end[partition] = answer.base_offset + size

    def batch(self) -> tuple[bytes, int]:
        size = self.chance.choice([1, 2, 5, 20])
        if self.chance.random() < 0.6:
            return batch(size, value_bytes=self.chance.choice([1, 10, 100])), size
        records = [
            Record(number, RECORDS_AT_MS + number * 10, None, b"value", (("header", b"one"), ("none", None)))
            for number in range(size)
        ]
        codec = self.chance.choice([Compression.GZIP, Compression.LZ4, Compression.SNAPPY, Compression.NONE])
        return encode_records(records, compression=codec), size

    async def produce_badly(self) -> None:
        good = batch(2)
        bad = self.chance.choice(
            [
                b"",
                good[:-3],
                good[:30],
                good[:20] + b"\1" + good[21:],
                good[:16] + b"\1" + good[17:],
                good + good,
                good[:-1] + b"\xff",
                build_batch(0, [], leader_epoch=-1, timestamp_ms=RECORDS_AT_MS),
                build_batch(7, [(None, b"v")], leader_epoch=3, timestamp_ms=RECORDS_AT_MS),
                build_batch(0, [(None, b"v")], leader_epoch=-1, timestamp_ms=-1),
            ]
        )
        version = self.version("produce")
        await self.stage.ask(
            0,
            "produce",
            version,
            acks=-1,
            timeout=5_000,
            topic_data=[{**self.topic(version, 13), "partition_data": [{"index": 1, "records": bad}]}],
        )
        await self.fetch_all()

    async def fetch_all(self) -> None:
        partitions = [self.wanted(index, 0, 1 << 20) for index in range(_PARTITION_COUNT)]
        topics = [{"topic_id": self.topic_id, "partitions": partitions}]
        await self.stage.ask(0, "fetch", max_bytes=1 << 22, session_epoch=-1, topics=topics)

    def wanted(self, partition: int, offset: int, bytes_max: int) -> dict[str, Any]:
        return {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": bytes_max,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
        }

    async def fetch(self) -> None:
        version = self.version("fetch")
        topics: list[dict[str, Any]] = []
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            partitions: list[dict[str, Any]] = []
            for _ in range(self.chance.choice([1, 2, 3])):
                partition = self.partition()
                wanted = self.wanted(
                    partition, self.offset(partition), self.chance.choice([0, 1, 100, 250, 1 << 20])
                )
                wanted["current_leader_epoch"] = self.leader_epoch()
                wanted["last_fetched_epoch"] = self.chance.choice([-1, -1, -1, 0, 2])
                partitions.append(wanted)
            topics.append({**self.topic(version, 13, "topic"), "partitions": partitions})
        await self.stage.ask(
            0,
            "fetch",
            version,
            max_wait=self.chance.choice([0, 0, 30]),
            min_bytes=self.chance.choice([0, 1, 1, 200]),
            max_bytes=self.chance.choice([1, 300, 1 << 20]),
            isolation_level=self.chance.choice([0, 1]),
            session_epoch=-1,
            topics=topics,
        )

    async def list_offsets(self) -> None:
        version = self.version("list_offsets")
        timestamps = [-1, -2, RECORDS_AT_MS, RECORDS_AT_MS + 15, RECORDS_AT_MS + 10_000, 0]
        timestamps += [-3] * (version >= 7) + [-4, -5] * (version >= 9)
        partitions = [
            {
                "partition_index": self.partition(),
                "timestamp": self.chance.choice(timestamps),
                "current_leader_epoch": self.leader_epoch(),
            }
            for _ in range(self.chance.choice([1, 2]))
        ]
        latest = {asked["partition_index"] for asked in partitions if asked["timestamp"] == _MAX_TIMESTAMP}
        shortened = {index for index in latest if 0 <= index < _PARTITION_COUNT and self.start[index] > 0}
        await self.stage.ask(
            0,
            "list_offsets",
            version,
            shown=partial(_with_rests, shortened) if shortened else None,
            replica_id=-1,
            isolation_level=self.chance.choice([0, 1]),
            topics=[{**self.topic(version, 99), "partitions": partitions}],
        )

    async def delete_records(self) -> None:
        version, partition = self.version("delete_records"), self.partition()
        offset = self.chance.choice([-1, self.offset(partition)])
        topic = {**self.topic(version, 99), "partitions": [{"partition_index": partition, "offset": offset}]}
        response = await self.stage.ask(0, "delete_records", version, topics=[topic], timeout=2_000)
        if response is not None:
            answer = response.topics[0].partitions[0]
            if answer.error_code == 0:
                self.start[partition] = answer.low_watermark

    async def leader_epochs(self) -> None:
        version = self.version("offset_for_leader_epoch")
        asked = {
            "partition": self.partition(),
            "current_leader_epoch": self.leader_epoch(),
            "leader_epoch": self.chance.choice([-1, 0, 1, 7]),
        }
        topics = [{**self.topic(version, 99, "topic"), "partitions": [asked]}]
        await self.stage.ask(0, "offset_for_leader_epoch", version, replica_id=-1, topics=topics)


def _with_rests(shortened: set[int], response: Any) -> Any:
    """A ListOffsets response with the answers about these partitions as `_LatestOfRest`."""
    topics = [
        dataclasses.replace(
            topic,
            partitions=tuple(
                _LatestOfRest.of(answer) if answer.partition_index in shortened else answer
                for answer in topic.partitions
            ),
        )
        for topic in response.topics
    ]
    return dataclasses.replace(response, topics=tuple(topics))


async def play(stage: Stage) -> None:
    log = _Log(stage)
    await log.begin()
    steps = log.steps()
    for step in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await step()
    await log.fetch_all()
    await stage.ask(0, "list_offsets", NEWEST, replica_id=-1, topics=[])
