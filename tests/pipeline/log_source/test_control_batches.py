"""The control batches of share groups in a slice."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.log_source import control_batches as module
from barnabas.pipeline.log_source.control_batches import control_batches, control_records
from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_slice import SegmentSlice
from barnabas.pipeline.log_source.slicing import LogBounds, slice_partition
from barnabas.protocol.control_record import (
    ControlType,
    ShareDelta,
    build_control_batch,
    control_key,
    decode_control_record,
    encode_delta,
)
from barnabas.protocol.delivery_state import RecordState, StateRange
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, build_batch, read_header
from barnabas.storage.format.cleaned_mark import encode_mark
from barnabas.storage.format.index_checksums import NO_BYTES, SegmentChecksums, encode_index_checksums
from barnabas.storage.format.share_index import CLEANED, ShareIndex, ShareIndexEntry, group_hash
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of


def delta(offset: int) -> bytes:
    state = StateRange(offset - 1, offset - 1, RecordState.ACKNOWLEDGED, 1)
    return build_control_batch(offset, 0, 0, *encode_delta(ShareDelta("g", 1, 1, 0, offset - 10, (state,))))


def transaction_marker(offset: int) -> bytes:
    return build_batch(
        offset,
        [(control_key(ControlType.COMMIT), bytes(6))],
        leader_epoch=0,
        timestamp_ms=0,
        attributes=CONTROL_FLAG | TRANSACTIONAL_FLAG,
        producer_id=7,
    )


BATCHES = [
    batch_of(0, 10),
    delta(10),
    delta(11),
    batch_of(12, 8, value_bytes=40_000),
    delta(20),
    transaction_marker(21),
    encode_mark(22, 29, 0),
    delta(30),
    batch_of(31, 9),
    delta(40),
]
OFFSETS = [10, 11, 20, 30, 40]


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    written = WrittenDirectory(tmp_path)
    written.segment(BATCHES)
    return written


def index_of(batches: list[bytes], count: int) -> bytes:
    """The share index up to this number of its batches."""
    index, data, position = ShareIndex(0), b"", 0
    for batch in batches:
        header = read_header(batch)
        if header.is_control and header.producer_id < 0 and len(index) < count:
            kind = ControlType.SHARE_DELTA if header.record_count else CLEANED
            data += index.append(
                ShareIndexEntry(
                    header.base_offset,
                    position,
                    len(batch),
                    group_hash("g"),
                    header.last_offset_delta,
                    kind,
                    False,
                )
            )
        position += len(batch)
    return data


def slices_of(written: WrittenDirectory, slice_bytes: int) -> list[SegmentSlice]:
    return slice_partition(written.folder(), LogBounds(), slice_bytes)


@pytest.mark.parametrize("slice_bytes", [1, 1000, 2**40])
@pytest.mark.parametrize("indexed", [None, 0, 1, 3, 6])
def test_each_control_record_of_a_share_group_comes_once(
    written: WrittenDirectory, slice_bytes: int, indexed: int | None
) -> None:
    path = Path(slices_of(written, 2**40)[0].log_path)
    if indexed is not None:
        path.with_suffix(".shareindex").write_bytes(index_of(BATCHES, indexed))
    records = [record for piece in slices_of(written, slice_bytes) for record in control_records(piece)]
    assert [record.base_offset for record in records] == OFFSETS
    decoded = [decode_control_record(record.key, record.value) for record in records]
    assert [one.back_offset for one in decoded if isinstance(one, ShareDelta)] == [0, 1, 10, 20, 30]


def test_data_between_control_batches_is_not_read_where_it_is_long(written: WrittenDirectory) -> None:
    (piece,) = slices_of(written, 2**40)
    assert sum(len(run.buffer) for run in control_batches(piece)) < len(BATCHES[3])


def test_a_run_is_read_in_pieces_of_bounded_size(
    written: WrittenDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_BYTES", 250)
    (piece,) = slices_of(written, 2**40)
    runs = list(control_batches(piece))
    assert max(len(run.buffer) for run in runs) <= 250
    assert sum(len(run.spans) for run in runs) == len(OFFSETS)


def test_an_index_that_is_damaged_is_not_followed(written: WrittenDirectory) -> None:
    (piece,) = slices_of(written, 2**40)
    Path(piece.log_path).with_suffix(".shareindex").write_bytes(b"\xff" * 39)
    assert [record.base_offset for record in control_records(piece)] == OFFSETS


def test_an_index_that_does_not_match_its_checksum_is_not_followed(written: WrittenDirectory) -> None:
    """The changed index looks whole: it has lost its first entry."""
    (piece,) = slices_of(written, 2**40)
    path = Path(piece.log_path)
    index = index_of(BATCHES, len(OFFSETS))
    share = NO_BYTES.extended(index)
    checksums = encode_index_checksums({0: SegmentChecksums(NO_BYTES, NO_BYTES, share, NO_BYTES)})
    path.with_name("index-checksums").write_bytes(checksums)
    for content in (index, index[20:]):
        path.with_suffix(".shareindex").write_bytes(content)
        assert [record.base_offset for record in control_records(piece)] == OFFSETS


def test_a_wrong_checksum_is_named(written: WrittenDirectory) -> None:
    (piece,) = slices_of(written, 2**40)
    path = Path(piece.log_path)
    data = bytearray(path.read_bytes())
    data[len(BATCHES[0]) + 80] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptLog, match=f"^{path}: .*checksum"):
        list(control_records(piece))
