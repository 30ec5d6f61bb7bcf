"""The common part of the index files: entries of a fixed size, possibly followed by zeros.

Kafka preallocates the index of its active segment, and a loss of power can leave a file longer than its
written content: in both cases zeros follow the entries. No entry of any index is all zeros, except one of the
time index, which handles that case itself.
"""

from __future__ import annotations

from struct import Struct


def ends_ascend(data: bytes, size_bytes: int, entry: Struct) -> bool:
    """Whether the bytes are whole entries, and the last one within `size_bytes` is not below the first."""
    if len(data) % entry.size:
        return False
    return size_bytes == 0 or entry.unpack_from(data) <= entry.unpack_from(data, size_bytes - entry.size)


def entries_bytes(data: bytes, entry_bytes: int) -> int:
    """The number of bytes that are whole entries, without the zeros at the end."""
    written_bytes = len(data.rstrip(b"\x00"))
    whole_count = -(-written_bytes // entry_bytes)
    return min(whole_count, len(data) // entry_bytes) * entry_bytes
