"""The priorities of the records that producers send, in runs with share groups that go by priorities."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple
from zlib import crc32

from barnabas.protocol.records import Header

HEADER_NAME = "urgency"
_VALUES = (None, None, None, None, b"0", b"1", b"9", b"9", b"urgent")
"""Absent, valid and invalid values of the header."""


class PrioritySettings(NamedTuple):
    """The part of a scenario that is about priorities."""

    group_ids: tuple[str, ...] = ()
    """The share groups that begin with `share.priority.header`."""
    window_records: int = 0
    overtaken_max: int = 0


NO_PRIORITIES = PrioritySettings()


def draw_priorities(random: Random, group_ids: Sequence[str]) -> PrioritySettings:
    """Three of ten runs have a group with priorities. It may be the one in the order of keys."""
    if random.random() >= 0.3:
        return NO_PRIORITIES
    return PrioritySettings((group_ids[0],), random.choice((3, 30, 1000)), random.choice((1, 8, 1000)))


class PrioritisedRecords:
    """Gives each value of a record its priority, always the same one."""

    def __init__(self, settings: PrioritySettings) -> None:
        self._has_priorities = bool(settings.group_ids)

    def headers_of(self, value: bytes) -> list[Header]:
        """The headers of the record with this value."""
        found = _header_value(value) if self._has_priorities else None
        return [] if found is None else [(HEADER_NAME, found)]

    def priority_of(self, value: bytes) -> int:
        """The priority by which a group with priorities has to go."""
        found = _header_value(value) if self._has_priorities else None
        return int(found) if found is not None and found.isdigit() else 0


def _header_value(value: bytes) -> bytes | None:
    return _VALUES[crc32(value) % len(_VALUES)]
