"""The deliveries that ended with a dead letter to write (KIP-1191), until the letter ends. Pure.

Such a delivery has several steps in the log: its record becomes Archiving, its letter may get another place,
and its record becomes Archived. They are one outcome, so this module keeps the first step, which has the
cause, the member and the time, and returns one row for it at the last step.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from barnabas.protocol.delivery_state import Cause, RecordState

DUE: Final = "due"
WRITTEN: Final = "written"
FAILED: Final = "failed"
UNKNOWN_LETTER: Final = "unknown"
"""The end of the letter is not recorded by itself: only a checkpoint or the state topic has it, the record
was removed with the start of the log, or the state of the group was reset.
"""
LETTERS: Final = {Cause.DEAD_LETTER: WRITTEN, Cause.LETTER_FAILED: FAILED}
"""The ends of letters that have a cause of their own."""

_ARCHIVING, _ARCHIVED = RecordState.ARCHIVING, RecordState.ARCHIVED
_ARCHIVING_BYTE: Final = bytes([_ARCHIVING])
_LETTER_CAUSE_BYTES: Final = tuple(bytes([cause]) for cause in LETTERS)
_IS_DONE: Final = frozenset({_ARCHIVED, None})


class Delivery(NamedTuple):
    """An outcome. `state` is None for records that are done in an unknown way; `delivery_count` is None if it
    is unknown, `cause` and `member` if they weren't recorded, `letter` if the records get no dead letter.
    """

    first_offset: int
    last_offset: int
    state: RecordState | None
    delivery_count: int | None
    cause: Cause | None
    member: str | None
    control_offset: int
    decided_at_ms: int
    incarnation: int
    life: int
    letter: str | None = None
    record_count: int = 0
    """Counted when the row is made."""


_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


class DueLetters:
    """The due letters of one share-partition: disjoint ranges, ascending."""

    def __init__(self) -> None:
        self._due: list[Delivery] = []

    def __len__(self) -> int:
        return len(self._due)

    def take(self, outcome: Delivery) -> list[Delivery] | None:
        """The rows for this outcome, if it begins or ends letters: an empty list while they are due.

        None if it neither begins nor ends a letter. The rows of a later outcome are those of the letters that
        it ends, and those of its other records. An outcome that may not follow is a row itself, too.
        """
        first, last, state = outcome[:3]
        if state is _ARCHIVING:
            self._begin(outcome)
            return []
        ended = self._end(first, last)
        if not ended:
            return None
        if state in _IS_DONE:
            letter = LETTERS.get(outcome.cause or Cause.NONE, UNKNOWN_LETTER)
            others = subtract(outcome, ended)
            return [*(delivery._replace(state=_ARCHIVED, letter=letter) for delivery in ended), *others]
        return [*(delivery._replace(letter=UNKNOWN_LETTER) for delivery in ended), outcome]

    def overlaps(self, first_offset: int, last_offset: int) -> bool:
        """Whether a letter of these records is due; both ends are inclusive."""
        low, high = self._slots(first_offset, last_offset)
        return low < high

    def between(self, first_offset: int, last_offset: int) -> list[Delivery]:
        """The due letters of these records, which stay due; both ends are inclusive."""
        low, high = self._slots(first_offset, last_offset)
        return [_clipped(delivery, first_offset, last_offset) for delivery in self._due[low:high]]

    def drain(self, letter: str) -> list[Delivery]:
        """All of them, with this state of the letter; from now on none is due."""
        due, self._due = self._due, []
        return [delivery._replace(letter=letter) for delivery in due]

    def _begin(self, outcome: Delivery) -> None:
        """Letters that are due already stay as they are: only their place has changed."""
        first, last = outcome.first_offset, outcome.last_offset
        low, high = self._slots(first, last)
        known = self._due[low:high]
        self._due[low:high] = sorted([*known, *subtract(outcome, known)])

    def _end(self, first_offset: int, last_offset: int) -> list[Delivery]:
        low, high = self._slots(first_offset, last_offset)
        found = self._due[low:high]
        ended = [_clipped(delivery, first_offset, last_offset) for delivery in found]
        self._due[low:high] = [rest for delivery in found for rest in subtract(delivery, ended)]
        return ended

    def _slots(self, first_offset: int, last_offset: int) -> tuple[int, int]:
        low = bisect_left(self._due, first_offset, key=_last_offset)
        return low, bisect_right(self._due, last_offset, lo=low, key=_first_offset)


def has_letter_steps(states: array[int], causes: array[int]) -> bool:
    """Whether one of many ranges begins a letter, or has the cause of the end of one."""
    cause_bytes = causes.tobytes()
    return _ARCHIVING_BYTE in states.tobytes() or any(cause in cause_bytes for cause in _LETTER_CAUSE_BYTES)


def _clipped(delivery: Delivery, first_offset: int, last_offset: int) -> Delivery:
    return delivery._replace(
        first_offset=max(delivery.first_offset, first_offset),
        last_offset=min(delivery.last_offset, last_offset),
    )


def subtract(delivery: Delivery, taken: Sequence[Delivery]) -> Iterator[Delivery]:
    """The parts of a range that are in no range of `taken`, which ascends."""
    offset = delivery.first_offset
    for other in taken:
        if offset < other.first_offset <= delivery.last_offset:
            yield delivery._replace(first_offset=offset, last_offset=other.first_offset - 1)
        offset = max(offset, other.last_offset + 1)
    if offset <= delivery.last_offset:
        yield delivery._replace(first_offset=offset)
