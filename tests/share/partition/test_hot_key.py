"""A key with many records occupies the in-flight window: the table in docs/ordering.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode
from tests.share.partition.leader import LIMITS, Leader

PAGE = Path(__file__).parents[3] / "docs" / "ordering.md"
HOT = 1
BATCH_RECORDS = 100
BATCH_COUNT = 100


def table() -> list[tuple[int, int, int]]:
    """(a hot record in this number of records, window, records of other keys that are delivered)."""
    rows = re.findall(r"^\| 1 in ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE.read_text(), re.MULTILINE)
    return [tuple(int(number.replace(",", "")) for number in row) for row in rows]  # type: ignore[misc]


def test_the_page_has_the_table() -> None:
    assert len(table()) == 5


@pytest.mark.parametrize(("hot_one_in", "window", "others"), table())
def test_other_keys_flow_past_a_held_record_of_the_hot_key(hot_one_in: int, window: int, others: int) -> None:
    limits = LIMITS._replace(key_run_max=1, record_locks_max=window)
    leader = Leader(limits=limits).produce(*[BATCH_RECORDS] * BATCH_COUNT)
    assert fetched(leader, 1, hot_one_in) == 1
    delivered = 0
    while count := fetched(leader, 500, hot_one_in):
        delivered += count
    assert delivered == others


def fetched(leader: Leader, records_max: int, hot_one_in: int) -> int:
    """The number of records that a member gets from one fetch."""
    plan = leader.partition.plan_acquire(records_max, leader.limits)
    batches = [one for one in leader.log if plan.reads and one[1] >= plan.reads[0][0]]
    wanted = sum(count for _, count in plan.reads)
    batches = batches[: wanted // BATCH_RECORDS + 1]
    acquired = leader.partition.acquire(
        plan,
        "member",
        batches,
        records_max=records_max,
        batch_size=500,
        acquire_mode=AcquireMode.BATCH_OPTIMIZED,
        limits=leader.limits,
        now_ms=0,
        keys=[keys_of(*one, hot_one_in) for one in batches if one[1] >= (leader.partition.keys_until or 0)],
    ).acquired
    return sum(last - first + 1 for first, last, _ in acquired)


def keys_of(base_offset: int, last_offset: int, hot_one_in: int) -> BatchKeys:
    """Every key but the hot one has one record."""
    offsets = range(base_offset, last_offset + 1)
    hashes = [HOT if offset % hot_one_in == 0 else offset + 2 for offset in offsets]
    return BatchKeys(base_offset, last_offset, KeyHashes([one - base_offset for one in offsets], hashes))
