"""Elections and reassignments in a cluster of one node (KIP-455, KIP-460). Pure.

The node leads every partition and is its only replica. So no election is needed and no reassignment is ever
under way. A request for another replica is refused, as by an Apache Kafka of one node.
"""

from collections.abc import Sequence

from barnabas.coordinator.metadata.image import MetadataImage
from barnabas.coordinator.metadata.topic_decisions import check_replicas
from barnabas.protocol.errors import ApiError, ErrorCode

_ELECTION_TYPES = ("preferred", "unclean")
"""The types of elections, by their ids on the wire."""


def check_election_type(election_type: int) -> None:
    """Raises `ApiError` for an unknown type."""
    if not 0 <= election_type < len(_ELECTION_TYPES):
        raise ApiError(ErrorCode.invalid_request, f"Unknown election type {election_type}")


def election_refusal(image: MetadataImage, topic_name: str, index: int) -> ApiError:
    """The reason why no leader is elected for a partition."""
    if topic_name not in image.topics_by_name:
        return ApiError(ErrorCode.unknown_topic_or_partition, f"No such topic as {topic_name}")
    if image.partition(topic_name, index) is None:
        message = f"No such partition as {topic_name}-{index}"
        return ApiError(ErrorCode.unknown_topic_or_partition, message)
    return ApiError(ErrorCode.election_not_needed)


def check_reassignment(
    image: MetadataImage, topic_name: str, index: int, node_ids: Sequence[int] | None, node_id: int
) -> None:
    """Raises `ApiError` unless the partition's replicas stay the same; None cancels a reassignment, and none
    is under way.
    """
    if topic_name not in image.topics_by_name:
        message = f"Unable to find a topic named {topic_name}."
        raise ApiError(ErrorCode.unknown_topic_or_partition, message)
    if image.partition(topic_name, index) is None:
        message = f"Unable to find partition {topic_name}:{index}."
        raise ApiError(ErrorCode.unknown_topic_or_partition, message)
    if node_ids is None:
        message = "No partition reassignment is in progress."
        raise ApiError(ErrorCode.no_reassignment_in_progress, message)
    check_replicas(node_ids, node_id)
