"""Who may commit and read a consumer group's offsets, and which of them may go (KIP-848, KIP-1251, KIP-211).

Members name their epoch. An older one is taken as long as the partition has been the member's since then, or
before: an answer that brought the newer epoch may be under way. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from barnabas.coordinator.classic.requests import MemberIdentity
from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.protocol.errors import ApiError, ErrorCode


def check_commit(
    group: ConsumerGroup,
    identity: MemberIdentity,
    member_epoch: int,
    partitions: Iterable[tuple[UUID, int]],
    *,
    knows_epochs: bool,
) -> None:
    """Whether this member, or nobody, may commit for these partitions by topic id.

    `knows_epochs` says that the request is of a version that has member epochs (9 of OffsetCommit), or that
    it doesn't matter. UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a
    member of the classic protocol.
    """
    if member_epoch < 0 and not group.members:
        return
    member = _member(group, identity.member_id)
    if member.classic is None and not knows_epochs:
        message = "OffsetCommit version 9 or above must be used by members using the consumer group protocol"
        raise ApiError(ErrorCode.unsupported_version, message)
    if member_epoch == member.member_epoch:
        return
    if member_epoch > member.member_epoch:
        raise _stale(member, f"The epoch {member_epoch} is newer than the member's, {member.member_epoch}.")
    for topic_id, partition in partitions:
        since = member.epoch_of(topic_id, partition)
        if since is None or member_epoch < since:
            raise _stale(member, f"The member had not partition {partition} at the epoch {member_epoch}.")


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """Whether this member, or nobody, may read the offsets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or
    ILLEGAL_GENERATION."""
    if member_id is None and member_epoch < 0:
        return
    member = _member(group, member_id or "")
    if member_epoch != member.member_epoch:
        raise _stale(member, f"The epoch is {member.member_epoch}, not {member_epoch}.")


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        message = f"Member {member_id} is not a member of group {group.group_id}."
        raise ApiError(ErrorCode.unknown_member_id, message)
    return member


def _stale(member: ConsumerMember, message: str) -> ApiError:
    is_classic = member.classic is not None
    code = ErrorCode.illegal_generation if is_classic else ErrorCode.stale_member_epoch
    return ApiError(code, message)
