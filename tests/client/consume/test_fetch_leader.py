"""Two leaders of one partition at the same time, as for a moment when the leader changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.consume.assignment import AssignedPartition, Assignment
from barnabas.client.consume.consumer_options import ConsumerSettings
from barnabas.client.consume.fetch_buffer import FetchBuffer
from barnabas.client.consume.fetch_leader import Fetching, FetchLeader
from barnabas.client.consume.individual_progress import IndividualProgress
from barnabas.client.consume.ownership import Ownership
from barnabas.client.network.address import Address
from barnabas.protocol.committed_ranges import CommittedRanges
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES
from tests.client.consume.sharing import write_keyed
from tests.client.virtual_world import TOPIC, World, virtually

RECORD_COUNT = 300
State = AssignedPartition[bytes | None, bytes | None]


def assigned(partition: TopicIdPartition) -> State:
    individual = IndividualProgress(ALL_HASHES, lambda: None)
    individual.begin(CommittedRanges())
    state = State(Ownership(partition), TOPIC, individual)
    state.is_held = False
    state.seek(0)
    return state


@virtually
async def test_answers_that_come_late_neither_repeat_records_nor_make_gaps(world: World) -> None:
    await world.topic()
    await write_keyed(world, [b"k"] * RECORD_COUNT, batch_records=1)
    partition = TopicIdPartition(world.topic_ids[TOPIC], 0)
    settings = ConsumerSettings(max_partition_bytes=300)
    cluster = Cluster([Address("broker", 9092)], client_id="test", request_timeout_ms=10_000)
    await cluster.refresh([partition.topic_id])
    node_id = cluster.view.leader(partition)
    assert node_id is not None
    leaders: list[FetchLeader[bytes | None, bytes | None]] = []

    def look_again() -> None:
        for leader in leaders:
            leader.look_again()

    assignment = Assignment[bytes | None, bytes | None](look_again)
    state = assigned(partition)
    assignment.add([state])
    counts = Counter[str]()
    buffer = FetchBuffer[bytes | None, bytes | None](settings, assignment, counts)
    fetching = Fetching(
        settings, cluster, assignment, buffer, None, counts, print, lambda: None, lambda: None
    )
    leaders += [FetchLeader(node_id, fetching) for _ in range(3)]
    offsets: list[int] = []
    async with AsyncExitStack() as stack:
        for number, leader in enumerate(leaders):
            leader.read(frozenset({partition}))
            await asyncio.sleep(number / 100)
            stack.callback(asyncio.create_task(leader.run()).cancel)
        async with asyncio.timeout(600):
            while len(offsets) < RECORD_COUNT:
                await buffer.news.wait(None)
                buffer.news.clear()
                offsets += [record.offset for record in buffer.take(7)]
                assignment.on_change()
                if state.slices:
                    buffer.news.set()
    cluster.close()
    assert offsets == list(range(RECORD_COUNT))
    assert state.individual is not None
    assert state.individual.take_processed() == [], "each offset has a record"
