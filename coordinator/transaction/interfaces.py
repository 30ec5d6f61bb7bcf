"""The needs of the transaction coordinator besides its log."""

from __future__ import annotations

from typing import Protocol

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.coordinator.transaction.transaction import Participant
from barnabas.runtime.completion import Completion


class MarkerWriter(Protocol):
    """Writes to the partitions that take part in transactions."""

    def write_marker(self, participant: Participant, marker: TransactionMarker) -> Completion[None]:
        """Write the end of a transaction to a partition, or record its effect in a share-partition; does
        nothing if the partition or the share group was deleted.

        Fails with INVALID_PRODUCER_EPOCH if the log knows a newer producer of the same id, otherwise with the
        reason why the log cannot be written now. Raises nothing: the end of the transaction waits for it.
        """
        ...


class ProducerIdSource(Protocol):
    """A source of producer ids; it gives each id once."""

    def next_id(self) -> Completion[int]: ...
