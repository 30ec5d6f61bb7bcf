"""Commits of ranges: their records, their limits, resets and transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.coordinator.offsets.settings import OffsetSettings
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.classic.classic_bench import GROUP, TOPIC, Bench
from tests.coordinator.offsets.individual_commits import (
    commit_ranges,
    commit_ranges_in_transaction,
    end_transaction,
    last_records,
    state,
)
from tests.coordinator.offsets.transactions import transactional_commit
from tests.coordinator.simulated_log import error_of

COME_BACK = pytest.mark.parametrize("come_back", [Bench.restart, Bench.reload])


def example() -> Bench:
    """Stable 42, ranges [45-47] and [50-50]."""
    bench = Bench()
    bench.start_commit(43).result()
    commit_ranges(bench, (45, 47), (50, 50)).result()
    return bench


@COME_BACK
def test_a_range_in_a_gap_is_one_new_record_and_two_tombstones(come_back: Callable[[Bench], None]) -> None:
    bench = example()
    assert commit_ranges(bench, (48, 49)).result() == [ErrorCode.none]
    assert last_records(bench) == ["+45-50", "-45-47", "-50-50"]
    come_back(bench)
    assert state(bench) == (42, [(45, 50)])


@COME_BACK
def test_a_range_behind_the_stable_offset_moves_it(come_back: Callable[[Bench], None]) -> None:
    bench = example()
    commit_ranges(bench, (43, 44)).result()
    assert last_records(bench) == ["stable 47", "-45-47"]
    come_back(bench)
    assert (state(bench), bench.committed()) == ((47, [(50, 50)]), 48)


def test_both_leave_no_range() -> None:
    bench = example()
    commit_ranges(bench, (48, 49)).result()
    commit_ranges(bench, (43, 44)).result()
    assert last_records(bench) == ["stable 50", "-45-50"]
    assert state(bench) == (50, [])


def test_a_repeated_commit_writes_nothing() -> None:
    bench = example()
    count = len(bench.log.batches)
    assert commit_ranges(bench, (45, 46), (50, 50), (0, 30)).result() == [ErrorCode.none]
    assert len(bench.log.batches) == count


def test_a_group_begins_at_its_start_position_once() -> None:
    bench = Bench()
    assert commit_ranges(bench, (12, 13), start=10).result() == [ErrorCode.none]
    assert last_records(bench) == ["stable 9", "+12-13"]
    commit_ranges(bench, start=5).result()
    commit_ranges(bench, (10, 10), start=20).result()
    assert state(bench) == (10, [(12, 13)])


@pytest.mark.parametrize("ranges", [[(12, 13)], []])
def test_ranges_need_a_stable_offset(ranges: list[tuple[int, int]]) -> None:
    bench = Bench()
    assert commit_ranges(bench, *ranges).result() == [ErrorCode.invalid_request]
    assert commit_ranges_in_transaction(bench, *ranges).result() == [ErrorCode.invalid_request]
    assert (state(bench), bench.log.batches) == ((None, []), [])


def test_negative_offsets_are_refused() -> None:
    bench = example()
    assert commit_ranges(bench, (-5, 3)).result() == [ErrorCode.invalid_request]
    assert state(bench) == (42, [(45, 47), (50, 50)])


@COME_BACK
def test_an_ordinary_commit_removes_all_ranges(come_back: Callable[[Bench], None]) -> None:
    bench = example()
    bench.start_commit(20).result()
    assert last_records(bench) == ["offset 20", "-45-47", "-50-50"]
    come_back(bench)
    assert state(bench) == (19, [])
    commit_ranges(bench, (20, 21)).result()
    assert (state(bench), last_records(bench)) == ((21, []), ["stable 21"])


def test_a_commit_beyond_the_limit_is_refused_and_loses_nothing() -> None:
    bench = Bench(offset_settings=OffsetSettings(partition_ranges_max=3))
    commit_ranges(bench, (2, 2), (4, 4), (6, 6), start=0).result()
    assert commit_ranges(bench, (8, 8)).result() == [ErrorCode.invalid_commit_offset_size]
    assert commit_ranges_in_transaction(bench, (8, 8)).result() == [ErrorCode.invalid_commit_offset_size]
    assert state(bench) == (-1, [(2, 2), (4, 4), (6, 6)])
    assert commit_ranges(bench, (0, 1), (8, 8)).result() == [ErrorCode.none]
    assert state(bench) == (2, [(4, 4), (6, 6), (8, 8)])
    assert commit_ranges(bench, (5, 5)).result() == [ErrorCode.none]


def test_pending_ranges_count_for_the_limit() -> None:
    bench = Bench(offset_settings=OffsetSettings(partition_ranges_max=2))
    commit_ranges(bench, (2, 2), start=0).result()
    commit_ranges_in_transaction(bench, (4, 4)).result()
    assert commit_ranges(bench, (6, 6)).result() == [ErrorCode.invalid_commit_offset_size]
    end_transaction(bench, commit=False)
    assert commit_ranges(bench, (6, 6)).result() == [ErrorCode.none]


def test_a_commit_that_cannot_be_written_changes_nothing() -> None:
    bench = example()
    bench.log.failing = True
    assert error_of(commit_ranges(bench, (43, 44))) is ErrorCode.coordinator_not_available
    assert state(bench) == (42, [(45, 47), (50, 50)])


def test_sixty_thousand_ranges_are_one_batch() -> None:
    bench = Bench()
    ranges = [(offset, offset) for offset in range(1, 120_000, 2)]
    assert commit_ranges(bench, *ranges, start=0).result() == [ErrorCode.none]
    bench.restart()
    assert state(bench) == (-1, ranges)


# Transactions


@pytest.mark.parametrize("commit", [True, False])
@COME_BACK
def test_ranges_of_a_transaction_count_from_its_end_or_never(
    come_back: Callable[[Bench], None], commit: bool
) -> None:
    bench = example()
    commit_ranges_in_transaction(bench, (43, 44), (60, 61)).result()
    come_back(bench)
    assert state(bench) == (42, [(45, 47), (50, 50)])
    end_transaction(bench, commit=commit)
    expected = (47, [(50, 50), (60, 61)]) if commit else (42, [(45, 47), (50, 50)])
    for _ in range(2):
        assert state(bench) == expected
        come_back(bench)


def test_the_end_of_a_transaction_merges_its_ranges_in_the_log() -> None:
    bench = example()
    commit_ranges_in_transaction(bench, (48, 49)).result()
    end_transaction(bench, commit=True)
    assert last_records(bench) == ["+45-50", "-45-47", "-48-49", "-50-50"]
    commit_ranges_in_transaction(bench, (43, 44)).result()
    end_transaction(bench, commit=True)
    assert last_records(bench) == ["stable 50", "-43-44", "-45-50"]
    assert state(bench) == (50, [])


def test_a_merge_that_cannot_be_written_is_made_up_for_by_the_next_commit() -> None:
    bench = example()
    commit_ranges_in_transaction(bench, (48, 49)).result()
    bench.log.fails_after = 1
    end_transaction(bench, commit=True)
    assert state(bench) == (42, [(45, 50)])
    bench.log.fails_after = None
    commit_ranges(bench, (60, 60)).result()
    assert last_records(bench) == ["+45-50", "+60-60", "-45-47", "-48-49", "-50-50"]


def test_other_commits_go_on_beside_a_transaction() -> None:
    bench = example()
    commit_ranges_in_transaction(bench, (48, 49)).result()
    commit_ranges(bench, (43, 44), (51, 52)).result()
    assert state(bench) == (47, [(50, 52)])
    end_transaction(bench, commit=True)
    assert state(bench) == (52, [])


def test_an_ordinary_offset_of_a_transaction_removes_the_ranges_at_its_end() -> None:
    bench = example()
    transactional_commit(bench, 30).result()
    commit_ranges(bench, (70, 71)).result()
    end_transaction(bench, commit=True)
    for _ in range(2):
        assert state(bench) == (29, [])
        bench.restart()
    commit_ranges(bench, (31, 31)).result()
    assert last_records(bench) == ["+31-31", "-45-47", "-50-50", "-70-71"]


# Deletion


def delete_offset(bench: Bench) -> None:
    assert bench.offsets.delete(GROUP, [(TOPIC, 0)]).result() == [ErrorCode.none]


def delete_group(bench: Bench) -> None:
    bench.groups.delete_group(GROUP).result()


def expire(bench: Bench) -> None:
    bench.advance(2_000_000)


@pytest.mark.parametrize("delete", [delete_offset, delete_group, expire])
def test_with_the_offset_the_ranges_are_deleted(delete: Callable[[Bench], None]) -> None:
    bench = Bench(offset_settings=OffsetSettings(retention_ms=1_000_000))
    commit_ranges(bench, (45, 47), (50, 50), start=43).result()
    commit_ranges_in_transaction(bench, (60, 61)).result()
    if delete is expire:
        end_transaction(bench, commit=False)
    delete(bench)
    assert {"no offset", "-45-47", "-50-50"} <= set(last_records(bench))
    if delete is not expire:
        end_transaction(bench, commit=True)
    for _ in range(2):
        assert state(bench) == (None, [])
        bench.restart()


def test_a_commit_of_a_range_keeps_the_offset_from_expiring() -> None:
    bench = Bench(offset_settings=OffsetSettings(retention_ms=1_000_000, retention_check_interval_ms=10_000))
    commit_ranges(bench, (45, 47), start=43).result()
    bench.advance(900_000)
    bench.wall_shift_ms = -5_000_000
    commit_ranges(bench, (50, 50)).result()
    bench.advance(900_000)
    assert state(bench) == (42, [(45, 47), (50, 50)])
    bench.advance(200_000)
    assert state(bench) == (None, [])
