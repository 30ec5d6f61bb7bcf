"""The end of retention (KIP-211): which offsets are deleted, and the order of the checks."""

from __future__ import annotations

from itertools import pairwise

import pytest

from barnabas.coordinator.offsets.retention_rounds import PART_OFFSETS_MAX
from barnabas.coordinator.offsets.settings import OffsetSettings
from tests.coordinator.classic.classic_bench import Bench
from tests.coordinator.offsets.individual_commits import end_transaction
from tests.coordinator.offsets.transactions import transactional_commit

RETENTION_MS = 100_000
INTERVAL_MS = 1_000
GROUP_COUNT = 3 * PART_OFFSETS_MAX // 100
SHORT = OffsetSettings(retention_ms=RETENTION_MS, retention_check_interval_ms=INTERVAL_MS)


def test_the_time_of_a_simple_group_counts_from_the_commit_and_takes_the_group_along() -> None:
    bench = Bench(offset_settings=SHORT)
    bench.start_commit().result()
    bench.advance(RETENTION_MS - 1_000)
    assert bench.committed() == 5
    bench.advance(2_000)
    assert bench.committed() is None
    assert bench.groups.list_groups() == []


@pytest.mark.parametrize("shift_ms", [-10 * RETENTION_MS, 10 * RETENTION_MS])
def test_offsets_are_kept_as_long_if_the_wall_clock_is_set(shift_ms: int) -> None:
    bench = Bench(offset_settings=SHORT)
    bench.start_commit().result()
    bench.wall_shift_ms = shift_ms
    bench.advance(RETENTION_MS - 1_000)
    assert bench.committed() == 5
    bench.advance(2_000)
    assert bench.committed() is None


@pytest.mark.parametrize("shift_ms", [-10 * RETENTION_MS, 10 * RETENTION_MS])
def test_a_group_that_is_left_keeps_its_offsets_as_long_if_the_wall_clock_is_set(shift_ms: int) -> None:
    bench = Bench(offset_settings=SHORT)
    (member,) = bench.stable()
    bench.start_commit(member=member.identity, generation_id=member.generation_id).result()
    bench.advance(10_000)
    bench.leave(member.identity)
    bench.wall_shift_ms = shift_ms
    bench.advance(RETENTION_MS - 1_000)
    assert bench.committed() == 5
    bench.advance(2_000)
    assert bench.committed() is None


@pytest.mark.parametrize("shift_ms", [-10 * RETENTION_MS, 10 * RETENTION_MS])
def test_offsets_of_a_transaction_are_kept_as_long_if_the_wall_clock_is_set(shift_ms: int) -> None:
    bench = Bench(offset_settings=SHORT)
    transactional_commit(bench, 7).result()
    bench.wall_shift_ms = shift_ms
    end_transaction(bench, commit=True)
    bench.advance(RETENTION_MS - 1_000)
    assert bench.committed() == 7
    bench.advance(2_000)
    assert bench.committed() is None


def test_the_wall_clock_tells_the_age_of_offsets_at_a_restart_only() -> None:
    bench = Bench(offset_settings=SHORT)
    bench.start_commit().result()
    bench.advance(RETENTION_MS // 2)
    bench.restart()
    bench.wall_shift_ms = -10 * RETENTION_MS
    bench.advance(RETENTION_MS // 2 - 1_000)
    assert bench.committed() == 5
    bench.advance(2_000)
    assert bench.committed() is None


def test_offsets_from_the_future_of_a_restart_are_kept_as_long_as_new_ones() -> None:
    bench = Bench(offset_settings=SHORT)
    bench.start_commit().result()
    bench.wall_shift_ms = -10 * RETENTION_MS
    bench.restart()
    bench.advance(RETENTION_MS - 1_000)
    assert bench.committed() == 5
    bench.advance(2_000)
    assert bench.committed() is None


def bench_of_many_groups() -> Bench:
    """Their offsets have been kept long enough when the first round begins."""
    bench = Bench(offset_settings=OffsetSettings(retention_ms=1, retention_check_interval_ms=INTERVAL_MS))
    for number in range(GROUP_COUNT):
        bench.start_commit(group_id=f"group-{number}", partitions=range(100)).result()
    bench.now_ms = INTERVAL_MS
    return bench


def test_others_have_their_turn_while_many_groups_are_looked_at() -> None:
    bench = bench_of_many_groups()
    left = [GROUP_COUNT]
    while bench.groups.next_deadline_ms() == INTERVAL_MS:
        bench.groups.expire(INTERVAL_MS)
        left.append(len(bench.groups.list_groups()))
    gone = [before - after for before, after in pairwise(left)]
    assert max(gone) * 100 <= PART_OFFSETS_MAX
    assert left[-1] == 0
    assert bench.groups.next_deadline_ms() == 2 * INTERVAL_MS


def test_groups_that_are_made_and_deleted_meanwhile_do_no_harm() -> None:
    bench = bench_of_many_groups()
    bench.groups.expire(INTERVAL_MS)
    last = f"group-{GROUP_COUNT - 1}"
    bench.groups.delete_group(last).result()
    bench.start_commit(group_id="new").result()
    bench.advance(INTERVAL_MS - 1)
    assert [one.group_id for one in bench.groups.list_groups()] == ["new"]
    bench.advance(1)
    assert bench.groups.list_groups() == []


def test_the_next_groups_are_looked_at_when_the_first_ones_offsets_have_gone() -> None:
    bench = bench_of_many_groups()
    bench.log.held = True
    bench.groups.expire(INTERVAL_MS)
    waiting = len(bench.log.waiting)
    bench.advance(0)
    assert len(bench.log.waiting) == waiting
    bench.log.held = False
    while bench.log.waiting:
        bench.log.release()
    bench.advance(0)
    assert bench.groups.list_groups() == []


def test_groups_whose_partition_is_unloaded_meanwhile_hold_nothing_up() -> None:
    bench = bench_of_many_groups()
    bench.log.held = True
    bench.groups.expire(INTERVAL_MS)
    bench.reload()
    bench.log.held = False
    bench.log.waiting.clear()
    bench.advance(INTERVAL_MS)
    assert bench.groups.list_groups() == []
