"""The priorities inside the broker: the leaders' choice among the records that they could deliver.

It derives these records from the states of all records, and counts the deliveries that overtake them by
itself. Of the leader's own order it looks at the known priorities, which it compares with those that the
producers have sent.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.share.leader.handout import Handout
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.limits import throttle_count_min
from barnabas.share.partition.priorities import PRIORITY_MAX
from barnabas.share.partition.window import ACQUIRED, AVAILABLE, Window
from tests.simulation.model import Violation

# pyright: reportPrivateUsage=false

_OVERDUE = PRIORITY_MAX + 1


class PriorityCheck:
    """Follows the acquisitions of one leader while its order stays the same."""

    def __init__(self, leader: SharePartitionLeader) -> None:
        self._leader = leader
        self._order = leader.core.window.keys
        self._overtaken_counts: dict[int, int] = {}
        """Of each record that could be delivered after the last acquisition."""

    @property
    def is_of_present_order(self) -> bool:
        """Whether the leader has the order still that it had when this check began."""
        return self._leader.core.window.keys is self._order

    def acquired(self, handout: Handout) -> None:
        """The leader has just acquired records. Raises Violation."""
        order = self._order
        if order is None or order.priorities is None:
            return
        if order.alone is not None:
            self._overtaken_counts.clear()
            return
        unfinished = _unfinished(self._leader.core.window, order)
        taken = [one for first, last, _ in handout.acquired for one in range(first, last + 1)]
        left = _free_heads(unfinished, order.run_max)
        count_min = throttle_count_min(self._leader.limits().delivery_count_max)
        may_be_throttled = any(
            delivery_count >= count_min for records in unfinished.values() for _, _, delivery_count in records
        )
        if taken and left and not may_be_throttled:
            self._check_choice(order, unfinished, taken, left)
        counted = self._overtaken_counts
        self._overtaken_counts = {
            head: counted.get(head, 0) + sum(one > head for one in taken) for head in left
        }

    def _check_choice(
        self, order: KeyOrder, unfinished: _Unfinished, taken: list[int], left: list[int]
    ) -> None:
        """No record is left that is more urgent than a record that was taken."""
        first_of = {offset: records[0][0] for records in unfinished.values() for offset, _, _ in records}
        urgency = self._urgency(order, unfinished)
        least = min(taken, key=lambda one: urgency(first_of[one]))
        most = max(left, key=urgency)
        if urgency(most) > urgency(first_of[least]):
            raise Violation(
                f"{self._leader.group_id}: {least} is delivered with the urgency {urgency(first_of[least])}, "
                f"and {most} with the urgency {urgency(most)} is not"
            )

    def _urgency(self, order: KeyOrder, unfinished: _Unfinished) -> Callable[[int], int]:
        """That of a key, by its first unfinished record: the highest priority, or more if it is overdue."""
        assert order.priorities is not None
        overtaken_max = order.priorities.overtaken_max
        priority_of = known_priorities(order)
        highest = {
            records[0][0]: max(priority_of.get(offset, 0) for offset, _, _ in records)
            for records in unfinished.values()
        }

        def urgency(head: int) -> int:
            is_overdue = self._overtaken_counts.get(head, 0) >= overtaken_max
            return _OVERDUE if is_overdue else highest[head]

        return urgency


_Unfinished = dict[int, list[tuple[int, bool, int]]]
"""By key, the unfinished records: offset, whether it can be delivered, and delivery count. A record that was
given up keeps its key until that is recorded.
"""


def known_priorities(order: KeyOrder) -> dict[int, int]:
    """The priorities above 0 that a leader knows, by offset."""
    assert order.priorities is not None
    return {
        offset: priority
        for priority, offsets in enumerate(order.priorities._of_priority)
        for offset in offsets
    }


def _unfinished(window: Window, order: KeyOrder) -> _Unfinished:
    found: _Unfinished = {}
    for _, run in window.runs_between(window.spso, window.speo - 1):
        if run.state is ACQUIRED or run.state is AVAILABLE or run.pending:
            for offset in range(max(run.first_offset, window.spso), run.last_offset + 1):
                if offset in order._key_of:
                    one = (offset, run.state is AVAILABLE and not run.waits, run.delivery_count)
                    found.setdefault(order._key_of[offset], []).append(one)
    return found


def _free_heads(unfinished: _Unfinished, run_max: int) -> list[int]:
    """The first record of each key that can be delivered: none of its next records is held or waits."""
    return [
        records[0][0]
        for records in unfinished.values()
        if all(is_deliverable for _, is_deliverable, _ in records[:run_max])
    ]
