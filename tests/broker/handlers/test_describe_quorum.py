"""DescribeQuorum: the one voter, its followers, and other partitions (recorded from Kafka 4.3.1)."""

from uuid import UUID

import pytest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData

from barnabas.broker.handlers.describe_quorum import handle_describe_quorum
from barnabas.coordinator.metadata.followers import FollowerKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i32
from tests.broker.handlers.admin_broker import AdminBroker, ask


def request(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=tuple(
            TopicData(
                topic_name=TopicName(name),
                partitions=tuple(PartitionData(partition_index=i32(index)) for index in indexes),
            )
            for name, indexes in topics
        )
    )


@pytest.mark.parametrize("version", range(3))
async def test_this_node_leads_and_votes_alone(broker: AdminBroker, version: int) -> None:
    response = await ask(
        broker, handle_describe_quorum, request(("__cluster_metadata", [0])), version=version
    )
    assert (response.error_code, response.error_message) == (ErrorCode.none, "")
    ((partition,),) = [topic.partitions for topic in response.topics]
    end_offset = broker.metadata.log.end_offset
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 0, end_offset)
    ((voter,), observers) = partition.current_voters, partition.observers
    assert (voter.replica_id, voter.log_end_offset, observers) == (1, end_offset, ())
    assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [(1, 19092)]


async def test_followers_are_described_as_observers(broker: AdminBroker) -> None:
    key = FollowerKey(2, UUID(int=5))
    broker.metadata.log.follower_heard(key, broker.metadata.log.end_offset)
    broker.metadata.log.follower_heard(FollowerKey(3, None), 1)
    response = await ask(broker, handle_describe_quorum, request(("__cluster_metadata", [0])))
    ((partition,),) = [topic.partitions for topic in response.topics]
    caught_up, behind = partition.observers
    assert (caught_up.replica_id, caught_up.replica_directory_id) == (2, UUID(int=5))
    assert caught_up.last_caught_up_timestamp == caught_up.last_fetch_timestamp > 0
    assert (behind.log_end_offset, behind.last_caught_up_timestamp) == (1, -1)


OTHERS: list[list[tuple[str, list[int]]]] = [
    [("t", [0])],
    [("__cluster_metadata", [1])],
    [("__cluster_metadata", [])],
    [("__cluster_metadata", [0, 1])],
    [("__cluster_metadata", [0]), ("t", [0])],
    [],
]


@pytest.mark.parametrize("topics", OTHERS)
async def test_other_partitions_are_unknown(broker: AdminBroker, topics: list[tuple[str, list[int]]]) -> None:
    response = await ask(broker, handle_describe_quorum, request(*topics))
    assert response.error_code is ErrorCode.none
    assert [(topic.topic_name, len(topic.partitions)) for topic in response.topics] == [
        (name, len(indexes)) for name, indexes in topics
    ]
    assert {
        (partition.error_code, partition.error_message)
        for topic in response.topics
        for partition in topic.partitions
    } <= {(ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition.")}
    assert response.nodes == ()
