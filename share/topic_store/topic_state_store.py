"""`share.state.store=topic`: share state as records of `__share_group_state`, through the share coordinator
(KIP-932, "Persister").

A leader's decisions become writes of the batches that they change, with the previous start offset and the
number of final records from there on, as Kafka's leaders write them. Acquired is never written. One write of
a share-partition is under way at a time; later decisions are written together with the next write, or never
if the leader is closed by then. The coordinator executes requests in their order: a write under way comes
before the reset that closed its leader. It decides nothing itself, and knows no member, lock or session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from barnabas.coordinator.share_state.share_coordinator import ShareCoordinator
from barnabas.protocol.delivery_state import (
    Condition,
    LetterPlace,
    RecordState,
    StateRange,
    fits,
    is_final,
)
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.share.leader.recorded_changes import RecordedChange
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.share.partition.decision import Decision
from barnabas.share.partition.share_partition import SharePartition
from barnabas.share.topic_store.topic_state_load import TopicStateLoad
from barnabas.storage.errors import StorageError
from barnabas.storage.files.full_disk import FullDisk
from barnabas.storage.format.control_runs import ControlRuns
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.format.share_partition_state import (
    UNDECIDED_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionState,
    StateWrite,
)
from barnabas.storage.format.state_batches import StateBatch
from barnabas.storage.log.partition_log import PartitionLog

_T = TypeVar("_T")

_SEEN_BY_MEMBERS = {
    ErrorCode.not_coordinator: ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_not_available: ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress: ErrorCode.coordinator_not_available,
    ErrorCode.group_id_not_found: ErrorCode.group_id_not_found,
    ErrorCode.unknown_topic_or_partition: ErrorCode.unknown_topic_or_partition,
    ErrorCode.fenced_leader_epoch: ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_state_epoch: ErrorCode.not_leader_or_follower,
    ErrorCode.invalid_request: ErrorCode.not_leader_or_follower,
}
"""The error codes for the coordinator's errors that a member gets, as from Kafka; any other error is
UNKNOWN_SERVER_ERROR. While the coordinator's log cannot be written, the member gets the storage's own error.

An invalid request concerns a state that was deleted. For its leader this is the same as a state that was
initialised again.
"""


class _Submission:
    """The content of one write: decisions of one leader, in order."""

    __slots__ = ("decisions", "leader", "recorded")

    def __init__(self, leader: SharePartitionLeader) -> None:
        self.leader = leader
        self.decisions: list[Decision] = []
        self.recorded: Completion[None] = Completion()

    def to_write(self) -> StateWrite:
        """As the leader's state is now."""
        leader = self.leader
        return state_write(
            leader.core,
            self.decisions,
            leader.log.control_runs,
            state_epoch=leader.image.state_epoch,
            leader_epoch=leader.log.leader_epoch,
        )

    def end(self, error: Exception | None) -> None:
        """The write has ended."""
        if error is None:
            self.recorded.complete(None)
        else:
            self.recorded.fail(error)


class _Queue:
    """The writes of one share-partition: at most one under way, and one that collects later decisions."""

    __slots__ = ("waiting", "writing")

    def __init__(self) -> None:
        self.writing: _Submission | None = None
        self.waiting: _Submission | None = None


