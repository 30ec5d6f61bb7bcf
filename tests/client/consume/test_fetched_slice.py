"""The records of a fetch: any positions, any sizes of polls, aborted transactions, spoilt batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consume.fetched_slice import FetchedSlice
from barnabas.client.errors import UnreadableRecordError
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from barnabas.protocol.records import Record, encode_records
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch

NAME = TopicPartition("orders", 0)


def batch(offsets: list[int], producer_id: int = -1) -> bytes:
    records = [Record(offset, 7, None, b"%d" % offset) for offset in offsets]
    attributes = TRANSACTIONAL_FLAG if producer_id >= 0 else 0
    return encode_records(records, producer_id=producer_id, attributes=attributes)


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    producer = ProducerIdentity(producer_id, 0)
    return build_marker_batch(offset, producer, TransactionEnd(commit, 0), leader_epoch=0, timestamp_ms=7)


def slice_of(*batches: bytes, aborted: list[tuple[int, int]] | None = None) -> FetchedSlice[object, object]:
    return FetchedSlice(NAME, memoryview(b"".join(batches)), aborted, None)


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(0, 30),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_each_record_from_the_position_on_is_taken_once(
    present: list[list[bool]], start: int, counts: list[int]
) -> None:
    batches, offsets, offset = list[bytes](), list[int](), 0
    for flags in present:
        kept = [offset + index for index, is_kept in enumerate(flags) if is_kept] or [offset]
        batches.append(batch(kept))
        offsets += kept
        offset += len(flags)
    fetched, position, taken = slice_of(*batches), start, list[int]()
    calls = 0
    while not fetched.is_exhausted:
        records, next_position = fetched.take(position, counts[calls % len(counts)])
        assert next_position >= position
        assert all(position <= record.offset < next_position for record in records)
        taken += [record.offset for record in records]
        position, calls = next_position, calls + 1
    assert taken == [one for one in offsets if one >= start]
    assert position >= start
    assert position > max(offsets) or start > max(offsets)


def test_records_of_aborted_transactions_and_markers_are_left_out() -> None:
    batches = [
        batch([0, 1], 7),
        batch([2], 8),
        marker(3, 7, commit=False),
        batch([4], 7),
        marker(5, 8, commit=True),
        marker(6, 7, commit=True),
    ]
    committed, position = slice_of(*batches, aborted=[(7, 0)]).take(0, 100)
    assert ([record.offset for record in committed], position) == ([2, 4], 7)
    everything, position = slice_of(*batches).take(0, 100)
    assert ([record.offset for record in everything], position) == ([0, 1, 2, 4], 7)


def test_the_records_before_a_spoilt_batch_are_taken_first() -> None:
    spoilt = bytearray(batch([2, 3]))
    spoilt[-1] ^= 1
    fetched = slice_of(batch([0, 1]), bytes(spoilt))
    records, position = fetched.take(0, 100)
    assert ([record.offset for record in records], position) == ([0, 1], 2)
    for _ in range(2):
        with pytest.raises(UnreadableRecordError, match="orders-0: the record at 2 cannot be read") as caught:
            fetched.take(2, 100)
        assert caught.value.offset == 2
