"""AlterPartitionReassignments (key 45, versions 0 and 1; KIP-455, KIP-860): moves partitions.

With one node there are no other replicas. A request for the present replicas succeeds and changes nothing;
anything else is an error of that partition. timeout_ms is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

from barnabas.coordinator.metadata.reassignments import check_reassignment
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.primitive import milliseconds

if TYPE_CHECKING:
    from barnabas.broker.network.handler import Reply, RequestContext
    from barnabas.coordinator.metadata.controller import Controller
    from barnabas.coordinator.metadata.image import MetadataImage


class Parts(NamedTuple):
    metadata: Controller
    node_id: int


def handle_alter_partition_reassignments(
    parts: Parts, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Reply:
    return AlterPartitionReassignmentsResponse(
        throttle_time=milliseconds(0),
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.none,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _reassigned(parts.metadata.image, parts.node_id, topic.name, partition)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _reassigned(
    image: MetadataImage, node_id: int, topic_name: str, partition: ReassignablePartition
) -> ReassignablePartitionResponse:
    error_code, message = ErrorCode.none, None
    try:
        check_reassignment(
            image,
            topic_name,
            partition.partition_index,
            partition.replicas,
            node_id,
        )
    except ApiError as error:
        error_code, message = error.code, error.message
    return ReassignablePartitionResponse(
        partition_index=partition.partition_index, error_code=error_code, error_message=message
    )
