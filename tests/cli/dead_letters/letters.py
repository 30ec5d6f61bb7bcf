"""Letters for the tests of the pure parts."""

from __future__ import annotations

from typing import Any

from barnabas.cli.dead_letters.letter import Letter, SourcePosition
from barnabas.protocol.records import Record

WRITTEN_MS = 1_700_000_000_000
OWN_HEADERS = (
    ("__dlq.errors.topic", b"orders"),
    ("__dlq.errors.partition", b"2"),
    ("__dlq.errors.offset", b"17"),
    ("__dlq.errors.group", b"billing"),
    ("__dlq.errors.delivery.count", b"5"),
    ("__dlq.errors.message", b"Offset delivery count exceeded the threshold."),
)
LETTER = Letter(
    1,
    40,
    WRITTEN_MS,
    SourcePosition("orders", 2, 17),
    "billing",
    5,
    "Offset delivery count exceeded the threshold.",
    None,
    None,
    (),
)


def letter_record(**changes: Any) -> Record:
    """The record of `LETTER` in the dead letter topic."""
    fields: dict[str, Any] = {
        "offset": 40,
        "timestamp_ms": WRITTEN_MS,
        "key": None,
        "value": None,
        "headers": OWN_HEADERS,
    }
    return Record(**{**fields, **changes})
