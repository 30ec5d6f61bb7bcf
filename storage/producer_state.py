"""What a log knows of its idempotent producers (KIP-98), and the checks by which a batch is taken once.

A producer's batches carry consecutive sequence numbers per partition. Of each producer the last five batches
are kept: one of them sent again is answered as it was the first time, anything else out of sequence is
refused. Entries are immutable, so that the checks for what waits to be written can build on each other before
any of it counts. Pure: the snapshot files are written by `flush` and read by `recovery`. Transactions are
none of its subject beyond keeping what a snapshot says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import CONTROL_FLAG, BatchHeader
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry

KEPT_BATCHES_MAX = 5
_SEQUENCE_COUNT = 2**31
_NONE = -1


class ProducedSequence(NamedTuple):
    """A batch that was appended: sequences and offsets, both ends inclusive, and its largest timestamp."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerEntry(NamedTuple):
    """One producer: its newest epoch and the last batches of that epoch, oldest first."""

    producer_epoch: int
    batches: tuple[ProducedSequence, ...]
    timestamp_ms: int
    coordinator_epoch: int = _NONE
    transaction_first_offset: int = _NONE


class ProducerState:
    """The producers of one log, by producer id."""

    __slots__ = ("_entries", "changed")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self.changed = False
        """Whether anything changed since whoever writes snapshots set this to False."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def update(self, entries: Mapping[int, ProducerEntry]) -> None:
        """Takes over what was appended."""
        self._entries.update(entries)
        self.changed = True

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets the producers that appended nothing for `expiration_ms` and have no transaction open."""
        expired = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.transaction_first_offset < 0 and now_ms - entry.timestamp_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]
            self.changed = True

    def replay(self, header: BatchHeader) -> None:
        """Takes in a batch found in the log, which was checked when it was appended."""
        if header.producer_id < 0:
            return
        entry = self._entries.get(header.producer_id)
        if header.attributes & CONTROL_FLAG:
            after = _after_marker(entry, header)
        else:
            after = entry_after(entry, header, header.base_offset, header.max_timestamp_ms)
        self._entries[header.producer_id] = after
        self.changed = True

    def copy(self) -> ProducerState:
        """The producers as they are now, for a thread or for later; cheap, since the entries are shared."""
        copied = ProducerState()
        copied._entries = self._entries.copy()
        return copied

    def to_snapshot(self) -> list[ProducerSnapshotEntry]:
        """What a snapshot file keeps of each producer."""
        return [_to_snapshot(producer_id, entry) for producer_id, entry in self._entries.items()]

    @classmethod
    def from_snapshot(cls, entries: Iterable[ProducerSnapshotEntry]) -> ProducerState:
        state = cls()
        state._entries = {entry.producer_id: _from_snapshot(entry) for entry in entries}
        return state


def find_duplicate(entry: ProducerEntry | None, header: BatchHeader) -> ProducedSequence | None:
    """The batch as it was appended before, if it is one of the last five of its producer's epoch."""
    if entry is None or entry.producer_epoch != header.producer_epoch:
        return None
    last_sequence = sequence_plus(header.base_sequence, header.last_offset_delta)
    for batch in entry.batches:
        if batch.first_sequence == header.base_sequence and batch.last_sequence == last_sequence:
            return batch
    return None


def check_sequence(entry: ProducerEntry | None, header: BatchHeader) -> None:
    """Raises ApiError as Kafka 4.3.1 does (ProducerAppendInfo) unless the batch is its producer's next one.

    INVALID_PRODUCER_EPOCH from a producer that a newer one has fenced off; OUT_OF_ORDER_SEQUENCE_NUMBER if
    the sequence isn't the next, or not 0 in a new epoch. Of a producer that isn't known, any sequence is
    taken: what was known may have been deleted with the records, or have expired.
    """
    if entry is None or entry.producer_epoch == _NONE:
        return
    if header.producer_epoch < entry.producer_epoch:
        raise ApiError(
            ErrorCode.invalid_producer_epoch,
            f"Producer {header.producer_id} has the epoch {header.producer_epoch}; "
            f"the last one seen is {entry.producer_epoch}.",
        )
    expected = 0
    if header.producer_epoch == entry.producer_epoch and entry.batches:
        expected = sequence_plus(entry.batches[-1].last_sequence, 1)
    if header.base_sequence != expected:
        raise ApiError(
            ErrorCode.out_of_order_sequence_number,
            f"Producer {header.producer_id} sent the sequence {header.base_sequence} instead of {expected}.",
        )


def entry_after(
    entry: ProducerEntry | None, header: BatchHeader, base_offset: int, timestamp_ms: int
) -> ProducerEntry:
    """The producer's entry once the batch is appended at `base_offset`."""
    appended = ProducedSequence(
        header.base_sequence,
        sequence_plus(header.base_sequence, header.last_offset_delta),
        base_offset,
        base_offset + header.last_offset_delta,
        timestamp_ms,
    )
    if entry is None:
        return ProducerEntry(header.producer_epoch, (appended,), timestamp_ms)
    kept = entry.batches if entry.producer_epoch == header.producer_epoch else ()
    batches = (*kept[1 - KEPT_BATCHES_MAX :], appended)
    return ProducerEntry(header.producer_epoch, batches, timestamp_ms, *entry[3:])


def sequence_plus(sequence: int, count: int) -> int:
    """Sequences count from 0 to 2^31 - 1 and begin again."""
    return (sequence + count) % _SEQUENCE_COUNT


def _after_marker(entry: ProducerEntry | None, header: BatchHeader) -> ProducerEntry:
    same_epoch = entry is not None and entry.producer_epoch == header.producer_epoch
    batches = entry.batches if entry is not None and same_epoch else ()
    return ProducerEntry(header.producer_epoch, batches, header.max_timestamp_ms)


def _to_snapshot(producer_id: int, entry: ProducerEntry) -> ProducerSnapshotEntry:
    last_sequence, last_offset, offset_delta = _NONE, _NONE, 0
    if entry.batches:
        last = entry.batches[-1]
        last_sequence, last_offset = last.last_sequence, last.last_offset
        offset_delta = last.last_offset - last.base_offset
    return ProducerSnapshotEntry(
        producer_id,
        entry.producer_epoch,
        last_sequence,
        last_offset,
        offset_delta,
        entry.timestamp_ms,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )


def _from_snapshot(entry: ProducerSnapshotEntry) -> ProducerEntry:
    batches: tuple[ProducedSequence, ...] = ()
    if entry.last_offset >= 0:
        batches = (
            ProducedSequence(
                (entry.last_sequence - entry.offset_delta) % _SEQUENCE_COUNT,
                entry.last_sequence,
                entry.last_offset - entry.offset_delta,
                entry.last_offset,
                entry.timestamp_ms,
            ),
        )
    return ProducerEntry(
        entry.producer_epoch,
        batches,
        entry.timestamp_ms,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
