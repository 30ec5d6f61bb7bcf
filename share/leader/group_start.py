"""Where a group starts to read a partition: the decision, and the time until it is recorded (KIP-932,
`share.auto.offset.reset`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.runtime.completion import Completion
from barnabas.share.leader.start_offset import StartSearch
from barnabas.share.partition.decision import Decision, Outcome
from barnabas.share.partition.share_partition import SharePartition
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog


class Leader(Protocol):
    """The leader of the share-partition."""

    @property
    def core(self) -> SharePartition: ...

    @property
    def image(self) -> ShareStateImage: ...

    @property
    def log(self) -> PartitionLog: ...

    @property
    def closed(self) -> bool: ...

    def record_if_any(self, decision: Decision) -> Completion[None]: ...

    def follow_log_start(self) -> None: ...


class GroupStart:
    """The start of one group on one partition. Used on the loop's thread only."""

    __slots__ = ("_announce", "_leader", "_recorded", "chose_zero", "search")

    def __init__(self, leader: Leader, announce: Callable[[Outcome], None]) -> None:
        """`announce` wakes the fetches that wait for the start."""
        self._leader = leader
        self._announce = announce
        self._recorded: Completion[None] | None = None
        self.search: StartSearch | None = None
        """The search for the start offset, if one is needed."""
        self.chose_zero = False
        """Whether the group is to begin at offset 0, which the log did not hold yet when that was decided."""

    @property
    def is_being_recorded(self) -> bool:
        """Whether the start offset has been decided and is being recorded."""
        return self._recorded is not None and not self._recorded.done

    def begin_at(self, start_offset: int) -> None:
        """Record the start offset of the group; until that is done no record can be acquired. Raises
        StorageError.
        """
        leader = self._leader
        leader.log.control_runs.know_from(start_offset)
        self._recorded = leader.record_if_any(leader.core.decide_start_offset(start_offset))

    def begin_at_zero(self, recorded: Completion[None]) -> None:
        """Begin at offset 0 of an empty log, once the group's own records say so (`ZeroStarts`): a record of
        that in this log would take the offset of the first data record. The choice stays if that fails.
        """
        self.chose_zero = True
        self._recorded = recorded
        recorded.when_done(self._recorded_at_zero)

    def _recorded_at_zero(self, recorded: Completion[None]) -> None:
        leader = self._leader
        if recorded.error is None and not leader.closed:
            leader.log.control_runs.know_from(0)
            leader.image.begin_at_zero()
            self._announce(leader.core.complete(leader.core.decide_start_offset(0)))
            leader.follow_log_start()
