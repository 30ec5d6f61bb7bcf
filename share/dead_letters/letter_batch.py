"""A batch of dead letters: as many as fit into one batch of their topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.protocol.dead_letter import Original, letter_record
from barnabas.protocol.delivery_state import Cause
from barnabas.protocol.record_batch import HEADER_BYTES, ProducedBatch, read_header
from barnabas.protocol.records import Record, encode_records
from barnabas.share.dead_letters.letter_topics import DeadLetterConfig
from barnabas.share.dead_letters.source_records import SourceRecords

BATCH_BYTES_MAX: Final = 1024 * 1024
"""The most bytes of one batch with more than one letter."""
_FRAMING_BYTES: Final = 24
"""An upper estimate of a record's bytes beside its key, value and headers, and of each header's lengths."""


class DueLetter(NamedTuple):
    """A record whose letter is due."""

    original: Original
    delivery_count: int
    reason: Cause

    @property
    def offset(self) -> int:
        return self.original.offset


class LetterBatch(NamedTuple):
    """A batch that is ready to be appended, and the number of letters in it."""

    data: bytes
    batch: ProducedBatch
    letter_count: int


def make_batch(
    due: Iterable[DueLetter], source: SourceRecords, config: DeadLetterConfig, bytes_max: int, wall_ms: int
) -> LetterBatch:
    """The first letters of `due`, at least one, in one batch of at most `bytes_max` bytes.

    A copy that does not fit even alone is left out, and the letter has headers only.
    """
    room = min(bytes_max, BATCH_BYTES_MAX)
    records: list[Record] = []
    size_bytes = HEADER_BYTES
    for due_letter in due:
        letter = _letter(due_letter, source, config, wall_ms, bytes_max)
        size_bytes += _size_bytes(letter)
        if records and size_bytes > room:
            break
        records.append(letter._replace(offset=len(records)))
    data = encode_records(records)
    return LetterBatch(data, ProducedBatch(0, read_header(data)), len(records))


def _letter(
    due: DueLetter, source: SourceRecords, config: DeadLetterConfig, wall_ms: int, bytes_max: int
) -> Record:
    copy = source.record_at(due.offset) if config.copies_records else None
    letter = letter_record(
        due.original, due.delivery_count, due.reason, wall_ms, copy, with_headers=config.copies_headers
    )
    if copy is not None and HEADER_BYTES + _size_bytes(letter) > bytes_max:
        return letter_record(due.original, due.delivery_count, due.reason, wall_ms, None, with_headers=False)
    return letter


def _size_bytes(record: Record) -> int:
    size_bytes = _FRAMING_BYTES + len(record.key or b"") + len(record.value or b"")
    return size_bytes + sum(
        _FRAMING_BYTES + len(name.encode()) + len(value or b"") for name, value in record.headers
    )
