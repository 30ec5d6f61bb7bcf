from dataclasses import dataclass, field

import pytest

from barnabas.storage.flush_schedule import FlushSchedule
from barnabas.storage.log_config import FlushPolicy, LogConfig, StorageConfig

ALWAYS, INTERVAL, NEVER = FlushPolicy.ALWAYS, FlushPolicy.INTERVAL, FlushPolicy.NEVER


@dataclass(eq=False)
class ChangedLog:
    """A log that always has something to flush."""

    config: LogConfig = field(default_factory=LogConfig)
    needs_flush: bool = True
    has_rolled: bool = False
    unflushed_bytes: int = 0


def schedule(flush: FlushPolicy = INTERVAL, interval_ms: int = 1000) -> FlushSchedule[ChangedLog]:
    return FlushSchedule(StorageConfig(flush=flush, flush_interval_ms=interval_ms, flush_bytes=100))


def due_times(log: ChangedLog, schedule: FlushSchedule[ChangedLog]) -> list[int]:
    """When it is flushed within three seconds, looked at every 100 ms."""
    return [now_ms for now_ms in range(0, 3001, 100) if schedule.take_due([log], now_ms)]


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
    assert due_times(ChangedLog(LogConfig(flush_ms=flush_ms)), schedule(flush)) == times


def test_a_log_that_did_not_change_is_never_due() -> None:
    assert due_times(ChangedLog(needs_flush=False, has_rolled=True, unflushed_bytes=100), schedule()) == []


@pytest.mark.parametrize("flush", [INTERVAL, NEVER])
def test_a_log_that_rolled_is_due_at_once(flush: FlushPolicy) -> None:
    rolled = ChangedLog(LogConfig(flush_ms=2000), has_rolled=True)
    assert len(due_times(rolled, schedule(flush))) == 31


@pytest.mark.parametrize(("flush", "is_due"), [(INTERVAL, True), (ALWAYS, True), (NEVER, False)])
def test_many_unsafe_bytes_make_a_log_due(flush: FlushPolicy, is_due: bool) -> None:
    full = ChangedLog(unflushed_bytes=100)
    later = schedule(flush)
    later.take_due([full], 0)
    assert (later.take_due([full], 1) == [full]) is is_due


def test_a_timer_that_ends_a_little_early_does_not_cost_a_round() -> None:
    log, early = ChangedLog(), schedule()
    early.take_due([log], 0)
    assert early.take_due([log], 998) == [log]


def test_all_that_changed_are_taken_for_a_flush_out_of_turn() -> None:
    log, idle = ChangedLog(), ChangedLog(needs_flush=False)
    out_of_turn = schedule()
    out_of_turn.take_due([log], 0)
    assert out_of_turn.take_all([log, idle], 1) == [log]
    assert out_of_turn.take_due([log], 900) == []


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
def test_the_next_look_is_as_soon_as_the_shortest_interval_asks_within_bounds(
    intervals: list[int | None], interval_ms: int, wake_ms: int
) -> None:
    logs = [ChangedLog(LogConfig(flush_ms=flush_ms)) for flush_ms in intervals]
    assert schedule(interval_ms=interval_ms).wake_ms(logs) == wake_ms
