"""Share groups with `share.assignor.name=load` over a skewed backlog, from the heartbeat to the records."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import Lab
from tests.conformance.share_member import ACCEPT, GROUP, ShareMember

PARTITION_COUNT = 4
HEARTBEAT_MS = 5_000


class Worker:
    """A member that heartbeats, fetches some records from its partitions, and accepts them at the next
    fetch.
    """

    def __init__(self, lab: Lab, topic_id: UUID, number: int) -> None:
        self._member = ShareMember(lab.client(), member_id=f"member-{number}")
        self._topic_id = topic_id
        self._epoch = 0
        self._session: set[int] = set()
        self._held: dict[TopicIdPartition, list[tuple[int, int, int]]] = {}
        self.partitions: set[int] = set()

    async def heartbeat(self) -> None:
        joins = self._epoch == 0
        response = await self._member.heartbeat(self._epoch, ["t"] if joins else None)
        assert response.error_code is ErrorCode.none, response
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self.partitions = {
                index for topic in response.assignment.topic_partitions for index in topic.partitions
            }

    async def work(self, max_records: int) -> int:
        """Accepts the records that it holds, takes new ones, and returns their number."""
        got = await self._member.fetch(
            self._held,
            add=self._keys(self.partitions - self._session),
            forget=self._keys(self._session - self.partitions),
            max_records=max_records,
            batch_size=max_records,
        )
        assert (got.error, set(got.errors) | set(got.acknowledge_errors)) == (0, {0}) or not got.partitions
        self._session = set(self.partitions)
        self._held = {
            key: [(first, last, ACCEPT) for first, last, _ in one.acquired]
            for key, one in got.partitions.items()
            if one.acquired
        }
        return sum(last - first + 1 for first, last, _ in got.acquired)

    def _keys(self, indexes: set[int]) -> list[TopicIdPartition]:
        return [TopicIdPartition(self._topic_id, index) for index in sorted(indexes)]


async def _workers(lab: Lab, **configs: object) -> list[Worker]:
    topic_id = await lab.create_topic("t", PARTITION_COUNT)
    await lab.configure_group(GROUP, auto_offset_reset="earliest", **configs)
    await lab.produce(topic_id, *[10] * 200, partition=0)
    for partition in range(1, PARTITION_COUNT):
        await lab.produce(topic_id, 10, partition=partition)
    workers = [Worker(lab, topic_id, number) for number in range(PARTITION_COUNT)]
    for worker in workers:
        await worker.heartbeat()
        await lab.advance(1_000)
    return workers


async def _rounds(lab: Lab, workers: list[Worker], count: int) -> int:
    """Some intervals of heartbeats, each with one fetch of 10 records by each member; returns the records."""
    total = 0
    for _ in range(count):
        for worker in workers:
            await worker.heartbeat()
            total += await worker.work(10)
        await lab.advance(HEARTBEAT_MS)
    return total


async def _described(lab: Lab) -> Any:
    response = await lab.admin.ask("share_group_describe", group_ids=[GROUP])
    return response.groups[0]


def _readers(workers: list[Worker]) -> list[int]:
    """By partition: the number of members that read it."""
    return [sum(index in worker.partitions for worker in workers) for index in range(PARTITION_COUNT)]


async def test_more_members_read_the_partition_with_the_backlog(lab: Lab) -> None:
    workers = await _workers(lab, assignor_name="load")
    await _rounds(lab, workers, 1)
    assert _readers(workers) == [1, 1, 1, 1]
    await _rounds(lab, workers, 4)
    assert _readers(workers) == [4, 1, 1, 1]
    assert await _rounds(lab, workers, 5) == 5 * 4 * 10
    group = await _described(lab)
    assert (group.assignor_name, group.group_state) == ("load", "Stable")
    assert group.group_epoch == group.assignment_epoch


async def test_with_simple_one_member_works_alone(lab: Lab) -> None:
    workers = await _workers(lab)
    await _rounds(lab, workers, 5)
    assert _readers(workers) == [1, 1, 1, 1]
    assert await _rounds(lab, workers, 5) == 5 * 10
    assert (await _described(lab)).assignor_name == "simple"


async def test_members_return_after_the_backlog(lab: Lab) -> None:
    workers = await _workers(lab, assignor_name="load")
    await _rounds(lab, workers, 5)
    epoch = (await _described(lab)).group_epoch
    await _rounds(lab, workers, 60)
    assert _readers(workers) == [1, 1, 1, 1]
    assert (await _described(lab)).group_epoch == epoch + 1


async def test_a_running_group_changes_its_assignor_also_after_a_crash(lab: Lab) -> None:
    workers = await _workers(lab)
    await _rounds(lab, workers, 3)
    assert _readers(workers) == [1, 1, 1, 1]
    await lab.configure_group(GROUP, assignor_name="load")
    await _rounds(lab, workers, 3)
    assert _readers(workers) == [4, 1, 1, 1]
    before = await _described(lab)
    await lab.crash()
    after = await _described(lab)
    assert (after.group_epoch, after.assignment_epoch) == (before.group_epoch, before.assignment_epoch)
    assert {one.member_id: one.assignment for one in after.members} == {
        one.member_id: one.assignment for one in before.members
    }
    await lab.configure_group(GROUP, assignor_name="simple")
    await lab.advance(1)
    assert (await _described(lab)).group_epoch == before.group_epoch + 1
