"""Records that wait until they are due: the rules, their bounds, restarts and the order of keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.delivery_state import Cause, Due, StateRange
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.record_inspection import Wait
from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition.inspection import InspectionBounds
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import RetryBackoff
from barnabas.share.partition.waits import DELAY_MS_MAX, DueTimes
from tests.share.partition.core import SharePartition
from tests.share.partition.leader import ACCEPT, AVAILABLE, LIMITS, RECORD_LIMIT, REJECT, RELEASE, Leader

# pyright: reportPrivateUsage=false

BACKOFF = RetryBackoff(base_ms=100, max_ms=1_000, multiplier=2, jitter=0)
WITH_BACKOFF = LIMITS._replace(retry_backoff=BACKOFF, delivery_count_max=10)


def held(*sizes: int, batch_size: int = 1) -> Leader:
    leader = Leader(limits=WITH_BACKOFF).produce(*sizes)
    leader.fetch(batch_size=batch_size)
    return leader


def end_lock(leader: Leader) -> None:
    leader.record(leader.expire(leader.now_ms + LIMITS.lock_duration_ms))


def release(leader: Leader) -> None:
    leader.acknowledge(0, 9, RELEASE)


def lose_connection(leader: Leader) -> None:
    leader.record(
        leader.partition.decide_release_member("member-1", leader.limits, leader.now_ms, is_clean=False)
    )


def close(leader: Leader) -> None:
    leader.record(leader.release_member())


@pytest.mark.parametrize(
    ("ending", "waits"), [(release, True), (end_lock, True), (lose_connection, True), (close, False)]
)
def test_a_failed_record_waits_and_the_clean_end_of_a_session_returns_it(
    ending: Callable[[Leader], None], waits: bool
) -> None:
    leader = held(10)
    ending(leader)
    assert leader.partition.waiting_count == (10 if waits else 0)
    assert leader.fetch("member-2") == ([] if waits else [(0, 9, 2)])
    if waits:
        due_ms = leader.now_ms + 100
        assert leader.partition.next_deadline_ms() == due_ms
        assert not leader.expire(due_ms - 1).outcome.released
        ended = leader.expire(due_ms)
        assert ended.outcome.released
        assert ended.is_empty, "nothing is recorded"
        assert leader.fetch("member-2") == [(0, 9, 2)]


def test_the_delay_grows_with_each_delivery_up_to_its_bound() -> None:
    leader = held(1)
    delays: list[int] = []
    for _ in range(6):
        before_ms = leader.now_ms
        leader.acknowledge(0, 0, RELEASE)
        due = leader.deltas[-1].states[0].condition
        assert isinstance(due, Due)
        leader.expire(due.due_ms)
        delays.append(due.due_ms - before_ms)
        assert leader.fetch() == [(0, 0, len(delays) + 1)]
    assert delays == [100, 200, 400, 800, 1_000, 1_000]


@pytest.mark.parametrize(("number", "delay_ms"), [(0.0, 1_000), (0.5, 750), (0.999, 500)])
def test_jitter_shortens_the_delay_by_at_most_its_part(number: float, delay_ms: int) -> None:
    backoff = RetryBackoff(base_ms=1_000, max_ms=60_000, multiplier=2, jitter=0.5)
    due = DueTimes(0, lambda: number).after_failure(backoff, 1, 0)
    assert due is not None
    assert delay_ms <= due.due_ms <= delay_ms + 10


def test_no_delay_is_longer_than_its_bound() -> None:
    backoff = RetryBackoff(base_ms=1_000, max_ms=500, multiplier=100, jitter=0)
    assert DueTimes().after_failure(backoff, 25, 0) == Due(500)


def test_without_a_setting_there_is_no_delay_and_no_condition() -> None:
    leader = Leader().produce(10)
    leader.fetch()
    assert leader.acknowledge(0, 9, RELEASE).released
    assert leader.deltas[-1].states == [StateRange(0, 9, AVAILABLE, 1, Cause.RELEASE, "member-1")]


def test_due_times_are_recorded_as_wall_clock_times_and_survive_a_restart() -> None:
    leader = held(10)
    due_times = DueTimes(ahead_ms=5_000_000)
    leader.partition = SharePartition(leader.image, leader.control_runs, due_times)
    leader.fetch()
    release(leader)
    assert leader.deltas[-1].states == [
        StateRange(0, 9, AVAILABLE, 1, Cause.RELEASE, "member-1", Due(5_000_100))
    ]
    for now_ms, wall_ms, waits in ((7, 5_000_099, True), (7, 5_000_100, False)):
        restarted = SharePartition(leader.image, leader.control_runs, DueTimes(wall_ms - now_ms), now_ms)
        assert restarted.waiting_count == (10 if waits else 0)
        assert restarted.next_deadline_ms() == (now_ms + 1 if waits else None)


def test_after_a_clock_was_set_back_no_record_waits_longer_than_the_longest_delay() -> None:
    leader = Leader(states=(StateRange(0, 9, AVAILABLE, 1, condition=Due(10 * DELAY_MS_MAX)),))
    restarted = SharePartition(
        leader.image, leader.control_runs, DueTimes(), now_ms=3, retry_delay_ms_max=60_000
    )
    assert restarted.next_deadline_ms() == 60_003


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_step_of_the_wall_clock_moves_no_record_and_later_ones_are_recorded_by_the_new_clock(
    step_ms: int,
) -> None:
    leader = held(5, 5)
    leader.acknowledge(0, 4, RELEASE)
    leader.partition.follow_wall_clock(step_ms)
    assert leader.partition.next_deadline_ms() == 100
    leader.now_ms = 50
    leader.acknowledge(5, 9, RELEASE)
    assert leader.deltas[-1].states[0].condition == Due(step_ms + 150)
    leader.expire(149)
    assert leader.fetch("member-2") == [(0, 4, 2)]
    leader.expire(150)
    assert leader.fetch("member-2") == [(5, 9, 2)]


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_step_of_the_wall_clock_while_a_release_is_being_recorded_moves_no_record(step_ms: int) -> None:
    leader = held(10)
    decision = leader.decide(0, 9, RELEASE)
    leader.partition.follow_wall_clock(step_ms)
    leader.record(decision)
    assert leader.partition.next_deadline_ms() == 100
    leader.expire(100)
    assert leader.fetch("member-2") == [(0, 9, 2)]


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_due_time_whose_record_failed_is_recorded_by_the_clock_of_the_next_attempt(step_ms: int) -> None:
    leader = held(5)
    leader.partition.abort(leader.expire(1_000))
    leader.partition.follow_wall_clock(step_ms)
    leader.record(leader.expire(1_001))
    assert leader.deltas[-1].states[0].condition == Due(step_ms + 1_100)


@pytest.mark.parametrize("step_ms", [-500, 10, 500])
def test_a_due_time_that_is_recorded_after_a_small_step_of_the_wall_clock_holds_after_a_restart(
    step_ms: int,
) -> None:
    leader = held(10)
    ahead_ms = 1_000 + step_ms
    leader.partition = SharePartition(leader.image, leader.control_runs, DueTimes(ahead_ms=1_000))
    leader.fetch()
    leader.partition.follow_wall_clock(ahead_ms)
    release(leader)
    restarted = SharePartition(leader.image, leader.control_runs, DueTimes(ahead_ms), now_ms=7)
    assert restarted.next_deadline_ms() == 100


def test_clocks_that_are_read_one_after_the_other_are_no_step() -> None:
    leader = held(5)
    leader.partition.follow_wall_clock(3)
    leader.acknowledge(0, 4, RELEASE)
    assert leader.deltas[-1].states[0].condition == Due(100)


def test_a_time_is_the_same_wall_clock_time_each_time_until_the_clock_is_set() -> None:
    partition = held(1).partition
    assert [partition.wall_ms(500, ahead_ms) for ahead_ms in (-9, 0, 1, 9)] == [500] * 4
    assert [partition.wall_ms(500, ahead_ms) for ahead_ms in (-10, 10, 60_000)] == [490, 510, 60_500]


def test_clocks_that_lie_far_apart_are_no_step_either() -> None:
    due_times = DueTimes(ahead_ms=5_000_000)
    assert [due_times.adopt(ahead_ms) for ahead_ms in (5_000_003, 4_999_991, 5_000_010)] == [0, 0, 10]


def test_other_records_flow_past_waiting_ones() -> None:
    leader = held(5, 5)
    leader.acknowledge(0, 4, RELEASE)
    leader.produce(5)
    assert leader.fetch("member-2") == [(10, 14, 1)]
    leader.acknowledge(7, 7, RELEASE)
    leader.expire(100)
    assert leader.fetch("member-2") == [(0, 4, 2), (7, 7, 2)]


def test_records_that_are_released_one_by_one_become_one_run() -> None:
    leader = held(10)
    for offset in range(10):
        leader.now_ms = offset
        leader.acknowledge(offset, offset, RELEASE)
    assert leader.states() == [(0, 0, AVAILABLE, 1), (1, 9, AVAILABLE, 1)]
    leader.expire(110)
    assert leader.fetch("member-2") == [(0, 9, 2)]


def looks_from(leader: Leader) -> int | None:
    """Where a fetch begins to look for available records; None if it does not look at all."""
    return leader.partition.window.available_from


def test_a_fetch_does_not_look_at_waiting_records_again_and_again() -> None:
    leader = Leader(limits=WITH_BACKOFF._replace(record_locks_max=2_000)).produce(2_000)
    leader.fetch(records_max=2_000)
    for offset in range(0, 2_000, 2):
        leader.acknowledge(offset, offset, RELEASE)
    assert leader.partition.waiting_count == 1_000
    assert looks_from(leader) is None
    assert leader.fetch("member-2") == []
    leader.acknowledge(1_999, 1_999, RELEASE)
    leader.record(leader.release_member())
    assert looks_from(leader) == 1
    assert sum(last - first + 1 for first, last, _ in leader.fetch("member-2", 2_000)) == 999
    assert leader.fetch("member-2") == []
    assert looks_from(leader) is None


def test_an_administrator_sees_the_records_that_wait() -> None:
    leader = held(5, 5)
    leader.acknowledge(0, 4, RELEASE)
    bounds = InspectionBounds(0, 0, 10, 10)
    found = list(leader.partition.inspect(leader.limits, bounds))
    assert [(one.first_offset, one.last_offset, one.wait) for one in found] == [
        (0, 4, Wait.DUE),
        (5, 9, Wait.NOTHING),
    ]


def test_a_waiting_record_may_be_archived() -> None:
    leader = held(5, 5)
    release(leader)
    leader.record(leader.partition.decide_log_start(5))
    assert (leader.partition.spso, leader.partition.waiting_count) == (5, 5)
    leader.record(leader.partition.decide_log_start(10))
    assert (leader.partition.spso, leader.partition.next_deadline_ms()) == (10, None)


def test_a_release_that_cannot_be_recorded_makes_no_record_wait() -> None:
    leader = held(10)
    leader.partition.abort(leader.decide(0, 9, RELEASE))
    assert leader.partition.waiting_count == 0
    assert leader.partition.next_deadline_ms() == LIMITS.lock_duration_ms


def test_an_expired_lock_that_cannot_be_recorded_keeps_its_due_time_for_the_next_write() -> None:
    leader = held(10)
    leader.partition.abort(leader.expire(1_000))
    leader.record(leader.expire(1_001))
    (state,) = leader.deltas[-1].states
    assert state.condition == Due(1_100)


# The delay that a member asks for.


def asked(leader: Leader, *delays: ReleaseDelay, types: tuple[int, ...] = (RELEASE,)) -> None:
    decision = leader.partition.decide_acknowledge(
        "member-1", [_batch(types)], leader.limits, leader.now_ms, delays
    )
    leader.record(decision)


def _batch(types: tuple[int, ...]) -> AckBatch:
    return AckBatch(0, 9, types)


def test_a_member_asks_for_the_delay_of_single_records() -> None:
    leader = held(10)
    asked(leader, ReleaseDelay(2, 3, 0), ReleaseDelay(5, 6, 500))
    assert leader.fetch("member-2") == [(2, 3, 2)]
    leader.expire(100)
    assert leader.fetch("member-2") == [(0, 1, 2), (4, 4, 2), (7, 9, 2)]
    leader.expire(500)
    assert leader.fetch("member-2") == [(5, 6, 2)]


def test_a_delay_changes_released_records_only() -> None:
    leader = held(10)
    asked(leader, ReleaseDelay(0, 9, 500), types=(ACCEPT, REJECT, *[RELEASE] * 8))
    assert (leader.partition.spso, leader.partition.waiting_count) == (2, 8)


def test_a_delay_needs_no_backoff_of_the_group() -> None:
    leader = held(10)
    leader.limits = LIMITS
    asked(leader, ReleaseDelay(0, 9, 60_000))
    assert leader.partition.waiting_count == 10


@pytest.mark.parametrize(
    ("delays", "reason"),
    [
        ([ReleaseDelay(0, 9, 1_001)], "allows 0 to 1000 ms: ask for a shorter one, or raise share.retry"),
        ([ReleaseDelay(0, 9, -1)], "A delay of -1 ms"),
        ([ReleaseDelay(4, 5, 1), ReleaseDelay(5, 6, 1)], "out of order"),
        ([ReleaseDelay(5, 4, 1)], "out of order"),
    ],
)
def test_an_invalid_delay_is_refused_and_changes_nothing(delays: list[ReleaseDelay], reason: str) -> None:
    leader = held(10)
    with pytest.raises(ApiError, match=reason) as raised:
        asked(leader, *delays)
    assert raised.value.code is ErrorCode.invalid_request
    assert leader.states() == [(0, 9, AVAILABLE, 0)]


# The order of keys.


class InOrder(Leader):
    """Each record has the key of its number in `keys`."""

    def __init__(self, keys: list[int], run_max: int) -> None:
        super().__init__(limits=WITH_BACKOFF._replace(key_run_max=run_max))
        self._keys = keys
        self.produce(len(keys))

    def taken(self, member_id: str = "member-1") -> list[int]:
        plan = self.partition.plan_acquire(500, self.limits)
        keys = [BatchKeys(0, len(self._keys) - 1, KeyHashes(list(range(len(self._keys))), self._keys))]
        acquisition = self.partition.acquire(
            plan,
            member_id,
            self.log,
            records_max=500,
            batch_size=500,
            acquire_mode=RECORD_LIMIT,
            limits=self.limits,
            now_ms=self.now_ms,
            keys=keys if self.partition.keys_until == 0 else (),
        )
        return [offset for first, last, _ in acquisition.acquired for offset in range(first, last + 1)]


@pytest.mark.parametrize("run_max", [1, 2])
def test_a_waiting_record_holds_back_its_key_and_no_other(run_max: int) -> None:
    leader = InOrder([1, 2, 1, 2, 1], run_max)
    first = leader.taken()
    assert first == [0, 1, 2, 3][: 2 * run_max]
    leader.acknowledge(0, 0, RELEASE)
    leader.acknowledge(1, 1, ACCEPT)
    assert leader.taken("member-2") == ([3] if run_max == 1 else [])
    leader.expire(100)
    assert leader.taken("member-2")[0] == 0


def test_a_restarted_leader_holds_back_the_keys_of_waiting_records() -> None:
    leader = InOrder([1, 2, 1, 2, 1], 1)
    leader.taken()
    leader.acknowledge(0, 0, RELEASE)
    leader.restart()
    assert leader.taken() == [1]
    leader.expire(100)
    assert leader.taken() == [0]


def test_a_waiting_record_lets_earlier_records_of_its_key_pass() -> None:
    """After a change of the order, records before a waiting one may be available."""
    leader = InOrder([1, 1, 1], 0)
    assert leader.taken() == [0, 1, 2]
    leader.acknowledge(1, 1, RELEASE)
    leader.record(leader.release_member())
    leader.limits = leader.limits._replace(key_run_max=1)
    assert leader.taken() == [0]
    leader.acknowledge(0, 0, ACCEPT)
    assert leader.taken() == [], "record 2 must not overtake record 1"
    leader.expire(100)
    assert leader.taken() == [1]
