"""A naive share-partition with priorities of records, possibly beside an order of keys: each record that can
be delivered counts by itself the deliveries that overtake it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from barnabas.share.partition.limits import AcquireMode, ShareLimits
from tests.share.partition.naive_order import Batches, NaiveOrder
from tests.share.partition.naive_partition import NaiveDecision, NaiveDemand

Rank = tuple[int, int]
"""The lowest one goes first."""


@dataclass
class NaivePriorities(NaiveOrder):
    """`priorities` has that of each data offset of the log. `header_name` is empty without priorities."""

    priorities: dict[int, int] = field(default_factory=dict[int, int])
    header_name: str = ""
    overtaken_max: int = 0
    near_limit: int = 0
    """From this delivery count on, a record is delivered with few others, so only the first ones go."""
    overtaken_counts: dict[int, int] = field(default_factory=dict[int, int])
    """The overtaking deliveries of each record that could be delivered after the last step."""

    @property
    def chooses_again(self) -> bool:
        is_alone = self.alone is not None and self.spso <= self.alone[1]
        return bool(self.header_name) and not is_alone

    @property
    def has_order(self) -> bool:
        return bool(self.run_max or self.header_name)

    def is_ordered_by(self, limits: ShareLimits) -> bool:
        return super().is_ordered_by(limits) and limits.priority.header_name == self.header_name

    def order_by(self, limits: ShareLimits) -> None:
        super().order_by(limits)
        self.header_name = limits.priority.header_name
        self.overtaken_counts.clear()

    def acquire(
        self, covered: set[int], producer_batches: Batches, reads: Iterable[int], demand: NaiveDemand
    ) -> tuple[dict[int, int], NaiveDecision]:
        self.overtaken_max = demand.limits.priority.overtaken_max
        return super().acquire(covered, producer_batches, reads, demand)

    def note_heads(self) -> None:
        """After each step: a record that cannot be delivered now begins to count again."""
        counted = self.overtaken_counts
        self.overtaken_counts = {head: counted.get(head, 0) for head in self.heads()}

    def heads(self) -> list[int]:
        """The first record of each free key, ascending."""
        may_go = self.may_go(set(self.unfinished())) if self.has_order else []
        if self.alone is not None:
            return []
        found: dict[int, int] = {}
        for offset in may_go:
            key = self.key(offset)
            found.setdefault(~offset if key is None else key, offset)
        return sorted(found.values())

    def first_to_go(self, covered: set[int], records_max: int) -> list[int]:
        if not self.header_name:
            return super().first_to_go(covered, records_max)
        may_go = self.may_go(covered)
        by_urgency: list[int] = []
        for head in sorted(self.heads(), key=self._rank):
            key = self.key(head)
            by_urgency += [one for one in may_go if one == head or (key is not None and self.key(one) == key)]
        chosen = by_urgency[:records_max]
        if any(self.records[one].delivery_count >= self.near_limit for one in chosen):
            return [one for one in chosen if one in self.heads()]
        return chosen

    def take_in_order(
        self, covered: set[int], records_max: int, mode: AcquireMode, limits: ShareLimits
    ) -> list[int]:
        self.near_limit = max(2, -(-limits.delivery_count_max // 2))
        self.note_heads()
        if self.is_chosen:  # from all records, so that other records between them do not take their place
            chosen = super().take_in_order(set(self.unfinished()), records_max, mode, limits)
            covered = covered.intersection(chosen)
        taken = super().take_in_order(covered, records_max, mode, limits)
        left = [one for one in self.overtaken_counts if one not in taken]
        for offset in left:
            self.overtaken_counts[offset] += sum(one > offset for one in taken)
        return taken

    def _rank(self, head: int) -> Rank:
        """Overdue records, then keys by the highest priority of an unfinished record, then all others."""
        if self.overtaken_counts.get(head, 0) >= self.overtaken_max:
            return -10, head
        key = self.key(head)
        same_key = [
            one for one in self.unfinished() if one == head or (key is not None and self.key(one) == key)
        ]
        highest = max(self.priorities[one] for one in same_key)
        return -highest, next(one for one in same_key if self.priorities[one] == highest) if highest else head
