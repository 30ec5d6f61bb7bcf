"""Loading one share-partition's state from the share coordinator (KIP-932, "Persister"), step by step.

Usually this is one read. A missing state is initialised as undecided: its deletion left it to the reset
policy. After a loss of power, or of written data, the partition's log may have lost more than the group's
state. Then the state names lost records, whose offsets new records get or already have; their states are
removed. Recovery knows how much of the log was left. Leader epochs do not, because the same leader may reopen
a log.

A start offset that an administrator has set beyond the log's end looks the same after a restart of the
broker, and falls back to that end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.delivery_state import RecordState, is_final
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.storage.format.share_partition_state import (
    UNDECIDED_OFFSET,
    SharePartitionState,
    StateWrite,
)
from barnabas.storage.format.state_batches import StateBatch
from barnabas.storage.log.partition_log import PartitionLog


class TopicStateLoad:
    """One load. `state_epoch` is the epoch of a state that begins now."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        key: SharePartitionKey,
        log: PartitionLog,
        state_epoch: int,
        wall_ms: Callable[[], int],
        *,
        may_speak_of_lost_records: bool,
    ) -> None:
        """A state that was loaded or begun since the log was opened speaks of no record that was lost."""
        self._coordinator = coordinator
        self._key = key
        self._log = log
        self._state_epoch = state_epoch
        self._wall_ms = wall_ms
        self._may_speak_of_lost_records = may_speak_of_lost_records
        self._overtaken = False

    def run(self) -> Completion[SharePartitionState]:
        """The state, which names no record that was lost; or the coordinator's error. Called once."""
        is_known = self._coordinator.holds(self._key)
        begun = Completion.of(None) if is_known else self._begin_undecided()
        return begun.then_run(self._read)

    def overtake(self) -> None:
        """Write nothing from now on: it would undo a reset, or concern a log that was reopened."""
        self._overtaken = True

    def _begin_undecided(self) -> Completion[None]:
        return self._coordinator.initialise(
            self._key, state_epoch=self._state_epoch, start_offset=UNDECIDED_OFFSET, now_ms=self._wall_ms()
        )

    def _read(self, _: None) -> Completion[SharePartitionState]:
        self._check_not_overtaken()
        read = self._coordinator.read(self._key, leader_epoch=self._log.leader_epoch, now_ms=self._wall_ms())
        return read.then_run(self._without_lost_records)

    def _without_lost_records(self, state: SharePartitionState) -> Completion[SharePartitionState]:
        """The state, written and read again if it speaks of records that were lost."""
        self._check_not_overtaken()
        if not (self._may_speak_of_lost_records and _end_offset(state) > self._log.opened_end_offset):
            return Completion.of(state)
        kept = _what_is_left(state, self._log)
        written = self._coordinator.write_whole(self._key, kept, now_ms=self._wall_ms())
        return written.then_run(self._read)

    def _check_not_overtaken(self) -> None:
        if self._overtaken:
            raise ApiError(ErrorCode.not_leader_or_follower, "The share-partition begins anew.")


def _end_offset(state: SharePartitionState) -> int:
    """Behind the last record that the state speaks of."""
    return max([state.start_offset, *(batch.last_offset + 1 for batch in state.state_batches)])


def _what_is_left(state: SharePartitionState, log: PartitionLog) -> StateWrite:
    """The states of records that were not lost."""
    end_offset = log.opened_end_offset
    batches = [
        batch._replace(last_offset=min(batch.last_offset, end_offset - 1))
        for batch in state.state_batches
        if batch.first_offset < end_offset
    ]
    start_offset = min(state.start_offset, end_offset)
    return StateWrite(
        state.state_epoch, log.leader_epoch, start_offset, _complete_count(batches, log), batches
    )


def _complete_count(batches: Sequence[StateBatch], log: PartitionLog) -> int:
    """The number of final records."""
    return sum(
        log.control_runs.data_count(batch.first_offset, batch.last_offset)
        for batch in batches
        if is_final(RecordState(batch.delivery_state))
    )
