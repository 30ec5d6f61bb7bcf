"""Decided transactions, until every partition that takes part has its marker, and every share-partition the
outcome of its acknowledgements, which counts as a marker here.

A marker that cannot be written now is tried again without a limit, because the decision stands. The client
that asked for the end waits for the first attempt only. A log that knows a newer producer of the same id
refuses the marker for good. Then the transaction is completed without that marker, so that the id can be used
again, and a commit is answered with an error, never confirmed. The progress is not in the coordinator's log:
after a start all markers of a decided transaction are written again, and a log that has its marker is not
changed by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.interfaces import MarkerWriter
from barnabas.coordinator.transaction.settings import MARKER_RETRY_MS
from barnabas.coordinator.transaction.transaction import Participant, Transaction, completed
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey, TopicNamePartition
from barnabas.runtime.completion import Completion
from barnabas.runtime.deadline_table import DeadlineTable


class DecidedTransaction:
    """One decided transaction."""

    def __init__(self, transaction: Transaction, asked_for: Completion[ProducerIdentity] | None) -> None:
        self.transaction = transaction
        self.remaining = set(transaction.participants)
        """Those without their marker."""
        self.refusing: set[TopicNamePartition] = set()
        """Partitions whose log refuses the marker for good."""
        self.under_way = 0
        self._asked_for = asked_for

    def answer(self) -> None:
        """Answer the client that asked for the end with the producer's identity from now on; PRODUCER_FENCED
        for a commit that a partition has refused.
        """
        asked_for, self._asked_for = self._asked_for, None
        if asked_for is None:
            return
        if self.refusing and self.transaction.commits:
            asked_for.fail(_not_committed(min(self.refusing)))
        else:
            asked_for.complete(completed(self.transaction, self.transaction.updated_at_ms).producer)

    def refuse(self) -> None:
        """Answer the client with a retriable error, because the log may not hold the decision."""
        asked_for, self._asked_for = self._asked_for, None
        if asked_for is not None:
            asked_for.fail(being_loaded())


class DecidedTransactions:
    """The decided transactions, by transactional id."""

    def __init__(
        self,
        writer: MarkerWriter,
        *,
        coordinator_epoch: Callable[[], int],
        now_ms: Callable[[], int],
        on_written: Callable[[DecidedTransaction], None],
        on_deadline: Callable[[], None],
    ) -> None:
        """`on_written` is called once every partition has its marker or has refused it, `on_deadline` when
        `next_deadline_ms` may have moved.
        """
        self._writer = writer
        self._coordinator_epoch = coordinator_epoch
        self._now_ms = now_ms
        self._on_written = on_written
        self._on_deadline = on_deadline
        self._by_id: dict[str, DecidedTransaction] = {}
        self._retries = DeadlineTable[str]()

    def begin(self, transaction: Transaction, asked_for: Completion[ProducerIdentity] | None = None) -> None:
        """Write the markers of a decided transaction.

        `asked_for` ends with the producer's identity from now on, once all markers and the end are written,
        or one of them could not be written at once.
        """
        decided = DecidedTransaction(transaction, asked_for)
        self._by_id[transaction.transactional_id] = decided
        self._write(decided)

    def remaining(self, transactional_id: str) -> frozenset[TopicNamePartition] | None:
        """The partitions without their marker; None if the id has no decided transaction."""
        decided = self._by_id.get(transactional_id)
        return None if decided is None else decided.transaction.partitions & decided.remaining

    def end(self, decided: DecidedTransaction) -> None:
        """The end is in the log."""
        self._forget(decided.transaction.transactional_id)
        decided.answer()

    def retry(self, decided: DecidedTransaction) -> None:
        """The end, or a marker, could not be written: try again with the markers that are left."""
        self._retries.restart(decided.transaction.transactional_id, self._now_ms() + MARKER_RETRY_MS)
        self._on_deadline()
        decided.answer()

    def forget(self, transactional_ids: Iterable[str]) -> None:
        """These ids will be loaded again: clients that wait get a retriable error."""
        for transactional_id in transactional_ids:
            decided = self._forget(transactional_id)
            if decided is not None:
                decided.refuse()

    def is_current(self, decided: DecidedTransaction) -> bool:
        """Whether this is the id's transaction to complete."""
        return self._by_id.get(decided.transaction.transactional_id) is decided

    def next_deadline_ms(self) -> int | None:
        return self._retries.next_deadline_ms()

    def expire(self, now_ms: int) -> None:
        """Write the markers whose retry is due."""
        for transactional_id in self._retries.expire(now_ms):
            self._write(self._by_id[transactional_id])

    def _write(self, decided: DecidedTransaction) -> None:
        transaction = decided.transaction
        marker = TransactionMarker(
            transaction.producer,
            self._coordinator_epoch(),
            transaction.commits,
            transaction.client_version,
        )
        participants = _in_order(decided.remaining)
        # One more than these, so that the round ends after all markers have begun.
        decided.under_way = 1 + len(participants)
        for participant in participants:
            written = self._writer.write_marker(participant, marker)
            written.when_done(partial(self._marker_ended, decided, participant))
        self._round_ended(decided)

    def _marker_ended(
        self, decided: DecidedTransaction, participant: Participant, written: Completion[None]
    ) -> None:
        # After every other failure it is tried again, because a decision must be carried out.
        if isinstance(participant, TopicNamePartition) and is_refused(written):
            decided.refusing.add(participant)
            decided.remaining.discard(participant)
        elif written.error is None:
            decided.remaining.discard(participant)
        self._round_ended(decided)

    def _round_ended(self, decided: DecidedTransaction) -> None:
        decided.under_way -= 1
        if decided.under_way or not self.is_current(decided):
            return
        if decided.remaining:
            self.retry(decided)
        else:
            self._on_written(decided)

    def _forget(self, transactional_id: str) -> DecidedTransaction | None:
        self._retries.cancel(transactional_id)
        return self._by_id.pop(transactional_id, None)


def _in_order(participants: Iterable[Participant]) -> list[Participant]:
    """Partitions first, and always in the same order."""
    partitions = [participant for participant in participants if isinstance(participant, TopicNamePartition)]
    share_partitions = [
        participant for participant in participants if isinstance(participant, SharePartitionKey)
    ]
    return [*sorted(partitions), *sorted(share_partitions)]


def being_loaded() -> ApiError:
    return ApiError(ErrorCode.coordinator_load_in_progress, "The transactions are being loaded.")


def is_refused(written: Completion[None]) -> bool:
    """Whether the log refuses the marker for good, because it knows a newer producer of the same id."""
    return isinstance(written.error, ApiError) and written.error.code is ErrorCode.invalid_producer_epoch


def _not_committed(partition: TopicNamePartition) -> ApiError:
    return ApiError(
        ErrorCode.producer_fenced,
        f"{partition.topic}-{partition.partition} knows a newer producer with this producer id: "
        "the transaction is not committed there.",
    )
