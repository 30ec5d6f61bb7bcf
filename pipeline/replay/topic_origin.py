"""Topics as the origin of a replay, such as dead letters: their records when the plan is made.

A topic that was deleted and created again has other records at the same offsets. So pieces have the topic's
id, too, and a topic with another id is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from barnabas.client.cluster.topics import Topic
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.replay.plan import Chunk, Piece
from barnabas.pipeline.topic_source.catalog import Catalog
from barnabas.pipeline.topic_source.positions import ends, find_topics, starts
from barnabas.pipeline.topic_source.topic_options import parse_topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACES: Final = frozenset({"startingoffsets", "endingoffsets", "startingtimestamp", "endingtimestamp"})


class TopicOrigin:
    """The topics in options of `kafka-topic`, whose `failOnDataLoss` decides about deleted records."""

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
            Piece(f"{topic.name}/{topic.topic_id}/{partition.partition}", first[partition], end[partition])
            for topic in sorted(topics)
            for partition in topic.partitions
            if first[partition] < end[partition]
        ]

    def check(self, pieces: Iterable[Piece]) -> None:
        """Checks only the topics: the source reports deleted records, by its option `failOnDataLoss`."""
        self._planned_topics(pieces)

    def read(self, chunk: Chunk) -> DataFrame:
        topics = self._planned_topics(chunk)
        reader = self._spark.read.format("kafka-topic")
        for name, value in self._given.items():
            if name.casefold() not in _PLACES | {"topics", "topicspattern"}:
                reader = reader.option(name, value)
        reader = reader.option("topics", ",".join(topic.name for topic in topics))
        reader = reader.option("startingOffsets", _offsets(topics, chunk, at_end=False))
        return reader.option("endingOffsets", _offsets(topics, chunk, at_end=True)).load()

    def _planned_topics(self, pieces: Iterable[Piece]) -> list[Topic]:
        """The topics of these pieces. Raises `PipelineError` if one was deleted."""
        planned = {(source.topic, source.topic_id) for source in map(_source, pieces)}
        catalog = Catalog(self._options.servers)
        try:
            found = catalog.find_known(sorted({topic for topic, _ in planned}))
        finally:
            catalog.close()
        gone = sorted(planned - {(topic.name, topic.topic_id) for topic in found})
        if gone:
            raise PipelineError(
                f"The topic {gone[0][0]} (id {gone[0][1]}) was deleted since the replay began. "
                "Begin another replay of the other topics, with another progress directory."
            )
        return found


def _offsets(topics: Iterable[Topic], chunk: Chunk, *, at_end: bool) -> str:
    """The ends of each partition's piece; 0 without a piece. A chunk has at most one piece of a partition."""
    found = {topic.name: dict.fromkeys(range(topic.partition_count), 0) for topic in topics}
    for piece in chunk:
        source = _source(piece)
        found[source.topic][source.partition] = piece.end if at_end else piece.first
    return json.dumps(found)


class _Source(NamedTuple):
    """The topic, its id and the partition in a piece's origin."""

    topic: str
    topic_id: UUID
    partition: int


def _source(piece: Piece) -> _Source:
    topic, topic_id, partition = piece.origin.split("/")
    return _Source(topic, UUID(topic_id), int(partition))
