"""The objects around a share-partition leader that it uses: its store, the writer of dead letters, and those
that all leaders of one broker share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.protocol.delivery_state import LetterPlace, StateRange
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.clock import Clock
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.purgatory import Purgatory
from barnabas.share.leader.delivery_limit_reports import DeliveryLimitReports
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_counts import ShareCounts
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ShareLimits

if TYPE_CHECKING:
    from barnabas.share.leader.share_partition_leader import SharePartitionLeader


class DecisionStore(Protocol):
    """Records decisions: in the partition's log or in the state topic, see `state_store`."""

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
        """Have `decision` written; on success the leader's image includes it when the completion ends."""
        ...

    def last_changes(
        self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
    ) -> list[RecordedChange]:
        """The last recorded changes of the wanted offsets, as far as they are known: ascending, disjoint,
        inside of the wanted ranges, which are ascending and disjoint, too, with both ends inclusive.
        """
        ...


class DeadLetterWriter(Protocol):
    """Writes the dead letters of Archiving records (KIP-1191), see `share/dead_letters`."""

    def place(self, key: SharePartitionKey) -> LetterPlace:
        """Where a dead letter that is decided now goes; an unknown place if there is no usable topic yet."""
        ...

    def write(
        self, leader: SharePartitionLeader, letters: Sequence[StateRange], *, may_be_written: bool
    ) -> None:
        """Write these letters, later; `may_be_written` if an earlier leader may have written them."""
        ...

    def is_writing(self, leader: SharePartitionLeader) -> bool:
        """Whether letters of the leader are not written yet."""
        ...


class Surroundings(NamedTuple):
    """The objects that the leaders of one broker share."""

    clock: Clock
    deadlines: Deadlines
    purgatory: Purgatory
    counts: ShareCounts
    delivery_limits: DeliveryLimitReports
    limits: Callable[[str], ShareLimits]
    """The present limits of a group."""
    random: Callable[[], float]
    """Numbers from 0 (inclusive) to 1 (exclusive), for the jitter of delays."""
    reopen: Callable[[TopicIdPartition], None]
    """Starts to reopen a log that went offline."""
    dead_letters: DeadLetterWriter
