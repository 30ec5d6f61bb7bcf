"""The reads of a plan over a real log: records in several segments, and more bytes than a fetch may have."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.records import Record, encode_records
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.acquisition import READ_GAP_MAX, Demand
from barnabas.share.partition.limits import AcquireMode, PriorityLimits
from barnabas.storage.log_config import LogConfig
from tests.share.leader.leading import RELEASE, Leading, acknowledge, leading
from tests.storage.log_building import NOW_MS, headers_of, validated

APART = READ_GAP_MAX + 1
"""Records between two others that are not read together."""
MANY_BYTES = 1 << 20


def produce(stage: Leading, priorities: Sequence[int], value_bytes: int = 100) -> int:
    """Produces one batch of records with these priorities; returns its size in bytes."""
    batch = encode_records(
        [
            Record(delta, NOW_MS, None, b"v" * value_bytes, (("priority", b"%d" % priority),))
            for delta, priority in enumerate(priorities)
        ]
    )
    assert stage.log.append_produced(batch, validated(batch), NOW_MS).error is None
    return len(batch)


def fetch(
    stage: Leading, leader: SharePartitionLeader, records_max: int, bytes_max: int = MANY_BYTES
) -> list[int]:
    """The offsets that a fetch acquires, by the record limit."""
    limits, mode = stage.limits, AcquireMode.RECORD_LIMIT
    demand = Demand("member", records_max, bytes_max, 500, mode, limits, stage.clock.monotonic_ms())
    acquired = leader.acquire(leader.core.plan(demand), demand, stage.log.high_watermark).acquired
    return [offset for first, last, _ in acquired for offset in range(first, last + 1)]


def with_priorities(stage: Leading) -> None:
    stage.limits = stage.limits._replace(priority=PriorityLimits("priority"))


async def test_the_most_urgent_records_come_from_all_segments() -> None:
    stage = await leading(config=LogConfig(segment_bytes=6000))
    with_priorities(stage)
    for priorities in ([9] * 30, [9] * 30, [0] * APART, [9, *[0] * 20]):
        produce(stage, priorities)
    assert stage.log.segment_count == 4
    leader = stage.lead()
    assert [fetch(stage, leader, 1) for _ in range(4)] == [[0], [1], [2], [3]], (
        "a look ahead for each segment"
    )
    assert fetch(stage, leader, 57) == [*range(4, 60), 60 + APART]


async def test_a_fetch_with_too_few_bytes_gets_the_most_urgent_records() -> None:
    stage = await leading()
    with_priorities(stage)
    size_bytes = produce(stage, [9] * 5)
    large_bytes = produce(stage, [9] * 5, value_bytes=1000)
    produce(stage, [0] * APART)
    size_bytes += produce(stage, [9, *[0] * 10])
    leader = stage.lead()
    assert fetch(stage, leader, 1) == [0]
    assert size_bytes < large_bytes
    assert fetch(stage, leader, 10, size_bytes) == [1, 2, 3, 4]
    assert fetch(stage, leader, 10, size_bytes) == [5, 6, 7, 8, 9]


async def test_released_records_of_neighbouring_segments_are_read_together() -> None:
    stage = await leading(config=LogConfig(segment_bytes=6000))
    for _ in range(2):
        produce(stage, [0] * 30)
    assert stage.log.segment_count == 2
    leader = stage.lead()
    assert [fetch(stage, leader, 30) for _ in range(2)] == [[*range(30)], [*range(30, 60)]]
    acknowledge(leader, 0, 59, RELEASE)
    assert fetch(stage, leader, 60) == [*range(60)]


async def test_records_of_neighbouring_segments_are_handed_out_again() -> None:
    stage = await leading(config=LogConfig(segment_bytes=6000))
    for _ in range(2):
        produce(stage, [0] * 30)
    leader = stage.lead()
    for _ in range(2):
        fetch(stage, leader, 30)
    again = leader.hand_out_again("member", [(0, 59, 1)])
    assert [header.base_offset for header in headers_of(again.buffers)] == [0, 30]


async def test_no_released_record_comes_before_one_for_which_the_bytes_do_not_suffice() -> None:
    stage = await leading()
    size_bytes = produce(stage, [0])
    large_bytes = produce(stage, [0], value_bytes=1000)
    produce(stage, [0] * APART)
    size_bytes += produce(stage, [0])
    leader = stage.lead()
    end = 3 + APART
    assert fetch(stage, leader, end) == [*range(end)]
    acknowledge(leader, 0, 1, RELEASE)
    acknowledge(leader, end - 1, end - 1, RELEASE)
    assert size_bytes < large_bytes
    assert fetch(stage, leader, 3, size_bytes) == [0]
    assert fetch(stage, leader, 3) == [1, end - 1]
