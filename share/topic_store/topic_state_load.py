"""Loading one share-partition's state from the share coordinator (KIP-932, "Persister"), step by step.

Usually one read. A state that is missing is begun, undecided: its deletion left it to the reset policy. Where
a loss of power, or a disk that forgot, took more of the partition's log than of the group's state, that state
speaks of records which are no more, and whose offsets others get, or have got already; what it says of them
is taken out. How much of the log was left, recovery knows; epochs of leaders don't tell, as a log may be
opened again by the same one.

An Apache Kafka that keeps dead letters writes the state Archiving before it copies a record, and Archived
behind that (KIP-1191). Here no record is copied: Archiving becomes Archived, in the coordinator's log too, as
in Kafka for a group without a topic for dead letters.

A start that an administrator has set beyond the log's end looks the same once the broker was restarted, and
falls back to that end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.control_record import RecordState
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.storage.errors import StorageError
from barnabas.storage.format.share_partition_state import (
    UNDECIDED_OFFSET,
    SharePartitionState,
    StateWrite,
)
from barnabas.storage.format.state_batches import ARCHIVING, StateBatch
from barnabas.storage.log.partition_log import PartitionLog

_T = TypeVar("_T")


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
        self.loaded: Completion[SharePartitionState] = Completion()
        """The state, which names no record that was lost; or the coordinator's error."""
        self._coordinator = coordinator
        self._key = key
        self._log = log
        self._state_epoch = state_epoch
        self._wall_ms = wall_ms
        self._may_speak_of_lost_records = may_speak_of_lost_records
        self._overtaken = False

    def start(self) -> None:
        """Begin to load; `loaded` may be done when this returns."""
        if self._coordinator.holds(self._key):
            self._read()
        else:
            self._then(self._begin_undecided(), lambda _: self._read())

    def overtake(self) -> None:
        """Write nothing any more: it would undo a reset, or speak of a log that was opened anew."""
        self._overtaken = True

    def _begin_undecided(self) -> Completion[None]:
        return self._coordinator.initialise(
            self._key, state_epoch=self._state_epoch, start_offset=UNDECIDED_OFFSET, now_ms=self._wall_ms()
        )

    def _read(self) -> None:
        reply = self._coordinator.read(self._key, leader_epoch=self._log.leader_epoch, now_ms=self._wall_ms())
        self._then(reply, self._check)

    def _check(self, state: SharePartitionState) -> None:
        if self._may_speak_of_lost_records and _end_offset(state) > self._log.opened_end_offset:
            kept = _what_is_left(state, self._log)
            reply = self._coordinator.write_whole(self._key, kept, now_ms=self._wall_ms())
        elif any(one.delivery_state == ARCHIVING for one in state.state_batches):
            reply = self._coordinator.write(self._key, _archived(state, self._log), now_ms=self._wall_ms())
        else:
            self.loaded.complete(state)
            return
        self._then(reply, lambda _: self._read())

    def _then(self, reply: Completion[_T], step: Callable[[_T], None]) -> None:
        """The next step, once this one has ended well."""

        def go_on(ended: Completion[_T]) -> None:
            try:
                result = ended.result()
                if self._overtaken:
                    raise ApiError(ErrorCode.not_leader_or_follower, "The share-partition begins anew.")
            except (ApiError, StorageError) as error:
                self.loaded.fail(error)
            else:
                step(result)

        reply.when_done(go_on)


def _end_offset(state: SharePartitionState) -> int:
    """Behind the last record that the state speaks of."""
    return max([state.start_offset, *(one.last_offset + 1 for one in state.state_batches)])


def _what_is_left(state: SharePartitionState, log: PartitionLog) -> StateWrite:
    """What the state says of records that were not lost."""
    end_offset = log.opened_end_offset
    batches = [
        one._replace(last_offset=min(one.last_offset, end_offset - 1))
        for one in state.state_batches
        if one.first_offset < end_offset
    ]
    start_offset = min(state.start_offset, end_offset)
    return StateWrite(
        state.state_epoch, log.leader_epoch, start_offset, _complete_count(batches, log), batches
    )


def _archived(state: SharePartitionState, log: PartitionLog) -> StateWrite:
    """Archives the records that were to be copied to dead letters."""
    archived = [
        one._replace(delivery_state=RecordState.ARCHIVED)
        for one in state.state_batches
        if one.delivery_state == ARCHIVING
    ]
    complete_count = _complete_count(state.state_batches, log)
    return StateWrite(state.state_epoch, log.leader_epoch, state.start_offset, complete_count, archived)


def _complete_count(batches: Sequence[StateBatch], log: PartitionLog) -> int:
    """How many records will never be delivered again, those that are archived now among them."""
    return sum(
        log.control_runs.data_count(one.first_offset, one.last_offset)
        for one in batches
        if one.delivery_state != RecordState.AVAILABLE
    )
