"""Reads a segment and its indexes from their files, and continues after damage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.cli.log_tool.files import ReadOnlyFile, read_if_there
from barnabas.cli.log_tool.places import SegmentFiles
from barnabas.storage.format.offset_index import OffsetIndex
from barnabas.storage.format.share_index import ShareIndex
from barnabas.storage.format.time_index import TimeIndex
from barnabas.storage.segments.damage import Damage, boundaries_of, scan_past_damage
from barnabas.storage.segments.segment import RELATIVE_OFFSET_MAX
from barnabas.storage.segments.segment_scan import ScannedBatch


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one segment; an index without a file is empty, and not in `found`."""

    offsets: OffsetIndex
    times: TimeIndex
    shares: ShareIndex
    transactions: bytes
    """The unchanged file; each tool reports damage in it."""
    found: frozenset[str]
    """The suffixes of the files that exist."""


def read_indexes(files: SegmentFiles) -> Indexes:
    """The segment's indexes. Raises OSError."""
    base_offset = files.base_offset
    paths = files.index_paths
    offsets, times, shares, transactions = contents = [read_if_there(path) for path in paths]
    return Indexes(
        OffsetIndex(base_offset, offsets or b""),
        TimeIndex(base_offset, times or b""),
        ShareIndex(base_offset, shares or b""),
        transactions or b"",
        frozenset(path.suffix for path, content in zip(paths, contents, strict=True) if content is not None),
    )


def scan(
    files: SegmentFiles,
    file: ReadOnlyFile,
    indexes: Indexes,
    position: int = 0,
    *,
    end_offset: int | None,
) -> Iterator[ScannedBatch | Damage]:
    """The batches from `position` on, with verified checksums, and the damage between them. Raises OSError.

    A batch that reaches beyond `end_offset` (exclusive) is damaged; None for the largest offset of a segment.
    """
    if end_offset is None:
        end_offset = files.base_offset + RELATIVE_OFFSET_MAX + 1
    return scan_past_damage(
        file,
        position,
        file.size_bytes,
        offsets=range(files.base_offset, end_offset),
        boundaries=boundaries_of(indexes.offsets, indexes.shares),
    )
