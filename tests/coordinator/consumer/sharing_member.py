"""Members that share partitions by hashes of keys."""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.consumer.heartbeat import HeartbeatResult
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange
from tests.coordinator.classic.classic_bench import TOPIC
from tests.coordinator.consumer.consumer_bench import ConsumerBench

PARTITION_COUNT = 3
Owned = dict[TopicIdPartition, HashRange]


class Member:
    """A member as its client sees the group: it gives up partitions at once."""

    def __init__(self, bench: ConsumerBench, member_id: str, *, individual: bool = True) -> None:
        self._bench = bench
        self.member_id = member_id
        self.individual = individual
        self.epoch = 0
        self.owned: Owned = {}

    def beat(self, *, hears: bool = True) -> None:
        """One heartbeat, whose answer may be lost."""
        owned: dict[UUID, list[int]] = {}
        for one in self.owned:
            owned.setdefault(one.topic_id, []).append(one.partition)
        reply = self._bench.start_heartbeat(
            self.member_id,
            self.epoch,
            owned=owned,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(TOPIC,),
            individual_commit=self.individual,
        )
        try:
            answer = reply.result()
        except ApiError as error:
            assert error.code in {ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id}
            self.epoch, self.owned = 0, {}
            return
        if hears:
            self._take(answer)

    def _take(self, answer: HeartbeatResult) -> None:
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {
                partition: answer.shares.get(partition, ALL_HASHES)
                for topic_id, indexes in answer.assignment.items()
                for partition in (TopicIdPartition(topic_id, index) for index in indexes)
            }

    def leave(self) -> None:
        self.owned = {}
        self._bench.start_heartbeat(self.member_id, -1).when_done(lambda _: None)


def settle(members: list[Member]) -> None:
    for _ in range(6):
        for member in members:
            member.beat()


def bench_of(partition_count: int = PARTITION_COUNT, *, commits_in_order: bool = False) -> ConsumerBench:
    bench = ConsumerBench(commits_in_order=commits_in_order)
    bench.topic_id = bench.create_topic(TOPIC, partition_count)
    return bench
