"""The `share-snapshot` file of a log: where the state of each share group began, up to some offset.

    version i16 = 1, crc u32 (CRC-32C of what follows), end offset i64, leader epoch i32, count i32, then for
    each live group: length u16 and bytes of its id, offset i64 of its newest checkpoint

Big endian. The end offset is exclusive: everything below it was taken in, nothing at or above it; the leader
epoch is that of the last batch below it (-1 if unknown), so that a log which was cut and written anew is told
from the one that the file is about. A deleted group has no entry. The file serves recovery as sketched beside
KIP-932 ("Recovery and log cleaning"), and is a hint: whoever reads it checks it against the log.
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
    """The bytes aren't a share snapshot, or not the ones that were written."""


class ShareSnapshot(NamedTuple):
    """By group id the offset of the newest checkpoint below `end_offset`."""

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
    """What `encode_share_snapshot` encoded; ShareSnapshotCorrupt for anything else."""
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
        raise ShareSnapshotCorrupt("it names a group by what is no text") from error


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
        raise ShareSnapshotCorrupt("its entries aren't as many as it says")
    return ShareSnapshot(end_offset, leader_epoch, checkpoint_offsets)
