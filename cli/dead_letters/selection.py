"""The letters that the arguments of a command select: a letter must pass every filter. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.cli.dead_letters.letter import Letter, NotALetter


class LetterOffsets(NamedTuple):
    """Offsets of a dead letter topic, both inclusive, in one partition or in all (None)."""

    partition: int | None
    first_offset: int
    last_offset: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The filters; None and () let every letter pass. Times are in ms since 1970."""

    source_topic: str | None = None
    group: str | None = None
    reason: str | None = None
    """A part of the reason; capital and small letters count as equal."""
    since_ms: int | None = None
    """Inclusive."""
    until_ms: int | None = None
    """Exclusive."""
    offsets: tuple[LetterOffsets, ...] = ()
    """The letter must be in one of them."""
    key: bytes | None = None
    """The key of the record. It is known only with the record."""

    def matches(self, record: Letter | NotALetter) -> bool:
        """Whether a letter passes all filters except that of the key.

        A record that is no letter has no source topic, group, reason and key to select it by.
        """
        if isinstance(record, NotALetter):
            matches = (self.source_topic, self.group, self.reason, self.key) == (None, None, None, None)
        else:
            matches = (
                (self.source_topic is None or record.source.topic == self.source_topic)
                and (self.group is None or record.group == self.group)
                and (self.reason is None or self.reason.casefold() in record.reason.casefold())
            )
        return (
            matches
            and (self.since_ms is None or record.timestamp_ms >= self.since_ms)
            and (self.until_ms is None or record.timestamp_ms < self.until_ms)
            and self._has_offset(record.partition, record.offset)
        )

    def matches_key(self, key: bytes | None) -> bool:
        """Whether a record with this key passes."""
        return self.key is None or key == self.key

    def bounds(self, partition: int, start_offset: int, end_offset: int) -> range:
        """The offsets of a partition to look at, of those from `start_offset` to `end_offset`, exclusive."""
        if not self.offsets:
            return range(start_offset, end_offset)
        here = [
            letter_offsets for letter_offsets in self.offsets if letter_offsets.partition in (None, partition)
        ]
        first = min((letter_offsets.first_offset for letter_offsets in here), default=end_offset)
        last = max((letter_offsets.last_offset for letter_offsets in here), default=start_offset - 1)
        return range(max(first, start_offset), min(last + 1, end_offset))

    def _has_offset(self, partition: int, offset: int) -> bool:
        return not self.offsets or any(
            letter_offsets.partition in (None, partition)
            and letter_offsets.first_offset <= offset <= letter_offsets.last_offset
            for letter_offsets in self.offsets
        )


def parse_offsets(text: str) -> LetterOffsets:
    """`[PARTITION:]FIRST[-LAST]`. Raises ValueError, whose message says the remedy."""
    partition, colon, rest = text.rpartition(":")
    first, dash, last = rest.partition("-")
    numbers = [first, last or first] + ([partition] if colon else [])
    are_numbers = all(number.isascii() and number.isdecimal() for number in numbers)
    is_well_formed = are_numbers and bool(last) == bool(dash)
    if not is_well_formed or int(first) > int(last or first):
        raise ValueError(
            f"{text!r} is not [PARTITION:]FIRST[-LAST], such as 17, 17-40 or 2:17-40, offsets of letters"
        )
    return LetterOffsets(int(partition) if colon else None, int(first), int(last or first))
