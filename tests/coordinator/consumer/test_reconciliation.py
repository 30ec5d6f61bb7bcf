"""A member's next step towards its target (KIP-848), as a table."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

import pytest

from barnabas.coordinator.consumer.member import ConsumerMember, MemberState, PartitionEpochs
from barnabas.coordinator.consumer.reconciliation import Owned, Surroundings, Target, reconcile
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_keys.hash_range import HashRange

T, U = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


class Case(NamedTuple):
    """The member is at epoch 5 unless said, and its target at 6."""

    what: str
    before: ConsumerMember
    target: dict[UUID, tuple[int, ...]]
    after: tuple[int, MemberState, PartitionEpochs, PartitionEpochs]
    owned: Owned | None = None
    taken: frozenset[tuple[UUID, int]] = frozenset()
    subscribed: frozenset[UUID] = frozenset({T, U})
    changed: bool = False


def _member(
    assigned: PartitionEpochs,
    revoking: PartitionEpochs | None = None,
    state: MemberState = STABLE,
    epoch: int = 5,
) -> ConsumerMember:
    return ConsumerMember("m", epoch, epoch - 1, state, assigned=assigned, revoking=revoking or {})


CASES = [
    Case("gets all that is free", _member({}), {T: (0, 1)}, (6, STABLE, {T: {0: 6, 1: 6}}, {})),
    Case(
        "keeps its partitions, with the epoch of their assignment",
        _member({T: {0: 3}}),
        {T: (0, 1)},
        (6, STABLE, {T: {0: 3, 1: 6}}, {}),
    ),
    Case(
        "waits for partitions that others own",
        _member({}),
        {T: (0, 1)},
        (6, UNRELEASED, {T: {1: 6}}, {}),
        taken=frozenset({(T, 0)}),
    ),
    Case(
        "comes to the epoch though nothing is free",
        _member({}),
        {T: (0,)},
        (6, UNRELEASED, {}, {}),
        taken=frozenset({(T, 0)}),
    ),
    Case(
        "gives up first, at its old epoch",
        _member({T: {0: 5, 1: 5}}),
        {T: (0,)},
        (5, UNREVOKED, {T: {0: 5}}, {T: {1: 5}}),
    ),
    Case(
        "goes on at once if it says that it has given up already",
        _member({T: {0: 5, 1: 5}}),
        {T: (0,), U: (3,)},
        (6, STABLE, {T: {0: 5}, U: {3: 6}}, {}),
        owned={T: [0]},
    ),
    Case(
        "stays while it owns partitions that it must revoke",
        _member({T: {0: 5}}, {T: {1: 5}}, UNREVOKED),
        {T: (0,)},
        (5, UNREVOKED, {T: {0: 5}}, {T: {1: 5}}),
        owned={T: [0, 1]},
    ),
    Case(
        "goes on once it doesn't own it any more",
        _member({T: {0: 5}}, {T: {1: 5}}, UNREVOKED),
        {T: (0, 2)},
        (6, STABLE, {T: {0: 5, 2: 6}}, {}),
        owned={T: [0]},
    ),
    Case(
        "gets back partitions that it has just revoked",
        _member({T: {0: 5}}, {T: {1: 5}}, UNREVOKED),
        {T: (0, 1)},
        (6, STABLE, {T: {0: 5, 1: 6}}, {}),
        owned={T: [0]},
    ),
    Case(
        "gets partitions that have become free meanwhile",
        _member({T: {1: 6}}, None, UNRELEASED, epoch=6),
        {T: (0, 1)},
        (6, STABLE, {T: {0: 6, 1: 6}}, {}),
        taken=frozenset({(T, 1)}),
    ),
    Case(
        "loses unsubscribed partitions at once, though the target has them",
        _member({T: {0: 6}, U: {0: 6}}, epoch=6),
        {T: (0,), U: (0,)},
        (6, UNREVOKED, {T: {0: 6}}, {U: {0: 6}}),
        subscribed=frozenset({T}),
        changed=True,
    ),
    Case(
        "only shrinks if it has revoked its unsubscribed partitions already",
        _member({T: {0: 6}, U: {0: 6}}, epoch=6),
        {T: (0,), U: (0,)},
        (6, STABLE, {T: {0: 6}}, {}),
        owned={T: [0]},
        subscribed=frozenset({T}),
        changed=True,
    ),
    Case(
        "gives up more while it is giving up",
        _member({T: {0: 5}, U: {0: 5}}, {T: {1: 5}}, UNREVOKED),
        {T: (0,), U: (0,)},
        (5, UNREVOKED, {T: {0: 5}}, {T: {1: 5}, U: {0: 5}}),
        subscribed=frozenset({T}),
        changed=True,
    ),
    Case(
        "comes out of an unknown state without partitions",
        _member({}, None, MemberState.UNKNOWN),
        {T: (0,)},
        (6, STABLE, {T: {0: 6}}, {}),
        owned={},
    ),
]


def _owned_by_others(taken: Collection[tuple[UUID, int]]) -> Callable[[str, UUID, int, HashRange], bool]:
    def is_owned(_: str, topic_id: UUID, partition: int, __: HashRange) -> bool:
        return (topic_id, partition) in taken

    return is_owned


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_a_member_approaches_its_target(case: Case) -> None:
    around = Surroundings(case.subscribed, case.changed, case.owned, _owned_by_others(case.taken))
    after = reconcile(case.before, Target(6, case.target), around)
    assert (after.member_epoch, after.state, after.assigned, after.revoking) == case.after


def test_a_member_that_is_there_stays_the_same() -> None:
    member = _member({T: {0: 6}}, epoch=6)
    around = Surroundings({T}, False, None, _owned_by_others({(T, 0)}))
    assert reconcile(member, Target(6, {T: (0,)}), around) is member


def test_a_member_in_an_unknown_state_with_partitions_has_to_join_again() -> None:
    around = Surroundings({T}, False, {T: [0]}, _owned_by_others(()))
    with pytest.raises(ApiError) as refused:
        reconcile(_member({}, None, MemberState.UNKNOWN), Target(6, {}), around)
    assert refused.value.code is ErrorCode.fenced_member_epoch
