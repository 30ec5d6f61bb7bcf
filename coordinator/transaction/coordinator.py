"""The transaction coordinator: producers' requests, administration, timers.

Each request becomes an operation on the partition that its transactional id hashes to; operations on one
partition run one after another. One operation decides the end of a transaction, and another one records that
its markers are written, so a partition's slow log delays no other producer. Every method runs on the loop's
thread. Times passed in are monotonic: ask `next_deadline_ms()`, call `expire(now_ms)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

from barnabas.coordinator.replay import steps
from barnabas.coordinator.replay.interfaces import CoordinatorLog, Stored, StoredMarker
from barnabas.coordinator.replay.partition_operations import PartitionOperations, being_loaded
from barnabas.coordinator.replay.steps import Operation, Settle, Write
from barnabas.coordinator.replay.topic_operations import TopicOperations
from barnabas.coordinator.transaction import ending, initialisation, partitions
from barnabas.coordinator.transaction.decided_transactions import DecidedTransaction, DecidedTransactions
from barnabas.coordinator.transaction.ending import EndRequest
from barnabas.coordinator.transaction.interfaces import MarkerWriter, ProducerIdSource
from barnabas.coordinator.transaction.listing import (
    DescribedTransaction,
    ListedTransaction,
    TransactionFilter,
    described,
    listed,
)
from barnabas.coordinator.transaction.record_factory import (
    TransactionRecord,
    decode_record,
    encode_record,
    record_of,
)
from barnabas.coordinator.transaction.registry import TransactionRegistry
from barnabas.coordinator.transaction.settings import TransactionSettings
from barnabas.coordinator.transaction.transaction import (
    AT_REST,
    NO_PRODUCER_ID,
    PREPARED,
    Participant,
    Transaction,
    TransactionState,
    completed,
    fenced,
    new_transaction,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, SharePartitionKey
from barnabas.runtime.completion import AllDone, Completion
from barnabas.runtime.moment import Moment, written_at

ID_BYTES_MAX = 2**15 - 1
"""The longest id that a record can hold. Newer versions of the requests can hold longer ones."""
EXPIRED_RECORDS_MAX = 500
"""Ids that one append deletes."""

_T = TypeVar("_T")
_Steps: TypeAlias = steps.Steps[TransactionRecord, _T]


class TransactionCoordinator:
    """All transactional ids of this broker."""

    def __init__(
        self,
        *,
        log: CoordinatorLog,
        settings: TransactionSettings,
        producer_ids: ProducerIdSource,
        markers: MarkerWriter,
        coordinator_epoch: Callable[[], int],
        transaction_version: Callable[[], int],
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        on_deadline: Callable[[], None],
        was_closed_cleanly: bool,
    ) -> None:
        """`coordinator_epoch` grows with each start. `transaction_version` is the feature level in force.
        `now_ms` is monotonic, and measures all timeouts; `wall_ms` is the time of day. `on_deadline` is
        called when `next_deadline_ms` may have moved. `was_closed_cleanly` is False if the power may have
        failed, with the newest records lost.
        """
        self._settings = settings
        self._producer_ids = producer_ids
        self._transaction_version = transaction_version
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._on_deadline = on_deadline
        self._log = log
        self._registry = TransactionRegistry(settings.partition_count)
        self._operations = TopicOperations(self._new_partition, settings.partition_count)
        self._decided = DecidedTransactions(
            markers,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            on_written=self._markers_written,
            on_deadline=on_deadline,
        )
        self._loads_all = was_closed_cleanly
        """Whether the log has all records that were ever confirmed."""
        self._uncertain: set[str] = set()
        """Ids whose producers may have got newer epochs than the log has. See `needs_new_producer_id`."""
        self._timeout_check_ms: int | None = None
        self._expiration_check_ms = now_ms() + settings.id_expiration_check_interval_ms

    def _new_partition(self, index: int) -> PartitionOperations[TransactionRecord]:
        return PartitionOperations(
            index,
            self._log,
            encode=self._encode,
            replay=partial(self._replay, index),
            max_queued_operations=self._settings.max_queued_operations,
        )

    def _encode(self, record: TransactionRecord) -> tuple[bytes, bytes | None]:
        return encode_record(record, self._transaction_version())

    def _replay(self, partition: int, record: TransactionRecord, _: int) -> None:
        self._registry.replay(partition, record, written_at(self._now_ms()))

    @property
    def partition_count(self) -> int:
        return self._operations.partition_count

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that holds this id."""
        return self._operations.partition_of(transactional_id)

    # Loading

    def load(self, partition: int, records: Iterable[Stored]) -> Iterator[None]:
        """Replay a partition's log, oldest first, one record per step. The last step admits operations, and
        carries out the ends that were decided. Take all steps, unless `unload` comes in between.

        Records of unknown types are skipped. RecordFormatError if one is malformed.
        """
        yield from self._operations.load(partition, records, self._load)
        if not self._loads_all:
            self._uncertain.update(self._registry.of_partition(partition))
        for transaction in list(self._registry.of_partition(partition).values()):
            if transaction.state in PREPARED:
                self._decided.begin(transaction)
        self._expect_timeouts()

    def unload(self, partition: int) -> None:
        """Forget a partition's ids, because its log may hold less than was replayed.

        Until it is loaded again its operations, including those under way, are refused with
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._loads_all = False
        self._operations.unload(partition)
        self._decided.forget(self._registry.of_partition(partition))
        self._registry.forget_partition(partition)

    def resize(self, partition_count: int) -> None:
        """The topic has this number of partitions. All earlier ones must have been unloaded."""
        self._registry = TransactionRegistry(partition_count)
        self._operations.resize(partition_count)

    def _load(self, partition: int, stored: Stored) -> None:
        if isinstance(stored, StoredMarker) or stored.key is None:
            return
        record = decode_record(stored.key, stored.value)
        if record is not None:
            moment = Moment(self._now_ms(), self._wall_ms())
            self._registry.replay(partition, record, moment.monotonic_of)

    # Producers

    def initialise(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Completion[ProducerIdentity]:
        """InitProducerId. `expected` is the identity of a producer that continues after an error.

        INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, POLICY_VIOLATION if there are too many ids; see
        `initialisation`. CONCURRENT_TRANSACTIONS also while the open transaction is aborted.
        """
        return self._submit(
            transactional_id, partial(self._taking_over, transactional_id, timeout_ms, expected)
        )

    def _taking_over(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> _Steps[ProducerIdentity]:
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            message = f"A transaction may take {self._settings.max_timeout_ms} ms at most."
            raise ApiError(ErrorCode.invalid_transaction_timeout, message)
        transaction = self._find(transactional_id)
        if transaction is None:
            transaction = yield from self._new(transactional_id, timeout_ms)
        initialisation.check_taking_over(transaction, expected)
        if transaction.state not in AT_REST:
            yield from self._fencing(transaction)
            raise ApiError(ErrorCode.concurrent_transactions, "The open transaction is being aborted.")
        return (yield from self._initialising(transaction, timeout_ms, expected))

    def _new(self, transactional_id: str, timeout_ms: int) -> _Steps[Transaction]:
        if len(self._registry) >= self._settings.max_ids:
            message = f"There are {self._settings.max_ids} transactional ids already."
            raise ApiError(ErrorCode.policy_violation, message)
        producer_id = yield from self._new_producer_id()
        return new_transaction(transactional_id, producer_id, timeout_ms, self._wall_ms())

    def _initialising(
        self, transaction: Transaction, timeout_ms: int, expected: ProducerIdentity | None
    ) -> _Steps[ProducerIdentity]:
        new_producer_id = None
        transactional_id = transaction.transactional_id
        is_uncertain = transactional_id in self._uncertain
        if initialisation.needs_new_producer_id(transaction, expected, is_uncertain=is_uncertain):
            new_producer_id = yield from self._new_producer_id()
        after = initialisation.initialised(
            transaction, expected, timeout_ms, self._wall_ms(), new_producer_id=new_producer_id
        )
        yield Write([record_of(after)])
        self._uncertain.discard(transactional_id)
        return after.producer

    def add_participants(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        added: Collection[Participant],
        *,
        client_version: int,
    ) -> Completion[None]:
        """AddPartitionsToTxn, AddOffsetsToTxn, or the participant of a write or an acknowledgement. See
        `partitions`.
        """
        operation = partial(self._adding, transactional_id, producer, added, client_version)
        return self._submit(transactional_id, operation)

    def _adding(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        added: Collection[Participant],
        client_version: int,
    ) -> _Steps[None]:
        known = self._find(transactional_id)
        after = partitions.added(known, producer, added, client_version, self._wall_ms())
        if after is not None:
            yield Write([record_of(after)])
            self._expect_timeouts()

    def takes_part(self, transactional_id: str, producer: ProducerIdentity, participant: Participant) -> bool:
        """Whether the producer may write or acknowledge there now. See `partitions`; also INVALID_REQUEST,
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._check_loaded(transactional_id)
        return partitions.takes_part(self._find(transactional_id), producer, participant)

    def end(self, request: EndRequest) -> Completion[ProducerIdentity]:
        """EndTxn (see `ending`). Returns the identity that the producer uses from now on.

        It ends when all partitions have their markers, or when a marker must be written again later.
        """
        reply: Completion[ProducerIdentity] = Completion()
        decided = self._submit(request.transactional_id, partial(self._ending, request, reply))
        decided.when_done(partial(_pass_failure_on, reply))
        return reply

    def _ending(self, request: EndRequest, reply: Completion[ProducerIdentity]) -> _Steps[None]:
        known = self._find(request.transactional_id)
        may_end = ending.may_end(known, request)
        assert known is not None
        if not may_end:
            return reply.complete(known.producer)
        next_id = None
        if ending.needs_next_producer_id(known, request.client_version):
            next_id = yield from self._new_producer_id()
        after = ending.ended(known, request, self._wall_ms(), next_producer_id=next_id)
        yield Write([record_of(after)])
        self._decided.begin(after, reply)

    # Administration

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions of one id: INVALID_REQUEST, COORDINATOR_LOAD_IN_PROGRESS,
        TRANSACTIONAL_ID_NOT_FOUND.
        """
        self._check_loaded(transactional_id)
        transaction = self._find(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.transactional_id_not_found, "This transactional id is unknown.")
        return described(transaction, self._decided.remaining(transactional_id))

    @property
    def is_loaded(self) -> bool:
        """Whether every partition is loaded: only then are all producer ids with a transaction known."""
        return self._operations.all_loaded

    @property
    def may_lack_epochs(self) -> bool:
        """Whether producers may have got newer epochs than the log has, and no producer has come since. The
        next process has to know it, although this one ends cleanly. See `needs_new_producer_id`.
        """
        return bool(self._uncertain) or not (self._loads_all or self.is_loaded)

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        """Whether acknowledgements of the share-partition may wait for the end of a known transaction."""
        return self._registry.has_acknowledgements(key)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction of the transactional id that has this producer id now; None if none is known.

        COORDINATOR_LOAD_IN_PROGRESS while its partition is being loaded.
        """
        found = self._registry.of_producer(producer_id)
        if found is not None:
            self._check_loaded(found.transactional_id)
        return found

    def times_out_at_ms(self, transaction: Transaction) -> int:
        """When (monotonic) a known transaction is aborted if it is still open."""
        return self._registry.times_of(transaction.transactional_id).began_ms + transaction.timeout_ms

    def list_transactions(self, wanted: TransactionFilter) -> list[ListedTransaction]:
        """ListTransactions: COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded."""
        if not self.is_loaded:
            raise being_loaded()
        now_ms = self._now_ms()
        return listed(self._registry, wanted, lambda found: now_ms - self._registry.times_of(found).began_ms)

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`."""
        deadlines_ms = (
            self._timeout_check_ms,
            self._expiration_check_ms,
            self._decided.next_deadline_ms(),
        )
        return min(deadline_ms for deadline_ms in deadlines_ms if deadline_ms is not None)

    def expire(self, now_ms: int) -> None:
        """Retry failed markers, abort transactions that take too long, delete unused ids."""
        self._decided.expire(now_ms)
        if self._timeout_check_ms is not None and self._timeout_check_ms <= now_ms:
            self._timeout_check_ms = None
            self._abort_timed_out(now_ms)
            self._expect_timeouts()
        if self._expiration_check_ms <= now_ms:
            self._expiration_check_ms = now_ms + self._settings.id_expiration_check_interval_ms
            self._forget_unused(now_ms)

    def _expect_timeouts(self) -> None:
        """Set the next check of the open transactions, if there are any."""
        if self._timeout_check_ms is None and self._registry.has_ongoing:
            self._timeout_check_ms = self._now_ms() + self._settings.timeout_check_interval_ms
            self._on_deadline()

    def _abort_timed_out(self, now_ms: int) -> None:
        for transactional_id in sorted(self._registry.ongoing()):
            if self._timed_out(transactional_id, now_ms) is not None:
                self._submit(transactional_id, partial(self._aborting, transactional_id))

    def _aborting(self, transactional_id: str) -> _Steps[None]:
        # Read here: an earlier operation may have ended it.
        transaction = self._timed_out(transactional_id, self._now_ms())
        if transaction is not None:
            yield from self._fencing(transaction)

    def _timed_out(self, transactional_id: str, now_ms: int) -> Transaction | None:
        """The id's transaction if it has been open for longer than its producer allows."""
        transaction = self._find(transactional_id)
        if transaction is None or transaction.state is not TransactionState.ONGOING:
            return None
        return transaction if self.times_out_at_ms(transaction) < now_ms else None

    def _forget_unused(self, now_ms: int) -> None:
        for partition, operations in enumerate(self._operations.partitions):
            if operations.loaded and self._unused(partition, now_ms):
                operations.submit(partial(self._forgetting, partition))

    def _forgetting(self, partition: int) -> _Steps[None]:
        unused = self._unused(partition, self._now_ms())
        for start in range(0, len(unused), EXPIRED_RECORDS_MAX):
            yield Write(
                [(transactional_id, None) for transactional_id in unused[start : start + EXPIRED_RECORDS_MAX]]
            )

    def _unused(self, partition: int, now_ms: int) -> list[str]:
        latest_ms = now_ms - self._settings.id_expiration_ms
        return [
            transactional_id
            for transactional_id, transaction in self._registry.of_partition(partition).items()
            if transaction.state in AT_REST
            and self._registry.times_of(transactional_id).updated_ms <= latest_ms
        ]

    # Steps that several operations take

    def _fencing(self, transaction: Transaction) -> _Steps[None]:
        """Abort the open transaction and fence its producer. The operation does not wait for the markers."""
        version = self._transaction_version()
        next_id = NO_PRODUCER_ID
        if ending.needs_next_producer_id(transaction, version):
            next_id = yield from self._new_producer_id()
        after = fenced(
            transaction, transaction_version=version, next_producer_id=next_id, wall_ms=self._wall_ms()
        )
        yield Write([record_of(after)])
        self._decided.begin(after)

    def _new_producer_id(self) -> _Steps[int]:
        reply = self._producer_ids.next_id()
        yield Settle(AllDone([reply]))
        return reply.result()

    def _markers_written(self, decided: DecidedTransaction) -> None:
        """Every partition has its marker: record that, so that the next transaction may begin."""
        reply = self._submit(decided.transaction.transactional_id, partial(self._completing, decided))
        reply.when_done(partial(self._retry_if_refused, decided))

    def _completing(self, decided: DecidedTransaction) -> _Steps[None]:
        if self._decided.is_current(decided):
            yield Write([record_of(completed(decided.transaction, self._wall_ms()))])
            self._decided.end(decided)

    def _retry_if_refused(self, decided: DecidedTransaction, reply: Completion[None]) -> None:
        if isinstance(reply.error, ApiError) and self._decided.is_current(decided):
            self._decided.retry(decided)

    # Operations

    def _submit(self, transactional_id: str, operation: Operation[TransactionRecord, _T]) -> Completion[_T]:
        """Run an operation on the id's partition; INVALID_REQUEST for an invalid id."""
        if _is_valid(transactional_id):
            return self._operations.of_key(transactional_id).submit(operation)
        return Completion.failed(_invalid())

    def _find(self, transactional_id: str) -> Transaction | None:
        return self._registry.of_partition(self.partition_of(transactional_id)).get(transactional_id)

    def _check_loaded(self, transactional_id: str) -> None:
        if not _is_valid(transactional_id):
            raise _invalid()
        self._operations.check_loaded(transactional_id)


def _is_valid(transactional_id: str) -> bool:
    return 0 < len(transactional_id.encode()) <= ID_BYTES_MAX


def _invalid() -> ApiError:
    return ApiError(ErrorCode.invalid_request, "The transactional id is empty, or too long.")


def _pass_failure_on(reply: Completion[ProducerIdentity], decided: Completion[None]) -> None:
    if decided.error is not None and not reply.done:
        reply.fail(decided.error)
