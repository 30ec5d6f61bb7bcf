"""Compacts one batch, as Apache Kafka 4.3's Cleaner does (KIP-534 for tombstones).

A record stays if no later one in the map has its key. Batches behind the map's end stay unchanged. A
tombstone, a record with a key and no value, then stays for delete.retention.ms: in its first pass its batch
gets the end of that time as the delete horizon. Records without a key are removed. Remaining records keep
their offset, timestamp, headers and codec. A batch without removed records stays unchanged, byte for byte.
The last batch of an idempotent producer stays without records, because it gives the next sequence.

Records of aborted transactions are removed at once. When no record of a transaction is left, its marker stays
for delete.retention.ms, like a tombstone, so that readers in the middle of the transaction find its end.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    reseal_batch,
)
from barnabas.protocol.record_walk import RecordSpan, record_spans
from barnabas.protocol.transaction_marker import read_marker_batch
from barnabas.protocol.varint import Buffer, zigzag_varint
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry

_NO_TIMESTAMP = -1
_EMPTY_FLAGS = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
"""The attributes that a batch without records keeps."""


@dataclass(slots=True)
class Compaction:
    """One pass. It must get every batch of the log up to the map's end, oldest first.

    `producers` has the entry of each producer by its id, with its last batch.
    """

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, ProducerSnapshotEntry]
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)

    def covers(self, base_offset: int) -> bool:
        """Whether the pass includes the segment with this base offset: the map ends above it."""
        return base_offset < self.offsets.end_offset

    def compact(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        """The rest of a whole batch: the batch itself if nothing is removed, None if everything is.

        Raises RecordFormatError if its records cannot be read.
        """
        if header.is_control:
            return self._compact_marker(batch, header) if header.producer_id >= 0 else batch
        is_aborted = self.transactions.is_aborted(header)
        if header.base_offset >= self.offsets.end_offset:
            return batch
        if is_aborted:
            return self._last_of_producer(batch, header)
        body = batch_body(batch, header)
        spans = list(record_spans(body, header.record_count))
        kept = [span for span in spans if self._stays(span, header)]
        if not kept:
            return self._last_of_producer(batch, header)
        needs_horizon = header.delete_horizon_ms is None and not all(span.has_value for span in kept)
        if needs_horizon:
            return self._with_horizon(header, body, kept)
        return batch if len(kept) == len(spans) else _without_others(header, body, kept)

    def _compact_marker(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        end = read_marker_batch(batch, header)
        is_needed = end is not None and not self.transactions.ends_nothing(header, end)
        if is_needed or header.base_offset >= self.offsets.end_offset:
            return batch
        horizon_ms = header.delete_horizon_ms
        if not header.record_count or (horizon_ms is not None and horizon_ms <= self.now_ms):
            return self._last_of_producer(batch, header)
        if horizon_ms is not None:
            return batch
        body = batch_body(batch, header)
        return self._with_horizon(header, body, list(record_spans(body, header.record_count)))

    def _stays(self, span: RecordSpan, header: BatchHeader) -> bool:
        if span.key is None or header.base_offset + span.offset_delta < self.offsets.get(span.key):
            return False
        horizon_ms = header.delete_horizon_ms
        return span.has_value or horizon_ms is None or self.now_ms < horizon_ms

    def _last_of_producer(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        """The batch without records if it is the last one of its producer; else None.

        For a producer without data in the log, the epoch of its last marker decides.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        if producer.last_offset >= 0:
            is_last = header.last_offset == producer.last_offset
        else:
            is_last = header.is_control and header.producer_epoch == producer.producer_epoch
        if not is_last:
            return None
        return empty_batch(header) if header.record_count else batch

    def _with_horizon(self, header: BatchHeader, body: bytes, kept: Sequence[RecordSpan]) -> bytes:
        """The batch with a delete horizon as its base timestamp; the timestamp deltas are relative to it."""
        horizon_ms = self.now_ms + self.delete_retention_ms
        moved_ms = header.base_timestamp_ms - horizon_ms
        pieces: list[bytes] = []
        for span in kept:
            delta = zigzag_varint(span.timestamp_delta_ms + moved_ms)
            content = body[span.content : span.content + 1] + delta + body[span.rest : span.end]
            pieces += (zigzag_varint(len(content)), content)
        horizon = header._replace(
            base_timestamp_ms=horizon_ms, attributes=header.attributes | DELETE_HORIZON_FLAG
        )
        return _resealed(horizon, b"".join(pieces), _max_timestamp_ms(header, kept), len(kept))


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without its records; it keeps its offsets, producer and timestamp."""
    emptied = header._replace(attributes=header.attributes & _EMPTY_FLAGS, base_timestamp_ms=_NO_TIMESTAMP)
    return _sealed(emptied, b"", header.max_timestamp_ms, 0)


def _without_others(header: BatchHeader, body: bytes, kept: Sequence[RecordSpan]) -> bytes:
    records = b"".join(body[span.start : span.end] for span in kept)
    return _resealed(header, records, _max_timestamp_ms(header, kept), len(kept))


def _max_timestamp_ms(header: BatchHeader, kept: Sequence[RecordSpan]) -> int:
    if header.log_append_time:
        return header.max_timestamp_ms
    return header.base_timestamp_ms + max(span.timestamp_delta_ms for span in kept)


def _resealed(header: BatchHeader, records: bytes, max_timestamp_ms: int, record_count: int) -> bytes:
    """A batch of these records in the codec of their original batch."""
    return _sealed(header, compress(header.compression, records), max_timestamp_ms, record_count)


def _sealed(header: BatchHeader, body: bytes, max_timestamp_ms: int, record_count: int) -> bytes:
    return reseal_batch(header._replace(max_timestamp_ms=max_timestamp_ms, record_count=record_count), body)
