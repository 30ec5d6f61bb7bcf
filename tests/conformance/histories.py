"""Steps of a group on one partition, and how to take them on any broker.

Records are named by their number in the topic, from 0 on, so that a history reads the same with and without
the broker's own records between them. After each step the test requests the group's start offset and lag;
`recorded_histories` are the answers of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import build_batch
from tests.conformance.generated_histories import Step, generate
from tests.conformance.share_member import ACCEPT, GAP, REJECT, RELEASE, Requests, ShareMember

GENERATED_COUNT = 60

RECORDING = Path(__file__).parent / "vectors" / "share_histories.json"

WRITING_STEPS = frozenset({"acknowledge", "end_session"})
"""Each step makes every broker write share state. Sessions end only while they hold records."""

HISTORIES: dict[str, list[Step]] = {
    "accepted in order": [
        ("produce", 5),
        ("take", 500),
        ("acknowledge", (0, 1, ACCEPT)),
        ("acknowledge", (2, 4, ACCEPT)),
        ("produce", 3),
        ("take", 500),
        ("acknowledge", (5, 7, ACCEPT)),
    ],
    "accepted from the end": [
        ("produce", 10),
        ("take", 500),
        ("acknowledge", (5, 9, ACCEPT)),
        ("acknowledge", (1, 2, ACCEPT)),
        ("acknowledge", (0, 0, ACCEPT)),
        ("acknowledge", (3, 4, ACCEPT)),
        ("produce", 1),
    ],
    "several batches, acquired in pieces": [
        ("produce", 4),
        ("produce", 3),
        ("produce", 5),
        ("take", 5),
        ("acknowledge", (0, 4, ACCEPT)),
        ("take", 500),
        ("acknowledge", (6, 8, ACCEPT)),
        ("acknowledge", (5, 5, REJECT), (9, 11, ACCEPT)),
    ],
    "released and acquired again": [
        ("produce", 4),
        ("take", 500),
        ("acknowledge", (0, 1, RELEASE), (2, 2, ACCEPT)),
        ("take", 500),
        ("acknowledge", (0, 1, ACCEPT)),
        ("acknowledge", (3, 3, ACCEPT)),
    ],
    "rejected, gapped, and one type for each": [
        ("produce", 8),
        ("take", 500),
        ("acknowledge", (1, 1, REJECT), (3, 3, GAP)),
        ("acknowledge", (4, 7, ACCEPT, RELEASE, REJECT, GAP)),
        ("acknowledge", (0, 0, REJECT)),
        ("acknowledge", (2, 2, REJECT)),
        ("take", 500),
        ("acknowledge", (5, 5, ACCEPT)),
    ],
    "archived at the delivery limit": [
        ("produce", 2),
        *[step for _ in range(4) for step in (("take", 500), ("acknowledge", (0, 1, RELEASE)))],
        ("take", 500),
        ("acknowledge", (0, 0, RELEASE)),
        ("produce", 2),
    ],
    "a session that ends": [
        ("produce", 6),
        ("take", 500),
        ("acknowledge", (0, 1, ACCEPT)),
        ("acknowledge", (4, 4, ACCEPT)),
        ("end_session",),
        ("take", 500),
        ("acknowledge", (2, 3, ACCEPT), (5, 5, ACCEPT)),
    ],
    "records deleted": [
        ("produce", 2),
        ("produce", 8),
        ("take", 2),
        ("acknowledge", (0, 1, ACCEPT)),
        ("delete_records", 5),
        ("take", 500),
        ("acknowledge", (5, 6, ACCEPT)),
        ("acknowledge", (8, 9, REJECT)),
        ("acknowledge", (7, 7, ACCEPT)),
        ("produce", 2),
    ],
    "reset back": [
        ("produce", 6),
        ("take", 500),
        ("acknowledge", (0, 5, ACCEPT)),
        ("leave",),
        ("alter", 2),
        ("join",),
        ("take", 500),
        ("acknowledge", (2, 2, ACCEPT)),
        ("acknowledge", (4, 5, ACCEPT)),
    ],
    "reset into a partly acknowledged batch, twice": [
        ("produce", 6),
        ("take", 500),
        ("acknowledge", (1, 3, ACCEPT)),
        ("end_session",),
        ("leave",),
        ("alter", 1),
        ("alter", 4),
        ("join",),
        ("take", 500),
        ("acknowledge", (4, 4, ACCEPT)),
    ],
    "offsets deleted": [
        ("produce", 5),
        ("take", 500),
        ("acknowledge", (0, 2, ACCEPT)),
        ("end_session",),
        ("leave",),
        ("delete_offsets",),
        ("join",),
        ("take", 500),
        ("acknowledge", (0, 0, ACCEPT)),
        ("acknowledge", (1, 4, ACCEPT)),
    ],
    "group deleted": [
        ("produce", 5),
        ("take", 500),
        ("acknowledge", (0, 2, ACCEPT)),
        ("end_session",),
        ("leave",),
        ("delete_group",),
        ("join",),
        ("take", 500),
        ("acknowledge", (0, 3, ACCEPT)),
    ],
    "topic created again": [
        ("produce", 5),
        ("take", 500),
        ("acknowledge", (0, 2, ACCEPT)),
        ("end_session",),
        ("leave",),
        ("delete_topic",),
        ("create_topic",),
        ("produce", 3),
        ("join",),
        ("take", 500),
        ("acknowledge", (0, 0, ACCEPT)),
    ],
}


HISTORIES.update({f"generated {seed}": generate(seed) for seed in range(GENERATED_COUNT)})


class Described(NamedTuple):
    """DescribeShareGroupOffsets; -1 and -1 while the group has not begun. `start` is a record's number."""

    start: int
    lag: int


