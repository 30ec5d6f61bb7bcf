"""Histories generated from seeds: records are produced, acquired and acknowledged in every way, sessions end,
records are deleted. `histories` defines the steps.

A plain model tells which records are available and which are held, so that each step is possible. No record
is delivered a third time, so that `take` gets all available records, independent of the rules for the last
deliveries.
"""

from __future__ import annotations

from enum import Enum, auto
from random import Random
from typing import Any

from tests.conformance.share_member import ACCEPT, GAP, REJECT, RELEASE

Step = tuple[Any, ...]
"""A verb of `HistoryRun` and its arguments."""

STEP_COUNT = 14
DELIVERIES_MAX = 2
_SETTLING_TYPES = (ACCEPT, ACCEPT, ACCEPT, REJECT, GAP)


class _State(Enum):
    FREE = auto()
    HELD = auto()
    SETTLED = auto()


class _Record:
    def __init__(self) -> None:
        self.state = _State.FREE
        self.delivery_count = 0

    @property
    def may_return(self) -> bool:
        return self.delivery_count < DELIVERIES_MAX


def generate(seed: int) -> list[Step]:
    """The history of a seed; always the same."""
    return _Generator(Random(seed)).steps()


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._records: list[_Record] = []
        self._log_start = 0

    def steps(self) -> list[Step]:
        steps = [self._produce(), self._take()]
        while len(steps) < STEP_COUNT:
            steps.append(self._next())
        return steps

    def _next(self) -> Step:
        held = self._numbers(_State.HELD)
        choices = [self._produce]
        if self._numbers(_State.FREE):
            choices += [self._take] * 2
        if held:
            choices += [self._acknowledge] * 4
            if all(self._records[number].may_return for number in held):
                choices.append(self._end_session)
        if not held and self._log_start + 1 < len(self._records):
            choices.append(self._delete_records)
        return self._random.choice(choices)()

    def _produce(self) -> Step:
        count = self._random.randint(1, 8)
        self._records += [_Record() for _ in range(count)]
        return ("produce", count)

    def _take(self) -> Step:
        for number in self._numbers(_State.FREE):
            record = self._records[number]
            record.state = _State.HELD
            record.delivery_count += 1
        return ("take", 500)

    def _acknowledge(self) -> Step:
        """Some of the held records, in ascending ranges of one type."""
        batches: list[tuple[int, int, int]] = []
        for first, last in self._held_ranges():
            if self._random.random() < 0.6 or not batches:
                low = self._random.randint(first, last)
                batches.append(self._settle(low, self._random.randint(low, last)))
        return ("acknowledge", *batches)

    def _settle(self, first: int, last: int) -> tuple[int, int, int]:
        records = self._records[first : last + 1]
        can_return = all(record.may_return for record in records)
        ack_type = self._random.choice((*_SETTLING_TYPES, *((RELEASE, RELEASE) if can_return else ())))
        for record in records:
            record.state = _State.FREE if ack_type == RELEASE else _State.SETTLED
        return (first, last, ack_type)

    def _end_session(self) -> Step:
        for number in self._numbers(_State.HELD):
            self._records[number].state = _State.FREE
        return ("end_session",)

    def _delete_records(self) -> Step:
        self._log_start = self._random.randint(self._log_start + 1, len(self._records) - 1)
        return ("delete_records", self._log_start)

    def _numbers(self, state: _State) -> list[int]:
        """The records in that state that are not deleted."""
        return [
            number
            for number in range(self._log_start, len(self._records))
            if self._records[number].state is state
        ]

    def _held_ranges(self) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        for number in self._numbers(_State.HELD):
            if ranges and ranges[-1][1] + 1 == number:
                ranges[-1] = (ranges[-1][0], number)
            else:
                ranges.append((number, number))
        return ranges
