"""The transactions in a pass over a log: the aborted batches, and the markers without remaining batches, as
in Apache Kafka 4.3's CleanedTransactionMetadata.

Batches must come in the order of the log, from its beginning or from an offset before the cleaned part. All
aborted transactions are known beforehand. All others count as committed, which is correct below the last
stable offset. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.storage.format.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions at the pass's present offset, by producer id. `aborted` may be in any order."""

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self.kept_markers: set[int] = set()
        """The offsets of the abort markers whose transactions have batches; the index keeps their entries."""
        self._coming = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborted: dict[int, bool] = {}
        """The aborted transactions that have begun, and whether the pass found a batch of each."""
        self._committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Notes a data batch; returns whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if producer_id in self._aborted:
            self._aborted[producer_id] = True
            return True
        self._committed.add(producer_id)
        return False

    def ends_nothing(self, header: BatchHeader, end: TransactionEnd) -> bool:
        """Notes a marker; returns whether the pass found no batch of its transaction."""
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if end.commit:
            was_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_met
        if not self._aborted.pop(producer_id, False):
            return True
        self.kept_markers.add(header.last_offset)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0].first_offset <= offset:
            self._aborted.setdefault(self._coming.popleft().producer_id, False)
