"""One membership in a sharing group: the shares that a member has, and its progress in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import HashRange

JOIN_EPOCH = 0


@dataclass(slots=True)
class Position:
    """A member's progress in one share."""

    next_offset: int
    done: set[int]
    """Offsets at or behind `next_offset` that are committed."""


class Committer(NamedTuple):
    """A member at the time when it had the shares whose offsets it commits. Without that epoch a commit for
    a share that it has lost would count for the share that it has got in its place.
    """

    member_id: str
    epoch: int
    individual: bool


class MemberIds:
    """The ids with which one process joins. A client that was fenced may join again with its last one.

    A new group of the same name begins its epochs again. There a late commit of a former membership would
    count for the new membership, as in Apache Kafka, if both had the same id. So the process takes a new id.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._last = ""
        self._incarnation = 0

    def next(self, incarnation: int) -> str:
        """The id for the next membership; `incarnation` changes when the group does."""
        if not self._last or incarnation != self._incarnation or self._random.random() < 0.5:
            self._last = UUID(int=self._random.getrandbits(128)).hex
            self._incarnation = incarnation
        return self._last


@dataclass(slots=True, eq=False)
class Member:
    """A member until it leaves, crashes or is fenced. Its work may go on afterwards, as that of a zombie."""

    member_id: str
    individual: bool
    epoch: int = JOIN_EPOCH
    held: dict[TopicIdPartition, HashRange] = field(default_factory=dict[TopicIdPartition, HashRange])
    """The shares that it has not given up."""
    revoked: dict[TopicIdPartition, float] = field(default_factory=dict[TopicIdPartition, float])
    """Those that it is about to give up, with the time from which on it does."""
    busy: set[TopicIdPartition] = field(default_factory=set[TopicIdPartition])
    """Those in which it is processing records."""
    positions: dict[TopicIdPartition, Position] = field(default_factory=dict[TopicIdPartition, Position])

    @property
    def committer(self) -> Committer:
        return Committer(self.member_id, self.epoch, self.individual)

    def usable(self) -> list[TopicIdPartition]:
        """The partitions in which it may begin to process records."""
        return sorted(one for one in self.held if one not in self.revoked)

    def releasable(self, now_ms: float, *, hastily: bool) -> set[TopicIdPartition]:
        """The revoked partitions to give up now; `hastily` also those in which a transaction is open."""
        return {
            one
            for one, since_ms in self.revoked.items()
            if now_ms >= since_ms and (hastily or one not in self.busy)
        }

    def release(self, partition: TopicIdPartition) -> None:
        self.held.pop(partition, None)
        self.revoked.pop(partition, None)
        self.positions.pop(partition, None)
