"""The records that a ShareFetch acquires (wire sheet, section 5, "Acquisition")."""

import pytest

from tests.conformance.conftest import Stage
from tests.conformance.share_member import ACCEPT, GROUP, RELEASE, ShareMember

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1


async def test_whole_producer_batches_are_acquired_and_cut_where_batches_begin(stage: Stage) -> None:
    await stage.produce(20, 20, 20)
    member = stage.member()
    assert await member.take(5) == [(0, 19, 1)]
    assert await member.take(25, batch_size=10) == [(20, 39, 1), (40, 59, 1)]


async def test_the_record_limit_is_exact_and_leaves_the_rest_of_the_batch_available(stage: Stage) -> None:
    await stage.produce(20, 20)
    member = stage.member()
    assert await member.take(5, share_acquire_mode=RECORD_LIMIT) == [(0, 4, 1)]
    assert await member.take(25, share_acquire_mode=RECORD_LIMIT) == [(5, 19, 1), (20, 29, 1)]
    assert await member.take(1, share_acquire_mode=BATCH_OPTIMIZED) == [(30, 39, 1)]


async def test_records_hold_whole_batches_also_where_part_of_them_is_acquired(stage: Stage) -> None:
    await stage.produce(5)
    got = await stage.member().fetch(max_records=2, share_acquire_mode=RECORD_LIMIT)
    assert got.partitions[stage.partition].offsets == [0, 1, 2, 3, 4]
    assert got.acquired == [(0, 1, 1)]


async def released_until_archived(member: ShareMember, deliveries_max: int) -> list[tuple[int, int, int]]:
    """The ranges delivered in turn if everything is released each time."""
    delivered: list[tuple[int, int, int]] = []
    for _ in range(deliveries_max):
        acquired = await member.take()
        if not acquired:
            break
        delivered += acquired
        result = await member.acknowledge([(first, last, RELEASE) for first, last, _ in acquired])
        assert result.errors == [0]
    return delivered


def singles(first: int, last: int, count: int) -> list[tuple[int, int, int]]:
    return [(offset, offset, count) for offset in range(first, last + 1)]


LIMIT_10_DEPTH_FIRST = [
    *((0, 15, count) for count in range(1, 6)),
    (0, 7, 6),
    (0, 3, 7),
    (0, 1, 8),
    *((0, 0, 9), (0, 0, 10), (1, 1, 9), (1, 1, 10)),
    (2, 3, 8),
    *((2, 2, 9), (2, 2, 10), (3, 3, 9), (3, 3, 10)),
    (4, 7, 7),
]


@pytest.mark.parametrize(
    ("record_count", "limit", "delivered"),
    [
        pytest.param(
            16,
            5,
            [
                (0, 15, 1),
                (0, 15, 2),
                (0, 15, 3),
                (0, 7, 4),
                *singles(0, 7, 5),
                (8, 15, 4),
                *singles(8, 15, 5),
            ],
            id="limit 5",
        ),
        pytest.param(
            7, 3, [(0, 6, 1), (0, 6, 2), *singles(0, 6, 3)], id="limit 3: the last delivery is single"
        ),
        pytest.param(8, 2, [(0, 7, 1), (0, 7, 2)], id="limit 2: no throttling"),
    ],
)
async def test_records_near_their_limit_are_delivered_with_fewer_and_fewer_others(
    stage: Stage, record_count: int, limit: int, delivered: list[tuple[int, int, int]]
) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=limit)
    await stage.produce(record_count)
    got = await released_until_archived(stage.member(), 200)
    assert sorted(got) == sorted(delivered)
    assert got == delivered
    assert await stage.offsets() == (record_count, 0)


async def test_limit_10_goes_depth_first_from_the_lowest_available_record(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, delivery_count_limit=10)
    await stage.produce(16)
    got = await released_until_archived(stage.member(), 200)
    assert got[: len(LIMIT_10_DEPTH_FIRST)] == LIMIT_10_DEPTH_FIRST
    assert sum(last - first + 1 for first, last, _ in got) == 160


async def test_the_in_flight_window_stops_new_records_at_a_batch_end_and_not_redelivery(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
    await stage.produce(40, 40, 40, 40)
    member = stage.member()
    assert await member.take() == [(0, 119, 1)]
    assert await member.take() == []
    await member.acknowledge([(60, 99, RELEASE)])
    assert await member.take() == [(60, 99, 2)]
    await member.accept(10, 19)
    assert await member.take() == []


async def test_the_window_moves_on_when_the_start_offset_does(stage: Stage) -> None:
    await stage.lab.configure_group(GROUP, partition_max_record_locks=100)
    await stage.produce(100, 10)
    member = stage.member()
    assert await member.take() == [(0, 99, 1)]
    await member.accept(0, 49)
    assert await member.take() == [(100, 109, 1)]


async def test_a_released_batch_comes_back_whole_and_a_released_part_alone(stage: Stage) -> None:
    await stage.produce(10)
    member = stage.member()
    assert await member.take() == [(0, 9, 1)]
    await member.acknowledge([(0, 3, RELEASE), (4, 5, ACCEPT), (6, 9, RELEASE)])
    assert await member.take() == [(0, 3, 2), (6, 9, 2)]


async def test_neighbours_with_different_counts_are_entries_of_their_own(stage: Stage) -> None:
    await stage.produce(10)
    member = stage.member()
    await member.take()
    await member.acknowledge([(0, 3, RELEASE)])
    await member.take()
    await member.acknowledge([(0, 3, RELEASE), (4, 9, RELEASE)])
    assert await member.take() == [(0, 3, 3), (4, 9, 2)]


async def test_two_members_never_hold_the_same_record(stage: Stage) -> None:
    await stage.produce(10, 10)
    one, other = stage.member(1), stage.member(2)
    assert await one.take(10) == [(0, 9, 1)]
    assert await other.take(10) == [(10, 19, 1)]
    assert await one.take() == []


async def test_available_records_go_before_new_ones(stage: Stage) -> None:
    await stage.produce(5, 5)
    member = stage.member()
    assert await member.take(5) == [(0, 4, 1)]
    await member.acknowledge([(0, 4, RELEASE)])
    assert await member.take() == [(0, 4, 2), (5, 9, 1)]


async def test_half_a_throttled_batch_leaves_its_other_half_to_the_next_fetch(stage: Stage) -> None:
    await stage.produce(16)
    member = stage.member()
    delivered: list[tuple[int, int, int]] = []
    for _ in range(5):
        held: list[tuple[int, int, int]] = []
        while acquired := await member.take():
            held += acquired
        await member.acknowledge([(first, last, RELEASE) for first, last, _ in held])
        delivered += held
    assert delivered == [(0, 15, 1), (0, 15, 2), (0, 15, 3), (0, 7, 4), (8, 15, 4), *singles(0, 15, 5)]
    assert await member.take() == []
