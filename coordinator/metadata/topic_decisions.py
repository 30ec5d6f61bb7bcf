"""Creating and deleting topics, and adding partitions: whether it is allowed, and the records.

CreateTopics, DeleteTopics and CreatePartitions, decided as by Apache Kafka's `ReplicationControlManager`,
with its errors and messages. A decision changes no state. One node holds every replica, so a replication
factor above 1 is refused. Clients may not delete or enlarge internal topics: coordinators keep their content
in memory, and find it by the number of partitions. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.metadata.config_decisions import ConfigRules, decide_new_topic_configs
from barnabas.coordinator.metadata.image import MetadataImage, Partition, Topic, partition_record
from barnabas.coordinator.metadata.topic_names import (
    METADATA_TOPIC,
    collision_key,
    invalid_topic_name,
)
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.metadata_records import MetadataRecord, RemoveTopicRecord, TopicRecord

REQUEST_PARTITIONS_MAX = 10_000
"""The most partitions that one CreateTopics request may ask for; beyond it every topic is refused
(POLICY_VIOLATION).
"""

_RESERVED_ID_MAX = 1
"""Kafka reserves two ids: 0 is "none", 1 the metadata topic."""
_BASE64_DASH = 62
"""The six bits that Kafka's text of an id, which is base64 for URLs, shows as a dash."""

DEFAULT = -1
"""A partition count or replication factor of -1 selects the broker's default."""


class TopicPlacement(NamedTuple):
    """The place of new partitions: the one node, its registration's epoch, its data directory's id."""

    node_id: int
    node_epoch: int
    directory_id: UUID
    default_partition_count: int


class NewTopic(NamedTuple):
    """A requested topic. `assignments` are (partition, node ids); if empty, the broker chooses."""

    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = {}


class TopicCreation(NamedTuple):
    """The outcome of one `NewTopic`; with `error` only `name` is valid."""

    name: str
    topic_id: UUID | None = None
    partition_count: int = -1
    replication_factor: int = -1
    error: ApiError | None = None


class MorePartitions(NamedTuple):
    """A topic that is to have `total_count` partitions; `assignments` are the new ones' node ids, or None."""

    name: str
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


Charge = Callable[[int], None]
"""Called with the number of partitions that a topic is about to get or lose; raises `ApiError` if the client
may not change more.
"""


def free_of_charge(_partition_count: int) -> None:
    """The charge of the broker's own changes: none."""


def decide_create_topics(
    image: MetadataImage,
    new_topics: Sequence[NewTopic],
    placement: TopicPlacement,
    rules: ConfigRules,
    new_id: Callable[[], UUID],
    charge: Charge = free_of_charge,
) -> tuple[list[MetadataRecord], list[TopicCreation]]:
    """The records of the topics that may be created, and the outcome of each topic, in their order.

    Names must be unique. A refused topic does not affect the others.
    """
    too_many = too_many_partitions(new_topics, placement.default_partition_count)
    records: list[MetadataRecord] = []
    creations: list[TopicCreation] = []
    keys: dict[str, str] = {}
    for new_topic in new_topics:
        try:
            if too_many is not None:
                raise without_frames(too_many)
            topic_records = _decide_create_topic(image, new_topic, placement, rules, new_id, keys)
            charge(topic_records.creation.partition_count)
        except ApiError as error:
            creations.append(TopicCreation(new_topic.name, error=without_frames(error)))
            continue
        records.extend(topic_records.records)
        creations.append(topic_records.creation)
        keys[collision_key(new_topic.name)] = new_topic.name
    return records, creations


class _TopicRecords(NamedTuple):
    records: list[MetadataRecord]
    creation: TopicCreation


def _decide_create_topic(
    image: MetadataImage,
    new_topic: NewTopic,
    placement: TopicPlacement,
    rules: ConfigRules,
    new_id: Callable[[], UUID],
    names_by_collision_key: Mapping[str, str],
) -> _TopicRecords:
    _check_new_name(image, new_topic.name, names_by_collision_key)
    config_records = decide_new_topic_configs(new_topic.name, new_topic.configs, rules)
    count = _partition_count(new_topic, placement)
    topic_id = _fresh_id(image, new_id)
    partitions = (partition_record(topic_id, _new_partition(index, placement)) for index in range(count))
    creation = TopicCreation(new_topic.name, topic_id, count, replication_factor=1)
    return _TopicRecords(
        [TopicRecord(name=new_topic.name, topic_id=topic_id), *config_records, *partitions], creation
    )


def _fresh_id(image: MetadataImage, new_id: Callable[[], UUID]) -> UUID:
    """A free id that Kafka does not reserve, and that does not look like an option in a command."""
    while True:
        topic_id = new_id()
        starts_with_dash = topic_id.bytes[0] >> 2 == _BASE64_DASH
        if topic_id.int > _RESERVED_ID_MAX and not starts_with_dash and topic_id not in image.topics_by_id:
            return topic_id


def too_many_partitions(new_topics: Sequence[NewTopic], default_partition_count: int) -> ApiError | None:
    """The reason to refuse the whole request; None without one."""
    total = 0
    for new_topic in new_topics:
        asked = len(new_topic.assignments) or new_topic.partition_count
        total += default_partition_count if asked == DEFAULT else max(asked, 0)
    if total <= REQUEST_PARTITIONS_MAX:
        return None
    return ApiError(ErrorCode.policy_violation, "Excessively large number of partitions per request.")


