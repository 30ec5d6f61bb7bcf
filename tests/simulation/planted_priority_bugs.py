"""Bugs in the priorities of records that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.priorities import Priorities
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_take = KeyOrder.take


@planted(KeyOrder, "take")
def priority_of_the_first_delivery_only(self: KeyOrder, first_offset: int, last_offset: int) -> None:
    """A record that comes again has lost its priority."""
    _take(self, first_offset, last_offset)
    if self.priorities is not None:
        self.priorities.finish(first_offset, last_offset)


@planted(Priorities, "most_urgent_first")
def least_urgent_first(self: Priorities) -> Iterator[int]:
    """The priorities are read the wrong way round."""
    return (offset for offsets in self._of_priority for offset in offsets)


@planted(Priorities, "overdue")
def starvation(_self: Priorities, _available: Iterable[int]) -> Iterator[int]:
    """A record may be overtaken for ever."""
    return iter(())


@planted(KeyOrder, "_heads_by_urgency")
def key_reordered_by_priority(self: KeyOrder, priorities: Priorities) -> Iterator[int]:
    """An urgent record comes before earlier records of its key."""
    urgent = [one for one in priorities.most_urgent_first() if one not in self._held]
    yield from urgent
    yield from (one for one in self._heads if one not in urgent)
