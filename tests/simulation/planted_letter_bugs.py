"""Bugs in the dead letters that the broker does not have, planted like those in `planted_bugs`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from barnabas.protocol.delivery_state import StateRange
from barnabas.protocol.identity import SharePartitionKey
from barnabas.protocol.records import Record
from barnabas.share.dead_letters import letter_work
from barnabas.share.dead_letters.letter_batch import DueLetter
from barnabas.share.dead_letters.letter_work import LetterWork
from barnabas.share.dead_letters.pause import Pause
from barnabas.share.dead_letters.source_records import SourceRecords
from barnabas.share.sweep.left_letters import LeftLetters
from barnabas.storage.log.partition_log import PartitionLog
from tests.simulation import simulation
from tests.simulation.planted_seeds import FOR_EVER_SECONDS
from tests.simulation.planting import planted

# pyright: reportPrivateUsage=false

_MOMENT_SECONDS = 0.2

_append = LetterWork._append
_record_at = SourceRecords.record_at


@contextmanager
def letters_not_looked_for() -> Generator[None]:
    """After a restart all letters that are due are written, also those that are in their topic already."""

    async def written_letters(*_: object) -> set[Any]:
        return set()

    with patch.object(letter_work, "written_letters", written_letters):
        yield


@contextmanager
def archived_before_the_letter() -> Generator[None]:
    """State Archived is recorded a moment before the letter is appended."""

    async def append(
        self: LetterWork, letters: Iterable[DueLetter], source: SourceRecords, letter_log: PartitionLog
    ) -> int:
        await self._end([*letters])
        await asyncio.sleep(_MOMENT_SECONDS)
        return await _append(self, letters, source, letter_log)

    with patch.object(LetterWork, "_append", append):
        yield


@contextmanager
def letters_without_fsync() -> Generator[None]:
    """A letter is as durable as the records of producers, so it may be lost while state Archived is not."""

    async def make_durable(*_: object) -> None:
        """Leaves it to `log.flush`."""

    with patch.object(letter_work, "_make_durable", make_durable):
        yield


@planted(SourceRecords, "record_at")
def neighbours_copied(self: SourceRecords, offset: int) -> Record | None:
    """A letter has the content of the record behind its own, if there is one in the same read."""
    record = _record_at(self, offset)
    return self._records.get(offset + 1, record)


@contextmanager
def held_for_ever() -> Generator[None]:
    """A letter that could not be written is not tried again."""

    async def wait(self: Pause, _duration_ms: int) -> None:
        await self._ended

    def end(_: Pause) -> None:
        """Nothing ends the wait."""

    with (
        patch.object(Pause, "wait", wait),
        patch.object(Pause, "end", end),
        patch.object(simulation, "REST_SECONDS_MAX", FOR_EVER_SECONDS),
    ):
        yield


@contextmanager
def rest_by_offset() -> Generator[None]:
    """Letters are taken as they became due, and those behind the last written offset are put back."""

    def unsorted(taken: list[StateRange], **_: object) -> list[StateRange]:
        return taken

    with (
        patch.object(letter_work, "sorted", unsorted, create=True),
        patch.object(simulation, "REST_SECONDS_MAX", FOR_EVER_SECONDS),
    ):
        yield


@planted(LeftLetters, "next_keys")
def given_up_by_fetches_only(self: LeftLetters, _: int) -> list[SharePartitionKey]:
    """No sweep looks for letters of groups that no longer name a topic for them, unless a member fetches."""
    self._knows_groups = True
    self._settled.clear()
    return []
