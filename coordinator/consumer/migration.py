"""Converts a group of one protocol into a group of the other, with its members (KIP-848, "Online migration").

A classic group is upgraded when the first member of the consumer protocol joins, and a consumer group is
downgraded when the last such member leaves, if `group.consumer.migration.policy` and the group's size allow
it. Members of the classic protocol continue unchanged: their subscriptions and assignments are decoded from
their metadata, and encoded again. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from barnabas.coordinator.assignor.assignment import EMPTY_ASSIGNMENT, Assignment
from barnabas.coordinator.assignor.exclusive import as_assignment
from barnabas.coordinator.assignor.java_hash_map import default_capacity, uuid_hash, walk_order
from barnabas.coordinator.classic.group import ClassicGroup
from barnabas.coordinator.classic.member import ClassicMember
from barnabas.coordinator.classic.record_factory import deleted_group, stable_generation
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ClassicMetadata, ConsumerMember
from barnabas.coordinator.consumer.record_factory import (
    current_member_assignment,
    group_metadata,
    group_tombstones,
    member_metadata,
    target_assignment_member,
    target_assignment_metadata,
)
from barnabas.coordinator.consumer.settings import ConsumerSettings
from barnabas.coordinator.group.last_assignment import NEVER_ASSIGNED
from barnabas.coordinator.group.metadata_hash import metadata_hash
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.protocol import consumer_protocol
from barnabas.protocol.consumer_group_records import ConsumerGroupRecord
from barnabas.protocol.consumer_protocol import NamedPartitions, Subscription
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.varint import RecordFormatError
from barnabas.runtime.moment import Moment, written_at

# Upwards


def upgraded(
    classic: ClassicGroup, settings: ConsumerSettings, catalog: TopicCatalog, moment: Moment
) -> tuple[ConsumerGroup, list[AnyGroupRecord]]:
    """The consumer group that a classic group with members becomes, and the records that create it.

    GROUP_ID_NOT_FOUND if that is not possible; the group stays a classic one.
    """
    _check_upgrade(classic, settings)
    try:
        members = [_upgraded_member(classic, member, catalog) for member in classic.members.values()]
    except RecordFormatError:
        raise _no_upgrade(classic, "the embedded consumer protocol is malformed") from None
    group = ConsumerGroup(classic.group_id)
    created = _creation(group.group_id, classic.generation_id, members, catalog)
    for key, value in created:
        group.replay(key, value, written_at(moment.now_ms))
    return group, [deleted_group(classic.group_id), *created]


def _check_upgrade(classic: ClassicGroup, settings: ConsumerSettings) -> None:
    if not settings.migration_policy.allows_upgrade:
        raise _no_upgrade(classic, "online upgrade is disabled")
    if not classic.uses_consumer_protocol:
        raise _no_upgrade(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > settings.max_size:
        raise _no_upgrade(classic, "the group size exceeds the consumer group maximum size")


def _no_upgrade(classic: ClassicGroup, reason: str) -> ApiError:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
    return ApiError(ErrorCode.group_id_not_found, message)


def _upgraded_member(classic: ClassicGroup, member: ClassicMember, catalog: TopicCatalog) -> ConsumerMember:
    """A member at the group's generation, with its last assignment."""
    assigned: Assignment = EMPTY_ASSIGNMENT
    if member.assignment:
        assignment = consumer_protocol.decode_assignment(member.assignment)
        if assignment.user_data:
            raise _no_upgrade(classic, "an unsupported custom assignor is in use")
        assigned = assignment_of(assignment.assigned_partitions, catalog)
    subscription = consumer_protocol.decode_subscription(_metadata(classic, member))
    return ConsumerMember(
        member.member_id,
        member_epoch=classic.generation_id,
        previous_member_epoch=classic.generation_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, tuple(member.protocols.items())),
        assigned={topic: dict.fromkeys(ones, classic.generation_id) for topic, ones in assigned.items()},
    )


def _metadata(classic: ClassicGroup, member: ClassicMember) -> bytes:
    """The member's metadata for the group's protocol; before one is selected, for its own favourite."""
    favourite = next(iter(member.protocols))
    return member.protocols.get(classic.protocol_name or favourite, member.protocols[favourite])


def _creation(
    group_id: str, epoch: int, members: Iterable[ConsumerMember], catalog: TopicCatalog
) -> list[ConsumerGroupRecord]:
    """The records of a group whose members have reached their target."""
    members = list(members)
    topics = frozenset[str]().union(*(member.subscribed_topic_names for member in members))
    return [
        *(member_metadata(group_id, member) for member in members),
        group_metadata(group_id, epoch, metadata_hash(topics, catalog)),
        *(
            target_assignment_member(group_id, member.member_id, as_assignment(_plain(member)))
            for member in members
        ),
        target_assignment_metadata(group_id, epoch, NEVER_ASSIGNED),
        *(current_member_assignment(group_id, member) for member in members),
    ]


