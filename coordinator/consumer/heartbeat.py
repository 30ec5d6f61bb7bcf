"""ConsumerGroupHeartbeat: the request, its checks, and its answer (KIP-848; API 68).

The checks and their order are Apache Kafka 4.3's (GroupCoordinatorService, GroupMetadataManager).
Authorization is checked before, at the edge.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.assignor.exclusive import as_assignment
from barnabas.coordinator.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
)
from barnabas.coordinator.consumer.reconciliation import Owned
from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.coordinator.group.record_names import is_too_long
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition

UNCHANGED_TIMEOUT_MS = -1


class HeartbeatRequest(NamedTuple):
    """A heartbeat as the wire has it, with the client's id and host; None for a field that the member left
    unchanged.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    """-1 if it is unchanged."""
    subscribed_topic_names: Sequence[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    owned: Owned | None
    client_id: str
    client_host: str
    names_itself: bool
    """Whether a member makes its own id (version 1)."""
    individual_commit: bool = False
    """Whether the member commits offsets individually, and knows shares of partitions."""

    @property
    def is_full(self) -> bool:
        """Whether the request has every field, as after an error."""
        has_subscription = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        has_timeout = self.rebalance_timeout_ms != UNCHANGED_TIMEOUT_MS
        return has_timeout and has_subscription and self.owned is not None


class HeartbeatResult(NamedTuple):
    """The answer; an assignment of None means that the member keeps its last one."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None
    shares: Shares = NO_SHARES
    """The shares of these partitions."""


def validate_heartbeat(request: HeartbeatRequest, assignors: Collection[str]) -> None:
    """Refuse a request that is invalid for any group, with INVALID_REQUEST or UNSUPPORTED_ASSIGNOR."""
    needs_member_id = request.names_itself or request.member_epoch > 0 or request.member_epoch == LEAVE_EPOCH
    if needs_member_id and _is_blank(request.member_id):
        raise _invalid("MemberId can't be empty.")
    for name, value in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if value is not None and _is_blank(value):
            raise _invalid(f"{name} can't be empty.")
    _validate_lengths(request)
    if request.member_epoch == JOIN_EPOCH:
        _validate_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )
        raise ApiError(ErrorCode.unsupported_assignor, message)


def _validate_lengths(request: HeartbeatRequest) -> None:
    if any(map(is_too_long, (request.group_id, request.member_id, request.subscribed_topic_regex))):
        raise _invalid("A group id, member id or regular expression is too long to be stored.")


def _validate_join(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT_MS:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _is_blank(text: str) -> bool:
    """Whether the text is empty after Java's trim of spaces and control characters."""
    return all(character <= " " for character in text)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, message)


def check_epoch(member: ConsumerMember, member_epoch: int, owned: Owned | None) -> None:
    """FENCED_MEMBER_EPOCH unless the epoch is 0, the member's, or the one before. The one before is accepted
    only if the request names the owned partitions and all of them are assigned: the last answer may have been
    lost.
    """
    if member_epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if member_epoch == member.previous_member_epoch < member.member_epoch and _is_part(owned, member):
        return
    message = (
        f"The member's epoch is {member.member_epoch}, not {member_epoch}: it must give up its partitions "
        "and join again."
    )
    raise ApiError(ErrorCode.fenced_member_epoch, message)


def _is_part(owned: Owned | None, member: ConsumerMember) -> bool:
    if owned is None:
        return False
    return all(
        partition in member.assigned.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def updated_member(member: ConsumerMember, request: HeartbeatRequest) -> ConsumerMember:
    """The member after the changes that the heartbeat names."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms, assignor = request.rebalance_timeout_ms, request.server_assignor
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == UNCHANGED_TIMEOUT_MS else timeout_ms
        ),
        server_assignor=member.server_assignor if assignor is None else assignor,
        subscribed_topic_names=member.subscribed_topic_names if names is None else frozenset(names),
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
        individual_commit=request.individual_commit,
    )


def result_of(
    request: HeartbeatRequest, before: ConsumerMember, after: ConsumerMember, heartbeat_interval_ms: int
) -> HeartbeatResult:
    """The answer to a member that was `before` and is `after`."""
    changed = (after.assigned, after.shares) != (before.assigned, before.shares)
    # A member that ceases to know shares gives them up. If it begins again before it gets another assignment,
    # it learns that it still has them.
    shares_count = before.individual_commit != after.individual_commit
    if not (request.member_epoch == JOIN_EPOCH or request.is_full or changed or shares_count):
        return HeartbeatResult(after.member_id, after.member_epoch, heartbeat_interval_ms, None)
    return HeartbeatResult(
        after.member_id, after.member_epoch, heartbeat_interval_ms, _usable(after), after.shares
    )


def _usable(member: ConsumerMember) -> Assignment:
    """The member's partitions; a member that does not know shares has to give up those that it shares."""
    assigned: dict[UUID, Collection[int]] = {
        topic_id: [
            partition
            for partition in partitions
            if member.individual_commit or TopicIdPartition(topic_id, partition) not in member.shares
        ]
        for topic_id, partitions in member.assigned.items()
    }
    return as_assignment(assigned)
