"""Record batches of one record with its sending time, in the form of an idempotent producer."""

import struct
import time
from collections.abc import Iterator

from crc32c import crc32c

from barnabas.protocol.varint import Buffer

VALUE_BYTES = 100
NO_PRODUCER = -1

_HEAD = struct.Struct(">qiibI")
"""base_offset, length, leader_epoch, magic, checksum."""
_CHECKED = struct.Struct(">hiqqqhii")
"""attributes, last_offset_delta, both timestamps, producer id and epoch, base_sequence, record_count."""
_RECORD = struct.Struct(f">2s6sd{VALUE_BYTES - 8}sb")
"""Length; attributes, deltas and lengths; the value, which begins with its timestamp; no headers."""
_OF_RECORD = (b"\xd6\x01", b"\x00\x00\x00\x01\xc8\x01")
BATCH_BYTES = _HEAD.size + _CHECKED.size + _RECORD.size
_LENGTH_FROM = 12
_OFFSET = struct.Struct(">q")
_STAMP = struct.Struct(">d")
_STAMP_AT = _HEAD.size + _CHECKED.size + 8


def stamped_batch(stamp: float, producer_id: int, sequence: int) -> bytes:
    """A batch of `BATCH_BYTES`. `stamp` is the time that `stamps` returns, of any clock."""
    epoch = -1 if producer_id == NO_PRODUCER else 0
    now_ms = int(time.time() * 1000)
    checked = _CHECKED.pack(0, 0, now_ms, now_ms, producer_id, epoch, sequence, 1) + _RECORD.pack(
        *_OF_RECORD, stamp, b"", 0
    )
    return _HEAD.pack(0, BATCH_BYTES - _LENGTH_FROM, -1, 2, crc32c(checked)) + checked


def stamps(records: Buffer) -> Iterator[tuple[int, float]]:
    """Offset and timestamp of each batch; a last batch that is cut short is left out."""
    for position in range(0, len(records) - BATCH_BYTES + 1, BATCH_BYTES):
        yield (
            _OFFSET.unpack_from(records, position)[0],
            _STAMP.unpack_from(records, position + _STAMP_AT)[0],
        )
