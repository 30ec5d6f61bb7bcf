"""The idempotent producers of a log (KIP-98), and the checks that append each batch only once.

A producer's batches have consecutive sequence numbers in a partition. The last five batches of each producer
are kept: a repetition of one of them gets the result of the first append, any other batch out of sequence is
refused. An entry also has the first offset of the producer's open transaction (`transaction_checks` has the
checks for transactions). Entries are immutable, so that the checks of waiting appends can build on each other
before any of them is written. Pure: `producer_snapshots` has the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, BatchHeader
from barnabas.protocol.transaction_marker import TransactionEnd
from barnabas.runtime.moment import Moment
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry
from barnabas.storage.format.transaction_index import AbortedTransaction
from barnabas.storage.producers.open_transactions import (
    OpenTransactions,
    TransactionBegun,
    TransactionEnded,
    TransactionStep,
)

KEPT_BATCHES_MAX = 5
_SEQUENCE_COUNT = 2**31
_NONE = -1


class ProducedSequence(NamedTuple):
    """An appended batch: sequences and offsets, both ends inclusive, and its largest timestamp."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerEntry(NamedTuple):
    """One producer: its newest epoch and the last batches of that epoch, oldest first.

    `coordinator_epoch` is that of its last marker, -1 before the first. `transaction_first_offset` is the
    first offset of its open transaction, -1 without one.
    """

    producer_epoch: int
    batches: tuple[ProducedSequence, ...]
    timestamp_ms: int
    coordinator_epoch: int = _NONE
    transaction_first_offset: int = _NONE

    @property
    def is_in_transaction(self) -> bool:
        return self.transaction_first_offset >= 0


class _Idle(NamedTuple):
    """A producer at the last look for idle ones."""

    entry: ProducerEntry
    since_ms: int
    """Since when (monotonic) it is known to have this entry."""


class ProducerState:
    """The producers of one log, by producer id."""

    __slots__ = ("_entries", "_idle", "changed", "open_transactions")

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}
        self._idle: dict[int, _Idle] = {}
        self.open_transactions = OpenTransactions()
        self.changed = False
        """Whether anything changed since the last snapshot; the writer of snapshots resets it."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def update(self, entries: Mapping[int, ProducerEntry]) -> None:
        """Replaces the entries of producers after an append."""
        self._entries.update(entries)
        self.changed = True

    def expire_loaded(self, moment: Moment, expiration_ms: int) -> None:
        """`expire` after a load: the timestamps of their batches tell how long the producers were idle."""
        self._idle = {
            producer_id: _Idle(entry, moment.monotonic_of(entry.timestamp_ms))
            for producer_id, entry in self._entries.items()
        }
        self.expire(moment.now_ms, expiration_ms)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forgets the producers without an append for `expiration_ms` and without an open transaction.

        `now_ms` is monotonic. The idle time of a producer counts from the first call behind its last append,
        so calls must be frequent compared to `expiration_ms`.
        """
        idle: dict[int, _Idle] = {}
        for producer_id, entry in list(self._entries.items()):
            last = self._idle.get(producer_id)
            if last is None or last.entry is not entry:
                last = _Idle(entry, now_ms)
            if now_ms - last.since_ms >= expiration_ms and not entry.is_in_transaction:
                del self._entries[producer_id]
                self.changed = True
            else:
                idle[producer_id] = last
        self._idle = idle

    def take_steps(self, steps: Sequence[TransactionStep]) -> list[AbortedTransaction]:
        """Notes the begins and ends of transactions; returns the aborted ones for the index."""
        taken = [self.open_transactions.take(step) for step in steps]
        return [aborted for aborted in taken if aborted is not None]

    def replay(self, header: BatchHeader, end: TransactionEnd | None = None) -> AbortedTransaction | None:
        """Replays a batch of the log, which was checked when it was appended; `end` is the content of a
        marker.

        Returns the index entry of a transaction that it aborted.
        """
        producer_id, entry = header.producer_id, self._entries.get(header.producer_id)
        if producer_id < 0 or (header.is_control and end is None):
            return None
        if end is None:
            after = entry_after(entry, header, header.base_offset, header.max_timestamp_ms)
        else:
            after = entry_after_marker(entry, header.producer_epoch, end, header.max_timestamp_ms)
        self._entries[producer_id] = after
        self.changed = True
        is_aborted = end is not None and not end.commit
        step = transaction_step(producer_id, entry, after, header.base_offset, is_aborted=is_aborted)
        return None if step is None else self.open_transactions.take(step)

    def copy(self) -> ProducerState:
        """A copy for a thread or for later use; cheap, because the immutable entries are shared."""
        return self._of(self._entries.copy())

    def to_snapshot(self) -> list[ProducerSnapshotEntry]:
        """The entries of a snapshot file."""
        return [_to_snapshot(producer_id, entry) for producer_id, entry in self._entries.items()]

    @classmethod
    def from_snapshot(cls, entries: Iterable[ProducerSnapshotEntry]) -> ProducerState:
        return cls._of({entry.producer_id: _from_snapshot(entry) for entry in entries})

    @classmethod
    def _of(cls, entries: dict[int, ProducerEntry]) -> ProducerState:
        state = cls()
        state._entries = entries
        state.open_transactions = OpenTransactions(
            (producer_id, entry.transaction_first_offset)
            for producer_id, entry in entries.items()
            if entry.is_in_transaction
        )
        return state


