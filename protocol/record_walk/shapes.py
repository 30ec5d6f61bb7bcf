"""The arguments and results of both walkers. Positions and sizes are in bytes, times in ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.record_walk.faults import BYTES_BEHIND_BATCH, RECORD_FAULTS
from barnabas.protocol.varint import RecordFormatError

NO_TIMESTAMP: Final = -1
"""The time of a record without a timestamp."""
RECORD_ERRORS_MAX: Final = 100
"""The number of rejected records that a check lists; it only counts the others."""
RECORDS_PER_STEP: Final = 1_000
"""Long work in Python pauses after this many records, so that others can run: 1 to 5 ms."""


class RecordSpan(NamedTuple):
    """One record's position in the body of its batch.

    The record is `body[start:end]`, with its length in front; `content` is the position after that length,
    `rest` the position after the timestamp delta. The value starts at `value_start`, -1 for null, and ends at
    `headers`, the position of the header count.
    """

    start: int
    content: int
    rest: int
    end: int
    timestamp_delta_ms: int
    offset_delta: int
    key: bytes | None
    value_start: int
    headers: int

    @property
    def has_value(self) -> bool:
        return self.value_start >= 0


class RecordRules(NamedTuple):
    """The topic's rules for the records of a batch."""

    keys_required: bool
    """Whether each record needs a key (cleanup.policy=compact)."""
    times: tuple[int, int] | None
    """The earliest and the latest time of a record, both inclusive; None if times do not matter."""
    record_bytes_max: int
    """The largest size of a record, without its length."""


class RejectedRecord(NamedTuple):
    """A well-formed record that breaks a rule; `fault` is KEY_MISSING or TIME_OUT_OF_RANGE."""

    record_index: int
    fault: int
    timestamp_ms: int
    """The 64-bit sum of base timestamp and delta, with overflow as in Java."""


class RecordsCheck(NamedTuple):
    """The result of a check. A malformed record ends it."""

    fault: int
    """The fault of the record at `record_index`, a number of `faults`; 0 if all are well-formed."""
    record_index: int
    max_timestamp_ms: int
    """The latest time of the records; NO_TIMESTAMP if none has a later one."""
    rejected_count: int
    rejected: Sequence[RejectedRecord]
    """The first RECORD_ERRORS_MAX of them."""

    @property
    def is_sound(self) -> bool:
        return not self.fault and not self.rejected_count


def unreadable(index: int, record_count: int, fault: int) -> RecordFormatError:
    """The error for the record at `index` of a batch that states `record_count` records."""
    if fault == BYTES_BEHIND_BATCH:
        return RecordFormatError(f"There are bytes after the last of {record_count} records.")
    return RecordFormatError(f"Record {index} of {record_count} {RECORD_FAULTS[fault]}.")
