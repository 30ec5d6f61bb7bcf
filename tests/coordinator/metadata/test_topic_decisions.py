"""Creating, deleting and growing topics: the errors and messages were recorded from Apache Kafka 4.3.1."""

from uuid import UUID

import pytest

from barnabas.coordinator.metadata.image import MetadataChanges, MetadataImage
from barnabas.coordinator.metadata.topic_decisions import (
    MorePartitions,
    NewTopic,
    TopicCreation,
    TopicPlacement,
    decide_create_partitions,
    decide_create_topics,
    decide_delete_topics,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.metadata_records import ConfigRecord, MetadataRecord, PartitionRecord, TopicRecord
from tests.coordinator.metadata.metadata_fakes import PlainRules, counted_ids

PLACEMENT = TopicPlacement(node_id=1, node_epoch=5, directory_id=UUID(int=0xD), default_partition_count=3)
NOT_POSITIVE = "Number of partitions was set to an invalid non-positive value."
NO_REPLICATION = "Replication factor must be larger than 0, or -1 to use the default value."
NO_SECOND_BROKER = (
    "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached "
    "because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
)
TOO_MANY = "Excessively large number of partitions per request."


def decide(
    *new_topics: NewTopic, image: MetadataImage | None = None
) -> tuple[list[MetadataRecord], list[TopicCreation]]:
    ids = counted_ids()
    return decide_create_topics(
        image or MetadataImage(), new_topics, PLACEMENT, PlainRules(), lambda: next(ids)
    )


def image_with(*names: str, partition_count: int = 2) -> MetadataImage:
    image, changes = MetadataImage(), MetadataChanges()
    records, _ = decide(*(NewTopic(name, partition_count) for name in names))
    for record in records:
        image.replay(record, changes)
    return image


def outcome(error: ApiError | None) -> tuple[ErrorCode, str | None] | None:
    return None if error is None else (error.code, error.message)


def test_a_topic_is_a_record_for_it_its_settings_and_each_partition() -> None:
    records, (creation,) = decide(NewTopic("t", 2, 1, configs={"retention.ms": "1"}))
    topic_id = UUID(int=1, version=4)
    assert creation == TopicCreation("t", topic_id, 2, 1)
    assert records[0] == TopicRecord(name="t", topic_id=topic_id)
    assert records[1] == ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    assert records[2:] == [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=(1,),
            isr=(1,),
            leader=1,
            leader_epoch=5,
            partition_epoch=0,
            directories=(UUID(int=0xD),),
        )
        for index in (0, 1)
    ]


def test_an_id_that_is_taken_reserved_or_looks_like_an_option_is_passed_over() -> None:
    image = image_with("old")
    taken, good = image.topics_by_name["old"].topic_id, UUID(int=1000)
    ids = iter([UUID(int=0), UUID(int=1), taken, UUID(bytes=b"\xfb" + bytes(15)), good])
    _, (creation,) = decide_create_topics(image, [NewTopic("t")], PLACEMENT, PlainRules(), lambda: next(ids))
    assert creation.topic_id == good


def test_the_broker_says_how_many_partitions_if_the_client_does_not() -> None:
    _, (creation,) = decide(NewTopic("t"))
    assert creation.partition_count == 3


@pytest.mark.parametrize(
    ("new_topic", "code", "message"),
    [
        (NewTopic("a b"), ErrorCode.invalid_topic_exception, None),
        (NewTopic("old"), ErrorCode.topic_already_exists, "Topic 'old' already exists."),
        (
            NewTopic("o.x"),
            ErrorCode.invalid_topic_exception,
            "Topic 'o.x' collides with existing topic: o_x",
        ),
        (
            NewTopic("__cluster_metadata"),
            ErrorCode.invalid_request,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (NewTopic("t", 0), ErrorCode.invalid_partitions, NOT_POSITIVE),
        (NewTopic("t", -2), ErrorCode.invalid_partitions, NOT_POSITIVE),
        (NewTopic("t", 1, 0), ErrorCode.invalid_replication_factor, NO_REPLICATION),
        (NewTopic("t", 1, -2), ErrorCode.invalid_replication_factor, NO_REPLICATION),
        (
            NewTopic("t", 1, 2),
            ErrorCode.invalid_replication_factor,
            NO_SECOND_BROKER,
        ),
        (
            NewTopic("t", configs={"a": None, "b": None}),
            ErrorCode.invalid_config,
            "Null value not supported for topic configs: a,b",
        ),
        (NewTopic("t", configs={"refused": "1"}), ErrorCode.invalid_config, "refused"),
        (NewTopic("t", 10_001), ErrorCode.policy_violation, TOO_MANY),
    ],
)
def test_a_topic_is_refused(new_topic: NewTopic, code: ErrorCode, message: str | None) -> None:
    records, (creation,) = decide(new_topic, image=image_with("old", "o_x"))
    assert records == []
    assert creation.error is not None
    assert creation.error.code is code
    assert message in (None, creation.error.message)


@pytest.mark.parametrize(
    ("new_topic", "code", "message"),
    [
        (
            NewTopic("t", 2, -1, [(0, [1])]),
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (
            NewTopic("t", -1, 1, [(0, [1])]),
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (2, [1])]),
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (0, [1])]),
            ErrorCode.invalid_replica_assignment,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("t", assignments=[(0, [1, 7])]),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            NewTopic("t", assignments=[(0, [])]),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes an empty replica list.",
        ),
        (
            NewTopic("t", assignments=[(0, [1, 1])]),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
    ],
)
def test_a_manual_assignment_is_refused(new_topic: NewTopic, code: ErrorCode, message: str) -> None:
    _, (creation,) = decide(new_topic)
    assert outcome(creation.error) == (code, message)


