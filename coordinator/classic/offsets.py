"""The rules of classic groups for offsets: who may commit and delete them, and how long they are kept
(KIP-211).

Members commit with their generation. A request without a generation comes from an administrator, or from a
consumer that uses no group: it may commit while the group has no members, and creates a "simple" group.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from barnabas.coordinator.classic.group import ClassicGroup, ClassicGroupState
from barnabas.coordinator.classic.rebalance import Rebalance
from barnabas.coordinator.classic.record_factory import deleted_group
from barnabas.coordinator.classic.registry import ClassicRegistry
from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.group.records import AnyGroupRecord
from barnabas.coordinator.offsets.interfaces import Retained
from barnabas.coordinator.offsets.requests import CommitRequest
from barnabas.protocol.errors import ApiError, ErrorCode


class ClassicOffsetRules:
    """The `OffsetRules` of classic groups, and of ids without a group."""

    def __init__(self, groups: ClassicRegistry, rebalance: Rebalance) -> None:
        self._groups = groups
        self._rebalance = rebalance

    def group_ids(self) -> Iterable[str]:
        return [group.group_id for group in self._groups]

    def exists(self, group_id: str) -> bool:
        return self._groups.get(group_id) is not None

    def check_commit(self, request: CommitRequest, *, in_transaction: bool) -> None:
        """See `check_commit` and `check_transactional_commit`; COORDINATOR_NOT_AVAILABLE if there are too
        many groups, GROUP_ID_NOT_FOUND or ILLEGAL_GENERATION if the commit does not create a group.
        """
        group = self._groups.get(request.group_id)
        if group is None:
            self._check_new_group(request)
        elif in_transaction:
            check_transactional_commit(group, request.identity, request.generation_id)
        else:
            check_commit(group, request.identity, request.generation_id)

    def _check_new_group(self, request: CommitRequest) -> None:
        is_of_another_type = self._groups.is_of_another_type(request.group_id)
        if request.generation_id < 0 and not is_of_another_type:
            self._groups.check_room(ErrorCode.coordinator_not_available)
            return
        if request.tells_not_found or is_of_another_type:
            self._groups.existing(request.group_id)
        raise ApiError(ErrorCode.illegal_generation, f"Group {request.group_id} not found.")

    def check_wait(self, request: CommitRequest) -> None:
        """Always allowed, because members of classic groups do not share partitions."""

    def heard_from(self, group_id: str, member_id: str, now_ms: int) -> None:
        """A commit restarts the member's session."""
        group = self._groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None:
            self._rebalance.expect_heartbeat(group, member, now_ms)

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Always allowed: a fetch names neither member nor generation of a classic group."""

    def is_owner(self, group_id: str, member_id: str, topic_id: UUID, partition: int) -> bool:
        """False: only the clients know the assignment of a classic group."""
        return False

    def check_deletion(self, group_id: str) -> None:
        """NON_EMPTY_GROUP if the group has members whose topics are unknown; GROUP_ID_NOT_FOUND."""
        group = self._groups.existing(group_id)
        if group.state is not ClassicGroupState.EMPTY and not group.uses_consumer_protocol:
            raise ApiError(ErrorCode.non_empty_group, "The group has members.")

    def is_read(self, group_id: str, topic_name: str) -> bool:
        group = self._groups.existing(group_id)
        return group.state is not ClassicGroupState.EMPTY and group.is_subscribed_to(topic_name)

    def retained_since_ms(self, group_id: str, topic_name: str) -> int | Retained:
        """For a group whose members have left, from the time when the last one left. For a group with
        consumers, and for simple groups, from the commit.
        """
        group = self._groups.existing(group_id)
        if group.members and group.is_subscribed_to(topic_name):
            return Retained.FOREVER
        if group.protocol_type is None:
            return Retained.SINCE_COMMIT
        if group.state is ClassicGroupState.EMPTY:
            return group.state_since.now_ms
        knows_topics = group.uses_consumer_protocol and group.subscribed_topics is not None
        is_settled = knows_topics and group.state is ClassicGroupState.STABLE
        return Retained.SINCE_COMMIT if is_settled else Retained.FOREVER

    def unused_tombstones(self, group_id: str) -> list[AnyGroupRecord]:
        group = self._groups.existing(group_id)
        goes = group.state is ClassicGroupState.EMPTY and not group.pending_joins
        return [deleted_group(group_id)] if goes else []


def check_transactional_commit(group: ClassicGroup, identity: MemberIdentity, generation_id: int) -> None:
    """As `check_commit`, but in any state of the group. Older producers send no member id."""
    if generation_id < 0 and (group.state is ClassicGroupState.EMPTY or identity.is_nobody):
        return
    _check_member(group, identity, generation_id)


def check_commit(group: ClassicGroup, identity: MemberIdentity, generation_id: int) -> None:
    """Whether this member, or a client that is no member, may commit now; see `ClassicGroup.check_member`
    and:

    ILLEGAL_GENERATION; UNKNOWN_MEMBER_ID if the request names no member and the group has members;
    REBALANCE_IN_PROGRESS between the joining and the assignment.
    """
    if generation_id < 0 and group.state is ClassicGroupState.EMPTY:
        return
    if generation_id < 0 and identity.is_nobody:
        raise ApiError(ErrorCode.unknown_member_id, "The group has members, and none is named.")
    _check_member(group, identity, generation_id)
    if group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.rebalance_in_progress, "The group waits for its assignment.")


def _check_member(group: ClassicGroup, identity: MemberIdentity, generation_id: int) -> None:
    group.check_member(identity.member_id, identity.group_instance_id)
    if generation_id != group.generation_id:
        raise ApiError(ErrorCode.illegal_generation, f"The generation is {group.generation_id}.")
