"""Deadlines expire at their time, after any number of moves."""

import gc
from weakref import WeakSet

from barnabas.runtime.deadline_table import DeadlineTable

SessionTimers = DeadlineTable[tuple[str, str]]

KEY = ("group", "member")


def test_without_sessions_there_is_no_deadline() -> None:
    assert SessionTimers().next_deadline_ms() is None


def test_a_session_ends_at_its_deadline_and_not_before() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    assert timers.next_deadline_ms() == 100
    assert timers.expire(99) == []
    assert KEY in timers
    assert timers.expire(100) == [KEY]
    assert KEY not in timers
    assert timers.next_deadline_ms() is None


def test_a_restart_moves_the_end() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    timers.restart(KEY, 150)
    assert timers.expire(120) == []
    assert timers.next_deadline_ms() == 150
    assert timers.expire(150) == [KEY]


def test_a_lowered_timeout_brings_the_end_forward() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    timers.restart(KEY, 50)
    assert timers.next_deadline_ms() == 50
    assert timers.expire(50) == [KEY]
    assert timers.expire(200) == []


def test_a_cancelled_session_never_ends() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    timers.cancel(KEY)
    timers.cancel(KEY)
    assert timers.next_deadline_ms() is None
    assert timers.expire(1_000) == []


def test_a_member_that_comes_back_has_a_new_session() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    timers.cancel(KEY)
    timers.restart(KEY, 130)
    assert timers.expire(100) == []
    assert timers.expire(130) == [KEY]


def test_sessions_end_earliest_first() -> None:
    timers = SessionTimers()
    timers.restart(("group", "late"), 30)
    timers.restart(("group", "early"), 10)
    timers.restart(("group", "later"), 90)
    assert timers.expire(50) == [("group", "early"), ("group", "late")]


def test_restarts_do_not_grow_the_heap() -> None:
    timers = SessionTimers()
    for now_ms in range(0, 10_000, 10):
        timers.restart(KEY, now_ms + 45)
        assert timers.expire(now_ms) == []
    assert timers.expire(9_990 + 45) == [KEY]
    assert timers.next_deadline_ms() is None


class Key:
    """A key that a weak reference can watch."""


def test_a_key_cancelled_long_before_its_deadline_is_not_kept_until_then() -> None:
    timers = DeadlineTable[Key]()
    first, last = Key(), Key()
    timers.restart(first, 5)
    cancelled: WeakSet[Key] = WeakSet()
    for _ in range(1_000):
        key = Key()
        cancelled.add(key)
        timers.restart(key, 1_000_000)
        timers.cancel(key)
    timers.restart(last, 7)
    gc.collect()
    assert len(cancelled) < 100
    assert timers.expire(10) == [first, last]


def test_a_deadline_is_brought_forward_and_not_put_off() -> None:
    timers = SessionTimers()
    assert timers.bring_forward(KEY, 100)
    assert not timers.bring_forward(KEY, 150)
    assert timers.bring_forward(KEY, 50)
    assert timers.next_deadline_ms() == 50
    assert timers.expire(50) == [KEY]
    assert len(timers) == 0


def test_a_deadline_that_was_put_off_ends_later() -> None:
    timers = SessionTimers()
    timers.restart(KEY, 100)
    timers.put_off(KEY, 50)
    assert timers.expire(149) == []
    assert timers.expire(150) == [KEY]
    timers.put_off(KEY, 50)
    assert KEY not in timers