def test_a_manual_assignment_to_this_node_is_taken() -> None:
    _, (creation,) = decide(NewTopic("t", assignments=[(1, [1]), (0, [1])]))
    assert creation.partition_count == 2
    assert creation.error is None


def test_a_refused_topic_does_not_hold_up_the_others() -> None:
    records, creations = decide(NewTopic("a b"), NewTopic("good", 1))
    assert [creation.error is None for creation in creations] == [False, True]
    assert len(records) == 2


def test_too_many_partitions_refuse_the_whole_request() -> None:
    records, creations = decide(NewTopic("a", 6_000), NewTopic("b", 4_001))
    assert records == []
    assert [outcome(creation.error) for creation in creations] == [(ErrorCode.policy_violation, TOO_MANY)] * 2


def test_two_new_names_that_collide_are_not_both_made() -> None:
    _, (first, second) = decide(NewTopic("t.a"), NewTopic("t_a"))
    assert first.error is None
    assert outcome(second.error) == (
        ErrorCode.invalid_topic_exception,
        "Topic 't_a' collides with existing topic: t.a",
    )


def test_topics_are_deleted_by_id_and_unknown_ids_refused() -> None:
    image = image_with("t")
    known = image.topics_by_name["t"].topic_id
    records, errors = decide_delete_topics(image, [known, UUID(int=99)])
    assert len(records) == 1
    assert [outcome(error) for error in errors] == [
        None,
        (ErrorCode.unknown_topic_id, "This server does not host this topic ID."),
    ]


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (MorePartitions("t", 2), ErrorCode.invalid_partitions, "Topic already has 2 partition(s)."),
        (
            MorePartitions("t", 1),
            ErrorCode.invalid_partitions,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (MorePartitions("nope", 3), ErrorCode.unknown_topic_or_partition, None),
        (
            MorePartitions("t", 3, [[1], [1]]),
            ErrorCode.invalid_replica_assignment,
            "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            MorePartitions("t", 3, [[7]]),
            ErrorCode.invalid_replica_assignment,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (MorePartitions("t", 20_000), ErrorCode.policy_violation, TOO_MANY),
    ],
)
def test_partitions_are_refused(request_: MorePartitions, code: ErrorCode, message: str | None) -> None:
    records, (error,) = decide_create_partitions(image_with("t"), [request_], PLACEMENT)
    assert records == []
    assert outcome(error) == (code, message)


def test_partitions_are_added_behind_the_last() -> None:
    records, errors = decide_create_partitions(
        image_with("t"), [MorePartitions("t", 4, [[1], [1]])], PLACEMENT
    )
    assert errors == [None]
    assert [record.partition_id for record in records if isinstance(record, PartitionRecord)] == [2, 3]


def test_the_brokers_own_topics_are_not_deleted_or_enlarged_by_clients() -> None:
    image, changes, ids = MetadataImage(), MetadataChanges(), counted_ids()
    made, (creation,) = decide_create_topics(
        image, [NewTopic("__consumer_offsets", 2)], PLACEMENT, PlainRules(), lambda: next(ids)
    )
    assert creation.error is None
    assert creation.topic_id is not None
    for record in made:
        image.replay(record, changes)
    deletion, (kept,) = decide_delete_topics(image, [creation.topic_id])
    growth, (left,) = decide_create_partitions(image, [MorePartitions("__consumer_offsets", 4)], PLACEMENT)
    assert (deletion, growth) == ([], [])
    assert [outcome(error) for error in (kept, left)] == [
        (ErrorCode.invalid_request, f"{action} of internal topic __consumer_offsets is prohibited.")
        for action in ("Deletion", "Enlargement")
    ]


def test_no_client_may_create_the_metadata_topic() -> None:
    ids = counted_ids()
    _, (creation,) = decide_create_topics(
        MetadataImage(),
        [NewTopic("__cluster_metadata")],
        PLACEMENT,
        PlainRules(),
        lambda: next(ids),
    )
    assert creation.error is not None
