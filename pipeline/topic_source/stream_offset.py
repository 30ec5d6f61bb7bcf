"""The progress of a stream, as it is stored in Spark's checkpoint.

    {"version": 1, "topics": {"orders": {"id": "<uuid>", "next": {"0": 120, "1": 87}}}}

`next` has the offset of the next record of each partition. The id shows whether a topic was deleted and
created again: then its offsets mean other records. A partition that is missing in an earlier offset is new,
and read from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas.client.cluster.topics import Topic
from barnabas.pipeline.errors import PipelineError
from barnabas.protocol.identity import TopicIdPartition

_VERSION: Final = 1


class TopicOffset(NamedTuple):
    """One topic's part of a `StreamOffset`."""

    topic_id: UUID
    next_offsets: dict[int, int]
    """By partition."""


class StreamOffset(NamedTuple):
    """By name, the topics of a stream."""

    topics: dict[str, TopicOffset]

    def next_offset(self, topic: str, partition: TopicIdPartition) -> int:
        """The next offset of a partition: 0 if it is new, or its topic has another id."""
        known = self.topics.get(topic)
        if known is None or known.topic_id != partition.topic_id:
            return 0
        return known.next_offsets.get(partition.partition, 0)

    def to_json(self) -> dict[str, Any]:
        """The JSON that Spark stores."""
        topics = {
            name: {
                "id": str(topic.topic_id),
                "next": {str(key): topic.next_offsets[key] for key in sorted(topic.next_offsets)},
            }
            for name, topic in sorted(self.topics.items())
        }
        return {"version": _VERSION, "topics": topics}


def stream_offset(topics: Iterable[Topic], next_offsets: Mapping[TopicIdPartition, int]) -> StreamOffset:
    """The offset that has these topics with these positions; partitions without one are left out."""
    return StreamOffset(
        {
            topic.name: TopicOffset(
                topic.topic_id,
                {
                    partition.partition: next_offsets[partition]
                    for partition in topic.partitions
                    if partition in next_offsets
                },
            )
            for topic in topics
        }
    )


def parse_stream_offset(given: Mapping[str, Any]) -> StreamOffset:
    """The offset from its JSON. Raises `PipelineError` for the checkpoint of another source."""
    try:
        if given["version"] != _VERSION:
            raise ValueError(given["version"])
        topics = {name: _topic_offset(topic) for name, topic in given["topics"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PipelineError(f"The checkpoint's offset was not written by kafka-topic: {given}") from error
    return StreamOffset(topics)


def _topic_offset(given: Mapping[str, Any]) -> TopicOffset:
    return TopicOffset(UUID(given["id"]), {int(key): int(value) for key, value in given["next"].items()})
