"""The control batches of share groups in a slice, read with little of the data between them.

The segment's `.shareindex` gives their positions. Behind its last entry, which a running broker writes late,
and without an index, the headers of all batches are read. Transaction markers and the marks of cleaned runs
are left out.

`control_records` checks checksums; callers of `control_batches` must do so themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.pipeline.log_source.errors import CorruptLog
from barnabas.pipeline.log_source.segment_file import OpenSegment
from barnabas.pipeline.log_source.segment_slice import SegmentSlice
from barnabas.protocol.record_batch import BatchHeader
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.index_checksums import FILE_NAME as CHECKSUMS_FILE
from barnabas.storage.format.index_checksums import (
    ChecksumsCorrupt,
    SegmentChecksums,
    decode_index_checksums,
)
from barnabas.storage.format.share_index import CLEANED, ShareIndex, is_sane

READ_BYTES: Final = 4 * 1024 * 1024
"""The bound of a buffer, unless a single batch is larger."""
GAP_BYTES: Final = 16 * 1024
"""Data of this size between two control batches is read with them: another read would cost more."""

_SHARE_INDEX_SUFFIX = ".shareindex"


class ControlBatches(NamedTuple):
    """Control batches in the order of the log, each by its (start, end) in the buffer."""

    buffer: bytes
    spans: list[tuple[int, int]]


class ControlRecord(NamedTuple):
    """A control record of a share group, undecoded: `decode_control_record` takes key and value."""

    base_offset: int
    key: bytes
    value: bytes


def control_batches(piece: SegmentSlice) -> Iterator[ControlBatches]:
    """The control batches of share groups that begin in the slice, some megabytes at a time.

    Raises `SegmentChanged`, and `CorruptLog` for a malformed header.
    """
    with OpenSegment(piece.log_path) as file:
        for start, spans in _gathered(_spans(file, piece)):
            end = spans[-1][1]
            buffer = file.read(start, end - start)
            if len(buffer) < end - start:
                raise CorruptLog(piece.log_path, f"it ends at {start + len(buffer)} within a batch")
            yield ControlBatches(buffer, [(first - start, last - start) for first, last in spans])


def control_records(piece: SegmentSlice) -> Iterator[ControlRecord]:
    """The records of those batches one by one. Also raises `CorruptLog` for a wrong checksum."""
    for buffer, spans in control_batches(piece):
        for start, _ in spans:
            try:
                for record in iterate_records(buffer, start):
                    yield ControlRecord(record.offset, record.key or b"", record.value or b"")
            except RecordFormatError as error:
                raise CorruptLog(piece.log_path, str(error)) from error


def _spans(file: OpenSegment, piece: SegmentSlice) -> Iterator[tuple[int, int]]:
    """(start, end) in the file of each control batch of share groups that begins in the slice."""
    position = piece.start_position
    index = _read_index(piece)
    for entry in index.entries_between(piece.start_position, piece.end_position):
        position = entry.position + entry.length_bytes
        if entry.kind != CLEANED:
            yield entry.position, position
    if len(index) and index[len(index) - 1].position >= piece.end_position:
        return
    for start, header in file.headers(position, piece.end_position):
        if _is_share_state(header):
            yield start, start + header.size_bytes


def _read_index(piece: SegmentSlice) -> ShareIndex:
    """The segment's index; an empty one if it is missing or wrong."""
    base_offset, path = piece.segment_base_offset, Path(piece.log_path)
    try:
        data = path.with_suffix(_SHARE_INDEX_SUFFIX).read_bytes()
    except FileNotFoundError:
        data = b""
    checksums = _read_checksums(path).get(base_offset)
    is_good = is_sane(data) and (checksums is None or checksums.share.matches(data))
    return ShareIndex(base_offset, data if is_good else b"")


def _read_checksums(path: Path) -> Mapping[int, SegmentChecksums]:
    """The checksums of the indexes beside a segment; none if they are missing or damaged."""
    try:
        return decode_index_checksums(path.with_name(CHECKSUMS_FILE).read_bytes())
    except (FileNotFoundError, ChecksumsCorrupt):
        return {}


def _is_share_state(header: BatchHeader) -> bool:
    return header.is_control and header.producer_id < 0 and header.record_count > 0


def _gathered(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The spans in runs that one read takes: (start of the first, the spans)."""
    gathered: list[tuple[int, int]] = []
    for start, end in spans:
        if gathered and (start - gathered[-1][1] > GAP_BYTES or end - gathered[0][0] > READ_BYTES):
            yield gathered[0][0], gathered
            gathered = []
        gathered.append((start, end))
    if gathered:
        yield gathered[0][0], gathered
