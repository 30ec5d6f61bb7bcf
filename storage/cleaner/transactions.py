"""What a pass over a log has met of transactions: which batches were aborted, and which markers end nothing
that is left, as in Apache Kafka 4.3's CleanedTransactionMetadata.

Batches are shown in the order of the log, from its beginning or from anywhere before what is asked about. All
transactions that were aborted are known beforehand; any other counts as committed, which is right below the
last stable offset. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.storage.format.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions that the pass is in, by producer id. `aborted` come in any order."""

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self.kept_markers: set[int] = set()
        """The offsets of the abort markers behind batches that were met: the index goes on naming them."""
        self._coming = deque(sorted(aborted, key=lambda one: one.first_offset))
        self._aborted: dict[int, bool] = {}
        """Whether any batch of it was met."""
        self._committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Takes in a batch of data; whether its transaction was aborted."""
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
        """Takes in a marker; whether no batch of its transaction was met."""
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
