"""A coordinator's log whose appends end at once, on request, or with an error."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.coordinator.replay.interfaces import (
    NO_PRODUCER_ID,
    Stored,
    StoredMarker,
    StoredRecord,
    TransactionMarker,
)
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from barnabas.runtime.completion import Completion
from barnabas.storage.log.appended import Append, Appended


class Batch(NamedTuple):
    """An append as the log got it."""

    partition: int
    records: list[tuple[bytes, bytes | None]]
    append: Append
    producer: ProducerIdentity | None = None
    """Whose transaction the records belong to."""
    marker: TransactionMarker | None = None
    """Instead of records."""


@dataclass
class SimulatedLog:
    """Appends end at once, wait if `held`, or fail if `failing`."""

    held: bool = False
    failing: bool = False
    fails_after: int | None = None
    """The number of appends that still succeed."""
    batches: list[Batch] = field(default_factory=list[Batch])
    """The log's batches, oldest first."""
    waiting: list[Batch] = field(default_factory=list[Batch])
    """Appends that were held, and have not ended."""

    def append(
        self,
        partition: int,
        records: list[tuple[bytes, bytes | None]],
        producer: ProducerIdentity | None = None,
    ) -> Append:
        return self._take(Batch(partition, records, Append(), producer))

    def append_marker(self, partition: int, marker: TransactionMarker) -> Append:
        return self._take(Batch(partition, [], Append(), marker=marker))

    def _take(self, batch: Batch) -> Append:
        self.waiting.append(batch)
        if not self.held:
            self.release()
        return batch.append

    def release(self) -> None:
        """End the oldest append that waits."""
        batch = self.waiting.pop(0)
        if self.failing or self.fails_after == 0:
            batch.append.fail(OSError("no space left"))
        else:
            if self.fails_after is not None:
                self.fails_after -= 1
            base_offset = len(self.stored(batch.partition))
            self.batches.append(batch)
            last_offset = base_offset + max(len(batch.records), 1) - 1
            batch.append.complete(Appended(base_offset, last_offset, -1, 0))

    def fail_waiting(self) -> None:
        """All waiting appends fail; later ones succeed."""
        self.held, self.failing = False, True
        while self.waiting:
            self.release()
        self.failing = False

    def stored(self, partition: int) -> list[Stored]:
        """The records of a partition."""
        found: list[Stored] = []
        for batch in self.batches:
            if batch.partition == partition:
                found += _stored(batch, len(found))
        return found

    def stored_records(self, partition: int) -> list[StoredRecord]:
        """The same without the ends of transactions."""
        return [one for one in self.stored(partition) if isinstance(one, StoredRecord)]


def _stored(batch: Batch, base_offset: int) -> list[Stored]:
    if batch.marker is not None:
        return [StoredMarker(base_offset, batch.marker.producer.producer_id, batch.marker.commit)]
    producer_id = NO_PRODUCER_ID if batch.producer is None else batch.producer.producer_id
    return [
        StoredRecord(offset, key, value, producer_id)
        for offset, (key, value) in enumerate(batch.records, base_offset)
    ]


def take_all(steps: Iterator[None]) -> None:
    """Take all the steps of a load."""
    deque(steps, maxlen=0)


def error_of(reply: Completion[Any]) -> ErrorCode:
    """The code with which an operation was refused; `none` if it was not."""
    try:
        reply.result()
    except ApiError as error:
        return error.code
    return ErrorCode.none
