"""Spreads weighted slots over members, and keeps the pairs that exist: the core of the assignor by load.

It uses only numbers: of members, and of *slots*, the partitions. A slot that several members read is divided
among them: each bears one *part* of its weight. The *fair* load of a member is all weight divided by the
number of members.

- A slot has one reader for each fair load that it has begun, at least one, at most its audience. A slot with
  readers keeps their number as long as a weight within `TOLERANCE_PERCENT` of its own asks for it.
- Every member reads something.
- Then slots move from members above the fair load, and to members below it, by more than `TOLERANCE_PERCENT`.
  A move must pay: the loads of the two members differ by at least one and a half times the part that moves.

So the run ends (each move makes the sum of the squared loads smaller), and a second run on its result changes
nothing. Ties go to the lower number. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

TOLERANCE_PERCENT: Final = 25
_ALL: Final = 100
_MORE: Final = _ALL + TOLERANCE_PERCENT
_LESS: Final = _ALL - TOLERANCE_PERCENT


class _Move(NamedTuple):
    slot: int
    giver: int
    taker: int


class LoadBalance:
    """One run of the algorithm: `held` (by member: the slots it reads) is the result of `run`."""

    def __init__(
        self,
        weights: Sequence[int],
        audiences: Sequence[Sequence[int]],
        audience_of: Sequence[int],
        previous: Sequence[Iterable[int]],
    ) -> None:
        """Prepare to balance.

        `audiences` are sets of members that may read the same slots, none of them empty; each member is in
        one. `weights` and `audience_of` are by slot: its weight, at least as great as the number of members,
        and the index of its audience. `previous` is by member: the slots that it read and may still read.
        """
        self.held = [set(slots) for slots in previous]
        self._weights = weights
        self._audiences = audiences
        self._audience_of = audience_of
        self._audience_sets = [frozenset(audience) for audience in audiences]
        self._peers: dict[int, Sequence[int]] = {}
        """By member, once they are asked for: all members that may read one of its slots, ascending."""
        self._reaches = [0] * len(self.held)
        """By member: the greatest load of a taker for which a move from this member can pay; -1 if none
        can.
        """
        self._total = sum(weights)
        self._holders: list[set[int]] = [set() for _ in weights]
        for member, slots in enumerate(self.held):
            for slot in slots:
                self._holders[slot].add(member)
        self._divisors = [max(len(holders), 1) for holders in self._holders]
        """By slot: the number of members that bear its weight."""
        self._loads = [sum(map(self._part, slots)) for slots in self.held]
        self._is_changed = True

    def run(self) -> None:
        """Balance until nothing changes."""
        while self._is_changed:
            self._is_changed = False
            self._trim()
            self._fill()
            self._employ()
            self._even_out()

    def _part(self, slot: int) -> int:
        return self._weights[slot] // self._divisors[slot]

    def _readers_for(self, slot: int, percent: int = _ALL) -> int:
        """The readers that a slot with this part of its weight should have."""
        share = self._weights[slot] * percent * len(self.held)
        return min(max(-(-share // (self._total * _ALL)), 1), len(self._audiences[self._audience_of[slot]]))

    # The number of readers

    def _trim(self) -> None:
        """Take slots with too many readers from the most loaded of them that read something else, too."""
        for slot, holders in enumerate(self._holders):
            if len(holders) > self._readers_for(slot, _MORE):
                surplus = len(holders) - self._readers_for(slot)
                spare = [member for member in sorted(holders) if len(self.held[member]) > 1]
                for member in list(self._by_load(spare, descending=True))[:surplus]:
                    self._take(slot, member)
                self._divide(slot, len(holders))

    def _fill(self) -> None:
        """Give the slots with too few readers, the heaviest parts first, to the least loaded members."""
        missing: list[tuple[int, int, int]] = []
        for slot, holders in enumerate(self._holders):
            if not holders or len(holders) < self._readers_for(slot, _ALL * _ALL // _MORE):
                goal = self._readers_for(slot)
                self._divide(slot, goal)
                missing.append((-self._part(slot), slot, goal - len(holders)))
        heaps: dict[int, list[tuple[int, int]]] = {}
        for _, slot, count in sorted(missing):
            audience = self._audience_of[slot]
            if audience not in heaps:
                heaps[audience] = [(self._loads[member], member) for member in self._audiences[audience]]
                heapify(heaps[audience])
            self._give_to_least_loaded(slot, count, heaps[audience])

    def _give_to_least_loaded(self, slot: int, count: int, heap: list[tuple[int, int]]) -> None:
        """`heap` has each member of the audience with its load or, since loads only grow here, a lower
        one.
        """
        seen: list[int] = []
        while count:
            load, member = heappop(heap)
            if load != self._loads[member]:
                heappush(heap, (self._loads[member], member))
                continue
            seen.append(member)
            if member not in self._holders[slot]:
                self._give(slot, member)
                count -= 1
        for member in seen:
            heappush(heap, (self._loads[member], member))

    def _divide(self, slot: int, divisor: int) -> None:
        """The slot's weight is borne by this number of members."""
        before = self._part(slot)
        self._divisors[slot] = divisor
        for member in self._holders[slot]:
            self._loads[member] += self._part(slot) - before

    # Members that read nothing

    def _employ(self) -> None:
        for taker in [member for member, slots in enumerate(self.held) if not slots]:
            move = next(self._gifts_to(taker), None)
            if move is not None:
                self._move(move)
            else:
                slot = max(self._slots_for(taker), key=lambda slot: (self._part(slot), -slot))
                self._divide(slot, len(self._holders[slot]) + 1)
                self._give(slot, taker)

    def _gifts_to(self, taker: int) -> Iterator[_Move]:
        """Moves to a member that reads nothing, from those that read several slots, most loaded first."""
        givers = [member for member, slots in enumerate(self.held) if len(slots) > 1]
        for giver in self._by_load(givers, descending=True):
            slots = self._movable(giver, taker)
            if slots:
                yield _Move(self._most_even(slots, giver, taker), giver, taker)

    def _slots_for(self, member: int) -> Iterator[int]:
        return (
            slot for slot, audience in enumerate(self._audience_of) if member in self._audience_sets[audience]
        )

    # Even loads

    def _even_out(self) -> None:
        """Move slots as long as that pays for a member outside of the tolerance."""
        member_count = len(self.held)
        ceiling = -(-self._total * _MORE // (member_count * _ALL))
        floor = self._total * _LESS // (member_count * _ALL)
        self._reaches[:] = map(self._reach, range(member_count))
        while self._relieve(ceiling) or self._supply(floor):
            pass

    def _reach(self, member: int) -> int:
        parts = [self._part(slot) for slot in self.held[member]]
        return self._loads[member] - (3 * min(parts) + 1) // 2 if parts else -1

    def _relieve(self, ceiling: int) -> bool:
        """Moves from members above the ceiling, the most loaded first; returns whether there were any."""
        givers = [(-load, giver) for giver, load in enumerate(self._loads) if load > ceiling]
        heapify(givers)
        has_moved = False
        while givers:
            _, giver = heappop(givers)
            move = self._relief(giver) if self._loads[giver] > ceiling else None
            if move is not None:
                self._move(move)
                has_moved = True
                for member in move.giver, move.taker:
                    if self._loads[member] > ceiling:
                        heappush(givers, (-self._loads[member], member))
        return has_moved

    def _supply(self, floor: int) -> bool:
        """Moves to members below the floor, the least loaded first; returns whether there were any."""
        takers = [(load, taker) for taker, load in enumerate(self._loads) if load < floor]
        heapify(takers)
        has_moved = False
        while takers:
            _, taker = heappop(takers)
            move = self._gain(taker) if self._loads[taker] < floor else None
            if move is not None:
                self._move(move)
                has_moved = True
                for member in move.giver, move.taker:
                    if self._loads[member] < floor:
                        heappush(takers, (self._loads[member], member))
        return has_moved

    def _relief(self, giver: int) -> _Move | None:
        """A move that pays from this member to the least loaded one that can take."""
        reach, loads = self._reaches[giver], self._loads
        takers = [taker for taker in self._peers_of(giver) if loads[taker] <= reach]
        for taker in self._by_load(takers):
            move = self._paying(giver, taker)
            if move is not None:
                return move
        return None

    def _gain(self, taker: int) -> _Move | None:
        """A move that pays to this member from the most loaded one that can give."""
        reaches, loads = self._reaches, self._loads
        givers = [giver for giver in self._peers_of(taker) if reaches[giver] >= loads[taker]]
        for giver in self._by_load(givers, descending=True):
            move = self._paying(giver, taker)
            if move is not None:
                return move
        return None

    def _peers_of(self, member: int) -> Sequence[int]:
        peers = self._peers.get(member)
        if peers is None:
            together = set[int]()
            for audience in self._audience_sets:
                if member in audience:
                    together |= audience
                    if len(together) == len(self.held):
                        break
            peers = self._peers[member] = sorted(together)
        return peers

    def _by_load(self, members: Sequence[int], *, descending: bool = False) -> Iterator[int]:
        """The members, which are ascending, in the order of their loads. Usually the first one is enough."""
        load_of = self._loads.__getitem__
        if members:
            yield (max if descending else min)(members, key=load_of)
            yield from sorted(members, key=load_of, reverse=descending)[1:]

    def _paying(self, giver: int, taker: int) -> _Move | None:
        """The move between these members that pays and leaves them most even."""
        difference = self._loads[giver] - self._loads[taker]
        slots = [slot for slot in self._movable(giver, taker) if 2 * difference >= 3 * self._part(slot)]
        return _Move(self._most_even(slots, giver, taker), giver, taker) if slots else None

    def _movable(self, giver: int, taker: int) -> list[int]:
        """The slots of the giver that the taker may read and does not."""
        return [
            slot
            for slot in self.held[giver] - self.held[taker]
            if taker in self._audience_sets[self._audience_of[slot]]
        ]

    def _most_even(self, slots: Iterable[int], giver: int, taker: int) -> int:
        """The slot whose move leaves the least to the greater of the two loads."""
        given, taken = self._loads[giver], self._loads[taker]

        def greater_load(slot: int) -> tuple[int, int]:
            part = self._part(slot)
            return max(given - part, taken + part), slot

        return min(slots, key=greater_load)

    # Changes

    def _move(self, move: _Move) -> None:
        self._take(move.slot, move.giver)
        self._give(move.slot, move.taker)
        for member in move.giver, move.taker:
            self._reaches[member] = self._reach(member)

    def _give(self, slot: int, member: int) -> None:
        self.held[member].add(slot)
        self._holders[slot].add(member)
        self._loads[member] += self._part(slot)
        self._is_changed = True

    def _take(self, slot: int, member: int) -> None:
        self.held[member].remove(slot)
        self._holders[slot].remove(member)
        self._loads[member] -= self._part(slot)
        self._is_changed = True
