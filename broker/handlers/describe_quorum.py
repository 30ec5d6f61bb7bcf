"""DescribeQuorum (key 55, versions 0 to 2; KIP-595, KIP-836, KIP-853): the replicas of the metadata log.

This node is the leader and the only voter; its followers on the listener for brokers are observers. A request
that names anything besides the partition of the metadata log gets UNKNOWN_TOPIC_OR_PARTITION for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.request import TopicData as RequestTopicData
from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

from barnabas.coordinator.metadata.followers import FollowerKey, Heard
from barnabas.coordinator.metadata.topic_names import METADATA_PARTITION, METADATA_TOPIC
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import BrokerId, TopicName, i32, i64, u16

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.runtime.clock import Clock

_UNKNOWN = -1


class Parts(NamedTuple):
    clock: Clock
    metadata: Controller
    node_id: int


def handle_describe_quorum(parts: Parts, context: RequestContext, request: DescribeQuorumRequest) -> Reply:
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if len(request.topics) != 1 or asked != [(METADATA_TOPIC, METADATA_PARTITION.partition)]:
        return _response([_unknown_topic(topic) for topic in request.topics], [])
    listener = context.listener
    node = Node(
        node_id=BrokerId(parts.node_id),
        listeners=(
            Listener(name=listener.name, host=listener.advertised_host, port=u16(listener.advertised_port)),
        ),
    )
    topic = TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(_metadata_partition(parts),))
    return _response([topic], [node])


def _metadata_partition(parts: Parts) -> PartitionData:
    log, now_ms = parts.metadata.log, i64(parts.clock.wall_ms())
    voter = ReplicaState(
        replica_id=BrokerId(parts.node_id),
        replica_directory_id=None,
        log_end_offset=i64(log.end_offset),
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return PartitionData(
        partition_index=i32(METADATA_PARTITION.partition),
        error_code=ErrorCode.none,
        error_message="",
        leader_id=BrokerId(parts.node_id),
        leader_epoch=i32(parts.metadata.node_epoch),
        high_watermark=i64(log.end_offset),
        current_voters=(voter,),
        observers=tuple(_observer(parts.clock, key, heard) for key, heard in log.followers().items()),
    )


def _observer(clock: Clock, key: FollowerKey, heard: Heard) -> ReplicaState:
    monotonic_to_wall_ms = clock.wall_ms() - clock.monotonic_ms()
    caught_up_at_ms = heard.caught_up_at_ms
    return ReplicaState(
        replica_id=BrokerId(key.node_id),
        replica_directory_id=key.directory_id,
        log_end_offset=i64(heard.offset),
        last_fetch_timestamp=i64(heard.at_ms + monotonic_to_wall_ms),
        last_caught_up_timestamp=i64(
            _UNKNOWN if caught_up_at_ms is None else caught_up_at_ms + monotonic_to_wall_ms
        ),
    )


def _unknown_topic(topic: RequestTopicData) -> TopicData:
    return TopicData(
        topic_name=topic.topic_name,
        partitions=tuple(
            PartitionData(
                partition_index=partition.partition_index,
                error_code=ErrorCode.unknown_topic_or_partition,
                error_message="This server does not host this topic-partition.",
                leader_id=BrokerId(0),
                leader_epoch=i32(0),
                high_watermark=i64(0),
                current_voters=(),
                observers=(),
            )
            for partition in topic.partitions
        ),
    )


def _response(topics: list[TopicData], nodes: list[Node]) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=ErrorCode.none, error_message="", topics=tuple(topics), nodes=tuple(nodes)
    )
