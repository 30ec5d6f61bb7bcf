"""OffsetCommit, OffsetFetch and OffsetDelete, and when offsets end by themselves (KIP-211).

Members commit under their generation. Who names none is an administrator or a consumer that uses no group: it
may commit as long as nobody has joined, and makes a "simple" group by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.classic.committed_offset import CommittedOffset, OffsetKey
from barnabas.coordinator.classic.committed_offsets import CommittedOffsets
from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.record_factory import (
    ClassicRecord,
    committed_offset,
    deleted_group,
    deleted_offset,
)
from barnabas.coordinator.classic.requests import MemberIdentity
from barnabas.protocol.classic_group_records import NO_TIMESTAMP
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit, of a topic that exists."""

    topic_name: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class CommitRequest(NamedTuple):
    """OffsetCommit, after authorization."""

    group_id: str
    identity: MemberIdentity
    generation_id: int
    offsets: Sequence[OffsetToCommit]
    tells_not_found: bool
    """Whether the client knows of consumer groups (version 9): so a group that isn't there is
    GROUP_ID_NOT_FOUND, and not ILLEGAL_GENERATION."""


class TransactionalCommit(NamedTuple):
    """TxnOffsetCommit, after authorization."""

    request: CommitRequest
    producer: ProducerIdentity
    check_transaction: Callable[[], None]
    """Raises the ApiError of a producer whose transaction does not take part in the group's partition now."""


def check_transactional_commit(group: ClassicGroup, identity: MemberIdentity, generation_id: int) -> None:
    """As `check_commit`, but what the group is doing doesn't matter, and older producers name no member."""
    names_member = bool(identity.member_id) or identity.group_instance_id is not None
    if generation_id < 0 and (group.state is ClassicGroupState.EMPTY or not names_member):
        return
    group.check_member(identity.member_id, identity.group_instance_id)
    if generation_id != group.generation_id:
        raise ApiError(ErrorCode.illegal_generation, f"The generation is {group.generation_id}.")


def check_commit(group: ClassicGroup, identity: MemberIdentity, generation_id: int) -> None:
    """Whether this member, or nobody, may commit now; see `ClassicGroup.check_member` and:

    ILLEGAL_GENERATION; UNKNOWN_MEMBER_ID for nobody while there are members; REBALANCE_IN_PROGRESS between
    the joining and the assignment.
    """
    if generation_id < 0 and group.state is ClassicGroupState.EMPTY:
        return
    names_member = bool(identity.member_id) or identity.group_instance_id is not None
    if generation_id < 0 and not names_member:
        raise ApiError(ErrorCode.unknown_member_id, "The group has members, and none is named.")
    group.check_member(identity.member_id, identity.group_instance_id)
    if generation_id != group.generation_id:
        raise ApiError(ErrorCode.illegal_generation, f"The generation is {group.generation_id}.")
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.rebalance_in_progress, "The group waits for its assignment.")


def has_room(offset: OffsetToCommit, metadata_bytes_max: int) -> bool:
    """Whether the offset's metadata is short enough to be stored."""
    return len(offset.metadata) <= metadata_bytes_max


def commit_records(
    request: CommitRequest, wall_ms: int, metadata_bytes_max: int
) -> tuple[list[ClassicRecord], list[ErrorCode]]:
    """The records to write, and the outcome of each offset in the request's order."""
    records: list[ClassicRecord] = []
    codes: list[ErrorCode] = []
    for one in request.offsets:
        if not has_room(one, metadata_bytes_max):
            codes.append(ErrorCode.offset_metadata_too_large)
            continue
        codes.append(ErrorCode.none)
        key = OffsetKey(request.group_id, one.topic_name, one.partition)
        committed = CommittedOffset(
            one.offset, one.leader_epoch, one.metadata, wall_ms, topic_id=one.topic_id
        )
        records.append(committed_offset(key, committed))
    return records, codes


def check_deletion(group: ClassicGroup) -> None:
    """NON_EMPTY_GROUP if members are there of whom nobody knows what they read."""
    if group.state is not ClassicGroupState.EMPTY and not group.uses_consumer_protocol:
        raise ApiError(ErrorCode.non_empty_group, "The group has members.")


def deletion_records(
    group_id: str,
    offsets: CommittedOffsets,
    keys: Sequence[tuple[str, int]],
    is_read: Callable[[str], bool],
) -> tuple[list[ClassicRecord], list[ErrorCode]]:
    """Tombstones for (topic name, partition) pairs, and the outcome of each.

    GROUP_SUBSCRIBED_TO_TOPIC if members read the topic, which `is_read` knows by name; an offset that isn't
    there is deleted, too.
    """
    records: list[ClassicRecord] = []
    codes: list[ErrorCode] = []
    for topic_name, partition in keys:
        if is_read(topic_name):
            codes.append(ErrorCode.group_subscribed_to_topic)
            continue
        codes.append(ErrorCode.none)
        key = OffsetKey(group_id, topic_name, partition)
        if offsets.has(key):
            records.append(deleted_offset(key))
    return records, codes


