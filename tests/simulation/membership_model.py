"""Which member may work on which partition, as the broker has answered: in groups whose members divide
partitions (classic), and in groups whose coordinator divides them (KIP-848).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange
from tests.simulation.model import Violation


@dataclass(slots=True)
class GenerationModel:
    """A classic group: one assignment for each generation. A member's name is the id that stays the same when
    it joins again.

    A generation counts after SyncGroup has returned it to a member. Before that a crash may take it back.
    """

    name: str
    incarnation: int = 0
    """Grows when the group was deleted, or may have lost generations that were not promised to survive."""
    generation: int = 0
    _owners: dict[tuple[int, TopicIdPartition], str] = field(
        default_factory=dict[tuple[int, TopicIdPartition], str]
    )

    def joined(self, generation: int, generation_before: int) -> None:
        """JoinGroup returned a generation; `generation_before` is the model's generation when the request was
        sent.
        """
        if generation < generation_before:
            raise Violation(f"{self.name}: generation {generation} begins after {generation_before}")

    def assigned(
        self,
        member: str,
        generation: int,
        partitions: Collection[TopicIdPartition],
        generation_before: int,
    ) -> None:
        """SyncGroup returned a member's partitions in this generation."""
        if generation < generation_before:
            raise Violation(f"{self.name}: {member} syncs in {generation} after {generation_before}")
        self.generation = max(self.generation, generation)
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                raise Violation(f"{self.name}: {owner} and {member} both own {partition} in {generation}")

    def committed(self, member: str, generation: int, generation_before: int) -> None:
        """A member's commit was accepted."""
        if generation < generation_before:
            raise Violation(
                f"{self.name}: {member} of generation {generation} commits after {generation_before}"
            )

    def forget(self) -> None:
        """No earlier answer holds any longer."""
        self.incarnation += 1
        self.generation = 0
        self._owners.clear()


@dataclass(slots=True)
class Holding:
    """A partition that a member owns, or its share of one."""

    member: str
    hashes: HashRange
    since_ms: float
    until_ms: float
    """The member owns it at least until now, if the broker hears nothing from it."""


@dataclass(slots=True)
class ReconciliationModel:
    """A KIP-848 group: a partition, or a range of hashes of it, is given to a member after the previous owner
    has given it up, or is gone.
    """

    name: str
    incarnation: int = 0
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    """By member, from the broker's answers; a member that joins again starts without an epoch."""
    group_epoch: int = 0
    _holdings: dict[TopicIdPartition, list[Holding]] = field(
        default_factory=dict[TopicIdPartition, list[Holding]]
    )

    def told_epoch(self, member: str, epoch: int) -> None:
        before = self.epochs.get(member, 0)
        if epoch < before:
            raise Violation(f"{self.name}: {member} goes from epoch {before} to {epoch}")
        self.epochs[member] = epoch

    def told_group_epoch(self, epoch: int, epoch_before: int) -> None:
        """The group was described; `epoch_before` is the model's epoch when the request was sent."""
        if epoch < epoch_before:
            raise Violation(f"{self.name}: the group goes from epoch {epoch_before} to {epoch}")
        self.group_epoch = max(self.group_epoch, epoch)

    def given(
        self,
        member: str,
        partitions: Mapping[TopicIdPartition, HashRange],
        *,
        sent_ms: float,
        now_ms: float,
        until_ms: float,
    ) -> None:
        """The answer to a heartbeat sent at `sent_ms` gave these hashes of partitions to a member."""
        for partition, hashes in partitions.items():
            since_ms = now_ms
            for held in self._overlapping(member, partition, hashes):
                if held.since_ms < sent_ms and now_ms < held.until_ms:
                    raise Violation(f"{self.name}: {partition} goes to {member} while {held.member} holds it")
                self._holdings[partition].remove(held)
            holdings = self._holdings.setdefault(partition, [])
            for held in [one for one in holdings if one.member == member]:
                since_ms = held.since_ms
                holdings.remove(held)
            holdings.append(Holding(member, hashes, since_ms, until_ms))

    def committed(
        self, member: str, partition: TopicIdPartition, hashes: HashRange, *, sent_ms: float, now_ms: float
    ) -> None:
        """A commit of ranges that a member sent at `sent_ms`, with these hashes, was accepted."""
        for held in self._overlapping(member, partition, hashes):
            if held.since_ms < sent_ms and now_ms < held.until_ms:
                raise Violation(f"{self.name}: {member} commits for {partition} while {held.member} holds it")

    def surely_holds(
        self, member: str, partition: TopicIdPartition, *, sent_ms: float, now_ms: float
    ) -> bool:
        """Whether the member has hashes of the partition during all of this time."""
        return any(
            held.member == member and held.since_ms < sent_ms and now_ms < held.until_ms
            for held in self._holdings.get(partition, ())
        )

    def stays(self, member: str, until_ms: float) -> None:
        """The coordinator has heard from the member."""
        for holdings in self._holdings.values():
            for held in holdings:
                if held.member == member:
                    held.until_ms = max(held.until_ms, until_ms)

    def give_up(self, member: str, kept: Collection[TopicIdPartition] = ()) -> None:
        """The member is about to report that it has only these partitions, or that it leaves."""
        for partition, holdings in self._holdings.items():
            if partition not in kept:
                holdings[:] = [held for held in holdings if held.member != member]

    def _overlapping(self, member: str, partition: TopicIdPartition, hashes: HashRange) -> list[Holding]:
        """The holdings of other members."""
        holdings = self._holdings.get(partition, ())
        return [held for held in holdings if held.member != member and held.hashes.overlaps(hashes)]

    def left(self, member: str) -> None:
        """The member considers itself outside the group: the next answer begins a new membership."""
        self.give_up(member)
        self.epochs.pop(member, None)

    def forget(self) -> None:
        """No earlier answer holds any longer."""
        self.incarnation += 1
        self.group_epoch = 0
        self.epochs.clear()
        self._holdings.clear()
