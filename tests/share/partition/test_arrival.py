"""Records that come in flight before they are selected: delayed and expired ones, and the window."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.delivery_state import Cause, Due, LetterPlace, StateRange
from barnabas.protocol.record_keys import KeyHashes
from barnabas.share.partition import acquisition
from barnabas.share.partition.acquisition import AvailablePart
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import AcquireMode, RecordTiming
from barnabas.share.partition.waits import CLOCK_LOOK_MS, DELAY_MS_MAX, WAIT_MS_MAX
from barnabas.share.partition.window import Batch, Span
from barnabas.storage.format.control_runs import ControlRuns
from tests.share.partition.leader import (
    ACCEPT,
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    BATCH_OPTIMIZED,
    LIMITS,
    RECORD_LIMIT,
    RELEASE,
    Leader,
)

# pyright: reportPrivateUsage=false

TIMED = LIMITS._replace(
    timing=RecordTiming(delay_header=b"due", ttl_ms=1), record_locks_max=100, lock_duration_ms=60_000
)
LATER = Due(1_000)
EXPIRED = Cause.EXPIRED


def fetch(
    leader: Leader,
    *parts: TimedPart,
    records_max: int = 500,
    mode: AcquireMode = BATCH_OPTIMIZED,
    keys: Sequence[BatchKeys] = (),
    member_id: str = "member-1",
) -> list[tuple[int, int, int]]:
    """Acquires from the batches of the plan, whose records have these fates."""
    plan = leader.partition.plan_acquire(records_max, leader.limits, mode)
    batches = sorted({one for read in plan.reads for one in read_of(leader, *read)})
    acquired = leader.partition.acquire(
        plan,
        member_id,
        batches,
        records_max=records_max,
        batch_size=500,
        acquire_mode=mode,
        limits=leader.limits,
        now_ms=leader.now_ms,
        timed=parts,
        keys=[one for one in keys if one.last_offset >= (leader.partition.keys_until or 0)],
    )
    if acquired.gaps is not None:
        leader.record(acquired.gaps)
    return acquired.acquired


def read_of(leader: Leader, first_offset: int, records_max: int) -> list[tuple[int, int]]:
    """The batches with this number of records."""
    last_offset = first_offset + records_max - 1
    return [one for one in leader.log if one[1] >= first_offset and one[0] <= last_offset]


def delayed(first: int, last: int, due: Due = LATER) -> TimedPart:
    return TimedPart(first, last, due)


def expired(first: int, last: int) -> TimedPart:
    return TimedPart(first, last, EXPIRED)


def log_of(*sizes: int, limits: object = TIMED) -> Leader:
    assert isinstance(limits, type(TIMED))
    return Leader(limits=limits).produce(*sizes)


def test_a_delayed_record_is_recorded_and_others_of_its_batch_go() -> None:
    leader = log_of(10)
    assert fetch(leader, delayed(3, 4)) == [(0, 2, 1), (5, 9, 1)]
    assert leader.states() == [(0, 2, AVAILABLE, 0), (3, 4, AVAILABLE, 0), (5, 9, AVAILABLE, 0)]
    assert leader.partition.durable_ranges(3, 4)[0].condition == LATER
    assert (leader.partition.delayed_count, leader.partition.waiting_count) == (2, 2)
    assert leader.partition.next_deadline_ms() == LATER.due_ms
    assert leader.expire(LATER.due_ms).outcome.released
    assert fetch(leader, member_id="member-2") == [(3, 4, 1)]
    assert leader.partition.delayed_count == 0


def test_an_expired_record_is_archived_without_a_delivery() -> None:
    leader = log_of(10)
    assert fetch(leader, expired(0, 3), expired(7, 7)) == [(4, 6, 1), (8, 9, 1)]
    assert leader.partition.spso == 4
    assert [(one.cause, one.delivery_count) for one in leader.deltas[0].states if one.state is ARCHIVED] == [
        (EXPIRED, 0),
        (EXPIRED, 0),
    ]


def test_an_expired_record_gets_a_letter_with_its_reason() -> None:
    leader = log_of(4, limits=TIMED._replace(letter_place=LetterPlace()))
    assert fetch(leader, expired(1, 2)) == [(0, 0, 1), (3, 3, 1)]
    (due,) = leader.partition.archiving_ranges()
    assert (due.base_offset, due.last_offset, due.delivery_count) == (1, 2, 0)
    assert due.letter_place is not None
    assert due.letter_place.reason is EXPIRED


def test_a_held_record_does_not_expire_and_a_released_one_does() -> None:
    leader = log_of(4)
    assert fetch(leader) == [(0, 3, 1)]
    leader.acknowledge(1, 2, RELEASE)
    assert fetch(leader, expired(0, 3), member_id="member-2") == []
    assert [one[2] for one in leader.states()] == [AVAILABLE, ARCHIVED, AVAILABLE]


def test_a_record_that_waits_for_a_retry_or_for_its_delay_may_expire() -> None:
    leader = log_of(4)
    fetch(leader, delayed(3, 3))
    leader.record(leader.partition.admit([], [expired(0, 3)], 500, leader.limits))
    assert leader.partition.delayed_count == 0
    assert leader.states()[-1] == (3, 3, ARCHIVED, 0)


def test_records_expire_without_a_fetch() -> None:
    leader = log_of(5, 5, 5)
    leader.record(leader.partition.admit(leader.log[:2], [expired(0, 4), expired(5, 6)], 500, TIMED))
    assert (leader.partition.spso, leader.partition.speo) == (7, 10)
    assert fetch(leader) == [(7, 9, 1), (10, 14, 1)]


def test_records_of_aborted_transactions_and_holes_are_archived_on_arrival() -> None:
    leader = log_of(3)
    leader.log_end_offset += 2  # two records that compaction has removed
    leader.produce(3)
    aborted = TimedPart(5, 6, Cause.TRANSACTION_ABORTED)
    assert fetch(leader, aborted) == [(0, 2, 1), (7, 7, 1)]
    causes = [one.cause for one in leader.deltas[0].states if one.state is ARCHIVED]
    assert causes == [Cause.GAP, Cause.TRANSACTION_ABORTED]


def test_delayed_records_and_finished_ones_behind_them_leave_the_window_free() -> None:
    leader = log_of(60, 90, 90)
    assert fetch(leader, delayed(0, 59), records_max=90) == [(60, 149, 1)]
    assert leader.partition.window_count == 90
    leader.acknowledge(60, 149, ACCEPT)
    assert (leader.partition.window_count, leader.partition.in_flight_count) == (0, 150)
    assert fetch(leader, records_max=90) == [(150, 239, 1)]
    leader.acknowledge(150, 239, ACCEPT)
    assert leader.partition.in_flight_batch_count == 2, "finished batches are joined"
    leader.expire(LATER.due_ms)
    assert leader.partition.window_count == 60
    assert fetch(leader) == [(0, 59, 1)]
    leader.acknowledge(0, 59, ACCEPT)
    assert (leader.partition.spso, leader.partition.window_count) == (240, 0)


def test_finished_batches_of_one_record_behind_a_delayed_one_are_joined() -> None:
    leader = log_of(1, 1, 1, 1)
    for _ in leader.log:
        fetch(leader, delayed(0, 0), records_max=1)
    assert leader.partition.in_flight_batch_count == 4
    leader.acknowledge(1, 3, ACCEPT)
    assert leader.partition.in_flight_batch_count == 2


def test_the_window_counts_as_before_when_the_last_delayed_record_has_gone() -> None:
    leader = log_of(1, 10, 10)
    fetch(leader, delayed(0, 0), records_max=10)
    leader.expire(LATER.due_ms)
    assert fetch(leader, records_max=1) == [(0, 0, 1)]
    leader.acknowledge(0, 10, ACCEPT)
    assert fetch(leader, records_max=10) == [(11, 20, 1)]
    leader.acknowledge(15, 15, ACCEPT)
    assert leader.partition.window_count == 10


def test_a_record_limit_leaves_the_rest_available() -> None:
    leader = log_of(10)
    assert fetch(leader, delayed(0, 3), records_max=2, mode=RECORD_LIMIT) == [(4, 5, 1)]
    assert fetch(leader, records_max=2, mode=RECORD_LIMIT) == [(6, 7, 1)]


@pytest.mark.parametrize(("count", "wait_ms_max"), [(0, WAIT_MS_MAX), (1, DELAY_MS_MAX)])
def test_a_loaded_due_time_is_bounded_by_the_longest_delay_of_its_kind(count: int, wait_ms_max: int) -> None:
    far = Due(10 * WAIT_MS_MAX)
    leader = Leader(limits=TIMED, states=(StateRange(0, 0, AVAILABLE, count, condition=far),))
    assert leader.partition.delayed_count == (0 if count else 1)
    leader.expire(wait_ms_max - 1)
    assert leader.partition.waiting_count == 1
    leader.expire(wait_ms_max)
    assert leader.partition.waiting_count == 0


def test_the_wall_clock_is_looked_at_while_records_are_delayed() -> None:
    leader = Leader(limits=TIMED, states=(StateRange(0, 0, AVAILABLE, 0, condition=Due(WAIT_MS_MAX)),))
    assert leader.partition.next_deadline_ms() == CLOCK_LOOK_MS
    leader.expire(CLOCK_LOOK_MS)
    assert leader.partition.next_deadline_ms() == 2 * CLOCK_LOOK_MS


def test_a_restart_keeps_the_delay_and_the_window() -> None:
    leader = log_of(60, 60)
    assert fetch(leader, delayed(0, 59), records_max=60) == []
    assert fetch(leader, records_max=60) == [(60, 119, 1)]
    leader.acknowledge(60, 119, ACCEPT)
    leader.restart()
    assert (leader.partition.delayed_count, leader.partition.window_count) == (60, 0)
    assert leader.states() == [(0, 59, AVAILABLE, 0), (60, 119, ACKNOWLEDGED, 1)]


def test_a_moved_log_start_takes_delayed_records_with_it() -> None:
    leader = log_of(10)
    fetch(leader, delayed(0, 5))
    leader.record(leader.partition.decide_log_start(4))
    assert leader.partition.delayed_count == 2


def test_delayed_records_are_due_by_the_clock_as_it_is() -> None:
    """A retry waits as long as it would have; a delay follows from a timestamp."""
    leader = log_of(4)
    fetch(leader, delayed(3, 3))
    leader.partition.follow_wall_clock(10_000)
    assert leader.expire(0).outcome.released


def test_a_delayed_record_holds_its_key() -> None:
    limits = TIMED._replace(key_run_max=1)
    leader = log_of(4, limits=limits)
    keys = [BatchKeys(0, 3, KeyHashes([0, 1, 2, 3], [7, 7, 8, 7]))]
    assert fetch(leader, delayed(0, 0), keys=keys) == [(2, 2, 1)]
    assert fetch(leader, keys=keys) == []
    leader.expire(LATER.due_ms)
    assert fetch(leader, keys=keys) == [(0, 0, 1)]
    leader.acknowledge(0, 0, ACCEPT)
    assert fetch(leader, keys=keys) == [(1, 1, 1)]


def test_finished_records_behind_a_delayed_one_leave_the_window_free_for_new_keys() -> None:
    leader = log_of(100, 50, limits=TIMED._replace(key_run_max=1))
    first = BatchKeys(0, 99, KeyHashes(list(range(100)), list(range(100))))
    assert fetch(leader, delayed(0, 0), keys=[first]) == [(1, 99, 1)]
    leader.acknowledge(1, 99, ACCEPT)
    second = BatchKeys(100, 149, KeyHashes(list(range(50)), list(range(100, 150))))
    assert fetch(leader, keys=[second]) == [(100, 149, 1)]


def test_offsets_that_have_no_record_among_those_with_keys_are_archived() -> None:
    leader = log_of(3, limits=TIMED._replace(key_run_max=1))
    assert fetch(leader, keys=[BatchKeys(0, 2, KeyHashes([0, 2], [7, 8]))]) == [(0, 0, 1), (2, 2, 1)]
    assert leader.states() == [(0, 0, AVAILABLE, 0), (1, 1, ARCHIVED, 0), (2, 2, AVAILABLE, 0)]


def test_keys_of_a_batch_that_is_read_in_two_parts_are_known_once() -> None:
    leader = log_of(4, limits=TIMED._replace(key_run_max=1))
    whole = BatchKeys(0, 3, KeyHashes([0, 1, 2, 3], [7, 8, 7, 8]))
    leader.log = [(0, 1)]
    assert fetch(leader, keys=[whole.between(0, 1)]) == [(0, 1, 1)]
    leader.log = [(0, 3)]
    assert fetch(leader, keys=[whole]) == []
    leader.acknowledge(0, 1, ACCEPT)
    assert fetch(leader) == [(2, 3, 1)]
    leader.acknowledge(2, 3, ACCEPT)
    assert leader.partition.spso == 4


def test_released_records_are_found_on_both_sides_of_a_delayed_one() -> None:
    leader = log_of(5, 1)
    assert fetch(leader, delayed(4, 4), records_max=5) == [(0, 3, 1)]
    assert fetch(leader) == [(5, 5, 1)]
    leader.acknowledge(0, 0, RELEASE)
    leader.acknowledge(5, 5, RELEASE)
    assert fetch(leader) == [(0, 0, 2), (5, 5, 2)]


def test_a_look_for_available_records_does_not_touch_delayed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand batches with a delayed record each, a fetch looks at those with records that are due."""
    leader = log_of(*[2] * 1_000)
    for index, (base_offset, last_offset) in enumerate(leader.log):
        due = Due(500 if index in (3, 700) else 1_000)
        assert fetch(leader, delayed(base_offset, base_offset, due), records_max=2)
        leader.acknowledge(last_offset, last_offset, ACCEPT)
    leader.produce(2)
    leader.expire(500)
    looked: list[int] = []
    look = acquisition.available_parts

    def counted(control_runs: ControlRuns, batch: Batch, spans: Sequence[Span]) -> list[AvailablePart]:
        looked.append(batch.base_offset)
        return look(control_runs, batch, spans)

    monkeypatch.setattr(acquisition, "available_parts", counted)
    assert fetch(leader) == [(6, 6, 1), (1400, 1400, 1), (2000, 2001, 1)]
    assert len(looked) < 10


