"""Writes the records of letters again, each letter once: one transaction for each batch of letters.

    begin -> the records to their topics -> pages of the journal -> commit -> the pages take effect here

The journal is read after the transactional id is registered. That aborts the open transaction of a run that
was killed, and fences a run that is still going on. So a letter is either written and in the journal, or
neither, and every run begins with the whole journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.cli.dead_letters.content import Content, Missing, Origin
from barnabas.cli.dead_letters.journal import PARTITION
from barnabas.cli.dead_letters.letter import Letter, NotALetter
from barnabas.cli.dead_letters.letter_log import LetterLog
from barnabas.cli.dead_letters.redriven_offsets import JournalRecord, RedrivenOffsets
from barnabas.cli.dead_letters.selection import Selection
from barnabas.cli.dead_letters.source_records import SourceRecords
from barnabas.cli.dead_letters.stopping import StopRequest
from barnabas.cli.dead_letters.throttle import Throttle
from barnabas.client.cluster.topics import Topic
from barnabas.client.errors import BrokerError, ConsumerError, ProduceError, TransactionAbortedError
from barnabas.client.produce.producer import Producer
from barnabas.client.produce.record_queue import RecordMetadata
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode

BATCH_LETTERS: Final = 100
"""The letters of one transaction, by default. All records of a batch are in memory."""
BATCH_LETTERS_MAX: Final = 1_000

_FENCED: Final = frozenset(
    {ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_id_mapping}
)


class Plan(NamedTuple):
    """The wishes of the administrator."""

    selection: Selection
    to_topic: str | None
    """The target; None for the source topic of each letter."""
    batch_letters: int
    again: bool
    """Re-drive also the letters that were re-driven before."""


class Target(NamedTuple):
    """The place of a re-driven record; without a partition the key selects it."""

    topic: str
    partition: int | None


class NotRedriven(NamedTuple):
    """A letter that could not be re-driven."""

    letter: Letter | NotALetter
    reason: str


@dataclass(slots=True)
class Tally:
    """The numbers of letters of one run."""

    from_source: int = 0
    from_copy: int = 0
    missing: int = 0
    """Their records are gone."""
    without_target: int = 0
    """Their topic is gone; the records are there."""
    not_letters: int = 0

    @property
    def redriven(self) -> int:
        return self.from_source + self.from_copy

    @property
    def not_redriven(self) -> int:
        """Letters that were selected and could not be re-driven, and records that are no letters."""
        return self.missing + self.without_target + self.not_letters


class Ready(NamedTuple):
    """A letter that can be re-driven."""

    letter: Letter
    content: Content
    target: Target


class Writer:
    """Writes batches with a transactional producer."""

    def __init__(
        self, producer: Producer, journal: Topic, redriven: RedrivenOffsets, outdated: Iterable[JournalRecord]
    ) -> None:
        """`outdated` are tombstones of the journal; the first transaction writes them."""
        self._producer = producer
        self._journal = journal
        self._redriven = redriven
        self._outdated = list(outdated)

    async def write(self, batch: Sequence[Ready]) -> None:
        """One transaction. Raises `ConsumerError`."""
        letters = [(ready.letter.partition, ready.letter.offset) for ready in batch]
        pages = [*self._outdated, *self._redriven.plan(letters)]
        async with self._producer.transaction():
            sent = [await self._send(ready) for ready in batch]
            sent += [await self._remember(page) for page in pages]
            await asyncio.gather(*sent)
        for page in pages:
            self._redriven.replay(page)
        self._outdated.clear()

    async def _send(self, ready: Ready) -> asyncio.Future[RecordMetadata]:
        content, target = ready.content, ready.target
        return await self._producer.send(
            target.topic,
            content.value,
            key=content.key,
            partition=target.partition,
            headers=content.headers,
        )

    async def _remember(self, page: JournalRecord) -> asyncio.Future[RecordMetadata]:
        return await self._producer.send(self._journal.name, page.value, key=page.key, partition=PARTITION)


class OvertakenError(ConsumerError):
    """Another run has taken over the transactional id; the batch was not written."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self._text = (
            f"Another re-drive of {topic} has begun, and goes on with the letters that are left. If there is "
            "none, a transaction took too long: choose a smaller --batch"
        )

    def __str__(self) -> str:
        return self._text


