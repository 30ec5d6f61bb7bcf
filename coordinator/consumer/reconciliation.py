"""A member's next step towards its target (KIP-848, "Reconciliation"). Pure.

A member first gives up what is not in its target, and says so by no longer naming it among the partitions
that it owns; only then does it come to the target's epoch. It gets what is free at once, and waits for what
others still have. So a partition never has two owners.
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
from barnabas.protocol.errors import ApiError, ErrorCode

Owned: TypeAlias = Mapping[UUID, Collection[int]]
"""The partitions that a member says it owns, by topic id."""


class Target(NamedTuple):
    """Where a member is to come."""

    epoch: int
    assignment: Assignment


class Surroundings(NamedTuple):
    """What else a step depends on."""

    subscribed: Collection[UUID]
    """The topics that the member reads now, as far as they exist."""
    subscription_changed: bool
    """Whether that has changed just now."""
    owned: Owned | None
    """None if the member didn't say: it still has what it had."""
    is_owned: Callable[[UUID, int], bool]
    """Whether some member of the group has a partition, or has not given it up yet."""


def reconcile(member: ConsumerMember, target: Target, around: Surroundings) -> ConsumerMember:
    """The member after the step; the same one if it cannot go on yet, or is there.

    FENCED_MEMBER_EPOCH if a newer version left it in a state that is not known here, and it has partitions.
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
    """Take away what the member does not read any more, without a look at the target."""
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
    """To what the target leaves and gives. `as_of` has the epoch of a member that is to revoke first."""
    wanted = {topic: set(ones) for topic, ones in target.assignment.items() if topic in around.subscribed}
    kept = _part(member.assigned, lambda topic, one: one in wanted.get(topic, ()))
    revoking = _part(member.assigned, lambda topic, one: one not in wanted.get(topic, ()))
    if revoking and _still_has(revoking, around.owned):
        return as_of._replace(
            previous_member_epoch=member.member_epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            revoking=revoking,
        )
    assigned, is_complete = _with_what_is_free(member, kept, wanted, target.epoch, around)
    return member._replace(
        member_epoch=target.epoch,
        previous_member_epoch=member.member_epoch,
        state=MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS,
        assigned=assigned,
        revoking=NO_PARTITIONS,
    )


def _with_what_is_free(
    member: ConsumerMember,
    kept: PartitionEpochs,
    wanted: Mapping[UUID, Collection[int]],
    epoch: int,
    around: Surroundings,
) -> tuple[PartitionEpochs, bool]:
    """What the member has with all that it can get now, and whether that is all that it is to have."""
    assigned: dict[UUID, dict[int, int]] = {topic: dict(epochs) for topic, epochs in kept.items()}
    is_complete = True
    for topic_id, partitions in wanted.items():
        for partition in sorted(set(partitions).difference(kept.get(topic_id, ()))):
            # What it was itself to give up has no other owner.
            is_own = partition in member.revoking.get(topic_id, {})
            if around.is_owned(topic_id, partition) and not is_own:
                is_complete = False
            else:
                assigned.setdefault(topic_id, {})[partition] = epoch
    return {topic: dict(sorted(epochs.items())) for topic, epochs in assigned.items()}, is_complete


def _part(partitions: PartitionEpochs, belongs: Callable[[UUID, int], bool]) -> PartitionEpochs:
    parts = {
        topic_id: {one: epoch for one, epoch in epochs.items() if belongs(topic_id, one)}
        for topic_id, epochs in partitions.items()
    }
    return {topic_id: epochs for topic_id, epochs in parts.items() if epochs}
