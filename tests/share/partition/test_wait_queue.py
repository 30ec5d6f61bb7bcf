"""The queue of waiting records: the order of due times, and the bound of its stale entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.delivery_state import Cause
from barnabas.share.partition.arrival import TimedPart
from barnabas.share.partition.waits import Waiting, WaitQueue
from tests.share.partition.test_arrival import LATER, fetch, log_of

# pyright: reportPrivateUsage=false


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(0, 60))
def test_entries_leave_in_the_order_of_their_times(due_times: list[int], now_ms: int) -> None:
    queue = WaitQueue()
    for offset, due_ms in enumerate(due_times):
        queue.add(Waiting(due_ms, offset, offset))
    assert queue.first_due_ms == min(due_times, default=None)
    taken = queue.take_due(now_ms)
    assert [one.due_ms for one in taken] == sorted(one for one in due_times if one <= now_ms)
    assert queue.first_due_ms == min((one for one in due_times if one > now_ms), default=None)


def test_stale_entries_do_not_pile_up() -> None:
    """Each record is delayed, and expires before it is due."""
    leader = log_of(*[10] * 1_000)
    for base_offset, last_offset in leader.log:
        parts = [TimedPart(offset, offset, LATER) for offset in range(base_offset, last_offset + 1)]
        parts = [one._replace(fate=LATER._replace(due_ms=1_000 + one.first_offset)) for one in parts]
        assert fetch(leader, *parts, records_max=10) == []
        gone = TimedPart(base_offset, last_offset, Cause.EXPIRED)
        leader.record(leader.partition.admit([], [gone], 500, leader.limits))
    assert len(leader.partition.window.waits._entries) < 2_500
