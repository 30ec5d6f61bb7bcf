"""What the transaction coordinator needs from outside beyond its log."""

from __future__ import annotations

from typing import Protocol

from barnabas.coordinator.replay.interfaces import TransactionMarker
from barnabas.protocol.identity import TopicNamePartition
from barnabas.runtime.completion import Completion


class MarkerWriter(Protocol):
    """Whoever leads the partitions that take part in transactions."""

    def write_marker(self, partition: TopicNamePartition, marker: TransactionMarker) -> Completion[None]:
        """Have the end of a transaction written to a partition; nothing is to be done if that is gone.

        Fails with INVALID_PRODUCER_EPOCH if the log knows a newer producer of the same id, else with the
        reason why the log cannot be written now.
        """
        ...


class ProducerIdSource(Protocol):
    """Where producer ids come from, each once."""

    def next_id(self) -> Completion[int]: ...