class HistoryRun:
    """One group and one topic of a broker, reached by `requests`. `pause` waits for that many seconds, so
    that a broker with background work comes to rest.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Requests]],
        pause: Callable[[float], Awaitable[None]],
        *,
        topic: str = "t",
        group_id: str = "group",
    ) -> None:
        self._connect = connect
        self._pause = pause
        self._topic = topic
        self._group_id = group_id
        self._joined_count = 0
        self.topic_id = UUID(int=0)
        self._offsets: list[int] = []
        """By record number."""
        self._admin: Requests
        self._member: ShareMember

    async def begin(self) -> None:
        """An empty topic, and a group with one member that begins at the earliest record."""
        self._admin = await self._connect()
        await self.create_topic()
        earliest = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
        resource = {"resource_type": 32, "resource_name": self._group_id, "configs": [earliest]}
        response = await self._admin.ask("incremental_alter_configs", resources=[resource])
        assert response.responses[0].error_code is ErrorCode.none, response
        await self.join()

    async def do(self, step: Step) -> None:
        verb, *arguments = step
        await getattr(self, verb)(*arguments)

    async def describe(self) -> Described:
        asked = {"group_id": self._group_id, "topics": [{"topic_name": self._topic, "partitions": [0]}]}
        response = await self._admin.ask("describe_share_group_offsets", groups=[asked])
        described = response.groups[0].topics[0].partitions[0]
        return Described(self.number_at(described.start_offset), described.lag)

    def number_at(self, offset: int) -> int:
        """The number of records below an offset; -1 for -1."""
        return -1 if offset == -1 else bisect_left(self._offsets, offset)

    # Steps.

    async def produce(self, count: int) -> None:
        records = [(None, b"x") for _ in range(count)]
        data = build_batch(0, records, leader_epoch=-1, timestamp_ms=1_700_000_000_000)
        partition = {"index": 0, "records": data}
        response = await self._admin.ask(
            "produce",
            acks=-1,
            timeout=10_000,
            topic_data=[{"topic_id": self.topic_id, "partition_data": [partition]}],
        )
        produced = response.responses[0].partition_responses[0]
        assert produced.error_code is ErrorCode.none, response
        self._offsets += range(produced.base_offset, produced.base_offset + count)

    async def take(self, count: int) -> None:
        for _ in range(20):
            fetched = await self._member.fetch(max_records=count, max_wait=0)
            assert fetched.error == 0, fetched
            if fetched.acquired:
                return
            await self._pause(0.1)
        raise AssertionError("nothing to take")

    async def acknowledge(self, *batches: tuple[int, ...]) -> None:
        by_offset = [(self._offsets[first], self._offsets[last], *types) for first, last, *types in batches]
        answer = await self._member.acknowledge(by_offset)
        assert answer.error == 0, answer
        await self._pause(0.1)

    async def end_session(self) -> None:
        await self._member.acknowledge((), epoch=-1)
        self._member.epoch = 0
        await self._pause(0.3)

    async def delete_records(self, number: int) -> None:
        asked = {"partition_index": 0, "offset": self._offsets[number]}
        topic = {"name": self._topic, "partitions": [asked]}
        response = await self._admin.ask("delete_records", topics=[topic], timeout=10_000)
        assert response.topics[0].partitions[0].error_code is ErrorCode.none, response
        await self._pause(0.3)

    async def join(self) -> None:
        self._joined_count += 1
        partition = TopicIdPartition(self.topic_id, 0)
        self._member = ShareMember(
            await self._connect(),
            [partition],
            group_id=self._group_id,
            member_id=f"member-{self._joined_count}",
        )
        response = await self._member.heartbeat(0, [self._topic])
        for _ in range(100):
            assert response.error_code in (ErrorCode.none, ErrorCode.coordinator_not_available), response
            if response.assignment is not None and response.assignment.topic_partitions:
                return
            await self._pause(0.2)
            response = await self._member.heartbeat(0, [self._topic])
        raise AssertionError("the member is assigned nothing")

    async def leave(self) -> None:
        if self._member.epoch > 0:
            await self._member.acknowledge((), epoch=-1)
        response = await self._member.heartbeat(-1)
        assert response.error_code is ErrorCode.none, response
        await self._pause(0.3)

    async def alter(self, number: int) -> None:
        partition = {"partition_index": 0, "start_offset": self._offsets[number]}
        topic = {"topic_name": self._topic, "partitions": [partition]}
        response = await self._admin.ask("alter_share_group_offsets", group_id=self._group_id, topics=[topic])
        assert response.error_code is ErrorCode.none, response
        assert response.responses[0].partitions[0].error_code is ErrorCode.none, response

    async def delete_offsets(self) -> None:
        response = await self._admin.ask(
            "delete_share_group_offsets", group_id=self._group_id, topics=[{"topic_name": self._topic}]
        )
        assert response.responses[0].error_code is ErrorCode.none, response

    async def delete_group(self) -> None:
        response = await self._admin.ask("delete_groups", groups_names=[self._group_id])
        assert response.results[0].error_code is ErrorCode.none, response

    async def create_topic(self) -> None:
        topic = {"name": self._topic, "num_partitions": 1, "replication_factor": 1}
        response = await self._admin.ask("create_topics", topics=[topic], timeout=10_000)
        assert response.topics[0].error_code is ErrorCode.none, response
        self.topic_id = response.topics[0].topic_id
        self._offsets = []
        await self._pause(0.5)

    async def delete_topic(self) -> None:
        response = await self._admin.ask("delete_topics", topics=[{"name": self._topic}], timeout=10_000)
        assert response.responses[0].error_code is ErrorCode.none, response
        await self._pause(0.5)


def recorded_histories() -> dict[str, list[Described]]:
    """Kafka's answers after each step."""
    recorded: dict[str, list[list[int]]] = json.loads(RECORDING.read_text(encoding="utf-8"))
    return {name: [Described(*answer) for answer in answers] for name, answers in recorded.items()}


async def run_history(run: HistoryRun, steps: Sequence[Step]) -> list[Described]:
    """The answers after each step."""
    await run.begin()
    answers: list[Described] = []
    for step in steps:
        await run.do(step)
        answers.append(await run.describe())
    return answers
