"""Batches with a sound checksum whose records cannot be read, found before a share group gets them (KIP-932).

Produced batches are checked when they arrive. A log may still hold malformed ones that an earlier version
accepted. librdkafka acknowledges all records behind such a batch as gaps, and Java's consumer fails. So the
group's leader archives the batch, leaves its bytes out of the answer, and logs one line.

Only batches that were in the log when it was opened are checked, and only if that is cheap: a batch that
unpacks to more than CHECKED_UNPACKED_BYTES_MAX is trusted, and so is a large batch if the walker in Python
has to check it. Batches that compaction has rewritten are trusted, because it reads all records. Records
whose offsets are out of order are allowed, because clients can read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.compression import LargerThanBound, unpack_stored
from barnabas.protocol.record_batch import HEADER_BYTES, BatchHeader, read_header
from barnabas.protocol.record_walk import IS_NATIVE, RecordRules, check_records, faults
from barnabas.protocol.varint import Buffer, RecordFormatError
from barnabas.share.leader.record_source import RecordSource
from barnabas.storage.reading.log_slice import BatchSlice

CHECKED_UNPACKED_BYTES_MAX: Final = 4 * 1024 * 1024
"""A batch that unpacks to more is not checked: this one takes 2 to 15 ms."""
CHECKED_RECORDS_MAX: Final = 1_000_000 if IS_NATIVE else 1_000
"""A batch of more records is not checked: these take 5 ms."""
_RECORD_BYTES_MIN: Final = 7
_NO_RULES: Final = RecordRules(keys_required=False, times=None, record_bytes_max=2**31 - 1)


class UnreadableBatch(NamedTuple):
    """A batch of data with malformed records; both offsets are inclusive."""

    base_offset: int
    last_offset: int
    reason: str


def unreadable_batches(source: RecordSource, read: Sequence[BatchSlice]) -> list[UnreadableBatch]:
    """The batches with malformed records of those that were read."""
    found: list[UnreadableBatch] = []
    for slice_ in read:
        if slice_.batches[0].base_offset >= source.opened_end_offset:
            break
        for base_offset, last_offset, start, end, _ in slice_.batches:
            if base_offset >= source.opened_end_offset:
                break
            reason = _fault(slice_.data[start:end])
            if reason is not None:
                found.append(UnreadableBatch(base_offset, last_offset, reason))
    return found


def without_batches(read: Sequence[BatchSlice], gone: Sequence[UnreadableBatch]) -> list[BatchSlice]:
    """The batches that were read, without the bytes of some of them."""
    if not gone:
        return list(read)
    base_offsets = {batch.base_offset for batch in gone}
    kept = [
        BatchSlice([batch for batch in slice_.batches if batch.base_offset not in base_offsets], slice_.data)
        for slice_ in read
    ]
    return [slice_ for slice_ in kept if slice_.batches]


def _fault(batch: Buffer) -> str | None:
    header = read_header(batch)
    is_as_produced = header.last_offset_delta + 1 == header.record_count
    if header.is_control or not is_as_produced:
        return None
    try:
        body = _body(batch, header)
    except LargerThanBound:
        return None
    except RecordFormatError as error:
        return str(error).rstrip(".")
    if header.record_count * _RECORD_BYTES_MIN > len(body):
        return f"{header.record_count} records do not fit in {len(body)} bytes"
    if header.record_count > CHECKED_RECORDS_MAX:
        return None
    check = check_records(body, header.record_count, header.base_timestamp_ms, _NO_RULES)
    if check.fault == faults.BYTES_BEHIND_BATCH:
        return "there are bytes behind its last record"
    if check.fault in (0, faults.OFFSET_ASTRAY):
        return None
    return f"its record {check.record_index} {faults.RECORD_FAULTS[check.fault]}"


def _body(batch: Buffer, header: BatchHeader) -> Buffer:
    packed = memoryview(batch)[HEADER_BYTES:]
    return unpack_stored(header.compression, packed, bytes_max=CHECKED_UNPACKED_BYTES_MAX)
