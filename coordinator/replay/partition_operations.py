"""Runs the operations on one partition of a coordinator's topic, one after another. Each is decided,
appended, replayed and answered.

An operation is a generator that yields the effect it needs and is resumed after it: `Write` (append these
records as one batch, then replay them, so that the generator continues with the new state), `WriteMarker`
(the same for the end of a transaction), or `Settle` (wait for this completion). Its return value is the
answer. While an operation waits, later ones queue in order. If every append ends at once, the operation ends
within `submit`.

A failed append leaves the state unchanged. It is raised inside the generator: as COORDINATOR_NOT_AVAILABLE,
so that clients look the coordinator up and try again, or as the ApiError with which the log refused a marker
or a producer. Any other exception, of encoding, the log or the replay, is raised there too. An exception that
the generator does not catch fails the reply and ends that operation only.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from barnabas.coordinator.replay.interfaces import CoordinatorLog
from barnabas.coordinator.replay.steps import Operation, Settle, Step, Steps, Write, WriteMarker
from barnabas.protocol.errors import ApiError, ErrorCode, without_frames
from barnabas.runtime.completion import Completion
from barnabas.storage.log.appended import Append

RecordT = TypeVar("RecordT")
_RecordT_contra = TypeVar("_RecordT_contra", contravariant=True)
_T = TypeVar("_T")


class TransactionReplay(Protocol[_RecordT_contra]):
    """Takes over the records that producers have written in transactions."""

    def replay_pending(self, partition: int, record: _RecordT_contra, offset: int, producer_id: int) -> None:
        """A record of a producer's transaction: it counts once the transaction is committed."""
        ...

    def replay_marker(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """A producer's transaction has ended in this partition."""
        ...


class _Running(NamedTuple, Generic[RecordT]):
    steps: Steps[RecordT, Any]
    reply: Completion[Any]


class _Appended(NamedTuple, Generic[RecordT]):
    """A step and the append that it asked for."""

    step: Write[RecordT] | WriteMarker
    append: Append


class _Outcome(NamedTuple, Generic[RecordT]):
    """The append of a step, if it has one, or the error with which the step could not begin."""

    appended: _Appended[RecordT] | None = None
    error: Exception | None = None


def being_loaded() -> ApiError:
    return ApiError(ErrorCode.coordinator_load_in_progress, "The coordinator is being loaded.")


class PartitionOperations(Generic[RecordT]):
    """The operations on the state in one partition.

    `encode` makes key and value (None for a tombstone) of a record. `replay` gets each appended record with
    its offset, in the order of the log. Records and ends of transactions go to `transactions`; without it
    none may be written.
    """

    def __init__(
        self,
        partition: int,
        log: CoordinatorLog,
        *,
        encode: Callable[[RecordT], tuple[bytes, bytes | None]],
        replay: Callable[[RecordT, int], None],
        max_queued_operations: int,
        transactions: TransactionReplay[RecordT] | None = None,
    ) -> None:
        self._partition = partition
        self._log = log
        self._encode = encode
        self._replay = replay
        self._transactions = transactions
        self._max_queued_operations = max_queued_operations
        self._queue: deque[tuple[Operation[RecordT, Any], Completion[Any]]] = deque()
        self._running: _Running[RecordT] | None = None
        self._draining = False
        self.loaded = False
        """Set once the partition's records were replayed; until then every operation is refused."""

    def unload(self) -> None:
        """Refuse every operation until `loaded` is set again, including the one under way and those queued.

        An append of the operation under way may still end; its records are not replayed.
        """
        self.loaded = False
        replies = [reply for _, reply in self._queue]
        if self._running is not None:
            replies.insert(0, self._running.reply)
        self._running = None
        self._queue.clear()
        for reply in replies:
            reply.fail(being_loaded())

    @property
    def queued_count(self) -> int:
        """Operations that wait for the one under way."""
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Whether the state is loaded and nothing is under way or queued."""
        return self.loaded and self._running is None and not self._queue

    def submit(self, operation: Operation[RecordT, _T]) -> Completion[_T]:
        """Run the operation after those submitted before.

        COORDINATOR_LOAD_IN_PROGRESS until the partition is loaded, COORDINATOR_NOT_AVAILABLE if the queue is
        full.
        """
        reply: Completion[_T] = Completion()
        if not self.loaded:
            reply.fail(being_loaded())
        elif len(self._queue) >= self._max_queued_operations:
            reply.fail(
                ApiError(ErrorCode.coordinator_not_available, "Too many operations wait for an append.")
            )
        else:
            self._queue.append((operation, reply))
            self._drain()
        return reply

    def _drain(self) -> None:
        # An answer may lead to another `submit`; the loop that already runs takes that operation too.
        if self._draining:
            return
        self._draining = True
        try:
            while self._running is None and self._queue:
                operation, reply = self._queue.popleft()
                self._running = _Running(operation(), reply)
                self._advance(self._running, _Outcome())
        finally:
            self._draining = False

    def _advance(self, running: _Running[RecordT], outcome: _Outcome[RecordT]) -> None:
        """Continue the operation after the outcome of its last step, until it ends or waits."""
        try:
            while self._running is running:
                error = self._replay_appended(outcome)
                step = next(running.steps) if error is None else running.steps.throw(without_frames(error))
                outcome, under_way = self._begin(step)
                if under_way is not None and not under_way.done:
                    under_way.when_done(partial(self._resume, running, outcome))
                    return
        except StopIteration as end:
            if self._ends(running):
                running.reply.complete(end.value)
        except Exception as refused:
            # An ApiError is the answer. Anything else is a defect: the caller of the operation gets it, and
            # the partition goes on.
            if self._ends(running):
                running.reply.fail(refused)

    def _ends(self, running: _Running[RecordT]) -> bool:
        """Make room for the next operation; False if `unload` has refused this one meanwhile."""
        if self._running is not running:
            return False
        self._running = None
        return True

    def _begin(self, step: Step[RecordT]) -> tuple[_Outcome[RecordT], Completion[Any] | None]:
        """Begin a step; returns also the completion to wait for."""
        if isinstance(step, Settle):
            return _Outcome(), step.ended
        try:
            append = self._append(step)
        except Exception as error:
            return _Outcome(error=without_frames(error)), None
        return _Outcome(_Appended(step, append)), append

    def _append(self, step: Write[RecordT] | WriteMarker) -> Append:
        if isinstance(step, WriteMarker):
            return self._log.append_marker(self._partition, step.marker)
        encoded = [self._encode(record) for record in step.records]
        return self._log.append(self._partition, encoded, step.producer)

    def _resume(self, running: _Running[RecordT], outcome: _Outcome[RecordT], _: object) -> None:
        self._advance(running, outcome)
        self._drain()

    def _replay_appended(self, outcome: _Outcome[RecordT]) -> Exception | None:
        """Replay the records of a step that appended some; returns the error to raise in the operation."""
        appended = outcome.appended
        if appended is None:
            return outcome.error
        if appended.append.error is not None:
            return _failed_append(appended.append.error)
        try:
            self._replay_step(appended.step, appended.append.result().base_offset)
        except Exception as error:
            return without_frames(error)
        return None

    def _replay_step(self, step: Write[RecordT] | WriteMarker, base_offset: int) -> None:
        transactions = self._transactions
        if isinstance(step, WriteMarker):
            assert transactions is not None, "this coordinator takes no part in transactions"
            producer_id = step.marker.producer.producer_id
            transactions.replay_marker(self._partition, producer_id, commit=step.marker.commit)
            return
        for offset, record in enumerate(step.records, base_offset):
            if step.producer is None:
                self._replay(record, offset)
            else:
                assert transactions is not None, "this coordinator takes no part in transactions"
                transactions.replay_pending(self._partition, record, offset, step.producer.producer_id)


def _failed_append(reason: Exception) -> ApiError:
    if isinstance(reason, ApiError):
        return reason
    error = ApiError(ErrorCode.coordinator_not_available, "The coordinator's log could not be written.")
    error.__cause__ = reason
    return error
