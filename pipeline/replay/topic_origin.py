"""Topics as what is replayed: dead letters, or any other, as far as they go when the plan is made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.client.topics import Topic
from barnabas.pipeline.replay.plan import Chunk, Piece
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.pipeline.topic_source.positions import ends, find_topics, starts
from barnabas.pipeline.topic_source.topic_options import parse_topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACES: Final = frozenset({"startingoffsets", "endingoffsets", "startingtimestamp", "endingtimestamp"})


class TopicOrigin:
    """The topics that options of `kafka-topic` name. Offsets that retention has passed fail as they say."""

    def __init__(self, spark: SparkSession, given: Mapping[str, str]) -> None:
        """Raises `OptionError`."""
        self._spark = spark
        self._given = given
        self._options = parse_topic_options(given)
        self.name: Final[str] = given.get("topics", given.get("topicsPattern", "topics"))

    def pieces(self) -> Iterable[Piece]:
        catalog = Catalog(self._options.servers)
        try:
            topics = find_topics(catalog, self._options)
            first, end = (
                starts(catalog, topics, self._options, "earliest"),
                ends(catalog, topics, self._options),
            )
        finally:
            catalog.close()
        return [
            Piece(f"{topic.name}/{one.partition}", first[one], end[one])
            for topic in sorted(topics)
            for one in topic.partitions
            if first[one] < end[one]
        ]

    def check(self, pieces: Iterable[Piece]) -> None:
        """The source itself says what is lost, by its option `failOnDataLoss`."""

    def read(self, chunk: Chunk) -> DataFrame:
        reader = self._spark.read.format("kafka-topic")
        for name, value in self._given.items():
            if name.casefold() not in _PLACES | {"topics", "topicspattern"}:
                reader = reader.option(name, value)
        names = sorted({_split(piece.origin)[0] for piece in chunk})
        catalog = Catalog(self._options.servers)
        try:
            topics = catalog.find(names)
        finally:
            catalog.close()
        reader = reader.option("topics", ",".join(names))
        reader = reader.option("startingOffsets", _offsets(topics, chunk, at_end=False))
        return reader.option("endingOffsets", _offsets(topics, chunk, at_end=True)).load()


def _offsets(topics: Iterable[Topic], chunk: Chunk, *, at_end: bool) -> str:
    """For each partition; those without a piece begin and end at 0. A chunk has one piece of each at most."""
    found = {topic.name: dict.fromkeys(range(topic.partition_count), 0) for topic in topics}
    for piece in chunk:
        topic, partition = _split(piece.origin)
        found[topic][partition] = piece.end if at_end else piece.first
    return json.dumps(found)


def _split(origin: str) -> tuple[str, int]:
    topic, _, partition = origin.rpartition("/")
    return topic, int(partition)
