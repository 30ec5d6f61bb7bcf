"""One range whose lock has ended doesn't affect the others."""

from collections.abc import Mapping, Sequence
from typing import cast
from uuid import UUID

import pytest

from barnabas.pipeline.share_source.leader_session import LeaderSession
from barnabas.pipeline.share_source.ranges import offset_count
from barnabas.pipeline.share_source.settling import HALVINGS_MAX, settle
from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition

ORDERS = TopicIdPartition(UUID(int=1), 0)
PAYMENTS = TopicIdPartition(UUID(int=2), 0)


class ScriptedSession:
    """Accepts acknowledgements of a partition unless they name an offset whose lock has ended."""

    def __init__(self, ended: set[int], code: ErrorCode = ErrorCode.invalid_record_state) -> None:
        self.ended = ended
        self.code = code
        self.accepted: list[int] = []
        self.request_count = 0

    async def acknowledge(
        self, settlement: Mapping[TopicIdPartition, Sequence[AckBatch]]
    ) -> dict[TopicIdPartition, ErrorCode]:
        self.request_count += 1
        return {partition: self._take(batches) for partition, batches in settlement.items()}

    def _take(self, batches: Sequence[AckBatch]) -> ErrorCode:
        offsets = [one for batch in batches for one in range(batch.first_offset, batch.last_offset + 1)]
        if self.ended & set(offsets):
            return self.code
        self.accepted += offsets
        return ErrorCode.none


def ranges(count: int) -> list[AckBatch]:
    return [AckBatch(offset, offset, (1,)) for offset in range(count)]


@pytest.mark.parametrize(
    ("ended", "refused"),
    [
        pytest.param(set[int](), [], id="all well"),
        pytest.param({5}, [5], id="one has ended"),
        pytest.param({0, 7}, [0, 7], id="two"),
    ],
)
async def test_only_ranges_that_are_refused_alone_come_back(ended: set[int], refused: list[int]) -> None:
    session = ScriptedSession(ended)
    unsettled = await settle(cast("LeaderSession", session), {ORDERS: ranges(8)})
    assert [one.batch.first_offset for one in unsettled] == refused
    assert sorted(session.accepted) == [one for one in range(8) if one not in ended]


async def test_the_locks_of_a_part_of_a_range_may_have_ended() -> None:
    session = ScriptedSession({5, 6})
    unsettled = await settle(
        cast("LeaderSession", session), {ORDERS: [AckBatch(0, 6, (1,)), AckBatch(7, 9, (2,))]}
    )
    assert [one.batch for one in unsettled] == [AckBatch(5, 5, (1,)), AckBatch(6, 6, (1,))]
    assert sorted(session.accepted) == [0, 1, 2, 3, 4, 7, 8, 9]


async def test_partitions_are_taken_each_for_itself() -> None:
    session = ScriptedSession({3})
    unsettled = await settle(cast("LeaderSession", session), {ORDERS: ranges(4), PAYMENTS: ranges(2)})
    assert [(one.partition, one.batch.first_offset) for one in unsettled] == [(ORDERS, 3)]


@pytest.mark.parametrize(
    "said", [pytest.param(ranges(1_000), id="many"), pytest.param([AckBatch(0, 999, (1,))], id="one")]
)
async def test_requests_are_bounded_if_every_lock_has_ended(said: list[AckBatch]) -> None:
    session = ScriptedSession(set(range(1_000)))
    unsettled = await settle(cast("LeaderSession", session), {ORDERS: said})
    assert offset_count(one.batch for one in unsettled) == 1_000
    assert session.request_count <= 2 ** (HALVINGS_MAX + 1)


async def test_acknowledgements_refused_for_another_reason_are_not_repeated() -> None:
    session = ScriptedSession({3}, ErrorCode.not_leader_or_follower)
    unsettled = await settle(cast("LeaderSession", session), {ORDERS: ranges(8)})
    assert len(unsettled) == 8
    assert session.request_count == 1


async def test_without_ranges_no_request_is_sent() -> None:
    session = ScriptedSession(set())
    assert await settle(cast("LeaderSession", session), {ORDERS: []}) == []
    assert session.request_count == 0
