"""The letters of one dead letter topic that were re-driven, and the records that remember them. Pure.

The journal is a compacted topic. Each of its records is a page: the re-driven letters among `PAGE_OFFSETS`
offsets of one partition. A later record of the same page replaces it.

    key    {"topic_id": "...", "partition": 0, "first_offset": 5000}
    value  {"version": 1, "redriven": [[5000, 5210], [5213, 5213]]}    first and last offsets, inclusive

`plan` makes records and changes nothing; `replay` of a record, after its transaction, changes the offsets.
Pages of letters that are gone, and those of an earlier topic of the same name, get tombstones (`outdated`).
Decision 29 gives the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.client.consume.offset_set import OffsetSet

PAGE_OFFSETS: Final = 1_000
"""So that a page has at most 500 ranges, and its record about 22 kB at most."""
VERSION: Final = 1


class JournalFormatError(Exception):
    """A record of the journal is not one of this program's."""


class JournalRecord(NamedTuple):
    """One record of the journal; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class _Page(NamedTuple):
    topic_id: UUID
    partition: int
    first_offset: int


class RedrivenOffsets:
    """The re-driven letters of the topic with this id."""

    def __init__(self, topic_id: UUID) -> None:
        self._topic_id = topic_id
        self._pages: dict[_Page, OffsetSet] = {}
        """All pages of the journal, those of earlier topics, too."""

    def has(self, partition: int, offset: int) -> bool:
        """Whether the letter was re-driven."""
        offsets = self._pages.get(self._page(partition, offset))
        return offsets is not None and offset in offsets

    def first_waiting(self, partition: int, offset: int) -> int:
        """The first offset from this one on that was not re-driven."""
        while (offsets := self._pages.get(self._page(partition, offset))) is not None:
            if offset not in offsets:
                return offset
            offset = next(last_offset for _, last_offset in offsets if offset <= last_offset) + 1
        return offset

    def plan(self, letters: Iterable[tuple[int, int]]) -> list[JournalRecord]:
        """The records that add these letters, given by partition and offset."""
        changed: dict[_Page, OffsetSet] = {}
        for partition, offset in letters:
            page = self._page(partition, offset)
            if page not in changed:
                changed[page] = OffsetSet(self._pages.get(page, ()))
            changed[page].add(offset, offset)
        return [JournalRecord(_encode_key(page), _encode_value(offsets)) for page, offsets in changed.items()]

    def outdated(self, start_offsets: Mapping[int, int]) -> list[JournalRecord]:
        """Tombstones of pages without letters; `start_offsets` has the first letter of each partition."""
        return [
            JournalRecord(_encode_key(page), None)
            for page in self._pages
            if page.topic_id != self._topic_id
            or page.first_offset + PAGE_OFFSETS <= start_offsets.get(page.partition, 0)
        ]

    def replay(self, record: JournalRecord) -> None:
        """A record of the journal takes effect. Raises `JournalFormatError`."""
        page = _decode_key(record.key)
        if record.value is None:
            self._pages.pop(page, None)
        else:
            self._pages[page] = _decode_value(page, record.value)

    def _page(self, partition: int, offset: int) -> _Page:
        return _Page(self._topic_id, partition, offset - offset % PAGE_OFFSETS)


def _encode_key(page: _Page) -> bytes:
    return json.dumps({**page._asdict(), "topic_id": str(page.topic_id)}).encode()


def _encode_value(offsets: OffsetSet) -> bytes:
    return json.dumps({"version": VERSION, "redriven": list(offsets)}).encode()


def _decode_key(key: bytes) -> _Page:
    """Raises `JournalFormatError`."""
    try:
        fields: dict[str, Any] = json.loads(key)
        return _Page(UUID(fields["topic_id"]), int(fields["partition"]), int(fields["first_offset"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise JournalFormatError(f"the key {key[:100]!r} is not that of a page") from error


def _decode_value(page: _Page, value: bytes) -> OffsetSet:
    """Raises `JournalFormatError`."""
    try:
        fields: dict[str, Any] = json.loads(value)
        version = fields["version"]
        offsets = OffsetSet((int(first), int(last)) for first, last in fields["redriven"])
    except (KeyError, TypeError, ValueError) as error:
        raise JournalFormatError(f"the value {value[:100]!r} is not that of a page") from error
    if version != VERSION:
        raise JournalFormatError(f"it has version {version}, and this program knows version {VERSION}")
    bounds = range(page.first_offset, page.first_offset + PAGE_OFFSETS)
    if any(first not in bounds or last not in bounds for first, last in offsets):
        raise JournalFormatError(f"it has offsets outside of its page, {page.first_offset}")
    return offsets
