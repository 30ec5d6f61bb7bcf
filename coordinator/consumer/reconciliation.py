"""A member's next step towards its target (KIP-848, "Reconciliation"). Pure.

A member first gives up the partitions that are not in its target. It confirms that when it no longer names
them among the partitions that it owns; only then it reaches the target's epoch. It gets free partitions at
once, and waits for partitions that others still have. So a partition never has two owners.

A share of a partition is treated as a partition. If the ranges of its sharers change, each of them gives up
its share first, so that no key ever has two owners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.assignor.assignment import Assignment
from barnabas.coordinator.consumer.member import (
    NO_PARTITIONS,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange

Owned: TypeAlias = Mapping[UUID, Collection[int]]
"""The partitions that a member names as its own, by topic id."""


class Target(NamedTuple):
    """The assignment that a member has to reach, and its epoch."""

    epoch: int
    assignment: Assignment
    shares: Shares = NO_SHARES


class Surroundings(NamedTuple):
    """The other inputs of a step."""

    subscribed: Collection[UUID]
    """The existing topics that the member reads now."""
    subscription_changed: bool
    """Whether its subscription has just changed."""
    owned: Owned | None
    """None if the member named none: it still has its partitions."""
    is_owned: Callable[[str, UUID, int, HashRange], bool]
    """Whether another member of the group than this one has these hashes of a partition, or has not given
    them up yet.
    """


def reconcile(member: ConsumerMember, target: Target, around: Surroundings) -> ConsumerMember:
    """The member after the step; unchanged if it cannot take one yet, or has reached the target.

    FENCED_MEMBER_EPOCH if the member has partitions and its state, written by a newer version, is unknown
    here.
    """
    if not around.subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    match member.state:
        case MemberState.STABLE if member.member_epoch == target.epoch:
            return _keep_subscribed(member, around)
        case MemberState.UNREVOKED_PARTITIONS if _still_has(member.revoking, around.owned):
            return _keep_subscribed(member, around) if around.subscription_changed else member
        case MemberState.UNKNOWN:
            if around.owned is None or around.owned:
                raise ApiError(ErrorCode.fenced_member_epoch, "The member must join again.")
            return _go_on(member, member._replace(member_epoch=target.epoch), target, around)
        case _:
            return _go_on(member, member, target, around)


def _still_has(revoking: PartitionEpochs, owned: Owned | None) -> bool:
    if owned is None:
        return True
    return any(
        partition in revoking.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def _keep_subscribed(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """Revoke the partitions of topics that the member no longer reads, for any target."""
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic in around.subscribed}
    if len(kept) == len(member.assigned):
        return member
    revoking = {topic: dict(epochs) for topic, epochs in member.revoking.items()}
    for topic_id, epochs in member.assigned.items():
        if topic_id not in around.subscribed:
            revoking.setdefault(topic_id, {}).update(epochs)
    moved = member._replace(previous_member_epoch=member.member_epoch, assigned=kept)
    if not _still_has(revoking, around.owned):
        return moved
    return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)


def _go_on(
    member: ConsumerMember, as_of: ConsumerMember, target: Target, around: Surroundings
) -> ConsumerMember:
    """Revoke partitions outside of the target, or add free ones. `as_of` has the epoch of a member that has
    to revoke first.
    """
    wanted = {topic: set(ones) for topic, ones in target.assignment.items() if topic in around.subscribed}
    kept = _part(
        member.assigned, lambda topic, partition: _stays(member, topic, partition, wanted, target.shares)
    )
    revoking = _part(
        member.assigned, lambda topic, partition: not _stays(member, topic, partition, wanted, target.shares)
    )
    if revoking and _still_has(revoking, around.owned):
        return as_of._replace(
            previous_member_epoch=member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            revoking=revoking,
        )
    assigned, is_complete = _with_what_is_free(member, kept, wanted, target, around)
    return member._replace(
        member_epoch=target.epoch,
        previous_member_epoch=member.member_epoch,
        state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        assigned=assigned,
        revoking=NO_PARTITIONS,
        shares=_part_of_shares(target.shares, assigned),
    )


def _stays(
    member: ConsumerMember,
    topic_id: UUID,
    partition: int,
    wanted: Mapping[UUID, Collection[int]],
    shares: Shares,
) -> bool:
    """Whether the target has the partition, with the same hashes."""
    if partition not in wanted.get(topic_id, ()):
        return False
    hashes = shares.get(TopicIdPartition(topic_id, partition), ALL_HASHES)
    return member.hashes_of(topic_id, partition) == hashes


def _part_of_shares(shares: Shares, partitions: PartitionEpochs) -> Shares:
    found = {
        partition: share
        for partition, share in shares.items()
        if partition.partition in partitions.get(partition.topic_id, ())
    }
    return found or NO_SHARES


def _with_what_is_free(
    member: ConsumerMember,
    kept: PartitionEpochs,
    wanted: Mapping[UUID, Collection[int]],
    target: Target,
    around: Surroundings,
) -> tuple[PartitionEpochs, bool]:
    """The member's partitions with all that it can get now, and whether these are its whole target."""
    assigned: dict[UUID, dict[int, int]] = {topic: dict(epochs) for topic, epochs in kept.items()}
    is_complete = True
    for topic_id, partitions in wanted.items():
        for partition in sorted(set(partitions).difference(kept.get(topic_id, ()))):
            hashes = target.shares.get(TopicIdPartition(topic_id, partition), ALL_HASHES)
            if around.is_owned(member.member_id, topic_id, partition, hashes):
                is_complete = False
            else:
                assigned.setdefault(topic_id, {})[partition] = target.epoch
    return {topic: dict(sorted(epochs.items())) for topic, epochs in assigned.items()}, is_complete


def _part(partitions: PartitionEpochs, belongs: Callable[[UUID, int], bool]) -> PartitionEpochs:
    parts = {
        topic_id: {partition: epoch for partition, epoch in epochs.items() if belongs(topic_id, partition)}
        for topic_id, epochs in partitions.items()
    }
    return {topic_id: epochs for topic_id, epochs in parts.items() if epochs}