class TopicStateStore:
    """The states of all share-partitions, kept by one share coordinator (`ShareStateStore`)."""

    def __init__(
        self, coordinator: ShareCoordinator, wall_ms: Callable[[], int], full_disk: FullDisk
    ) -> None:
        self._coordinator = coordinator
        self._full_disk = full_disk
        self._wall_ms = wall_ms
        self._queues: dict[SharePartitionKey, _Queue] = {}
        self._loads: dict[SharePartitionKey, TopicStateLoad] = {}
        self._resets: set[Completion[None]] = set()
        self._sound: dict[TopicIdPartition, set[str]] = {}
        """The groups whose state was loaded or initialised since the partition's log was opened. A load under
        way keeps the set that it found, because it knows nothing about a log that is opened meanwhile.
        """

    # Loading.

    def load(
        self, key: SharePartitionKey, log: PartitionLog, group_incarnation: int, state_epoch: int
    ) -> Completion[ShareStateImage]:
        """See `ShareStateStore` and `TopicStateLoad`."""
        sound = self._sound_groups(key)
        load = TopicStateLoad(
            self._coordinator,
            key,
            log,
            state_epoch,
            self._wall_ms,
            may_speak_of_lost_records=key.group_id not in sound,
        )
        self._loads[key] = load
        loaded = load.run().then(lambda state: _image(state, log, group_incarnation))
        loaded.when_done(lambda _: self._forget_load(key, load))
        return self._told(loaded, lambda: sound.add(key.group_id))

    def _forget_load(self, key: SharePartitionKey, load: TopicStateLoad) -> None:
        if self._loads.get(key) is load:
            del self._loads[key]

    def _overtake_load(self, key: SharePartitionKey) -> None:
        load = self._loads.pop(key, None)
        if load is not None:
            load.overtake()

    def _sound_groups(self, key: SharePartitionKey) -> set[str]:
        return self._sound.setdefault(key.topic_id_partition, set())

    # Recording.

    def decisions_of(self, partition: TopicIdPartition, log: PartitionLog) -> TopicStateStore:
        """See `ShareStateStore`."""
        return self

    def record(self, leader: SharePartitionLeader, decision: Decision) -> Completion[None]:
        """See `DecisionStore`. The decision is written with the next write of the share-partition."""
        queue = self._queues.get(leader.key)
        if queue is None:
            queue = self._queues[leader.key] = _Queue()
        if queue.waiting is None:
            queue.waiting = _Submission(leader)
        submission = queue.waiting
        assert submission.leader is leader, f"{leader.key} has two leaders"
        submission.decisions.append(decision)
        if queue.writing is None:
            self._write_waiting(leader.key, queue)
        return submission.recorded

    def last_changes(
        self, leader: SharePartitionLeader, wanted: Sequence[tuple[int, int]]
    ) -> list[RecordedChange]:
        """See `DecisionStore`. None is known: Kafka's records of share state have no causes."""
        return []

    def _write_waiting(self, key: SharePartitionKey, queue: _Queue) -> None:
        while queue.waiting is not None:
            submission = queue.writing = queue.waiting
            queue.waiting = None
            if submission.leader.closed:
                submission.end(ApiError(ErrorCode.not_leader_or_follower, "The share-partition begins anew."))
                continue
            reply = self._coordinator.write(key, submission.to_write(), now_ms=self._wall_ms())
            if not reply.done:
                reply.when_done(partial(self._written_late, key, queue, submission))
                return
            submission.end(self._error_of(reply))
        del self._queues[key]

    def _written_late(
        self, key: SharePartitionKey, queue: _Queue, submission: _Submission, reply: Completion[None]
    ) -> None:
        submission.end(self._error_of(reply))
        self._write_waiting(key, queue)

    # Resetting.

    def initialise(
        self, key: SharePartitionKey, group_incarnation: int, start_offset: int, state_epoch: int
    ) -> Completion[None]:
        """See `ShareStateStore`. If a group was lost with its log and is created again, its epochs are lower
        than those of its old state. The old state is replaced nevertheless.
        """
        self._overtake_load(key)
        reply = self._coordinator.initialise(
            key,
            state_epoch=max(state_epoch, self._coordinator.state_epoch(key)),
            start_offset=start_offset,
            now_ms=self._wall_ms(),
        )
        sound = self._sound_groups(key)
        return self._reset(reply, lambda: sound.add(key.group_id))

    def delete(self, key: SharePartitionKey, group_incarnation: int) -> Completion[None]:
        """See `ShareStateStore`."""
        self._overtake_load(key)
        sound = self._sound_groups(key)
        return self._reset(self._coordinator.delete(key), lambda: sound.discard(key.group_id))

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """See `ShareStateStore`."""
        for key in [key for key in self._loads if key.topic_id_partition == partition]:
            self._overtake_load(key)
        self._sound.pop(partition, None)

    async def drained(self) -> None:
        """See `ShareStateStore`."""
        while outstanding := [*self._resets, *self._writes()]:
            for completion in outstanding:
                with suppress(ApiError, StorageError):
                    await completion

    def _writes(self) -> Sequence[Completion[None]]:
        return [queue.writing.recorded for queue in self._queues.values() if queue.writing is not None]

    def _reset(self, reply: Completion[None], on_success: Callable[[], object]) -> Completion[None]:
        ended = self._told(reply, on_success)
        if not ended.done:
            self._resets.add(ended)
            ended.when_done(self._resets.discard)
        return ended

    def _told(self, reply: Completion[_T], on_success: Callable[[], object]) -> Completion[_T]:
        """The outcome after `on_success`, with an error as members see it."""
        told: Completion[_T] = Completion()
        reply.when_done(partial(self._tell, told, on_success))
        return told

    def _tell(self, told: Completion[_T], on_success: Callable[[], object], reply: Completion[_T]) -> None:
        told.end_with(partial(self._outcome, on_success, reply))

    def _outcome(self, on_success: Callable[[], object], reply: Completion[_T]) -> Completion[_T]:
        error = self._error_of(reply)
        if error is not None:
            return Completion.failed(error)
        on_success()
        return reply

    def _error_of(self, reply: Completion[_T]) -> Exception | None:
        return None if reply.error is None else self._as_seen_by_members(reply.error)

    def _as_seen_by_members(self, error: Exception) -> Exception:
        if not isinstance(error, ApiError):
            return error
        if isinstance(error.__cause__, StorageError):
            return without_frames(error.__cause__)
        code = _SEEN_BY_MEMBERS.get(error.code, ErrorCode.unknown_server_error)
        refusal = self._full_disk.refusal()
        if code is ErrorCode.coordinator_not_available and refusal is not None:
            return refusal
        return ApiError(code, error.message)


