"""Reads the batches of a log that may have records in a hash range, and leaves out the others.

A consumer that shares a partition by hashes of keys reads this way. Control batches are left out: they have
no keys. For a reader of committed records the batches of aborted transactions are left out, too, so it needs
neither the list of these transactions nor their markers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from barnabas.storage.reading.batch_buckets import buckets_of_batch
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan
from barnabas.storage.reading.read_errors import Reads
from barnabas.storage.reading.reader import Reader
from barnabas.storage.reading.transaction_lookup import aborted_between
from barnabas.storage.state.log_state import LogState

_ATTRIBUTES_AND_PRODUCER: Final = Struct(">21xh20xq")
"""Fields of a batch's header: attributes, producer id."""


class RangeSlice(NamedTuple):
    """The result of one look at a log."""

    wanted: BatchSlice
    """The batches that may have records in the range."""
    left_out_bytes: int
    """The size of the others that were looked at."""
    looked_until: int
    """The end of the offsets that were looked at (exclusive)."""


class RangeReader:
    """Reads one log. Used on the loop's thread only."""

    __slots__ = ("_log", "_reader", "_reads")

    def __init__(self, log: LogState, reader: Reader, reads: Reads) -> None:
        self._log = log
        self._reader = reader
        self._reads = reads

    def look(
        self, offset: int, buckets: int, *, bytes_max: int, upper_offset: int, committed_only: bool
    ) -> RangeSlice:
        """Looks at the batches from `offset` on and below `upper_offset` (exclusive), at least at one.

        `buckets` are those of the hash range. Ends with the segment, or when `bytes_max` bytes have been
        looked at. Raises OFFSET_OUT_OF_RANGE, StorageError.
        """
        with self._reads:
            looked = self._reader.read_batches(
                offset, records_max=bytes_max, bytes_max=bytes_max, upper_offset=upper_offset
            )
            if not looked.batches:
                upper_offset = min(upper_offset, self._log.high_watermark)
                return RangeSlice(looked, 0, max(upper_offset, offset))
            wanted = [span for span in looked.batches if self._buckets(looked.data, span) & buckets]
            if committed_only:
                wanted = self._without_aborted(looked.data, wanted)
        looked_bytes = sum([span.end - span.start for span in looked.batches])
        wanted_bytes = sum([span.end - span.start for span in wanted])
        looked_until = looked.batches[-1].last_offset + 1
        return RangeSlice(BatchSlice(wanted, looked.data), looked_bytes - wanted_bytes, looked_until)

    def _buckets(self, data: memoryview, span: BatchSpan) -> int:
        known = self._log.key_buckets.find(span.base_offset)
        if known is None:
            known = buckets_of_batch(data[span.start : span.end])
            self._log.key_buckets.add(span.base_offset, known)
        return known

    def _without_aborted(self, data: memoryview, spans: Sequence[BatchSpan]) -> list[BatchSpan]:
        """The batches that are not part of an aborted transaction."""
        producers = [_producer_of_transaction(data, span) for span in spans]
        if all(producer_id is None for producer_id in producers):
            return list(spans)
        aborted: dict[int, list[tuple[int, int]]] = defaultdict(list)
        upper_offset = spans[-1].last_offset + 1
        for transaction in aborted_between(self._log.segments, spans[0].base_offset, upper_offset):
            aborted[transaction.producer_id].append((transaction.first_offset, transaction.last_offset))
        return [
            span
            for span, producer_id in zip(spans, producers, strict=True)
            if producer_id is None
            or not any(first <= span.base_offset <= last for first, last in aborted.get(producer_id, ()))
        ]


def _producer_of_transaction(data: memoryview, span: BatchSpan) -> int | None:
    """The producer id of a transactional batch; None for any other batch."""
    attributes, producer_id = _ATTRIBUTES_AND_PRODUCER.unpack_from(data, span.start)
    return producer_id if attributes & TRANSACTIONAL_FLAG else None
