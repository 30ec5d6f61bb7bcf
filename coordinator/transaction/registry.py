"""All transactional ids of this coordinator, by partition of its topic, changed by replay only.

Each id has monotonic times beside the times of day of its records: they decide when a transaction has taken
too long, and when an id has been unused for too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.coordinator.transaction.record_factory import TransactionRecord
from barnabas.coordinator.transaction.transaction import AT_REST, NO_TIME, Transaction, TransactionState
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.moment import MonotonicOf


class TransactionTimes(NamedTuple):
    """The monotonic times of one id."""

    began_ms: int
    """When its newest transaction began; without one as `updated_ms`."""
    updated_ms: int
    """When its newest record was written."""


class TransactionRegistry:
    """The state of each id after its newest record."""

    def __init__(self, partition_count: int) -> None:
        self._partitions: list[dict[str, Transaction]] = [{} for _ in range(partition_count)]
        self._times: dict[str, TransactionTimes] = {}
        self._ongoing: set[str] = set()
        self._by_producer_id: dict[int, Transaction] = {}
        self._acknowledging: Counter[SharePartitionKey] = Counter()
        """The number of transactions in which each share-partition takes part."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Transaction]:
        for partition in self._partitions:
            yield from partition.values()

    def of_partition(self, partition: int) -> Mapping[str, Transaction]:
        return self._partitions[partition]

    def times_of(self, transactional_id: str) -> TransactionTimes:
        """The times of a known id."""
        return self._times[transactional_id]

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction of the id that has this producer id now."""
        return self._by_producer_id.get(producer_id)

    def has_acknowledgements(self, key: SharePartitionKey) -> bool:
        """Whether the share-partition takes part in a transaction that has not ended."""
        return key in self._acknowledging

    def ongoing(self) -> frozenset[str]:
        """The ids with an open transaction."""
        return frozenset(self._ongoing)

    @property
    def has_ongoing(self) -> bool:
        return bool(self._ongoing)

    def replay(self, partition: int, record: TransactionRecord, monotonic_of: MonotonicOf) -> None:
        """Apply a record; a tombstone of an unknown id is ignored."""
        transactional_id, transaction = record
        ids = self._partitions[partition]
        self._count += (transaction is not None) - (transactional_id in ids)
        before = ids.get(transactional_id)
        if before is not None:
            self._by_producer_id.pop(before.producer_id, None)
            self._forget_acknowledgements(before)
        if transaction is None:
            ids.pop(transactional_id, None)
            self._times.pop(transactional_id, None)
        else:
            self._times[transactional_id] = self._times_after(before, transaction, monotonic_of)
            ids[transactional_id] = self._by_producer_id[transaction.producer_id] = transaction
            self._acknowledging.update(transaction.acknowledgements)
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self._ongoing.add(transactional_id)
        else:
            self._ongoing.discard(transactional_id)

    def forget_partition(self, partition: int) -> None:
        """Forget the ids of that partition."""
        ids = self._partitions[partition]
        self._ongoing.difference_update(ids)
        for transaction in ids.values():
            del self._times[transaction.transactional_id]
            self._by_producer_id.pop(transaction.producer_id, None)
            self._forget_acknowledgements(transaction)
        self._count -= len(ids)
        ids.clear()

    def _times_after(
        self, before: Transaction | None, after: Transaction, monotonic_of: MonotonicOf
    ) -> TransactionTimes:
        updated_ms = monotonic_of(after.updated_at_ms)
        if after.started_at_ms == NO_TIME:
            return TransactionTimes(updated_ms, updated_ms)
        # Compaction may leave records of two open transactions one behind the other.
        goes_on = (
            before is not None
            and before.started_at_ms == after.started_at_ms
            and (before.state not in AT_REST or after.state in AT_REST)
        )
        if goes_on:
            return self._times[after.transactional_id]._replace(updated_ms=updated_ms)
        return TransactionTimes(monotonic_of(after.started_at_ms), updated_ms)

    def _forget_acknowledgements(self, transaction: Transaction) -> None:
        for key in transaction.acknowledgements:
            self._acknowledging[key] -= 1
            if not self._acknowledging[key]:
                del self._acknowledging[key]