class BatchError(ConsumerError):
    """A transaction failed: its letters were not re-driven, or the result of its commit is unknown."""

    def __init__(self, topic: str, batch: Sequence[Ready], cause: Exception) -> None:
        super().__init__(topic, batch, cause)
        first, last = batch[0].letter, batch[-1].letter
        letters = counted(len(batch), "letter")
        self._text = (
            f"The batch of {letters} from {topic}-{first.partition} offset {first.offset} to "
            f"{topic}-{last.partition} offset {last.offset} failed: {str(cause).removesuffix('.')}. The same "
            "command goes on behind the last batch that was written; --offsets selects single letters"
        )

    def __str__(self) -> str:
        return self._text


class Redriving:
    """One run over a dead letter topic."""

    def __init__(
        self,
        plan: Plan,
        letters: LetterLog,
        redriven: RedrivenOffsets,
        sources: SourceRecords,
        writer: Writer | None,
        on_not_redriven: Callable[[NotRedriven], None],
        tally: Tally,
    ) -> None:
        """Without a writer nothing is written, and the letters that would be re-driven are counted."""
        self._tally = tally
        self._plan = plan
        self._letters = letters
        self._redriven = redriven
        self._sources = sources
        self._writer = writer
        self._on_not_redriven = on_not_redriven

    async def run(self, throttle: Throttle, stop: StopRequest, on_batch: Callable[[], None]) -> None:
        """Re-drive the letters up to the end of the topic; `on_batch` is called after each batch.

        Raises `BatchError`, `OvertakenError`, other `ConsumerError`s, and `CancelledError` after a signal.
        """
        clock = asyncio.get_running_loop().time
        async with aclosing(self._batches(throttle.batch_records(self._plan.batch_letters))) as batches:
            async for batch in batches:
                if ready := await self._ready(batch):
                    await asyncio.sleep(throttle.wait_seconds(clock()))
                    throttle.note(len(ready), clock())
                    with stop.finishing():
                        await self._write(ready)
                        on_batch()

    async def _batches(self, letters_max: int) -> AsyncGenerator[list[Letter]]:
        """The letters to re-drive."""
        skipped = None if self._plan.again else self._redriven
        batch: list[Letter] = []
        async with aclosing(self._letters.read(self._plan.selection, skipped)) as letters:
            async for record in letters:
                if isinstance(record, NotALetter):
                    self._tally.not_letters += 1
                    self._on_not_redriven(NotRedriven(record, f"it is not a dead letter: {record.reason}"))
                elif skipped is None or not skipped.has(record.partition, record.offset):
                    batch.append(record)
                if len(batch) == letters_max:
                    yield batch
                    batch = []
        if batch:
            yield batch

    async def _ready(self, batch: Sequence[Letter]) -> list[Ready]:
        """The letters with their contents and targets; those that have none are reported."""
        ready: list[Ready] = []
        for letter, content in await self._sources.contents(batch):
            if isinstance(content, Missing):
                self._tally.missing += 1
                self._on_not_redriven(NotRedriven(letter, f"its record is gone: {content.reason}"))
            elif self._plan.selection.matches_key(content.key):
                target = await self._target(letter)
                if target is not None:
                    ready.append(Ready(letter, content, target))
        return ready

    async def _target(self, letter: Letter) -> Target | None:
        source = letter.source
        name = self._plan.to_topic or source.topic
        topic = await self._sources.topic(name)
        if topic is None:
            self._tally.without_target += 1
            reason = f"there is no topic {name} any more; --to names another topic"
            self._on_not_redriven(NotRedriven(letter, reason))
            return None
        is_source = name == source.topic and source.partition < topic.partition_count
        return Target(name, source.partition if is_source else None)

    async def _write(self, ready: Sequence[Ready]) -> None:
        if self._writer is not None:
            try:
                await self._writer.write(ready)
            except ConsumerError as error:
                topic, cause = self._letters.topic.name, _cause(error)
                if isinstance(cause, BrokerError | ProduceError) and cause.code in _FENCED:
                    raise OvertakenError(topic) from error
                raise BatchError(topic, ready, cause) from error
        for redriven in ready:
            if redriven.content.origin is Origin.SOURCE:
                self._tally.from_source += 1
            else:
                self._tally.from_copy += 1


def _cause(error: ConsumerError) -> Exception:
    """The first error of a transaction; later steps only tell that it must be aborted."""
    return error.cause if isinstance(error, TransactionAbortedError) else error
