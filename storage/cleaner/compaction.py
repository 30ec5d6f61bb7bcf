"""What compaction leaves of a batch, as in Apache Kafka 4.3's Cleaner (KIP-534 for tombstones).

A record stays if no later one in the map has its key; batches behind the map's end stay as they are. A
tombstone, a record with a key and no value, then stays for delete.retention.ms more: the first time that it
is met its batch gets that time as the delete horizon. Records without a key go. What stays keeps its offset,
timestamp, headers and codec; a batch of which nothing goes stays as it is, byte for byte. An idempotent
producer's last batch stays without records, since it tells the next sequence. Transactions are none of its
business: their batches and markers stay untouched, and so do the tombstones behind them, which may be about
their records. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.protocol.compression import compress
from barnabas.protocol.record_batch import (
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    seal_batch,
)
from barnabas.protocol.record_spans import RecordSpan, batch_body, record_spans
from barnabas.protocol.varint import Buffer, zigzag_varint
from barnabas.storage.cleaner.offset_map import OffsetMap

_NO_TIMESTAMP = -1


@dataclass(slots=True)
class Compaction:
    """One pass, which is to be shown every batch of the log up to the map's end, oldest first.

    `last_offsets` has, by producer id, where the last batch of each ends.
    """

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    last_offsets: Mapping[int, int]
    keeps_tombstones: bool = False
    """Whether there were records of a transaction."""

    def compact(self, batch: Buffer, header: BatchHeader) -> Buffer | None:
        """What stays of a whole batch of data, itself if that is all; None if nothing.

        RecordFormatError if its records cannot be read.
        """
        self.keeps_tombstones |= header.is_transactional and not header.is_control
        if header.is_transactional or header.is_control or header.base_offset >= self.offsets.end_offset:
            return batch
        body = batch_body(batch, header)
        spans = list(record_spans(body, header.record_count))
        kept = [span for span in spans if self._stays(span, header)]
        if not kept:
            return empty_batch(header) if self._ends_producer(header) else None
        needs_horizon = header.delete_horizon_ms is None and not all(span.has_value for span in kept)
        if needs_horizon:
            return self._with_horizon(header, body, kept)
        return batch if len(kept) == len(spans) else _without_others(header, body, kept)

    def _stays(self, span: RecordSpan, header: BatchHeader) -> bool:
        if span.key is None or header.base_offset + span.offset_delta < self.offsets.get(span.key):
            return False
        horizon_ms = header.delete_horizon_ms
        return span.has_value or horizon_ms is None or self.now_ms < horizon_ms or self.keeps_tombstones

    def _ends_producer(self, header: BatchHeader) -> bool:
        return header.producer_id >= 0 and self.last_offsets.get(header.producer_id) == header.last_offset

    def _with_horizon(self, header: BatchHeader, body: bytes, kept: Sequence[RecordSpan]) -> bytes:
        """The batch with a delete horizon as its base timestamp, to which the deltas then refer."""
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
    """The batch without its records: its offsets, producer and timestamp are all that it still tells."""
    emptied = header._replace(
        attributes=header.attributes & LOG_APPEND_TIME_FLAG, base_timestamp_ms=_NO_TIMESTAMP
    )
    return _sealed(emptied, b"", header.max_timestamp_ms, 0)


def _without_others(header: BatchHeader, body: bytes, kept: Sequence[RecordSpan]) -> bytes:
    records = b"".join(body[span.start : span.end] for span in kept)
    return _resealed(header, records, _max_timestamp_ms(header, kept), len(kept))


def _max_timestamp_ms(header: BatchHeader, kept: Sequence[RecordSpan]) -> int:
    if header.log_append_time:
        return header.max_timestamp_ms
    return header.base_timestamp_ms + max(span.timestamp_delta_ms for span in kept)


def _resealed(header: BatchHeader, records: bytes, max_timestamp_ms: int, record_count: int) -> bytes:
    """A batch of these records in the codec of the one that they come from."""
    return _sealed(header, compress(header.compression, records), max_timestamp_ms, record_count)


def _sealed(header: BatchHeader, body: bytes, max_timestamp_ms: int, record_count: int) -> bytes:
    return seal_batch(
        body,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=record_count,
    )
