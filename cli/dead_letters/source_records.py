"""Reads records of source topics at the offsets that letters name.

A group that reads uncommitted records has letters of aborted transactions, too, so the records are read
without regard to transactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from barnabas.cli.dead_letters.content import Content, Missing, content_of
from barnabas.cli.dead_letters.letter import Letter, SourcePosition
from barnabas.cli.dead_letters.session import Bounds, Session
from barnabas.client.cluster.topics import EARLIEST, LATEST, Isolation, Topic
from barnabas.client.consume.offset_set import OffsetSet
from barnabas.client.errors import RecordsGoneError, TopicGoneError, UnknownTopicError
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.records import Record

NO_TOPIC: Final = Missing("there is no topic of this name any more")
NO_RECORD: Final = Missing("the topic has no record at this offset any more")


class SourceRecords:
    """Remembers the topics that it has looked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._topics: dict[str, Topic | None] = {}

    async def topic(self, name: str) -> Topic | None:
        """The topic with this name; None if there is none."""
        if name not in self._topics:
            try:
                (self._topics[name],) = await self._session.topics.find([name])
            except UnknownTopicError:
                self._topics[name] = None
        return self._topics[name]

    async def contents(self, letters: Sequence[Letter]) -> list[tuple[Letter, Content | Missing]]:
        """Each letter with its record. Raises `ConsumerError`."""
        found = await self.read({letter.source for letter in letters})
        return [(letter, content_of(letter, found[letter.source])) for letter in letters]

    async def read(self, positions: Collection[SourcePosition]) -> dict[SourcePosition, Record | Missing]:
        """The record at each position, or the reason why there is none. Raises `ConsumerError`."""
        found: dict[SourcePosition, Record | Missing] = {}
        by_partition: dict[tuple[str, int], set[int]] = defaultdict(set)
        for topic_name, partition, offset in positions:
            by_partition[topic_name, partition].add(offset)
        for (topic_name, partition), offsets in by_partition.items():
            topic = await self.topic(topic_name)
            if topic is None:
                records: Mapping[int, Record | Missing] = dict.fromkeys(offsets, NO_TOPIC)
            else:
                records = await self._read_partition(topic, partition, offsets)
            found.update(
                (SourcePosition(topic_name, partition, offset), records.get(offset, NO_RECORD))
                for offset in offsets
            )
        return found

    async def _read_partition(
        self, topic: Topic, partition: int, offsets: Iterable[int]
    ) -> Mapping[int, Record | Missing]:
        """The records at those of the offsets that the partition has."""
        if partition >= topic.partition_count:
            return {}
        records: dict[int, Record | Missing] = {}
        try:
            bounds = await self._bounds(TopicIdPartition(topic.topic_id, partition))
            held = OffsetSet((offset, offset) for offset in sorted(offsets) if offset in range(*bounds))
            if not len(held):
                return {}
            reading = self._session.read(topic, partition, list(held), Isolation.READ_UNCOMMITTED)
            async with aclosing(reading) as found:
                async for record in found:
                    if record.offset in held:
                        records[record.offset] = record
        except TopicGoneError:
            self._topics[topic.name] = None
            return dict.fromkeys(offsets, NO_TOPIC)
        except RecordsGoneError:
            pass  # retention was faster; the records that were read before are there
        return records

    async def _bounds(self, place: TopicIdPartition) -> Bounds:
        starts = await self._session.topics.offsets([place], EARLIEST)
        ends = await self._session.topics.offsets([place], LATEST)
        return Bounds(starts[place] or 0, ends[place] or 0)
