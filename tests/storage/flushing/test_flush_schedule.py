"""The schedule of syncs and flushes: intervals, sizes, rolls and recovery points."""

from dataclasses import dataclass, field

import pytest

from barnabas.storage.flushing.flush_schedule import FlushSchedule
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig

ALWAYS, INTERVAL, NEVER = FlushPolicy.ALWAYS, FlushPolicy.INTERVAL, FlushPolicy.NEVER


@dataclass(eq=False)
class ChangedLog:
    """A log that always has something to flush."""

    config: LogConfig = field(default_factory=LogConfig)
    needs_sync: bool = True
    needs_flush: bool = True
    has_rolled: bool = False
    unflushed_bytes: int = 0
    recovery_scan_bytes: int = 0


def schedule(
    flush: FlushPolicy = INTERVAL, interval_ms: int = 1000, recovery_point_interval_ms: int = 60_000
) -> FlushSchedule[ChangedLog]:
    return FlushSchedule(
        StorageConfig(
            flush=flush,
            flush_interval_ms=interval_ms,
            flush_bytes=100,
            recovery_point_interval_ms=recovery_point_interval_ms,
            recovery_scan_bytes_max=1_000,
        )
    )


SYNC, FLUSH = "sync", "flush"


def due(log: ChangedLog, schedule: FlushSchedule[ChangedLog], now_ms: int) -> str | None:
    syncs, flushes = schedule.take_due([log], now_ms)
    assert not (syncs and flushes)
    return SYNC if syncs else FLUSH if flushes else None


def due_times(log: ChangedLog, schedule: FlushSchedule[ChangedLog]) -> dict[int, str]:
    """The due work within three seconds, checked every 100 ms."""
    looks = {now_ms: due(log, schedule, now_ms) for now_ms in range(0, 3001, 100)}
    return {now_ms: kind for now_ms, kind in looks.items() if kind is not None}


@pytest.mark.parametrize(
    ("flush", "flush_ms", "times"),
    [
        (INTERVAL, None, [0, 1000, 2000, 3000]),
        (INTERVAL, 1500, [0, 1500, 3000]),
        (ALWAYS, None, [0, 1000, 2000, 3000]),
        (NEVER, None, []),
        (NEVER, 1500, [0, 1500, 3000]),
    ],
)
def test_a_changed_log_is_due_when_its_interval_is_over(
    flush: FlushPolicy, flush_ms: int | None, times: list[int]
) -> None:
    assert due_times(ChangedLog(LogConfig(flush_ms=flush_ms)), schedule(flush)) == dict.fromkeys(times, SYNC)


def test_the_recovery_point_moves_in_an_interval_of_its_own() -> None:
    times = due_times(ChangedLog(), schedule(recovery_point_interval_ms=2_000))
    assert times == {0: SYNC, 1000: SYNC, 2000: FLUSH, 3000: SYNC}


def test_recovery_points_of_logs_that_began_together_move_one_after_the_other() -> None:
    logs = [ChangedLog() for _ in range(10)]
    together = schedule(recovery_point_interval_ms=10_000)
    moved = [len(together.take_due(logs, now_ms).flushes) for now_ms in range(0, 40_000, 1000)]
    assert max(moved) <= 2
    assert sum(moved) in range(30, 41)


def test_many_bytes_to_scan_turn_the_next_sync_into_a_flush() -> None:
    assert due_times(ChangedLog(recovery_scan_bytes=1_000), schedule()) == dict.fromkeys(
        (0, 1000, 2000, 3000), FLUSH
    )


def test_a_log_whose_appends_are_synced_only_has_its_recovery_point_moved() -> None:
    times = due_times(ChangedLog(needs_sync=False), schedule(ALWAYS, recovery_point_interval_ms=2_000))
    assert times == {2000: FLUSH}


def test_a_log_that_did_not_change_is_never_due() -> None:
    assert due_times(ChangedLog(needs_flush=False, has_rolled=True, unflushed_bytes=100), schedule()) == {}


@pytest.mark.parametrize("flush", [INTERVAL, NEVER])
def test_a_log_that_rolled_is_flushed_at_once(flush: FlushPolicy) -> None:
    rolled = ChangedLog(LogConfig(flush_ms=2000), has_rolled=True)
    assert due_times(rolled, schedule(flush)) == dict.fromkeys(range(0, 3001, 100), FLUSH)


@pytest.mark.parametrize(("flush", "expected"), [(INTERVAL, SYNC), (ALWAYS, SYNC), (NEVER, None)])
def test_many_unsafe_bytes_make_a_log_due(flush: FlushPolicy, expected: str | None) -> None:
    full = ChangedLog(unflushed_bytes=100)
    later = schedule(flush)
    later.take_due([full], 0)
    assert due(full, later, 1) == expected


def test_a_timer_that_ends_a_little_early_does_not_cost_a_round() -> None:
    log, early = ChangedLog(), schedule()
    early.take_due([log], 0)
    assert due(log, early, 998) == SYNC


def test_all_that_changed_are_taken_for_a_flush_out_of_turn() -> None:
    log, idle = ChangedLog(), ChangedLog(needs_flush=False)
    out_of_turn = schedule()
    out_of_turn.take_due([log], 0)
    assert out_of_turn.take_all([log, idle], 1) == [log]
    assert due(log, out_of_turn, 900) is None


@pytest.mark.parametrize(
    ("intervals", "interval_ms", "wake_ms"),
    [
        ([None], 1000, 1000),
        ([], 250, 250),
        ([60_000], 60_000, 1000),
        ([60_000, 200], 1000, 200),
        ([0], 1000, 10),
    ],
)
def test_the_next_check_follows_the_shortest_interval_within_bounds(
    intervals: list[int | None], interval_ms: int, wake_ms: int
) -> None:
    logs = [ChangedLog(LogConfig(flush_ms=flush_ms)) for flush_ms in intervals]
    assert schedule(interval_ms=interval_ms).wake_ms(logs) == wake_ms
