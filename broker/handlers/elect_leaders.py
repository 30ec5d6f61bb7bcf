"""ElectLeaders (key 43, versions 0 to 2; KIP-460): elects preferred leaders; changes nothing.

The node leads every partition, so each named partition is ELECTION_NOT_NEEDED, or unknown. For all partitions
(null) the response has topics without partitions, because Kafka leaves out those that need no election.
timeout_ms is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse, PartitionResult, ReplicaElectionResult

from barnabas.coordinator.metadata.reassignments import check_election_type, election_refusal
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import TopicName, milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage


class Parts(NamedTuple):
    metadata: Controller


def handle_elect_leaders(parts: Parts, context: RequestContext, request: ElectLeadersRequest) -> Reply:
    asked = request.topic_partitions
    try:
        check_election_type(request.election_type)
    except ApiError as error:
        return _response(error.code, [_topic_result(topic, error) for topic in asked or ()])
    if asked is None:
        names = parts.metadata.image.topics_by_name
        return _response(
            ErrorCode.none,
            [ReplicaElectionResult(topic=TopicName(name), partition_result=()) for name in names],
        )
    return _response(ErrorCode.none, [_elected(parts.metadata.image, topic) for topic in asked])


def _elected(image: MetadataImage, topic: TopicPartitions) -> ReplicaElectionResult:
    results = [(index, election_refusal(image, topic.topic, index)) for index in topic.partitions]
    return ReplicaElectionResult(
        topic=topic.topic,
        partition_result=tuple(
            PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
            for index, error in results
        ),
    )


def _topic_result(topic: TopicPartitions, error: ApiError) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=topic.topic,
        partition_result=tuple(
            PartitionResult(partition_id=index, error_code=error.code, error_message=error.message)
            for index in topic.partitions
        ),
    )


def _response(error_code: ErrorCode, results: Sequence[ReplicaElectionResult]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        throttle_time=milliseconds(0), error_code=error_code, replica_election_results=tuple(results)
    )
