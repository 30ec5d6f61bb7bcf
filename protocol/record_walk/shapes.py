"""What both walkers are asked for and what they answer. Positions and sizes are in bytes, times in ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.record_walk.faults import BYTES_BEHIND_BATCH, RECORD_FAULTS
from barnabas.protocol.varint import RecordFormatError

NO_TIMESTAMP: Final = -1
"""The time of a record that has none."""
RECORD_ERRORS_MAX: Final = 100
"""The number of rejected records that a check names. It counts the others."""
RECORDS_PER_STEP: Final = 1_000
"""Work in Python on many records pauses after this many, for others to go on: 1 to 5 ms."""


class RecordSpan(NamedTuple):
    """One record's place in the body of its batch.

    The record is `body[start:end]`, its length in front; `content` is behind that length, `rest` behind the
    timestamp delta. The value begins at `value_start`, -1 for null, and ends at `headers`, where the header
    count stands.
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
    """What the records of a batch must be, besides well-formed."""

    keys_required: bool
    """Whether each record needs a key (cleanup.policy=compact)."""
    times: tuple[int, int] | None
    """The earliest and the latest time of a record, both inclusive; None if times do not matter."""
    record_bytes_max: int
    """The size of a record behind its length, at most."""


class RejectedRecord(NamedTuple):
    """A well-formed record that breaks a rule; `fault` is KEY_MISSING or TIME_OUT_OF_RANGE."""

    record_index: int
    fault: int
    timestamp_ms: int
    """The sum of base timestamp and delta in 64 bits, as Java adds them."""


class RecordsCheck(NamedTuple):
    """The outcome of a check. A malformed record ends it."""

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
        return RecordFormatError(f"There are bytes behind the last of {record_count} records.")
    return RecordFormatError(f"Record {index} of {record_count} {RECORD_FAULTS[fault]}.")
