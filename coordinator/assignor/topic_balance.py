"""Assigns one topic's partitions to the members that read it: a heterogeneous group is balanced topic by
topic.

Members are numbers here too, and a partition's index is its slot.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from barnabas.coordinator.assignor.balance import Balance, quotas_of, sharing_of

Changes: TypeAlias = dict[int, tuple[int, ...]]
"""Each member whose part of a topic changes -> all its partitions now, ascending, perhaps none."""


class TopicBalances:
    """The balances of one group's topics.

    Only the choice between members that held a partition depends on who the member is. So topics that no
    member held get equal results if they have equal sizes, and only the first one of a size is computed.
    """

    def __init__(self) -> None:
        self._fresh: dict[tuple[int, tuple[int, ...]], Changes] = {}

    def changes(
        self, subscribers: Sequence[int], previous: Mapping[int, tuple[int, ...]], targets: tuple[int, ...]
    ) -> Changes:
        """Balance a topic.

        `subscribers` are the members that read it, `previous` the partitions that each held, `targets` the
        assignable ones; members and partitions are ascending.
        """
        if previous:
            return _balanced(subscribers, previous, targets)
        size = len(subscribers), targets
        if size not in self._fresh:
            self._fresh[size] = _balanced(range(len(subscribers)), {}, targets)
        return {subscribers[place]: part for place, part in self._fresh[size].items()}


def _balanced(
    subscribers: Sequence[int], previous: Mapping[int, tuple[int, ...]], targets: tuple[int, ...]
) -> Changes:
    quotas = dict(zip(subscribers, quotas_of(len(subscribers), len(targets)), strict=True))
    balance = Balance(previous, targets, sharing_of(len(subscribers), len(targets)), quotas)
    balance.run()
    # Most members of a widely shared topic hold one partition. They share one tuple, which saves work of the
    # garbage collector.
    singles = {slot: (slot,) for slot in balance.slots}
    return {
        member: singles[slots[0]] if len(slots) == 1 else tuple(sorted(slots))
        for member, slots in balance.changes.items()
    }
