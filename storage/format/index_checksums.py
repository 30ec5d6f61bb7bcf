"""The `index-checksums` file of a log: a checksum for each index file, whose own formats have none.

    version i16 = 1, crc u32 (CRC-32C of all later bytes), then for each segment, ascending: base offset i64,
    and for its offset, time, share and transaction index: size u32 in bytes, CRC-32C u32 of so many bytes

Big endian. An index only grows, so an older checksum is right for the beginning of the file. A segment is
left out if the origin of one of its indexes is unknown: Apache Kafka or an earlier version has made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError  # noqa: N812  an exception's name
from typing import NamedTuple

from crc32c import crc32c

FILE_NAME = "index-checksums"

_VERSION = 1
_HEADER = Struct(">hI")
_SEGMENT = Struct(">q8I")


class ChecksumsCorrupt(ValueError):  # noqa: N818  named as the condition
    """The bytes are not a file of checksums, or they are damaged."""


class IndexChecksum(NamedTuple):
    """The CRC-32C of the first bytes of an index file."""

    size_bytes: int
    crc: int

    def matches(self, data: bytes) -> bool:
        """Whether the file's content begins with these bytes."""
        return len(data) >= self.size_bytes and crc32c(memoryview(data)[: self.size_bytes]) == self.crc

    def extended(self, data: bytes) -> IndexChecksum:
        """The checksum with `data` behind these bytes."""
        return IndexChecksum(self.size_bytes + len(data), crc32c(data, self.crc))


NO_BYTES = IndexChecksum(0, 0)


class SegmentChecksums(NamedTuple):
    """Those of a segment's indexes."""

    offset: IndexChecksum
    time: IndexChecksum
    share: IndexChecksum
    transaction: IndexChecksum


NOTHING_WRITTEN = SegmentChecksums(NO_BYTES, NO_BYTES, NO_BYTES, NO_BYTES)


def encode_index_checksums(segments: Mapping[int, SegmentChecksums]) -> bytes:
    """The file's content; the segments by base offset."""
    body = b"".join(
        _SEGMENT.pack(base_offset, *(number for checksum in checksums for number in checksum))
        for base_offset, checksums in sorted(segments.items())
    )
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_index_checksums(data: bytes) -> dict[int, SegmentChecksums]:
    """The segments' checksums by base offset; raises ChecksumsCorrupt."""
    try:
        version, crc = _HEADER.unpack_from(data)
    except StructError as error:
        raise ChecksumsCorrupt("it is cut short") from error
    body = data[_HEADER.size :]
    if version != _VERSION:
        raise ChecksumsCorrupt(f"it has the version {version}, not {_VERSION}")
    if crc32c(body) != crc or len(body) % _SEGMENT.size:
        raise ChecksumsCorrupt("its bytes don't match its checksum")
    found: dict[int, SegmentChecksums] = {}
    for base_offset, *numbers in _SEGMENT.iter_unpack(body):
        found[base_offset] = SegmentChecksums._make(map(IndexChecksum, numbers[::2], numbers[1::2]))
    return found