def group_deletion_records(group: ClassicGroup, offsets: CommittedOffsets) -> list[ClassicRecord]:
    """Tombstones for the group and for all that it has committed. NON_EMPTY_GROUP if it has members."""
    if group.state is not ClassicGroupState.EMPTY:
        raise ApiError(ErrorCode.non_empty_group, f"Group {group.group_id} has members.")
    records = [deleted_offset(key) for key in offsets.all_keys_of_group(group.group_id)]
    return [*records, deleted_group(group.group_id)]


def expiry_records(
    group: ClassicGroup, offsets: CommittedOffsets, wall_ms: int, retention_ms: int
) -> list[ClassicRecord]:
    """Tombstones for what has been kept long enough, and for the group if nothing is left of it."""
    records, is_all = expired_offsets(
        group.group_id, offsets, lambda key, one: _is_expired(group, key, one, wall_ms, retention_ms)
    )
    if is_all and _may_go(group):
        records.append(deleted_group(group.group_id))
    return records


def expired_offsets(
    group_id: str, offsets: CommittedOffsets, is_expired: Callable[[OffsetKey, CommittedOffset], bool]
) -> tuple[list[ClassicRecord], bool]:
    """Tombstones for the offsets of a group that are to go, and whether none is left, nor about to come."""
    kept = 0
    records: list[ClassicRecord] = []
    for key, committed in offsets.keys_of_group(group_id):
        if is_expired(key, committed) and not offsets.pending.is_pending(key):
            records.append(deleted_offset(key))
        else:
            kept += 1
    return records, not kept and not offsets.pending.has_group(group_id)


def is_kept_long_enough(committed: CommittedOffset, since_ms: int, wall_ms: int, retention_ms: int) -> bool:
    """Whether an offset whose retention counts from `since_ms` may go."""
    if committed.expires_at_ms != NO_TIMESTAMP:
        return wall_ms >= committed.expires_at_ms
    return wall_ms - since_ms >= retention_ms


def _is_expired(
    group: ClassicGroup, key: OffsetKey, committed: CommittedOffset, wall_ms: int, retention_ms: int
) -> bool:
    since_ms = _retained_since_ms(group, committed)
    if since_ms is None or (group.members and group.is_subscribed_to(key.topic_name)):
        return False
    return is_kept_long_enough(committed, since_ms, wall_ms, retention_ms)


def _retained_since_ms(group: ClassicGroup, committed: CommittedOffset) -> int | None:
    """From when on an offset's retention counts; None while it doesn't end.

    For a group whose members have gone, from when the last one went. For one with consumers, and for simple
    ones, from the commit.
    """
    if group.protocol_type is None:
        return committed.committed_at_ms
    if group.state is ClassicGroupState.EMPTY:
        known = group.state_since_ms != NO_TIMESTAMP
        return group.state_since_ms if known else committed.committed_at_ms
    knows_topics = group.uses_consumer_protocol and group.subscribed_topics is not None
    if knows_topics and group.state is ClassicGroupState.STABLE:
        return committed.committed_at_ms
    return None


def _may_go(group: ClassicGroup) -> bool:
    return group.state is ClassicGroupState.EMPTY and not group.pending_joins


class FetchedOffset(NamedTuple):
    """What OffsetFetch tells of a partition: what was committed, if anything."""

    topic_name: str
    partition: int
    committed: CommittedOffset | None
    is_unstable: bool = False
    """A transaction that hasn't ended may commit another one: whoever wants stable offsets has to wait."""


def fetched_offsets(
    offsets: CommittedOffsets,
    group_id: str,
    wanted: Mapping[str, Sequence[int]] | None,
    *,
    require_stable: bool,
) -> Iterator[FetchedOffset]:
    """What there is of those `wanted`, or of all for which anything was committed."""
    committed = offsets.of_group(group_id)
    checks_pending = require_stable and offsets.pending.has_group(group_id)
    if wanted is None:
        wanted = {name: list(partitions) for name, partitions in committed.items()}
    for name, partitions in wanted.items():
        of_topic = committed.get(name, {})
        for partition in partitions:
            if checks_pending and offsets.pending.is_pending(OffsetKey(group_id, name, partition)):
                yield FetchedOffset(name, partition, None, is_unstable=True)
            else:
                yield FetchedOffset(name, partition, of_topic.get(partition))
