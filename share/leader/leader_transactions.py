"""The transactions of one share-partition: acknowledgements that wait for them, and their ends.

The coordinator ends a transaction here, again and again until that is recorded. An end waits for the
acknowledgements that are being recorded, because one of them may belong to the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from barnabas.protocol.decode.acknowledgements import AckBatch
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.clock import Clock, ahead_ms
from barnabas.runtime.completion import AllDone, Completion
from barnabas.share.partition.acknowledgement import TransactionEnd, check_types
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.limits import ShareLimits
from barnabas.share.partition.share_partition import SharePartition


class Leader(Protocol):
    """The leader of the share-partition."""

    @property
    def core(self) -> SharePartition: ...

    def limits(self) -> ShareLimits: ...

    def record_if_any(self, decision: Decision) -> Completion[None]: ...


class LeaderTransactions:
    """Used on the loop's thread only."""

    def __init__(self, leader: Leader, clock: Clock) -> None:
        self._leader = leader
        self._clock = clock
        self._under_way: set[Completion[None]] = set()
        """Acknowledgements and ends that are being recorded."""

    def acknowledge(
        self, member_id: str, batches: Sequence[AckBatch], producer: ProducerIdentity
    ) -> Completion[None]:
        """Record that validated batches wait for the producer's transaction. Raises ApiError, changing
        nothing.

        The caller has just verified that the share-partition takes part in the transaction.
        """
        check_types(batches)
        return self._note(
            self._leader.record_if_any(self._leader.core.decide_pending(member_id, batches, producer))
        )

    def end(self, end: TransactionEnd) -> Completion[None]:
        """Record the outcome of all that waits for this transaction; nothing may be left to record."""
        return AllDone(self._under_way).then_run(lambda _: self._end(end))

    def _end(self, end: TransactionEnd) -> Completion[None]:
        leader = self._leader
        leader.core.follow_wall_clock(ahead_ms(self._clock))  # a release may have to wait
        decision = leader.core.decide_end(end, leader.limits(), self._clock.monotonic_ms())
        return self._note(leader.record_if_any(decision))

    def _note(self, recorded: Completion[None]) -> Completion[None]:
        if not recorded.done:
            self._under_way.add(recorded)
            recorded.when_done(self._under_way.discard)
        return recorded
