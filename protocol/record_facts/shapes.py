"""The result of both modules."""

from __future__ import annotations

from typing import NamedTuple


class RecordFacts(NamedTuple):
    """The records of a batch, in its order: three lists of equal length."""

    offset_deltas: list[int]
    """Each record's offset, counted from the batch's base offset; compaction leaves gaps between them."""
    timestamp_deltas_ms: list[int]
    """Each record's timestamp, counted from the batch's base timestamp; 64 bits, and possibly negative."""
    header_values: list[bytes | None]
    """The value of the record's last header with the wanted name. None if the record has no such header, if
    the value is null, and if no name is wanted."""
