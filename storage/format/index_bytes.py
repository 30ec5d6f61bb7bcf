"""What the index files have in common: fixed-size entries, and what may stand behind them.

Kafka preallocates the index of its active segment, and a loss of power can leave a file longer than what was
written to it: in both cases zeros follow the entries. No entry of any of the indexes is all zeros, but for
one of the time index, which sees to that itself.
"""

from __future__ import annotations


def entries_bytes(data: bytes, entry_bytes: int) -> int:
    """How many of the bytes are entries: whole ones, without the zeros at the end."""
    written_bytes = len(data.rstrip(b"\x00"))
    whole_count = -(-written_bytes // entry_bytes)
    return min(whole_count, len(data) // entry_bytes) * entry_bytes
