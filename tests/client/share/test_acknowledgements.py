"""Lots, their halves, barriers, and the batches on the wire."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.client.share.acknowledgements import Acknowledgement, AcknowledgeType, Barrier, Lot, ack_batches
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import TopicIdPartition

PARTITION = TopicIdPartition(UUID(int=1), 0)
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def acknowledged(types: dict[int, AcknowledgeType]) -> dict[int, Acknowledgement]:
    return {offset: Acknowledgement(one, None) for offset, one in types.items()}


@pytest.mark.parametrize(
    ("types", "batches"),
    [
        ({}, []),
        ({7: ACCEPT}, [(7, 7, 1)]),
        ({2: ACCEPT, 1: ACCEPT, 3: ACCEPT}, [(1, 3, 1)]),
        ({1: ACCEPT, 2: RELEASE, 3: RELEASE, 4: GAP}, [(1, 1, 1), (2, 3, 2), (4, 4, 0)]),
        ({1: REJECT, 3: REJECT}, [(1, 1, 3), (3, 3, 3)]),
        ({0: RENEW, 1: RENEW}, [(0, 1, 4)]),
    ],
)
def test_neighbours_of_one_type_are_one_batch(
    types: dict[int, AcknowledgeType], batches: list[tuple[int, int, int]]
) -> None:
    expected = [AckBatch(first, last, bytes((one,))) for first, last, one in batches]
    assert ack_batches(acknowledged(types)) == expected


@pytest.mark.parametrize(("offsets", "lower", "upper"), [([1, 2], [1], [2]), ([5, 3, 9], [3], [5, 9])])
def test_a_lot_is_halved_by_offset(offsets: list[int], lower: list[int], upper: list[int]) -> None:
    lot = Lot(PARTITION, acknowledged(dict.fromkeys(offsets, ACCEPT)), renews=False)
    halves = lot.halves()
    assert [list(half.acknowledgements) for half in halves] == [lower, upper]
    assert all(half.is_closed for half in halves)


def test_a_barrier_waits_for_the_halves_of_a_lot() -> None:
    passed: list[bool] = []
    lot = Lot(PARTITION, acknowledged({1: ACCEPT, 2: ACCEPT}), renews=False)
    lot.wait(Barrier(lambda: passed.append(True)))
    lower, upper = lot.halves()
    lot.answered()
    lower.answered()
    assert not passed
    upper.answered()
    assert passed


def test_a_lot_is_answered_once() -> None:
    passed: list[bool] = []
    lot = Lot(PARTITION, {}, renews=False)
    lot.wait(Barrier(lambda: passed.append(True)))
    lot.answered()
    lot.answered()
    assert passed == [True]
