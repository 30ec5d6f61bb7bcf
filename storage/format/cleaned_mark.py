"""The mark that replaces a run of cleaned share state (docs/decisions/0006).

A mark is a control batch without records and without a producer id. It covers the offsets of the run, so that
the log shows which of its offsets never held data: compaction leaves no mark for removed records. The share
index lists it with kind 0, so that it is cut out of reads like share state.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.protocol.record_batch import CONTROL_FLAG, BatchHeader, seal_batch

MARK_OFFSETS_MAX = 2**16
"""The most offsets of one mark: the share index has 16 bits for the last offset delta."""
_NO_TIMESTAMP = -1


def is_mark(header: BatchHeader) -> bool:
    """Whether the batch is a mark; share state and the markers of transactions have records."""
    return bool(header.attributes & CONTROL_FLAG) and header.producer_id < 0 and header.record_count == 0


def split_run(base_offset: int, last_offset: int) -> Iterator[tuple[int, int]]:
    """The offsets (both inclusive) of the marks that cover a run of any length."""
    for first in range(base_offset, last_offset + 1, MARK_OFFSETS_MAX):
        yield first, min(first + MARK_OFFSETS_MAX - 1, last_offset)


def encode_mark(base_offset: int, last_offset: int, leader_epoch: int) -> bytes:
    """The mark for these offsets, both inclusive."""
    assert 0 <= last_offset - base_offset < MARK_OFFSETS_MAX, (base_offset, last_offset)
    return seal_batch(
        b"",
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=CONTROL_FLAG,
        last_offset_delta=last_offset - base_offset,
        base_timestamp_ms=_NO_TIMESTAMP,
        max_timestamp_ms=_NO_TIMESTAMP,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=0,
    )