def _check_new_name(image: MetadataImage, name: str, names_by_collision_key: Mapping[str, str]) -> None:
    if name == METADATA_TOPIC:
        raise _prohibited("Creation", name)
    reason = invalid_topic_name(name)
    if reason is not None:
        raise ApiError(ErrorCode.invalid_topic_exception, reason)
    if name in image.topics_by_name:
        raise ApiError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    # Kafka accepts two names in one request that collide with each other; Barnabas refuses them.
    colliding = image.colliding_name(name) or names_by_collision_key.get(collision_key(name))
    if colliding is not None:
        raise ApiError(
            ErrorCode.invalid_topic_exception, f"Topic '{name}' collides with existing topic: {colliding}"
        )


def _prohibited(action: str, name: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, f"{action} of internal topic {name} is prohibited.")


def _partition_count(new_topic: NewTopic, placement: TopicPlacement) -> int:
    """The number of partitions that the topic gets; raises `ApiError` for an invalid request."""
    if new_topic.assignments:
        _check_assignments(new_topic, placement.node_id)
        return len(new_topic.assignments)
    if new_topic.replication_factor < DEFAULT or new_topic.replication_factor == 0:
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if new_topic.partition_count < DEFAULT or new_topic.partition_count == 0:
        raise ApiError(
            ErrorCode.invalid_partitions, "Number of partitions was set to an invalid non-positive value."
        )
    if new_topic.replication_factor > 1:
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            f"Unable to replicate the partition {new_topic.replication_factor} time(s): The target "
            f"replication factor of {new_topic.replication_factor} cannot be reached because only 1 "
            "broker(s) are registered or some brokers have all their log directories cordoned.",
        )
    asked = new_topic.partition_count
    return placement.default_partition_count if asked == DEFAULT else asked


def _check_assignments(new_topic: NewTopic, node_id: int) -> None:
    if new_topic.replication_factor != DEFAULT:
        raise ApiError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if new_topic.partition_count != DEFAULT:
        raise ApiError(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    seen: set[int] = set()
    for index, node_ids in new_topic.assignments:
        if index in seen:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {index}",
            )
        seen.add(index)
        check_replicas(node_ids, node_id)
    if seen != set(range(len(seen))):
        raise ApiError(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )


def check_replicas(node_ids: Sequence[int], node_id: int) -> None:
    """There is one node, so a valid list names it once; raises `ApiError` for any other list."""
    prefix = "The manual partition assignment includes"
    if not node_ids:
        raise ApiError(ErrorCode.invalid_replica_assignment, f"{prefix} an empty replica list.")
    for other in sorted(node_ids):
        if other != node_id:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"{prefix} broker {other}, but no such broker is registered.",
            )
    if len(node_ids) > 1:
        raise ApiError(ErrorCode.invalid_replica_assignment, f"{prefix} the broker {node_id} more than once.")


def _new_partition(index: int, placement: TopicPlacement) -> Partition:
    replicas = (placement.node_id,)
    return Partition(
        index=index,
        leader=placement.node_id,
        leader_epoch=placement.node_epoch,
        partition_epoch=0,
        replicas=replicas,
        isr=replicas,
        directories=(placement.directory_id,),
    )


def decide_delete_topics(
    image: MetadataImage, topic_ids: Sequence[UUID], charge: Charge = free_of_charge
) -> tuple[list[MetadataRecord], list[ApiError | None]]:
    """The records of the topics that may be deleted, and the errors of the others. Ids must be unique."""
    records: list[MetadataRecord] = []
    errors: list[ApiError | None] = []
    for topic_id in topic_ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            errors.append(ApiError(ErrorCode.unknown_topic_id, "This server does not host this topic ID."))
        elif topic.is_internal:
            errors.append(_prohibited("Deletion", topic.name))
        else:
            try:
                charge(len(topic.partitions))
            except ApiError as error:
                errors.append(without_frames(error))
                continue
            records.append(RemoveTopicRecord(topic_id=topic_id))
            errors.append(None)
    return records, errors


def decide_create_partitions(
    image: MetadataImage,
    requests: Sequence[MorePartitions],
    placement: TopicPlacement,
    charge: Charge = free_of_charge,
) -> tuple[list[MetadataRecord], list[ApiError | None]]:
    """The records of the topics that may get partitions, and the errors of the others."""
    records: list[MetadataRecord] = []
    errors: list[ApiError | None] = []
    for request in requests:
        try:
            topic = _check_more_partitions(image, request, placement.node_id)
            charge(request.total_count - len(topic.partitions))
        except ApiError as error:
            errors.append(without_frames(error))
            continue
        records.extend(
            partition_record(topic.topic_id, _new_partition(index, placement))
            for index in range(len(topic.partitions), request.total_count)
        )
        errors.append(None)
    return records, errors


def _check_more_partitions(image: MetadataImage, request: MorePartitions, node_id: int) -> Topic:
    topic = image.topics_by_name.get(request.name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    if topic.is_internal:
        raise _prohibited("Enlargement", topic.name)
    count = len(topic.partitions)
    added_count = request.total_count - count
    if added_count == 0:
        raise ApiError(ErrorCode.invalid_partitions, f"Topic already has {count} partition(s).")
    if added_count < 0:
        raise ApiError(
            ErrorCode.invalid_partitions,
            f"The topic {request.name} currently has {count} partition(s); {request.total_count} would not "
            "be an increase.",
        )
    if added_count > REQUEST_PARTITIONS_MAX:
        raise ApiError(ErrorCode.policy_violation, "Excessively large number of partitions per request.")
    if request.assignments is not None:
        if len(request.assignments) != added_count:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"Attempted to add {added_count} additional partition(s), but only "
                f"{len(request.assignments)} assignment(s) were specified.",
            )
        for node_ids in request.assignments:
            check_replicas(node_ids, node_id)
    return topic
