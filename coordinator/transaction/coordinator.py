"""The transaction coordinator's way in: producers' requests, administration, timers.

Each request becomes an operation on the partition that its transactional id hashes to; operations on one
partition run one after another. An end is decided in one operation and written down as carried out in
another, so that what has to wait for a partition's log keeps no other producer waiting. Every method runs on
the loop's thread; times passed in are monotonic: ask `next_deadline_ms()`, call `expire(now_ms)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

from barnabas.coordinator.replay import steps
from barnabas.coordinator.replay.interfaces import CoordinatorLog, Stored, StoredMarker
from barnabas.coordinator.replay.key_partition import partition_of_key
from barnabas.coordinator.replay.partition_runtime import PartitionRuntime
from barnabas.coordinator.replay.steps import Operation, Settle, Write
from barnabas.coordinator.transaction import ending, initialisation, partitions
from barnabas.coordinator.transaction.decided_transactions import (
    DecidedTransaction,
    DecidedTransactions,
    being_loaded,
)
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
    Transaction,
    completed,
    fenced,
    new_transaction,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicNamePartition
from barnabas.runtime.completion import Completion

ID_BYTES_MAX = 2**15 - 1
"""Records have no place for longer ids, which newer versions of the requests do."""
EXPIRED_RECORDS_MAX = 500
"""Ids that are forgotten with one append."""

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
    ) -> None:
        """`coordinator_epoch` grows with each start; `transaction_version` is the level that is in force,
        `now_ms` monotonic and `wall_ms` the time of day; `on_deadline` is called when `next_deadline_ms` may
        have moved.
        """
        self._settings = settings
        self._producer_ids = producer_ids
        self._transaction_version = transaction_version
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._on_deadline = on_deadline
        self._log = log
        self._registry = TransactionRegistry(settings.partition_count)
        self._runtimes = [self._runtime(index) for index in range(settings.partition_count)]
        self._completions = DecidedTransactions(
            markers,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            on_written=self._markers_written,
            on_deadline=on_deadline,
        )
        self._timeout_check_ms: int | None = None
        self._expiration_check_ms = now_ms() + settings.id_expiration_check_interval_ms

    def _runtime(self, index: int) -> PartitionRuntime[TransactionRecord]:
        return PartitionRuntime(
            index,
            self._log,
            encode=lambda record: encode_record(record, self._transaction_version()),
            replay=lambda record, _: self._registry.replay(index, record),
            max_queued_operations=self._settings.max_queued_operations,
        )

    @property
    def partition_count(self) -> int:
        return len(self._runtimes)

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that keeps this id."""
        return partition_of_key(transactional_id, self.partition_count)

    # Loading

    def load(self, partition: int, records: Iterable[Stored]) -> Iterator[None]:
        """Replay a partition's log, oldest first, a record with each step; with the last one open it for
        operations, and carry out what was decided. To be gone through to its end, unless `unload` comes in
        between.

        RecordFormatError if a record is malformed; those of later kinds are passed over.
        """
        runtime = self._runtimes[partition]
        assert not runtime.loaded
        for stored in records:
            self._load(partition, stored)
            yield
        runtime.loaded = True
        for transaction in list(self._registry.of_partition(partition).values()):
            if transaction.state in PREPARED:
                self._completions.begin(transaction)
        self._expect_timeouts()

    def unload(self, partition: int) -> None:
        """Forget a partition's ids, for its log may hold less than was replayed.

        Until it is loaded again its operations, those under way included, are refused with
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._runtimes[partition].unload()
        self._completions.forget(self._registry.of_partition(partition))
        self._registry.forget_partition(partition)

    def resize(self, partition_count: int) -> None:
        """The topic has so many partitions. All that there were have been unloaded."""
        self._registry = TransactionRegistry(partition_count)
        self._runtimes = [self._runtime(index) for index in range(partition_count)]

    def _load(self, partition: int, stored: Stored) -> None:
        if isinstance(stored, StoredMarker) or stored.key is None:
            return
        record = decode_record(stored.key, stored.value)
        if record is not None:
            self._registry.replay(partition, record)

    # Producers

    def initialise(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None
    ) -> Completion[ProducerIdentity]:
        """InitProducerId; `expected` is what a producer that goes on after an error has been.

        INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, POLICY_VIOLATION for one id too many; see
        `initialisation`. CONCURRENT_TRANSACTIONS also while the transaction that is open is aborted.
        """

        def operation() -> _Steps[ProducerIdentity]:
            if not 0 < timeout_ms <= self._settings.max_timeout_ms:
                message = f"A transaction may take {self._settings.max_timeout_ms} ms at most."
                raise ApiError(ErrorCode.invalid_transaction_timeout, message)
            transaction = self._find(transactional_id)
            if transaction is None:
                transaction = yield from self._new(transactional_id, timeout_ms)
            initialisation.check_taking_over(transaction, expected)
            if transaction.state not in AT_REST:
                yield from self._fencing(transaction)
                message = "The open transaction is being aborted."
                raise ApiError(ErrorCode.concurrent_transactions, message)
            return (yield from self._initialising(transaction, timeout_ms, expected))

        return self._submit(transactional_id, operation)

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
        if initialisation.needs_new_producer_id(transaction, expected):
            new_producer_id = yield from self._new_producer_id()
        after = initialisation.initialised(
            transaction, expected, timeout_ms, self._wall_ms(), new_producer_id=new_producer_id
        )
        yield Write([record_of(after)])
        return after.producer

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        added: Collection[TopicNamePartition],
        *,
        client_version: int,
    ) -> Completion[None]:
        """AddPartitionsToTxn, AddOffsetsToTxn, or what a write adds by itself. See `partitions`."""

        def operation() -> _Steps[None]:
            known = self._find(transactional_id)
            after = partitions.added(known, producer, added, client_version, self._wall_ms())
            if after is not None:
                yield Write([record_of(after)])
                self._expect_timeouts()

        return self._submit(transactional_id, operation)

    def takes_part(
        self, transactional_id: str, producer: ProducerIdentity, partition: TopicNamePartition
    ) -> bool:
        """Whether the producer may write to the partition at this moment. See `partitions`; also
        INVALID_REQUEST, COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._check_loaded(transactional_id)
        return partitions.takes_part(self._find(transactional_id), producer, partition)

    def end(self, request: EndRequest) -> Completion[ProducerIdentity]:
        """EndTxn: answered with what the producer is from now on, once all partitions have their markers, or
        one of them could not be written at once. See `ending`.
        """
        reply = Completion[ProducerIdentity]()

        def operation() -> _Steps[None]:
            known = self._find(request.transactional_id)
            if not ending.may_end(known, request):
                assert known is not None
                return reply.complete(known.producer)
            assert known is not None
            next_id = None
            if ending.needs_next_producer_id(known, request.client_version):
                next_id = yield from self._new_producer_id()
            after = ending.ended(known, request, self._wall_ms(), next_producer_id=next_id)
            yield Write([record_of(after)])
            self._completions.begin(after, reply)

        decided = self._submit(request.transactional_id, operation)
        decided.when_done(partial(_pass_failure_on, reply))
        return reply

    # Administration

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions of one id: INVALID_REQUEST, COORDINATOR_LOAD_IN_PROGRESS,
        TRANSACTIONAL_ID_NOT_FOUND.
        """
        self._check_loaded(transactional_id)
        transaction = self._find(transactional_id)
        if transaction is None:
            raise ApiError(ErrorCode.transactional_id_not_found, "Nobody has used this transactional id.")
        return described(transaction, self._completions.remaining(transactional_id))

    @property
    def is_loaded(self) -> bool:
        """Whether every partition is: only then is it known which producer ids have a transaction."""
        return all(runtime.loaded for runtime in self._runtimes)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction of the transactional id that has this producer id now; None if none is known.

        COORDINATOR_LOAD_IN_PROGRESS while its partition is being loaded.
        """
        found = self._registry.of_producer(producer_id)
        if found is not None:
            self._check_loaded(found.transactional_id)
        return found

    def list_transactions(self, wanted: TransactionFilter) -> list[ListedTransaction]:
        """ListTransactions: COORDINATOR_LOAD_IN_PROGRESS while any partition is being loaded."""
        if not self.is_loaded:
            raise being_loaded()
        return listed(self._registry, wanted, self._wall_ms())

    # Timers

    def next_deadline_ms(self) -> int | None:
        """When (monotonic) to call `expire`."""
        deadlines_ms = (
            self._timeout_check_ms,
            self._expiration_check_ms,
            self._completions.next_deadline_ms(),
        )
        return min(one for one in deadlines_ms if one is not None)

    def expire(self, now_ms: int) -> None:
        """Write markers that could not be written, abort what takes too long, forget ids nobody uses."""
        self._completions.expire(now_ms)
        if self._timeout_check_ms is not None and self._timeout_check_ms <= now_ms:
            self._timeout_check_ms = None
            self._abort_timed_out()
            self._expect_timeouts()
        if self._expiration_check_ms <= now_ms:
            self._expiration_check_ms = now_ms + self._settings.id_expiration_check_interval_ms
            self._forget_unused()

    def _expect_timeouts(self) -> None:
        """Look at the open transactions in time, if there are any."""
        if self._timeout_check_ms is None and self._registry.has_ongoing:
            self._timeout_check_ms = self._now_ms() + self._settings.timeout_check_interval_ms
            self._on_deadline()

    def _abort_timed_out(self) -> None:
        for transactional_id in sorted(self._registry.ongoing()):
            transaction = self._find(transactional_id)
            if transaction is not None and transaction.has_timed_out(self._wall_ms()):
                self._submit(transactional_id, self._aborting(transactional_id))

    def _aborting(self, transactional_id: str) -> Operation[TransactionRecord, None]:
        def operation() -> _Steps[None]:
            # Only now: its end may have been written before this.
            transaction = self._find(transactional_id)
            if transaction is not None and transaction.has_timed_out(self._wall_ms()):
                yield from self._fencing(transaction)

        return operation

    def _forget_unused(self) -> None:
        for partition, runtime in enumerate(self._runtimes):
            if runtime.loaded and self._unused(partition):
                runtime.submit(partial(self._forgetting, partition))

    def _forgetting(self, partition: int) -> _Steps[None]:
        unused = self._unused(partition)
        for start in range(0, len(unused), EXPIRED_RECORDS_MAX):
            yield Write([(one, None) for one in unused[start : start + EXPIRED_RECORDS_MAX]])

    def _unused(self, partition: int) -> list[str]:
        latest_ms = self._wall_ms() - self._settings.id_expiration_ms
        transactions = self._registry.of_partition(partition).values()
        return [
            one.transactional_id
            for one in transactions
            if one.state in AT_REST and one.updated_at_ms <= latest_ms
        ]

    # Steps that several operations take

    def _fencing(self, transaction: Transaction) -> _Steps[None]:
        """Abort the open transaction, and have its producer fenced. Nobody waits for the markers."""
        version = self._transaction_version()
        next_id = NO_PRODUCER_ID
        if ending.needs_next_producer_id(transaction, version):
            next_id = yield from self._new_producer_id()
        after = fenced(
            transaction, transaction_version=version, next_producer_id=next_id, wall_ms=self._wall_ms()
        )
        yield Write([record_of(after)])
        self._completions.begin(after)

    def _new_producer_id(self) -> _Steps[int]:
        reply = self._producer_ids.next_id()
        yield Settle([reply])
        return reply.result()

    def _markers_written(self, completion: DecidedTransaction) -> None:
        """Every partition has its marker: write that down, and the next transaction may begin."""

        def operation() -> _Steps[None]:
            if self._completions.is_current(completion):
                yield Write([record_of(completed(completion.transaction, self._wall_ms()))])
                self._completions.end(completion)

        def on_done(reply: Completion[None]) -> None:
            try:
                reply.result()
            except ApiError:
                if self._completions.is_current(completion):
                    self._completions.retry(completion)

        self._submit(completion.transaction.transactional_id, operation).when_done(on_done)

    # Operations

    def _submit(self, transactional_id: str, operation: Operation[TransactionRecord, _T]) -> Completion[_T]:
        """Also INVALID_REQUEST, for an id that cannot be one."""
        if _is_valid(transactional_id):
            return self._runtimes[self.partition_of(transactional_id)].submit(operation)
        return Completion.failed(_invalid())

    def _find(self, transactional_id: str) -> Transaction | None:
        return self._registry.of_partition(self.partition_of(transactional_id)).get(transactional_id)

    def _check_loaded(self, transactional_id: str) -> None:
        if not _is_valid(transactional_id):
            raise _invalid()
        if not self._runtimes[self.partition_of(transactional_id)].loaded:
            raise being_loaded()


def _is_valid(transactional_id: str) -> bool:
    return 0 < len(transactional_id.encode()) <= ID_BYTES_MAX


def _invalid() -> ApiError:
    return ApiError(ErrorCode.invalid_request, "The transactional id is empty, or too long.")


def _pass_failure_on(reply: Completion[ProducerIdentity], decided: Completion[None]) -> None:
    try:
        decided.result()
    except Exception as error:
        if not reply.done:
            reply.fail(error)
