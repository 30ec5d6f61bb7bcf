"""The dead letters of one share-partition, written one batch after the other.

The order of writes lets no letter get lost, and writes none twice after a crash of the process (decision 24):
state Archiving, with the place of the letter; then the letter, with an fsync under any `log.flush`; then
state Archived. After a crash, or a failure with an unknown outcome, the letter is looked for from its
recorded place on before it is written.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final
from uuid import UUID

from barnabas.coordinator.metadata.image import Topic
from barnabas.protocol.dead_letter import Original
from barnabas.protocol.delivery_state import Cause, LetterPlace, StateRange
from barnabas.protocol.errors import ApiError
from barnabas.runtime.logging import get_logger
from barnabas.share.dead_letters.letter_batch import DueLetter, make_batch
from barnabas.share.dead_letters.letter_parts import LetterParts
from barnabas.share.dead_letters.letter_search import written_letters
from barnabas.share.dead_letters.letter_topics import LetterRefused
from barnabas.share.dead_letters.pause import Pause
from barnabas.share.dead_letters.source_records import SourceRecords
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.errors import StorageError
from barnabas.storage.log.partition_log import PartitionLog

log = get_logger("share")

LETTERS_MAX: Final = 1_000
"""The most letters that are in work at a time, in one batch or in many."""
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
        self._must_search = False
        """Whether some of these letters may be in their topic already."""
        self._failed_attempts = 0
        """Since a letter was last written or found."""
        self._pause: Pause | None = None
        self._stall_told = False

    @property
    def held_count(self) -> int:
        """Records that wait because their letters cannot be written at present."""
        if self._pause is None:
            return 0
        return sum(
            self.leader.core.record_count(state_range.base_offset, state_range.last_offset)
            for state_range in self._due
        )

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
        while self._due and not self.leader.closed:
            try:
                if self._must_search:
                    await self._search()
                await self._write()
            except _Failure as error:
                # A refusal comes before the letter is written. After any other failure that is unknown.
                self._must_search |= not isinstance(error, LetterRefused)
                self._failed_attempts += 1
                self._parts.counts.failed(self.leader.group_id)
                if not self.leader.closed and not await self._give_up(error):
                    await self._wait(error)

    async def _search(self) -> None:
        """End the letters that are in their topic already: one search for all letters of a partition. The
        other letters are not written, and need no search until an attempt fails.
        """
        self._must_search = False
        due = [(state_range, list(self._letters(state_range))) for state_range in self._due]
        wanted: defaultdict[tuple[UUID, int], dict[Original, int]] = defaultdict(dict)
        for state_range, letters in due:
            place = state_range.letter_place or LetterPlace()
            from_offset = place.log_end_offset
            wanted[place.topic_id, place.partition].update(
                (letter.original, from_offset) for letter in letters
            )
        found: set[Original] = set()
        for (topic_id, partition), originals in wanted.items():
            found |= await self._written(topic_id, partition, originals)
        if found:
            await self._end(
                sorted(letter for _, letters in due for letter in letters if letter.original in found)
            )
            self._parts.counts.found(self.leader.group_id, len(found))
        for _ in due:
            self._due.popleft()
        self._due.extendleft(
            state_range._replace(base_offset=first_offset, last_offset=last_offset)
            for state_range, letters in reversed(due)
            for first_offset, last_offset in reversed(
                _spans(letter for letter in letters if letter.original not in found)
            )
        )

    async def _written(
        self, topic_id: UUID, partition: int, originals: Mapping[Original, int]
    ) -> set[Original]:
        """Those with a letter in the partition, at or behind the offset of each; they are durable then."""
        topic = self._parts.image.topics_by_id.get(topic_id)
        if topic is None or partition >= len(topic.partitions):
            return set()
        letter_log = await self._parts.logs.open(topic, partition)
        found = await written_letters(letter_log, originals)
        if found:
            await _make_durable(letter_log, letter_log.log_end_offset)
        return found

    async def _write(self) -> None:
        """Write the letters of the next ranges, one batch after the other, and put back what is left of them
        when an attempt fails or the topic changes.
        """
        taken: Sequence[StateRange] = self._take()
        letters = deque(letter for state_range in taken for letter in self._letters(state_range))
        if not letters:
            return
        try:
            topic = await self._parts.topics.ensure(self.leader.group_id)
            index = self.leader.key.partition % len(topic.partitions)
            letter_log = await self._parts.logs.open(topic, index)
            taken = await self._place(taken, topic, index, letter_log)
            source = SourceRecords(self.leader.log, letter_log.config.max_message_bytes)
            while letters and not self.leader.closed and self._is_usable(topic):
                count = await self._append(letters, source, letter_log)
                await self._end([*islice(letters, count)])
                self._parts.counts.written(self.leader.group_id, count)
                for _ in range(count):
                    letters.popleft()
                while letters and letters[0].offset < self.leader.core.spso:
                    letters.popleft()  # it has left the log meanwhile
        finally:
            if letters:
                self._put_back(taken, letters[0].offset)

    def _is_usable(self, topic: Topic) -> bool:
        """Whether the letters still go to this topic. Raises LetterRefused."""
        return self._parts.topics.find(self.leader.group_id) is topic

    def _take(self) -> list[StateRange]:
        """The next ranges, with at most LETTERS_MAX offsets; ascending, although later decisions may be about
        earlier records.
        """
        taken: list[StateRange] = []
        room = LETTERS_MAX
        while self._due and room:
            state_range = self._due.popleft()
            end = min(state_range.last_offset, state_range.base_offset + room - 1)
            if end < state_range.last_offset:
                self._due.appendleft(state_range._replace(base_offset=end + 1))
            taken.append(state_range._replace(last_offset=end))
            room -= end - state_range.base_offset + 1
        return sorted(taken, key=_base_offset)

    def _put_back(self, taken: Sequence[StateRange], from_offset: int) -> None:
        """The ranges that were taken are due again from this offset on."""
        self._due.extendleft(
            state_range._replace(base_offset=max(state_range.base_offset, from_offset))
            for state_range in reversed(taken)
            if state_range.last_offset >= from_offset
        )

    async def _place(
        self, taken: Sequence[StateRange], topic: Topic, index: int, letter_log: PartitionLog
    ) -> Sequence[StateRange]:
        """The ranges with their recorded places: another one is recorded for letters whose place is unknown,
        elsewhere, or lost.
        """
        place = LetterPlace(Cause.NONE, topic.topic_id, index, letter_log.log_end_offset)
        moved = [
            (state_range.base_offset, state_range.last_offset)
            for state_range in taken
            if not _is_at(state_range.letter_place, place)
        ]
        if not moved:
            return taken
        await self.leader.place_letters(moved, place)
        return [
            state_range if _is_at(state_range.letter_place, place) else _placed(state_range, place)
            for state_range in taken
        ]

    async def _append(
        self, letters: Iterable[DueLetter], source: SourceRecords, letter_log: PartitionLog
    ) -> int:
        """Append the first of these letters, durably; returns their number."""
        config = self._parts.settings.of_group(self.leader.group_id)
        now_ms = self._parts.clock.wall_ms()
        batch = make_batch(letters, source, config, letter_log.config.max_message_bytes, now_ms)
        self._parts.counts.appending(self.leader.group_id)
        appended = await letter_log.append_produced(batch.data, [batch.batch], now_ms)
        await _make_durable(letter_log, appended.last_offset + 1)
        return batch.letter_count

    async def _end(self, letters: Sequence[DueLetter]) -> None:
        """These letters are written, durably."""
        await self.leader.end_letters(_spans(letters), Cause.DEAD_LETTER)
        self._failed_attempts, self._stall_told = 0, False

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

    async def _give_up(self, error: Exception) -> bool:
        """Archive the records without letters, if the group's settings say so; whether that is recorded."""
        config = self._parts.settings.of_group(self.leader.group_id)
        is_final = isinstance(error, LetterRefused) or self._failed_attempts >= ATTEMPTS_MAX
        if config.topic_name and (config.holds_on_failure or not is_final):
            return False
        taken = self._take()
        try:
            await self.leader.end_letters(
                [(state_range.base_offset, state_range.last_offset) for state_range in taken],
                Cause.LETTER_FAILED,
            )
        except _Failure:
            self._due.extendleft(reversed(taken))
            return False
        count = sum(
            self.leader.core.record_count(state_range.base_offset, state_range.last_offset)
            for state_range in taken
        )
        self._parts.counts.lost(self.leader.group_id, count)
        log.error(
            "records are archived without dead letters",
            group=self.leader.group_id,
            partition=self.leader.log.topic_partition.directory_name,
            records=count,
            reason=str(error),
        )
        return True

    async def _wait(self, error: Exception) -> None:
        pause = self._pause = Pause(self._parts.clock, self._parts.deadlines)
        self._parts.counts.held(self.leader.group_id, str(error))
        self._tell_stall()
        try:
            await pause.wait(min(RETRY_MS_MIN << min(self._failed_attempts - 1, 16), RETRY_MS_MAX))
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


def _spans(letters: Iterable[DueLetter]) -> list[tuple[int, int]]:
    """The offsets of ascending letters, neighbours as one range."""
    spans: list[tuple[int, int]] = []
    for letter in letters:
        if spans and spans[-1][1] + 1 == letter.offset:
            spans[-1] = (spans[-1][0], letter.offset)
        else:
            spans.append((letter.offset, letter.offset))
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