def _plain(member: ConsumerMember) -> Mapping[UUID, Collection[int]]:
    return {topic_id: list(epochs) for topic_id, epochs in member.assigned.items()}


# Downwards


def may_become_classic(
    group: ConsumerGroup, leaving: Collection[ConsumerMember], settings: ConsumerSettings
) -> bool:
    """Whether only members of the classic protocol remain after these have left."""
    leaving_ids = {member.member_id for member in leaving}
    left = [member for member_id, member in group.members.items() if member_id not in leaving_ids]
    return bool(left) and _is_allowed(left, settings)


def may_become_classic_by(group: ConsumerGroup, replaced: ConsumerMember, settings: ConsumerSettings) -> bool:
    """Whether only members of the classic protocol remain if one takes the place of this member."""
    others = [member for member in group.members.values() if member.member_id != replaced.member_id]
    has_room = len(group.members) <= settings.classic_max_size
    return replaced.classic is None and has_room and _is_allowed(others, settings)


def _is_allowed(left: Collection[ConsumerMember], settings: ConsumerSettings) -> bool:
    return (
        all(member.classic is not None for member in left)
        and settings.migration_policy.allows_downgrade
        and len(left) <= settings.classic_max_size
    )


def downgraded(
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    catalog: TopicCatalog,
    moment: Moment,
    *,
    joining: ConsumerMember | None = None,
    replaced: ConsumerMember | None = None,
) -> tuple[ClassicGroup, list[AnyGroupRecord]]:
    """The classic group that a consumer group becomes when some members leave, and the records that create
    it.

    `joining` takes the place of `replaced`; the records before these have already replaced the member.
    """
    stand_ins = {} if joining is None or replaced is None else {replaced.member_id: joining}
    leaving_ids = {member.member_id for member in leaving}
    classic = ClassicGroup(group.group_id, moment)
    classic.generation_id = group.group_epoch
    for member_id, member in group.members.items():
        if member_id not in leaving_ids and member_id not in stand_ins:
            classic.add(_downgraded_member(member), consumer_protocol.PROTOCOL_TYPE)
    for member in stand_ins.values():
        classic.add(_downgraded_member(member), consumer_protocol.PROTOCOL_TYPE)
    classic.protocol_name = classic.select_protocol()
    names_now = {
        member_id: stand_ins[member_id].member_id if member_id in stand_ins else member_id
        for member_id in group.members
    }
    for old_id, member_id in names_now.items():
        classic_member = classic.members.get(member_id)
        if classic_member is not None:
            metadata = classic_member.protocols[classic.protocol_name]
            target = group.target.get(old_id, EMPTY_ASSIGNMENT)
            classic_member.assignment = encoded_assignment(target, metadata, catalog)
    return classic, [
        *group_tombstones(group, names_now.values()),
        stable_generation(classic, classic.assignment(), moment.wall_ms),
    ]


def _downgraded_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "a classic group has members of the classic protocol alone"
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=dict(member.classic.protocols),
    )


# Metadata of members of the classic protocol


def read_subscription(protocols: Mapping[str, bytes]) -> Subscription:
    """The subscription of a JoinGroup, the same in all its protocols. INCONSISTENT_GROUP_PROTOCOL."""
    try:
        return consumer_protocol.decode_subscription(next(iter(protocols.values())))
    except RecordFormatError:
        message = "The embedded consumer protocol is malformed."
        raise ApiError(ErrorCode.inconsistent_group_protocol, message) from None


def assignment_of(partitions: Iterable[NamedPartitions], catalog: TopicCatalog) -> Assignment:
    """Partitions by topic id, for topics given by name; unknown topics are left out."""
    by_id: dict[UUID, set[int]] = {}
    for named in partitions:
        shape = catalog.topic_by_name(named.topic)
        if shape is not None:
            by_id.setdefault(shape.topic_id, set()).update(named.partitions)
    return as_assignment(by_id)


def encoded_assignment(assignment: Assignment, metadata: bytes, catalog: TopicCatalog) -> bytes:
    """An assignment, encoded for a member with this metadata; deleted topics are left out.

    The topics are in the order of Kafka's hash maps, so that the bytes are the same.
    """
    topic_ids = walk_order(assignment, uuid_hash, default_capacity(len(assignment)))
    shapes = [(catalog.topic_by_id(topic_id), assignment[topic_id]) for topic_id in topic_ids]
    named = tuple(
        NamedPartitions(topic=shape.name, partitions=partitions)
        for shape, partitions in shapes
        if shape is not None
    )
    version = consumer_protocol.protocol_version(metadata)
    return consumer_protocol.encode_assignment(
        consumer_protocol.Assignment(assigned_partitions=named), version
    )
