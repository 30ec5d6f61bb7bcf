"""The faults of a record in a batch, with the numbers that the walkers return."""

from __future__ import annotations

from typing import Final

FIELD_CUT: Final = 1
INTEGER_TOO_LONG: Final = 2
OFFSET_ASTRAY: Final = 3
TIME_TOO_FAR: Final = 4
BYTES_BEHIND: Final = 5
HEADER_WITHOUT_NAME: Final = 6
RECORD_MISSING: Final = 7
RECORD_TOO_LARGE: Final = 8
BYTES_BEHIND_BATCH: Final = 9
KEY_MISSING: Final = 10
TIME_OUT_OF_RANGE: Final = 11

RECORD_FAULTS: Final = {
    FIELD_CUT: "has a field that doesn't fit",
    INTEGER_TOO_LONG: "has an integer that is too long for its field",
    OFFSET_ASTRAY: "has an offset that is out of order",
    TIME_TOO_FAR: "has a time that is too far away",
    BYTES_BEHIND: "has bytes after its end",
    HEADER_WITHOUT_NAME: "has a header without a name",
    RECORD_MISSING: "is missing",
    RECORD_TOO_LARGE: "is larger than max.decompressed.message.bytes",
}
"""The faults of one record, as the end of a sentence."""
