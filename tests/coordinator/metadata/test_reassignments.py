"""Elections and reassignments on one node, with the messages of Kafka 4.3.1 (recorded)."""

from uuid import UUID

import pytest

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.reassignments import (
    check_election_type,
    check_reassignment,
    election_refusal,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.metadata_records import PartitionRecord, TopicRecord

NODE_ID = 1


@pytest.fixture
def image() -> MetadataImage:
    topic_id = UUID(int=1, version=4)
    made, changes = MetadataImage(), MetadataChanges()
    made.replay(TopicRecord(name="t", topic_id=topic_id), changes)
    made.replay(
        PartitionRecord(partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1,), leader=NODE_ID), changes
    )
    return made


@pytest.mark.parametrize(
    ("topic", "index", "code", "message"),
    [
        ("t", 0, ErrorCode.election_not_needed, None),
        ("t", 7, ErrorCode.unknown_topic_or_partition, "No such partition as t-7"),
        ("nope", 0, ErrorCode.unknown_topic_or_partition, "No such topic as nope"),
    ],
)
def test_no_leader_is_elected(
    image: MetadataImage, topic: str, index: int, code: ErrorCode, message: str | None
) -> None:
    refused = election_refusal(image, topic, index)
    assert (refused.code, refused.message) == (code, message)


def test_there_are_two_types_of_elections() -> None:
    check_election_type(0)
    check_election_type(1)
    for election_type in (-1, 2):
        with pytest.raises(ApiError, match=f"Unknown election type {election_type}"):
            check_election_type(election_type)


def reassignment_refusal(
    image: MetadataImage, topic: str, index: int, node_ids: tuple[int, ...] | None
) -> tuple[ErrorCode, str | None] | None:
    try:
        check_reassignment(image, topic, index, node_ids, NODE_ID)
    except ApiError as refused:
        return refused.code, refused.message
    return None


def test_the_replicas_that_are_there_may_be_asked_for(image: MetadataImage) -> None:
    assert reassignment_refusal(image, "t", 0, (NODE_ID,)) is None


@pytest.mark.parametrize(
    ("topic", "index", "node_ids", "code", "message"),
    [
        ("nope", 0, (1,), ErrorCode.unknown_topic_or_partition, "Unable to find a topic named nope."),
        ("t", 9, (1,), ErrorCode.unknown_topic_or_partition, "Unable to find partition t:9."),
        ("t", 0, None, ErrorCode.no_reassignment_in_progress, "No partition reassignment is in progress."),
        (
            "t",
            0,
            (),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            "t",
            0,
            (1, 2),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes broker 2, but no such broker is registered.",
        ),
        (
            "t",
            0,
            (1, 1),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
    ],
)
def test_other_replicas_are_refused(
    image: MetadataImage,
    topic: str,
    index: int,
    node_ids: tuple[int, ...] | None,
    code: ErrorCode,
    message: str,
) -> None:
    assert reassignment_refusal(image, topic, index, node_ids) == (code, message)
