"""The `share-snapshot` file of a log: the newest checkpoint of each share group below an offset.

    version i16 = 1, crc u32 (CRC-32C of all later bytes), end offset i64, leader epoch i32, count i32, then
    for each live group: length u16 and bytes of its id, offset i64 of its newest checkpoint

Big endian. The end offset is exclusive: the file includes everything below it and nothing at or above it. The
leader epoch is that of the last batch below it (-1 if unknown). A log that was cut and continued in another
epoch is recognized by it. A deleted group has no entry. The file serves recovery as sketched beside KIP-932
("Recovery and log cleaning"). It is a hint: recovery checks it against the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError  # noqa: N812  an exception's name
from typing import NamedTuple

from crc32c import crc32c

FILE_NAME = "share-snapshot"

_VERSION = 1
_HEADER = Struct(">hI")
_BODY = Struct(">qii")
_LENGTH = Struct(">H")
_OFFSET = Struct(">q")


class ShareSnapshotCorrupt(ValueError):  # noqa: N818  named as the condition
    """The bytes are not a share snapshot, or they are damaged."""


class ShareSnapshot(NamedTuple):
    """The offset of each group's newest checkpoint below `end_offset`, by group id."""

    end_offset: int
    leader_epoch: int
    checkpoint_offsets: Mapping[str, int]


def encode_share_snapshot(snapshot: ShareSnapshot) -> bytes:
    """The file's content."""
    parts = [_BODY.pack(snapshot.end_offset, snapshot.leader_epoch, len(snapshot.checkpoint_offsets))]
    for group_id, offset in snapshot.checkpoint_offsets.items():
        encoded = group_id.encode()
        parts += (_LENGTH.pack(len(encoded)), encoded, _OFFSET.pack(offset))
    body = b"".join(parts)
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def decode_share_snapshot(data: bytes) -> ShareSnapshot:
    """The snapshot in a file's content; raises ShareSnapshotCorrupt for other bytes."""
    try:
        version, crc = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if version != _VERSION:
            raise ShareSnapshotCorrupt(f"it has the version {version}, not {_VERSION}")
        if crc32c(body) != crc:
            raise ShareSnapshotCorrupt("its bytes don't match its checksum")
        return _decode_body(body)
    except StructError as error:
        raise ShareSnapshotCorrupt("it is cut short") from error
    except UnicodeDecodeError as error:
        raise ShareSnapshotCorrupt("it has a group id that is not UTF-8") from error


def _decode_body(body: bytes) -> ShareSnapshot:
    end_offset, leader_epoch, count = _BODY.unpack_from(body)
    position = _BODY.size
    checkpoint_offsets: dict[str, int] = {}
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(body, position)
        position += _LENGTH.size
        group_id = body[position : position + length].decode()
        (checkpoint_offsets[group_id],) = _OFFSET.unpack_from(body, position + length)
        position += length + _OFFSET.size
    if position != len(body) or len(checkpoint_offsets) != count:
        raise ShareSnapshotCorrupt("the number of its entries differs from its count")
    return ShareSnapshot(end_offset, leader_epoch, checkpoint_offsets)