fates = st.sampled_from(["plain", "expired", "soon", "later"])


@given(st.lists(st.lists(fates, min_size=1, max_size=6), max_size=6), st.integers(1, 8), st.booleans())
def test_each_record_is_delivered_once_or_expires_at_any_mixture(
    batches: list[list[str]], records_max: int, is_limited: bool
) -> None:
    """Members accept everything. Delayed records come when they are due, and the start offset reaches the
    end of the log.
    """
    leader = log_of(*map(len, batches))
    fate_of = dict(enumerate(fate for batch in batches for fate in batch))
    due = {"soon": Due(500), "later": Due(1_000)}
    parts = [
        TimedPart(offset, offset, EXPIRED if fate == "expired" else due[fate])
        for offset, fate in fate_of.items()
        if fate != "plain"
    ]
    delivered: list[int] = []
    mode = RECORD_LIMIT if is_limited else BATCH_OPTIMIZED
    for now_ms in (0, 500, 1_000):
        leader.record(leader.expire(now_ms))
        for _ in range(len(fate_of) + 2):
            timed = [one for one in parts if one.first_offset >= leader.partition.speo]
            for first, last, _ in fetch(leader, *timed, records_max=records_max, mode=mode):
                delivered += range(first, last + 1)
                leader.acknowledge(first, last, ACCEPT)
        wanted = {"plain", *(fate for fate, one in due.items() if one.due_ms <= now_ms)}
        assert sorted(delivered) == [offset for offset, fate in fate_of.items() if fate in wanted]
    assert leader.partition.spso == len(fate_of)
    assert (leader.partition.delayed_count, leader.partition.window_count) == (0, 0)


def test_letters_of_expired_records_count_in_the_window() -> None:
    leader = log_of(60, 60, limits=TIMED._replace(letter_place=LetterPlace()))
    leader.record(leader.partition.admit(leader.log[:1], [expired(0, 59)], 500, leader.limits))
    assert [one[2] for one in leader.states()] == [ARCHIVING]
    assert leader.partition.window_count == 60
