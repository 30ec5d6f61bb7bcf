"""Bugs in the priorities of records that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from barnabas.share.partition.key_order import KeyOrder
from barnabas.share.partition.priorities import Priorities

# pyright: reportPrivateUsage=false

_take = KeyOrder.take


@contextmanager
def priority_of_the_first_delivery_only() -> Generator[None]:
    """A record that comes again has lost its priority."""

    def take(self: KeyOrder, first_offset: int, last_offset: int) -> None:
        _take(self, first_offset, last_offset)
        if self.priorities is not None:
            self.priorities.finish(first_offset, last_offset)

    with patch.object(KeyOrder, "take", take):
        yield


@contextmanager
def least_urgent_first() -> Generator[None]:
    """The priorities are read the wrong way round."""

    def most_urgent_first(self: Priorities) -> Iterator[int]:
        return (offset for offsets in self._of_priority for offset in offsets)

    with patch.object(Priorities, "most_urgent_first", most_urgent_first):
        yield


@contextmanager
def starvation() -> Generator[None]:
    """A record may be overtaken for ever."""

    def overdue(_self: Priorities, _available: Iterable[int]) -> Iterator[int]:
        return iter(())

    with patch.object(Priorities, "overdue", overdue):
        yield


@contextmanager
def key_reordered_by_priority() -> Generator[None]:
    """An urgent record comes before earlier records of its key."""

    def heads_by_urgency(self: KeyOrder, priorities: Priorities) -> Iterator[int]:
        urgent = [one for one in priorities.most_urgent_first() if one not in self._held]
        yield from urgent
        yield from (one for one in self._heads if one not in urgent)

    with patch.object(KeyOrder, "_heads_by_urgency", heads_by_urgency):
        yield
