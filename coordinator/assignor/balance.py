"""Spreads partitions over members and keeps the pairs that exist: the core of the simple assignor.

It uses only numbers: of members, and of *slots*, the partitions. The homogeneous assignment is one balance
over all topics' partitions, the heterogeneous one is a balance per topic. Large groups have a million pairs
of member and slot. Most pairs stay; they are counted and skipped, not copied.

Every tie is broken as in Apache Kafka 4.3.1, by hash map order. That includes one property of its filling
step: a partition that needs more members than there are unfilled ones may count the same member twice, and so
stay below its sharing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import ceil

from barnabas.coordinator.assignor.java_hash_map import (
    default_capacity,
    int_walk_order,
    presized_capacity,
    walk_order,
)


def sharing_of(member_count: int, partition_count: int) -> int:
    """How many members each partition should have: members per partition rounded up; 0 without partitions."""
    return -(-member_count // partition_count) if partition_count else 0


@lru_cache(maxsize=128)
def quotas_of(member_count: int, partition_count: int) -> tuple[int, ...]:
    """The number of partitions that each member should have, by its number among the subscribed members.

    Floating point on purpose: the test vectors contain the rounding of Kafka's doubles.
    """
    if not member_count:
        return ()
    precise = sharing_of(member_count, partition_count) * partition_count / member_count
    edges = [ceil(precise * member) for member in range(member_count + 1)]
    return tuple(edges[member + 1] - edges[member] for member in range(member_count))


class Balance:
    """One run of the algorithm. `changes` (member -> all its slots now) is the result of `run`."""

    def __init__(
        self,
        previous: Mapping[int, Sequence[int]],
        targets: Sequence[int],
        sharing: int,
        quotas: Mapping[int, int],
        hash_of: Callable[[int], int] = int,
    ) -> None:
        """Prepare to balance.

        `previous` is the slots that each member held before, in the order of its old set; `targets` are the
        assignable slots in the order of their insertion; `quotas` names every subscribed member. Both
        mappings are in ascending order of the members. `hash_of` returns a slot's Java hash.
        """
        insertions = Counter(chain.from_iterable(previous.values()))
        self.changes: dict[int, list[int]] = {}
        self.slots = list(dict.fromkeys(chain(insertions, targets)))
        """All slots, in the order of their insertion."""
        self._previous = previous
        self._target_count = len(targets)
        self._sharing = sharing
        self._quotas = quotas
        self._hash_of = hash_of
        self._insertions = insertions
        self._holder_counts = {slot: insertions[slot] for slot in self.slots}
        self._rooms: dict[int, int] = {}
        """The number of slots that each member below its quota still needs."""
        self._skips = 0
        """How many turns were skipped because the member held the slot."""

    def run(self) -> None:
        """Revoke slots beyond the quotas and sharings, then fill the gaps."""
        self._trim_members()
        self._trim_slots()
        # No member exceeds its quota any more, so equal sums mean that no member is below it.
        if sum(self._holder_counts.values()) != sum(self._quotas.values()):
            self._fill()

    def _trim_members(self) -> None:
        """Revoke from each member the slots beyond its quota, first in its set's order."""
        quota_of = self._quotas.get
        above = [member for member, slots in self._previous.items() if len(slots) > quota_of(member, 0)]
        for member in above:
            slots = self._previous[member]
            order = walk_order(slots, self._hash_of, default_capacity(len(slots)))
            excess = len(slots) - quota_of(member, 0)
            self.changes[member] = order[excess:]
            for slot in order[:excess]:
                self._holder_counts[slot] -= 1

    def _trim_slots(self) -> None:
        """Revoke from each slot the members beyond the sharing, first in its set's order."""
        crowded = [slot for slot, count in self._holder_counts.items() if count > self._sharing]
        if not crowded:
            return
        holders = _by_slot(self._held())
        for slot in crowded:
            order = int_walk_order(holders[slot], default_capacity(self._insertions[slot]))
            for member in order[: len(order) - self._sharing]:
                self._changeable(member).remove(slot)
            self._holder_counts[slot] = self._sharing

    def _held(self) -> dict[int, Sequence[int]]:
        return {**self._previous, **self.changes}

    def _changeable(self, member: int) -> list[int]:
        slots = self.changes.get(member)
        if slots is None:
            slots = self.changes[member] = list(self._previous.get(member, ()))
        return slots

    def _fill(self) -> None:
        """Give each slot, in map order, to members below their quota, in turns."""
        held = self._held()
        self._rooms = {
            member: room
            for member, quota in self._quotas.items()
            if (room := quota - len(held.get(member, ()))) > 0
        }
        holders = _by_slot({member: held[member] for member in self._rooms if member in held})
        turns = self._turns()
        for slot in self._missing_slots():
            if not self._give(slot, frozenset(holders[slot]), turns):
                return

    def _turns(self) -> Iterator[int]:
        """The members below their quota, round after round, until none is left or none could take a slot."""
        rooms = self._rooms
        unfilled = list(rooms)
        while unfilled:
            skips = self._skips
            yield from unfilled
            if self._skips == skips + len(unfilled):
                return
            unfilled = [member for member in unfilled if rooms[member]]

    def _give(self, slot: int, holders: Container[int], turns: Iterator[int]) -> bool:
        """Give the slot to as many members as it lacks; returns whether there were enough."""
        missing = self._sharing - self._holder_counts[slot]
        for member in turns:
            if member in holders:
                self._skips += 1
                continue
            slots = self._changeable(member)
            # A member that got the slot twice, in two rounds, counts as the last one.
            if not slots or slots[-1] != slot:
                slots.append(slot)
                self._rooms[member] -= 1
            missing -= 1
            if not missing:
                return True
        return False

    def _missing_slots(self) -> list[int]:
        """The slots with fewer members than the sharing, in map order."""
        missing = [slot for slot in self.slots if self._holder_counts[slot] < self._sharing]
        capacity = presized_capacity(self._target_count, len(self.slots))
        # Compute-if-absent puts a new key at the front of its bucket: of two in a bucket the younger one is
        # first.
        return walk_order(reversed(missing), self._hash_of, capacity)


def _by_slot(held: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Slot -> the members that hold it, in the order of `held`."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for member, slots in held.items():
        for slot in slots:
            holders[slot].append(member)
    return holders
