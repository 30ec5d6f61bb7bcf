"""One partition of a coordinator's topic at work: operations one after another, each decided, appended,
replayed, answered.

An operation is a generator that yields what it needs done and is resumed when it is: `Write` these records
(appended as one batch and then replayed, so that the generator goes on with the state changed), or `Settle`
these tickets. Its return value is the answer. While one waits, those that follow queue in order; if appends
end at once, everything ends within `submit`.

A failed append leaves the state as it was and is raised within the generator as COORDINATOR_NOT_AVAILABLE, so
that clients look the coordinator up and try again. Any other exception, of the generator, the log or the
replay, ends that operation alone: it is what the reply fails with.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.interfaces import AppendTicket, CoordinatorLog, Ticket
from barnabas.coordinator.runtime.steps import Operation, Steps, Write
from barnabas.protocol.errors import ApiError, ErrorCode

RecordT = TypeVar("RecordT")
_T = TypeVar("_T")


class _Running(NamedTuple, Generic[RecordT]):
    steps: Steps[RecordT, Any]
    reply: CoordinatorReply[Any]


class _Written(NamedTuple, Generic[RecordT]):
    """Records that an operation asked to have appended, and the append."""

    records: Sequence[RecordT]
    ticket: AppendTicket


def _being_loaded() -> ApiError:
    return ApiError(ErrorCode.coordinator_load_in_progress, "The coordinator is being loaded.")


class PartitionRuntime(Generic[RecordT]):
    """Operations on what one partition holds.

    `encode` makes key and value (None for a tombstone) of a record; `replay` is handed each record that was
    appended, with its offset, in the order of the log.
    """

    def __init__(
        self,
        partition: int,
        log: CoordinatorLog,
        *,
        encode: Callable[[RecordT], tuple[bytes, bytes | None]],
        replay: Callable[[RecordT, int], None],
        max_queued_operations: int,
    ) -> None:
        self._partition = partition
        self._log = log
        self._encode = encode
        self._replay = replay
        self._max_queued_operations = max_queued_operations
        self._queue: deque[tuple[Operation[RecordT, Any], CoordinatorReply[Any]]] = deque()
        self._running: _Running[RecordT] | None = None
        self._draining = False
        self.loaded = False
        """Set once the partition's records were replayed; until then every operation is refused."""

    def unload(self) -> None:
        """Refuse every operation until `loaded` is set again, also the one under way and those queued.

        What the operation under way waits for may still end; nothing follows from it.
        """
        self.loaded = False
        replies = [reply for _, reply in self._queue]
        if self._running is not None:
            replies.insert(0, self._running.reply)
        self._running = None
        self._queue.clear()
        for reply in replies:
            reply.fail(_being_loaded())

    @property
    def idle(self) -> bool:
        """Whether the state is loaded and nothing is under way or queued."""
        return self.loaded and self._running is None and not self._queue

    def submit(self, operation: Operation[RecordT, _T]) -> CoordinatorReply[_T]:
        """Run the operation after those submitted before."""
        reply: CoordinatorReply[_T] = CoordinatorReply()
        if not self.loaded:
            reply.fail(_being_loaded())
        elif len(self._queue) >= self._max_queued_operations:
            reply.fail(
                ApiError(ErrorCode.coordinator_not_available, "Too many operations wait for an append.")
            )
        else:
            self._queue.append((operation, reply))
            self._drain()
        return reply

    def _drain(self) -> None:
        # An operation's answer may lead to the next submit; the loop that runs already takes that one, too.
        if self._draining:
            return
        self._draining = True
        try:
            while self._running is None and self._queue:
                operation, reply = self._queue.popleft()
                self._running = _Running(operation(), reply)
                self._advance(self._running, None)
        finally:
            self._draining = False

    def _advance(self, running: _Running[RecordT], written: _Written[RecordT] | None) -> None:
        """Run the operation on, from what was `written` if it waited for that, until it ends or waits."""
        try:
            while self._running is running:
                error = None if written is None else self._after(written)
                step = next(running.steps) if error is None else running.steps.throw(error)
                tickets: Sequence[Ticket]
                if isinstance(step, Write):
                    written = self._append(step)
                    tickets = [written.ticket]
                else:
                    written, tickets = None, step.tickets
                pending = [ticket for ticket in tickets if not ticket.done]
                if pending:
                    self._wait(running, written, pending)
                    return
        except StopIteration as end:
            if self._ends(running):
                running.reply.complete(end.value)
        except Exception as refused:
            # An ApiError is the answer. Anything else is our bug: it surfaces where the reply is taken,
            # and the partition goes on.
            if self._ends(running):
                running.reply.fail(refused)

    def _ends(self, running: _Running[RecordT]) -> bool:
        """Make room for the next operation; False if this one was refused meanwhile, by `unload`."""
        if self._running is not running:
            return False
        self._running = None
        return True

    def _append(self, write: Write[RecordT]) -> _Written[RecordT]:
        encoded = [self._encode(record) for record in write.records]
        return _Written(write.records, self._log.append(self._partition, encoded))

    def _wait(
        self, running: _Running[RecordT], written: _Written[RecordT] | None, pending: Sequence[Ticket]
    ) -> None:
        left = len(pending)

        def on_done(_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._advance(running, written)
                self._drain()

        for ticket in pending:
            ticket.add_done_callback(on_done)

    def _after(self, written: _Written[RecordT]) -> ApiError | None:
        """What follows an append that has ended: the replay of its records, or the error to raise."""
        records, ticket = written
        if ticket.error is not None:
            error = ApiError(
                ErrorCode.coordinator_not_available, "The coordinator's log could not be written."
            )
            error.__cause__ = ticket.error
            return error
        for offset, record in enumerate(records, ticket.base_offset):
            self._replay(record, offset)
        return None
