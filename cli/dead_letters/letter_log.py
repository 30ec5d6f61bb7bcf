"""The letters of one dead letter topic, in the order of its partitions and offsets.

They are the letters up to the end of the topic when it is opened: a letter that a re-driven record causes is
not read again. Records of transactions that are open or aborted are no letters.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from barnabas.cli.dead_letters.letter import Letter, NotALetter, parse_letter
from barnabas.cli.dead_letters.redriven_offsets import RedrivenOffsets
from barnabas.cli.dead_letters.selection import Selection
from barnabas.cli.dead_letters.session import Bounds, Session
from barnabas.client.cluster.topics import Isolation, Topic


class LetterLog:
    """Created by `open`."""

    def __init__(self, session: Session, topic: Topic, bounds: list[Bounds]) -> None:
        self.topic = topic
        self.looked_at_count = 0
        """The offsets that were passed so far."""
        self._session = session
        self._bounds = bounds

    @classmethod
    async def open(cls, session: Session, topic_name: str) -> LetterLog:
        """Raises `UnknownTopicError` and other `ConsumerError`s."""
        (topic,) = await session.topics.find([topic_name])
        return cls(session, topic, await session.bounds(topic, Isolation.READ_COMMITTED))

    @property
    def start_offsets(self) -> dict[int, int]:
        """By partition, the first offset that it holds."""
        return {partition: bounds.start_offset for partition, bounds in enumerate(self._bounds)}

    def offset_count(self, selection: Selection) -> int:
        """The number of offsets to look at for a selection."""
        return sum(len(offsets) for offsets in self._ranges(selection))

    async def read(
        self, selection: Selection, skipped: RedrivenOffsets | None = None
    ) -> AsyncGenerator[Letter | NotALetter]:
        """The letters that pass the selection, without its key, and the records that are no letters.

        `skipped` are not read if the log begins with them; others of them are among the letters.
        """
        for partition, wanted in enumerate(self._ranges(selection)):
            first = wanted.start if skipped is None else skipped.first_waiting(partition, wanted.start)
            passed_before = self.looked_at_count - wanted.start
            if first < wanted.stop:
                ranges = [(first, wanted.stop - 1)]
                reading = self._session.read(self.topic, partition, ranges, Isolation.READ_COMMITTED)
                async with aclosing(reading) as records:
                    async for record in records:
                        self.looked_at_count = passed_before + record.offset + 1
                        found = parse_letter(partition, record)
                        if selection.matches(found):
                            yield found
            self.looked_at_count = passed_before + max(wanted.start, wanted.stop)

    def _ranges(self, selection: Selection) -> list[range]:
        return [selection.bounds(partition, *bounds) for partition, bounds in enumerate(self._bounds)]
