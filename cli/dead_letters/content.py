"""The record that a letter stands for: from the source topic, or from the letter's copy. Pure.

The source topic is the first choice, because a copy of Apache Kafka has no headers, and one of Barnabas only
on request. A letter names its topic, but not the topic's id. If the topic was deleted and created again,
another record may have the offset. A copy then differs from it. Without a copy, only the time shows that: the
record is newer than the letter.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from barnabas.cli.dead_letters.letter import Letter
from barnabas.protocol.records import Header, Record

CLOCK_DIFFERENCE_MAX_MS: Final = 60_000
"""How far the clock of a producer, which sets the time of the record, may be ahead of the broker's."""

RECREATED: Final = (
    "the topic was created again: the record at this offset is newer than the letter by more than "
    f"{CLOCK_DIFFERENCE_MAX_MS // 1000} s"
)


class Origin(Enum):
    """The place that a record was read from."""

    SOURCE = "source"
    COPY = "copy"


class Content(NamedTuple):
    """A record to write again."""

    origin: Origin
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Missing(NamedTuple):
    """A record that cannot be read any more."""

    reason: str


def content_of(letter: Letter, found: Record | Missing) -> Content | Missing:
    """The content of a letter's record; `found` is the source topic's record at its offset."""
    if not isinstance(found, Missing):
        is_record = (
            (letter.key, letter.value) == (found.key, found.value)
            if letter.has_copy
            else (found.timestamp_ms <= letter.timestamp_ms + CLOCK_DIFFERENCE_MAX_MS)
        )
        if is_record:
            return Content(Origin.SOURCE, found.key, found.value, found.headers)
        found = Missing(RECREATED)
    if letter.has_copy:
        return Content(Origin.COPY, letter.key, letter.value, letter.headers)
    return found
