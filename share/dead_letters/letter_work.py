"""The dead letters of one share-partition, written one batch after the other.

The order of writes lets no letter get lost, and writes none twice after a crash of the process (decision 24):
state Archiving, with the place of the letter; then the letter, with an fsync under any `log.flush`; then
state Archived. After a crash, or a failure with an unknown outcome, the letter is looked for from its
recorded place on before it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from barnabas.coordinator.metadata.image import Topic
from barnabas.protocol.dead_letter import Original
from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.errors import ApiError
from barnabas.runtime.logging import get_logger
from barnabas.share.dead_letters.letter_batch import LETTERS_MAX, DueLetter, make_batch
from barnabas.share.dead_letters.letter_parts import LetterParts
from barnabas.share.dead_letters.letter_search import written_letters
from barnabas.share.dead_letters.letter_topics import LetterRefused
from barnabas.share.dead_letters.pause import Pause
from barnabas.share.dead_letters.source_records import SourceRecords
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("share")

RETRY_MS_MIN: Final = 1_000
RETRY_MS_MAX: Final = 30_000
"""The first and the longest wait before another attempt; each is twice as long as the one before."""
ATTEMPTS_MAX: Final = 5
"""With share.dead.letter.on.failure=archive: attempts before a letter is given up, as in Apache Kafka."""

_base_offset = attrgetter("base_offset")

_Failure = (LetterRefused, ApiError, StorageError)


class LetterWork:
    """The letters that are due for one leader. `run` ends when all are written or given up, or the leader is
    closed: then the next leader finds them in the recorded state.
    """

    def __init__(self, leader: SharePartitionLeader, parts: LetterParts) -> None:
        self.leader = leader
        self._parts = parts
        self._due: deque[StateRange] = deque()
        self._taken: list[StateRange] = []
        """The ranges that are being written, ascending, each with its recorded place."""
        self._must_search = False
        """Whether letters may be in their topic already."""
        self._pause: Pause | None = None
        self._stall_told = False

    @property
    def held_count(self) -> int:
        """Records that wait because their letters cannot be written at present."""
        if self._pause is None:
            return 0
        return sum(self.leader.core.record_count(one.base_offset, one.last_offset) for one in self._due)

    @property
    def is_stalled(self) -> bool:
        """Whether records that wait fill the in-flight window, so that no member gets further ones."""
        return self._pause is not None and self.leader.is_window_full

    def add(self, letters: Sequence[StateRange], *, may_be_written: bool) -> None:
        """More letters are due. `may_be_written`: an earlier leader may have written them."""
        self._due += letters
        self._must_search |= may_be_written

    def try_again(self) -> None:
        """Something has changed: do not wait any longer."""
        if self._pause is not None:
            self._pause.end()

    async def run(self) -> None:
        """Write all letters that are due."""
        attempt = 0
        while self._due and not self.leader.closed:
            self._taken = self._take()
            try:
                await self._write()
                attempt, self._stall_told = 0, False
            except _Failure as error:
                self._due.extendleft(reversed(self._taken))
                self._must_search = True
                self._parts.counts.failed(self.leader.group_id)
                attempt += 1
                if not self.leader.closed and not await self._give_up(error, attempt):
                    await self._wait(attempt, error)

    def _take(self) -> list[StateRange]:
        """The next ranges, with at most LETTERS_MAX offsets; ascending, although later decisions may be about
        earlier records.
        """
        taken: list[StateRange] = []
        room = LETTERS_MAX
        while self._due and room:
            one = self._due.popleft()
            end = min(one.last_offset, one.base_offset + room - 1)
            if end < one.last_offset:
                self._due.appendleft(one._replace(base_offset=end + 1))
            taken.append(one._replace(last_offset=end))
            room -= end - one.base_offset + 1
        return sorted(taken, key=_base_offset)

    async def _write(self) -> None:
        """Write a batch of the taken letters, and put those back that did not fit."""
        if self._must_search:
            self._taken = await self._without_written(self._taken)
            if not self._taken:
                self._must_search = bool(self._due)
                return
        topic = await self._parts.topics.ensure(self.leader.group_id)
        index = self.leader.key.partition % len(topic.partitions)
        letter_log = await self._parts.logs.open(topic, index)
        await self._place(topic, index, letter_log)
        due = [letter for one in self._taken for letter in self._letters(one)]
        if due:
            written = await self._append(due, letter_log)
            await self._end(due[:written])
            self._parts.counts.written(self.leader.group_id, written)
            self._put_back(due[written - 1].offset)

    async def _append(self, due: Sequence[DueLetter], letter_log: PartitionLog) -> int:
        """Append the first of these letters, durably; returns their number."""
        bytes_max = letter_log.config.max_message_bytes
        source = SourceRecords(self.leader.log, bytes_max)
        config = self._parts.settings.of_group(self.leader.group_id)
        now_ms = self._parts.clock.wall_ms()
        batch = make_batch(due, source, config, bytes_max, now_ms)
        self._parts.counts.appending(self.leader.group_id)
        appended = await letter_log.append_produced(batch.data, [batch.batch], now_ms)
        await _make_durable(letter_log, appended.last_offset + 1)
        return batch.letter_count

    async def _end(self, letters: Sequence[DueLetter]) -> None:
        await self.leader.end_letters(_spans(letters), Cause.DEAD_LETTER)

    def _put_back(self, written_until: int) -> None:
        rest = [
            one._replace(base_offset=max(one.base_offset, written_until + 1))
            for one in self._taken
            if one.last_offset > written_until
        ]
        self._due.extendleft(reversed(rest))

    async def _place(self, topic: Topic, index: int, letter_log: PartitionLog) -> None:
        """Have another place recorded for letters whose place is unknown, elsewhere, or lost."""
        place = LetterPlace(Cause.NONE, topic.topic_id, index, letter_log.log_end_offset)
        moved = [
            (one.base_offset, one.last_offset) for one in self._taken if not _is_at(one.letter_place, place)
        ]
        if moved:
            await self.leader.place_letters(moved, place)
            self._taken = [
                one if _is_at(one.letter_place, place) else _placed(one, place) for one in self._taken
            ]

    async def _without_written(self, taken: Sequence[StateRange]) -> list[StateRange]:
        """The ranges without the letters that are in their recorded place already; these end."""
        left: list[StateRange] = []
        for one in taken:
            letters = self._letters(one)
            found = await self._written(one.letter_place, {letter.original for letter in letters})
            await self._end([letter for letter in letters if letter.original in found])
            self._parts.counts.found(self.leader.group_id, len(found))
            left += (
                one._replace(base_offset=letter.offset, last_offset=letter.offset)
                for letter in letters
                if letter.original not in found
            )
        return left

    async def _written(self, place: LetterPlace | None, wanted: set[Original]) -> set[Original]:
        """Those with a letter at the place; they are durable then."""
        topic = None if place is None else self._parts.image.topics_by_id.get(place.topic_id)
        if place is None or topic is None or place.partition >= len(topic.partitions):
            return set()
        letter_log = await self._parts.logs.open(topic, place.partition)
        found = await written_letters(letter_log, place.log_end_offset, wanted)
        if found:
            await _make_durable(letter_log, letter_log.log_end_offset)
        return found

    def _letters(self, due: StateRange) -> list[DueLetter]:
        """The letters of a range, without offsets that hold no data, and without records that have left the
        log, which the start offset has passed.
        """
        key, topic_name = self.leader.key, self.leader.log.topic_partition.topic
        first_offset = max(due.base_offset, self.leader.core.spso)
        return [
            DueLetter(
                Original(key.group_id, topic_name, key.partition, offset),
                due.delivery_count,
                self._reason(due),
            )
            for first, last in self.leader.log.control_runs.data_ranges(first_offset, due.last_offset)
            for offset in range(first, last + 1)
        ]

    def _reason(self, due: StateRange) -> Cause:
        """Kafka does not record the reason; its leader guesses it in this way."""
        reason = Cause.NONE if due.letter_place is None else due.letter_place.reason
        if reason is not Cause.NONE:
            return reason
        is_at_limit = self.leader.limits().ends_after(due.delivery_count)
        return Cause.DELIVERY_LIMIT if is_at_limit else Cause.REJECT

    async def _give_up(self, error: Exception, attempt: int) -> bool:
        """Archive the records without letters, if the group's settings say so; whether that is recorded."""
        config = self._parts.settings.of_group(self.leader.group_id)
        is_final = isinstance(error, LetterRefused) or attempt >= ATTEMPTS_MAX
        if config.topic_name and (config.holds_on_failure or not is_final):
            return False
        taken = self._take()
        try:
            await self.leader.end_letters(
                [(one.base_offset, one.last_offset) for one in taken], Cause.LETTER_FAILED
            )
        except _Failure:
            self._due.extendleft(reversed(taken))
            return False
        count = sum(self.leader.core.record_count(one.base_offset, one.last_offset) for one in taken)
        self._parts.counts.lost(self.leader.group_id, count)
        log.error(
            "records are archived without dead letters",
            group=self.leader.group_id,
            partition=self.leader.log.topic_partition.directory_name,
            records=count,
            reason=str(error),
        )
        return True

    async def _wait(self, attempt: int, error: Exception) -> None:
        pause = self._pause = Pause(self._parts.clock, self._parts.deadlines)
        self._parts.counts.held(self.leader.group_id, str(error))
        self._tell_stall()
        try:
            await pause.wait(min(RETRY_MS_MIN << min(attempt - 1, 16), RETRY_MS_MAX))
        finally:
            self._pause = None

    def _tell_stall(self) -> None:
        if self.is_stalled and not self._stall_told:
            self._stall_told = True
            log.error(
                "records that wait for dead letters fill the in-flight window: no member gets further ones",
                group=self.leader.group_id,
                partition=self.leader.log.topic_partition.directory_name,
            )


def _spans(letters: Sequence[DueLetter]) -> list[tuple[int, int]]:
    """The offsets of ascending letters, neighbours as one range."""
    spans: list[tuple[int, int]] = []
    for one in letters:
        if spans and spans[-1][1] + 1 == one.offset:
            spans[-1] = (spans[-1][0], one.offset)
        else:
            spans.append((one.offset, one.offset))
    return spans


async def _make_durable(letter_log: PartitionLog, end_offset: int) -> None:
    if letter_log.durable_offset < end_offset:
        await letter_log.flush()


def _is_at(present: LetterPlace | None, place: LetterPlace) -> bool:
    """Whether the letter may be written at `place`. A loss of power can leave the log shorter than the place
    that is recorded.
    """
    return (
        present is not None
        and (present.topic_id, present.partition) == (place.topic_id, place.partition)
        and present.log_end_offset <= place.log_end_offset
    )


def _placed(due: StateRange, place: LetterPlace) -> StateRange:
    reason = Cause.NONE if due.letter_place is None else due.letter_place.reason
    return due._replace(condition=place._replace(reason=reason))
