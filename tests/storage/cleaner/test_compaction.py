"""Compaction of single batches: removed and remaining records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import (
    CONTROL_FLAG,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    Compression,
    build_batch,
    read_header,
)
from barnabas.protocol.records import Record, encode_records, iterate_records
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch, read_marker_batch
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.cleaner.compaction import Compaction, empty_batch
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.format.producer_snapshot import ProducerSnapshotEntry
from barnabas.storage.format.transaction_index import AbortedTransaction
from tests.storage.cleaner.dirty_logs import keyed_batch

NOW_MS = 5_000_000
RETENTION_MS = 1_000


def compaction(
    latest: dict[bytes, int],
    *,
    end_offset: int = 1_000,
    now_ms: int = NOW_MS,
    last_offsets: dict[int, int] | None = None,
    aborted: Sequence[AbortedTransaction] = (),
) -> Compaction:
    offsets = OffsetMap(1_000_000)
    for key, offset in latest.items():
        offsets.put(key, offset)
    offsets.end_offset = end_offset
    producers = {
        producer_id: ProducerSnapshotEntry(producer_id, 3, 0, last_offset, 0, 0, 0, -1)
        for producer_id, last_offset in (last_offsets or {}).items()
    }
    return Compaction(offsets, now_ms, RETENTION_MS, producers, CleanedTransactions(aborted))


def left_of(one: Compaction, batch: bytes) -> list[Record] | None:
    left = one.compact(batch, read_header(batch))
    return None if left is None else list(iterate_records(left))


def test_a_batch_of_latest_records_stays_byte_for_byte() -> None:
    batch = keyed_batch([(b"a", b"1"), (b"b", b"2")], compression=Compression.GZIP)
    assert compaction({b"a": 0, b"b": 1}).compact(batch, read_header(batch)) is batch


def test_a_batch_without_latest_records_is_removed() -> None:
    batch = keyed_batch([(b"a", b"1"), (b"b", b"2")])
    assert compaction({b"a": 10, b"b": 11}).compact(batch, read_header(batch)) is None


@pytest.mark.parametrize("codec", list(Compression))
def test_remaining_records_keep_offset_time_headers_and_codec(codec: Compression) -> None:
    records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4")]
    batch = keyed_batch(
        records, compression=codec, leader_epoch=3, producer_id=9, producer_epoch=1, base_sequence=7
    )
    before, header = list(iterate_records(batch)), read_header(batch)
    left = compaction({b"a": 2, b"b": 50, b"c": 3}).compact(batch, header)
    assert left is not None
    assert list(iterate_records(left)) == [before[2], before[3]]
    after = read_header(left)
    assert after.compression is codec
    same = (
        "base_offset",
        "last_offset_delta",
        "leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
    )
    assert [getattr(after, name) for name in same] == [getattr(header, name) for name in same]
    assert (after.record_count, after.max_timestamp_ms) == (2, before[3].timestamp_ms)


def test_the_largest_timestamp_is_that_of_the_remaining_records() -> None:
    batch = keyed_batch([(b"a", b"1"), (b"b", b"2")], timestamp_ms=100)
    left = compaction({b"a": 0, b"b": 50}).compact(batch, read_header(batch))
    assert left is not None
    assert read_header(left).max_timestamp_ms == 100


def test_log_append_time_of_a_batch_stays() -> None:
    records = [Record(0, 100, b"a", b"1"), Record(1, 101, b"b", b"2")]
    batch = encode_records(records, attributes=LOG_APPEND_TIME_FLAG)
    left = compaction({b"a": 0, b"b": 50}).compact(batch, read_header(batch))
    assert left is not None
    assert read_header(left).log_append_time
    assert [record.timestamp_ms for record in iterate_records(left)] == [101]


def test_records_without_a_key_are_removed() -> None:
    batch = keyed_batch([(None, b"1"), (b"b", b"2")])
    left = left_of(compaction({b"b": 1}), batch)
    assert left is not None
    assert [record.key for record in left] == [b"b"]


def test_batches_behind_the_maps_end_stay() -> None:
    batch = keyed_batch([(None, b"1"), (b"b", None)])
    assert compaction({b"b": 90}, end_offset=0).compact(batch, read_header(batch)) is batch


def test_a_key_that_the_map_does_not_have_is_the_latest() -> None:
    """The map has only the keys of the dirty part."""
    batch = keyed_batch([(b"clean", b"1")])
    assert compaction({}).compact(batch, read_header(batch)) is batch


def test_a_tombstone_gets_a_horizon_and_is_removed_after_it() -> None:
    records = [(b"a", None), (b"b", b"2")]
    batch = keyed_batch(records, timestamp_ms=100, compression=Compression.LZ4)
    first = compaction({b"a": 0, b"b": 1})
    kept = first.compact(batch, read_header(batch))
    assert kept is not None
    assert read_header(kept).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert list(iterate_records(kept)) == list(iterate_records(batch)), "times refer to the new base"
    assert read_header(kept).max_timestamp_ms == 101

    before = compaction({b"a": 0, b"b": 1}, now_ms=NOW_MS + RETENTION_MS - 1)
    assert before.compact(kept, read_header(kept)) is kept
    after = compaction({b"a": 0, b"b": 1}, now_ms=NOW_MS + RETENTION_MS)
    left = after.compact(kept, read_header(kept))
    assert left is not None
    assert list(iterate_records(left)) == list(iterate_records(batch))[1:]
    assert read_header(left).delete_horizon_ms == NOW_MS + RETENTION_MS


def test_a_tombstone_removes_the_record_before_it() -> None:
    batch = keyed_batch([(b"a", b"1"), (b"a", None)])
    left = left_of(compaction({b"a": 1}), batch)
    assert left is not None
    assert [(record.offset, record.value) for record in left] == [(1, None)]


def test_a_producers_last_batch_stays_without_records() -> None:
    batch = keyed_batch(
        [(b"a", b"1"), (b"b", b"2")],
        compression=Compression.ZSTD,
        leader_epoch=2,
        producer_id=9,
        producer_epoch=3,
        base_sequence=4,
    )
    header = read_header(batch)
    left = compaction({b"a": 50, b"b": 51}, last_offsets={9: 1}).compact(batch, header)
    assert left is not None
    emptied = read_header(left)
    assert list(iterate_records(left)) == []
    assert emptied.record_count == 0
    assert emptied[9:12] == header[9:12], "producer id, epoch and sequence"
    assert (emptied.last_offset, emptied.leader_epoch) == (header.last_offset, header.leader_epoch)
    assert emptied.max_timestamp_ms == header.max_timestamp_ms
    assert compaction({}, last_offsets={9: 1}).compact(left, emptied) == left
    assert compaction({}, last_offsets={9: 20}).compact(left, emptied) is None


def of_transaction(
    offset: int, key: bytes = b"a", value: bytes | None = b"1", *, producer_id: int = 7
) -> bytes:
    return encode_records(
        [Record(offset, 0, key, value)],
        attributes=TRANSACTIONAL_FLAG,
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=0,
    )


def marker(offset: int, *, commit: bool, producer_id: int = 7) -> bytes:
    return build_marker_batch(
        offset,
        ProducerIdentity(producer_id, 3),
        TransactionEnd(commit, 0),
        leader_epoch=0,
        timestamp_ms=NOW_MS,
    )


def kept(one: Compaction, *batches: bytes) -> list[bytes | None]:
    """The rest of each batch, compacted in this order."""
    left = [one.compact(batch, read_header(batch)) for batch in batches]
    return [None if batch is None else bytes(batch) for batch in left]


def test_committed_records_are_compacted_like_others() -> None:
    batches = of_transaction(0), of_transaction(1), marker(2, commit=True)
    assert kept(compaction({b"a": 1}), *batches) == [None, *batches[1:]]


def test_aborted_records_are_removed_even_if_they_are_the_latest() -> None:
    one = compaction({b"a": 0}, aborted=[AbortedTransaction(7, 1, 3, 4)])
    plain = encode_records([Record(0, 0, b"a", b"plain")])
    batches = plain, of_transaction(1), of_transaction(2, producer_id=8), marker(3, commit=False)
    assert kept(one, *batches) == [plain, None, batches[2], batches[3]]
    assert one.transactions.kept_markers == {3}


def test_only_the_producers_records_in_that_transaction_are_aborted() -> None:
    one = compaction({b"a": 3}, aborted=[AbortedTransaction(7, 0, 1, 2)])
    batches = of_transaction(0), marker(1, commit=False), of_transaction(3), marker(4, commit=True)
    assert kept(one, *batches) == [None, *batches[1:]]


@pytest.mark.parametrize("commit", [False, True])
def test_a_marker_of_a_transaction_without_records_is_removed_after_its_time(commit: bool) -> None:
    one = compaction({})
    (with_horizon,) = kept(one, marker(5, commit=commit))
    assert with_horizon is not None
    header = read_header(with_horizon)
    assert header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert read_marker_batch(with_horizon, header) == TransactionEnd(commit, 0)
    (record,) = iterate_records(with_horizon)
    assert (record.offset, record.timestamp_ms) == (5, NOW_MS)
    one.now_ms += RETENTION_MS - 1
    assert kept(one, with_horizon) == [with_horizon]
    one.now_ms += 1
    assert kept(one, with_horizon) == [None]
    assert one.transactions.kept_markers == set()


def test_a_marker_that_is_all_a_producer_left_stays_without_its_record() -> None:
    one = compaction({}, last_offsets={7: -1})
    (with_horizon,) = kept(one, marker(5, commit=True))
    one.now_ms += RETENTION_MS
    assert with_horizon is not None
    (emptied,) = kept(one, with_horizon)
    assert emptied is not None
    header = read_header(emptied)
    assert (header.attributes, header.record_count) == (TRANSACTIONAL_FLAG | CONTROL_FLAG, 0)
    assert kept(one, emptied) == [emptied]
    assert kept(compaction({}), emptied) == [None]


def test_the_last_batch_of_a_producer_stays_empty_and_its_marker_with_it() -> None:
    one = compaction({}, last_offsets={7: 0}, aborted=[AbortedTransaction(7, 0, 1, 2)])
    batches = of_transaction(0), marker(1, commit=False)
    emptied, still_there = kept(one, *batches)
    assert emptied is not None
    assert read_header(emptied).record_count == 0
    assert read_header(emptied).is_transactional
    assert still_there == batches[1]
    again = compaction({}, last_offsets={7: 0}, aborted=[AbortedTransaction(7, 0, 1, 2)])
    assert kept(again, emptied, batches[1]) == [emptied, batches[1]]


def test_transactions_behind_the_map_stay_unchanged() -> None:
    one = compaction({}, end_offset=0, aborted=[AbortedTransaction(7, 0, 1, 2)])
    batches = of_transaction(0), marker(1, commit=False), marker(2, commit=True)
    assert kept(one, *batches) == list(batches)
    assert one.transactions.kept_markers == {1}


def test_a_control_batch_of_an_unknown_kind_stays() -> None:
    batch = build_batch(0, [(b"\0\0\0\x09", b"")], leader_epoch=0, timestamp_ms=0, attributes=CONTROL_FLAG)
    assert kept(compaction({}), batch) == [batch]


def test_an_emptied_batch_keeps_its_time_type() -> None:
    batch = encode_records([Record(0, 100, b"a", b"1")], attributes=LOG_APPEND_TIME_FLAG)
    assert read_header(empty_batch(read_header(batch))).log_append_time


def test_records_that_cannot_be_read_are_an_error() -> None:
    batch = bytearray(keyed_batch([(b"a", b"1")], compression=Compression.GZIP))
    batch[-5:] = bytes(5)
    with pytest.raises(RecordFormatError):
        compaction({}).compact(bytes(batch), read_header(batch))
    unknown = bytearray(keyed_batch([(b"a", b"1")]))
    unknown[22] |= 7
    with pytest.raises(RecordFormatError, match="codec"):
        compaction({}).compact(bytes(unknown), read_header(unknown))