def state_write(
    core: SharePartition,
    decisions: Sequence[Decision],
    control_runs: ControlRuns,
    *,
    state_epoch: int,
    leader_epoch: int,
) -> StateWrite:
    """The write that records these decisions of one leader: the previous start offset, and the changed
    batches.
    """
    decided = [decision.start_offset for decision in decisions if decision.start_offset is not None]
    start_offset = max([core.spso, *decided])
    is_decided = start_offset != UNDECIDED_OFFSET
    return StateWrite(
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=_complete_count(core, decisions, control_runs)
        if is_decided
        else UNKNOWN_COUNT,
        state_batches=[
            StateBatch(
                change.base_offset,
                change.last_offset,
                change.delivery_count,
                change.state.value,
                change.condition,
            )
            for decision in decisions
            for change in decision.changes
        ],
    )


def _complete_count(core: SharePartition, decisions: Sequence[Decision], control_runs: ControlRuns) -> int:
    """Final records at or above the start offset, those that become so by these decisions included."""
    becoming = sum(
        control_runs.data_count(max(run.first_offset, core.spso), run.last_offset)
        for decision in decisions
        for _, run, state, _ in decision.targets
        if is_final(state)
    )
    return core.delivery_complete_count + becoming


def image_of(state: SharePartitionState, control_runs: ControlRuns) -> ShareStateImage:
    """The state as a leader begins with it. ValueError if no leader could have written it."""
    image = ShareStateImage(control_runs)
    image.state_epoch = state.state_epoch
    image.start_offset = image.end_offset = state.start_offset
    image.ranges = [
        StateRange(
            batch.first_offset,
            batch.last_offset,
            RecordState(batch.delivery_state),
            batch.delivery_count,
            condition=_condition(batch),
        )
        for batch in state.state_batches
    ]
    control_runs.know_from(image.start_offset)
    if image.ranges:
        image.end_offset = image.ranges[-1].last_offset + 1
    return image


def _condition(batch: StateBatch) -> Condition | None:
    """Apache Kafka writes Archiving without the place of the dead letter."""
    if fits(batch.delivery_state, batch.condition):
        return batch.condition
    return LetterPlace() if batch.delivery_state == RecordState.ARCHIVING else None


def _image(state: SharePartitionState, log: PartitionLog, group_incarnation: int) -> ShareStateImage:
    try:
        image = image_of(state, log.control_runs)
    except ValueError as error:
        name = log.topic_partition.directory_name
        raise StorageError(f"{name}: its share state cannot be read: {error}") from error
    image.group_incarnation = group_incarnation
    image.leader_epoch = log.leader_epoch
    return image
