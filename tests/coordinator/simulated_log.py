"""A coordinator's log that ends appends at once, when told to, or badly."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.coordinator.reply import CoordinatorReply
from barnabas.coordinator.runtime.interfaces import StoredRecord
from barnabas.protocol.errors import ApiError, ErrorCode


class SimulatedTicket:
    """A ticket that ends when told to."""

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None
        self.base_offset = -1
        self._callbacks: list[Callable[[Any], None]] = []

    def end(self, error: Exception | None = None) -> None:
        self.done = True
        self.error = error
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Any], None], /) -> None:
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)


class Batch(NamedTuple):
    """An append as the log got it."""

    partition: int
    records: list[tuple[bytes, bytes | None]]
    ticket: SimulatedTicket


@dataclass
class SimulatedLog:
    """Appends end at once, unless `held`, or badly, if `failing`."""

    held: bool = False
    failing: bool = False
    batches: list[Batch] = field(default_factory=list[Batch])
    """What is in the log, oldest first."""
    waiting: list[Batch] = field(default_factory=list[Batch])
    """What was appended while held, and has not ended."""

    def append(self, partition: int, records: list[tuple[bytes, bytes | None]]) -> SimulatedTicket:
        batch = Batch(partition, records, SimulatedTicket())
        self.waiting.append(batch)
        if not self.held:
            self.release()
        return batch.ticket

    def release(self) -> None:
        """End the oldest append that waits."""
        batch = self.waiting.pop(0)
        if self.failing:
            batch.ticket.end(OSError("no space left"))
        else:
            batch.ticket.base_offset = len(self.stored(batch.partition))
            self.batches.append(batch)
            batch.ticket.end()

    def stored(self, partition: int) -> list[StoredRecord]:
        """What a partition holds."""
        batches = [batch for batch in self.batches if batch.partition == partition]
        records = [record for batch in batches for record in batch.records]
        return [StoredRecord(offset, key, value) for offset, (key, value) in enumerate(records)]


def error_of(reply: CoordinatorReply[Any]) -> ErrorCode:
    """The code with which an operation was refused; `none` if it was not."""
    try:
        reply.result()
    except ApiError as error:
        return error.code
    return ErrorCode.none
