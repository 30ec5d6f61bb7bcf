"""Metadata snapshots: names, the bytes of the file, and files that are not snapshots."""

from itertools import product

import pytest

from barnabas.coordinator.metadata.snapshot import (
    LogBatch,
    SnapshotId,
    decode_log,
    decode_snapshot,
    encode_snapshot,
    parse_snapshot_name,
)
from barnabas.protocol.metadata_records import FeatureLevelRecord, MetadataRecord, encode_metadata_record
from barnabas.protocol.record_batch import build_batch, iterate_headers
from barnabas.protocol.varint import RecordFormatError

ID = SnapshotId(42, 3)
UNCOVERED = (*range(8), *range(12, 17))
"""The base offset, the leader epoch and the version in a batch's header."""
RECORDS: list[MetadataRecord] = [
    FeatureLevelRecord(name=f"f{number}", feature_level=1) for number in range(2_500)
]


def test_a_file_name_says_end_offset_and_epoch() -> None:
    assert ID.file_name == "00000000000000000042-0000000003.checkpoint"
    assert parse_snapshot_name(ID.file_name) == ID


@pytest.mark.parametrize("name", ["00000000000000000042.log", "42-3.checkpoint", f"{ID.file_name}.tmp", ""])
def test_other_files_are_no_snapshots(name: str) -> None:
    assert parse_snapshot_name(name) is None


def test_the_records_come_back() -> None:
    assert decode_snapshot(encode_snapshot(ID, RECORDS, 1)) == RECORDS


def test_offsets_start_at_zero_with_a_control_batch_at_either_end() -> None:
    headers = [header for _, header in iterate_headers(encode_snapshot(ID, RECORDS, 1))]
    assert [header.base_offset for header in headers] == [0, 1, 1001, 2001, 2501]
    assert [header.is_control for header in headers] == [True, False, False, False, True]
    assert {header.leader_epoch for header in headers} == {3}


@pytest.mark.parametrize("cut_bytes", [1, 70, 100, 5_000])
def test_a_file_without_its_end_is_not_valid(cut_bytes: int) -> None:
    with pytest.raises(RecordFormatError):
        decode_snapshot(encode_snapshot(ID, RECORDS, 1)[:-cut_bytes])


def test_an_empty_file_is_not_valid() -> None:
    with pytest.raises(RecordFormatError):
        decode_snapshot(b"")


def test_no_flipped_bit_gives_other_records() -> None:
    """No checksum covers the fields in `UNCOVERED`, and nothing reads them."""
    written = encode_snapshot(ID, RECORDS[:3], 1)
    starts = [position for position, _ in iterate_headers(written)]
    for position, bit in product(range(len(written)), (0x01, 0x80)):
        data = bytearray(written)
        data[position] ^= bit
        try:
            records = decode_snapshot(bytes(data))
        except RecordFormatError:
            continue
        inside = min(position - start for start in starts if start <= position)
        assert (records, inside in UNCOVERED) == (RECORDS[:3], True), (position, bit)


def test_batches_of_a_log_are_decoded_from_an_offset_on() -> None:
    values = [(None, encode_metadata_record(record)) for record in RECORDS[:3]]
    data = build_batch(10, values, leader_epoch=0, timestamp_ms=0)
    assert list(decode_log(data, 11)) == [LogBatch(13, 0, 0, RECORDS[1:3])]


def test_a_record_without_a_value_is_refused() -> None:
    with pytest.raises(RecordFormatError):
        list(decode_log(build_batch(0, [(None, None)], leader_epoch=0, timestamp_ms=0), 0))
