"""The keys of the records in a share group's reads, for groups with `share.order=key`.

Each batch is hashed once, when its records come in flight. A batch that inflates beyond a bound, or has very
many records, is not: it is delivered alone, so that its order needs no keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.protocol.batch_keys import NO_KEYS, keys_of_batch
from barnabas.protocol.record_batch import read_header
from barnabas.protocol.record_keys import IS_NATIVE, KeyHashes
from barnabas.protocol.varint import RecordFormatError
from barnabas.share.leader.unreadable_batches import UnreadableBatch
from barnabas.share.partition.key_order import BatchKeys
from barnabas.storage.reading.reader import BatchSlice, BatchSpan

HASHED_BYTES_MAX: Final = 4 * 1024 * 1024
"""A compressed batch that inflates to more is delivered alone."""
HASHED_RECORDS_MAX: Final = 50_000 if IS_NATIVE else 2_000
"""A batch with more records is delivered alone: hashing these takes 10 ms, and their keys up to 10 MB."""


def keys_of_batches(
    read: Sequence[BatchSlice], keys_until: int, unreadable: Sequence[UnreadableBatch]
) -> tuple[list[BatchKeys], list[UnreadableBatch]]:
    """The keys of the batches that were read and end at or behind `keys_until`, and those of these batches
    that turn out to be malformed. `unreadable` are known to be malformed. Both kinds have no keys.

    An earlier batch is included if it lacks records: compaction may have removed them since it was hashed.
    """
    found: list[BatchKeys] = []
    malformed: list[UnreadableBatch] = []
    gone = {one.base_offset for one in unreadable}
    for data, span in _spans(read):
        header = read_header(data, span.start)
        has_gaps = header.record_count <= span.last_offset - span.base_offset
        if span.last_offset < keys_until and not has_gaps:
            continue
        keys: KeyHashes | None = NO_KEYS
        if span.base_offset not in gone:
            batch = data[span.start : span.end]
            try:
                keys = keys_of_batch(
                    batch,
                    header,
                    records_max=HASHED_RECORDS_MAX,
                    inflated_bytes_max=HASHED_BYTES_MAX,
                )
            except RecordFormatError as error:
                reason = str(error).rstrip(".")
                malformed.append(UnreadableBatch(span.base_offset, span.last_offset, reason))
        found.append(BatchKeys(span.base_offset, span.last_offset, keys))
    return found, malformed


def _spans(read: Sequence[BatchSlice]) -> Iterator[tuple[memoryview, BatchSpan]]:
    for slice_ in read:
        for span in slice_.batches:
            yield slice_.data, span