def find_duplicate(entry: ProducerEntry | None, header: BatchHeader) -> ProducedSequence | None:
    """The first append of the batch, if it repeats one of the last five batches of its producer's epoch."""
    if entry is None or entry.producer_epoch != header.producer_epoch:
        return None
    last_sequence = _last_sequence(header)
    for batch in entry.batches:
        if batch.first_sequence == header.base_sequence and batch.last_sequence == last_sequence:
            return batch
    return None


def check_epoch(entry: ProducerEntry | None, producer_id: int, producer_epoch: int) -> None:
    """Raises ApiError, INVALID_PRODUCER_EPOCH, for a producer that a newer epoch has fenced."""
    if entry is not None and producer_epoch < entry.producer_epoch:
        raise _fenced(entry, producer_id, producer_epoch)


def check_sequence(entry: ProducerEntry | None, header: BatchHeader, *, from_zero: bool = False) -> None:
    """Raises ApiError as Kafka 4.3.1 does (ProducerAppendInfo) unless the batch is its producer's next one.

    INVALID_PRODUCER_EPOCH as `check_epoch`; OUT_OF_ORDER_SEQUENCE_NUMBER if the sequence is not the next one,
    or not 0 in a new epoch. An unknown producer may begin with any sequence, because its entry may have been
    deleted with the records or have expired. With `from_zero` it must begin with 0.
    """
    is_known = entry is not None and entry.producer_epoch != _NONE
    if not is_known and not from_zero:
        return
    if entry is not None and header.producer_epoch < entry.producer_epoch:
        raise _fenced(entry, header.producer_id, header.producer_epoch)
    expected = 0
    if entry is not None and header.producer_epoch == entry.producer_epoch and entry.batches:
        expected = sequence_plus(entry.batches[-1].last_sequence, 1)
    if header.base_sequence != expected:
        raise ApiError(
            ErrorCode.out_of_order_sequence_number,
            f"Producer {header.producer_id} sent the sequence {header.base_sequence} instead of {expected}.",
        )


def _fenced(entry: ProducerEntry, producer_id: int, producer_epoch: int) -> ApiError:
    return ApiError(
        ErrorCode.invalid_producer_epoch,
        f"Producer {producer_id} has the epoch {producer_epoch}; "
        f"the last one seen is {entry.producer_epoch}.",
    )


def entry_after(
    entry: ProducerEntry | None, header: BatchHeader, base_offset: int, timestamp_ms: int
) -> ProducerEntry:
    """The producer's entry after the append of a data batch at `base_offset`."""
    appended = ProducedSequence(
        header.base_sequence,
        _last_sequence(header),
        base_offset,
        base_offset + header.last_offset_delta,
        timestamp_ms,
    )
    kept: tuple[ProducedSequence, ...] = ()
    coordinator_epoch = first_offset = _NONE
    if entry is not None:
        kept = entry.batches if entry.producer_epoch == header.producer_epoch else ()
        coordinator_epoch, first_offset = entry.coordinator_epoch, entry.transaction_first_offset
    if header.attributes & TRANSACTIONAL_FLAG and first_offset < 0:
        first_offset = base_offset
    batches = (*kept[1 - KEPT_BATCHES_MAX :], appended)
    return ProducerEntry(header.producer_epoch, batches, timestamp_ms, coordinator_epoch, first_offset)


def entry_after_marker(
    entry: ProducerEntry | None, producer_epoch: int, end: TransactionEnd, timestamp_ms: int
) -> ProducerEntry:
    """The producer's entry after a marker, which ends its transaction if it has one."""
    same_epoch = entry is not None and entry.producer_epoch == producer_epoch
    batches = entry.batches if entry is not None and same_epoch else ()
    return ProducerEntry(producer_epoch, batches, timestamp_ms, end.coordinator_epoch)


def transaction_step(
    producer_id: int,
    before: ProducerEntry | None,
    after: ProducerEntry,
    base_offset: int,
    *,
    is_aborted: bool = False,
) -> TransactionStep | None:
    """The start or end of a transaction by the batch at `base_offset`; None if it did neither.

    `before` and `after` are the producer's entries before and after the batch.
    """
    was_open = before is not None and before.is_in_transaction
    if was_open == after.is_in_transaction:
        return None
    if was_open:
        return TransactionEnded(producer_id, base_offset, is_aborted)
    return TransactionBegun(producer_id, base_offset)


def _last_sequence(header: BatchHeader) -> int:
    """The sequence of the last record; -1 for a batch without sequences, such as the broker's own."""
    if header.base_sequence < 0:
        return _NONE
    return sequence_plus(header.base_sequence, header.last_offset_delta)


def sequence_plus(sequence: int, count: int) -> int:
    """The sequence `count` later. Sequences count from 0 to 2^31 - 1 and begin again."""
    return (sequence + count) % _SEQUENCE_COUNT


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
        has_sequence = entry.last_sequence >= 0
        batches = (
            ProducedSequence(
                (entry.last_sequence - entry.offset_delta) % _SEQUENCE_COUNT if has_sequence else _NONE,
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
