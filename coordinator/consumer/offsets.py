"""The rules of consumer groups for offsets: which members may commit and read them, and which offsets may be
deleted (KIP-848, KIP-1251, KIP-211).

Members send their epoch. An older epoch is accepted if the partition has been the member's since that epoch
or before: the answer with the newer epoch may be under way.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.member import ConsumerMember
from barnabas.coordinator.consumer.record_factory import group_tombstones
from barnabas.coordinator.consumer.registry import ConsumerRegistry
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.offsets.interfaces import Retained
from barnabas.coordinator.offsets.requests import CommitRequest
from barnabas.protocol.errors import ApiError, ErrorCode


class ConsumerOffsetRules:
    """The `OffsetRules` of consumer groups."""

    def __init__(self, registry: ConsumerRegistry) -> None:
        self._registry = registry

    def group_ids(self) -> Iterable[str]:
        return [group.group_id for group in self._registry]

    def exists(self, group_id: str) -> bool:
        return self._registry.get(group_id) is not None

    def check_commit(self, request: CommitRequest, *, in_transaction: bool) -> None:
        """See `check_commit` and `check_ownership`. A producer may send no member id unless it commits
        individually. A client that does not know the errors of consumer groups gets ILLEGAL_GENERATION for a
        wrong epoch.
        """
        group = self._registry.existing(request.group_id)
        individual = [
            (offset.topic_id, offset.partition) for offset in request.offsets if offset.ranges is not None
        ]
        is_anonymous = in_transaction and request.identity.is_nobody and request.generation_id < 0
        if is_anonymous and not individual:
            return
        try:
            check_commit(
                group,
                request.identity,
                request.generation_id,
                ((offset.topic_id, offset.partition) for offset in request.offsets),
                knows_epochs=in_transaction or request.tells_not_found,
            )
            check_ownership(group, request.identity, individual)
        except ApiError as error:
            is_stale = error.code is ErrorCode.stale_member_epoch
            if is_stale and in_transaction and not request.tells_not_found:
                raise ApiError(ErrorCode.illegal_generation, error.message) from None
            raise

    def check_wait(self, request: CommitRequest) -> None:
        """TRANSACTION_ABORTABLE if the member has to give up one of the partitions: it waits with that for
        its commit, and the next owner, for whose commits this one may wait, waits for the partition.
        """
        member = self._registry.existing(request.group_id).members.get(request.identity.member_id)
        if member is None:
            return
        for offset in request.offsets:
            if offset.ranges is not None and offset.partition in member.revoking.get(offset.topic_id, {}):
                message = f"The member has to give up partition {offset.partition}: abort the transaction."
                raise ApiError(ErrorCode.transaction_abortable, message)

    def heard_from(self, group_id: str, member_id: str, now_ms: int) -> None:
        """Does nothing: only heartbeats keep a member in its group."""

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        check_fetch(self._registry.existing(group_id), member_id, member_epoch)

    def is_owner(self, group_id: str, member_id: str, topic_id: UUID, partition: int) -> bool:
        member = self._registry.existing(group_id).members.get(member_id)
        return member is not None and member.epoch_of(topic_id, partition) is not None

    def check_deletion(self, group_id: str) -> None:
        """Always allowed, because the topics that members read are known."""

    def is_read(self, group_id: str, topic_name: str) -> bool:
        return self._registry.existing(group_id).is_subscribed_to(topic_name)

    def retained_since_ms(self, group_id: str, topic_name: str) -> Retained:
        return Retained.FOREVER if self.is_read(group_id, topic_name) else Retained.SINCE_COMMIT

    def unused_tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        group = self._registry.existing(group_id)
        return [] if group.members else [*group_tombstones(group, ())]


def check_commit(
    group: ConsumerGroup,
    identity: MemberIdentity,
    member_epoch: int,
    partitions: Iterable[tuple[UUID, int]],
    *,
    knows_epochs: bool,
) -> None:
    """Whether this member, or a client that is no member, may commit for these partitions by topic id.

    `knows_epochs` is true if the request's version has member epochs (OffsetCommit from version 9 on), or if
    that does not matter. UNKNOWN_MEMBER_ID; UNSUPPORTED_VERSION; STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION
    for a member of the classic protocol.
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


def check_ownership(
    group: ConsumerGroup, identity: MemberIdentity, partitions: Iterable[tuple[UUID, int]]
) -> None:
    """STALE_MEMBER_EPOCH unless the member has these partitions, or shares of them.

    A later owner reads the ranges when it gets the partition, so none may be added behind its back.
    """
    if not group.members:
        return
    member = _member(group, identity.member_id)
    for topic_id, partition in partitions:
        if member.epoch_of(topic_id, partition) is None:
            raise _stale(member, f"The member does not have partition {partition}.")


def check_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """Whether this member, or a client that is no member, may read the offsets: UNKNOWN_MEMBER_ID,
    STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
    """
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
