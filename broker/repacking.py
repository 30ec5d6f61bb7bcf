"""Produced batches packed anew off the loop, for topics that are stored in a codec of their own
(compression.type).

To pack a megabyte of gzip takes a tenth of a second, in which nobody else would be served. So a thread does
it, before the request begins to append; its connection's later ones take their turn (`produce_order`). What
cannot be packed is left as it came: the append refuses it (`produced_records`).

Bounds: one batch at a time, since a few bytes may unpack to hundreds of megabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.produced_records import is_repacked, repack_produced

if TYPE_CHECKING:
    from barnabas.broker.config.effective import EffectiveConfig
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.messages.produce import ProducePartition, ProduceTopic
    from barnabas.storage.filesystem import FileSystem

    FoundTopic = tuple[ProduceTopic, Topic | None]


class Repacking:
    """For all topics of one broker."""

    def __init__(self, effective: EffectiveConfig, filesystem: FileSystem) -> None:
        """`filesystem` has the threads."""
        self._effective = effective
        self._filesystem = filesystem
        self._lock = asyncio.Lock()

    def concerns(self, topics: Iterable[FoundTopic]) -> bool:
        """Whether what is produced to one of the topics may have to be packed anew."""
        if not self._effective.has_topic_codecs:
            return False
        config_of = self._effective.topic_config
        return any(found is not None and is_repacked(config_of(found.name)) for _, found in topics)

    async def repack(self, topics: Iterable[FoundTopic], *, zstd_allowed: bool) -> list[FoundTopic]:
        """The topics of a request with their records in the topics' codecs; `zstd_allowed` is that of
        `validate_produced`.
        """
        return [
            (topic, found) if found is None else (await self._topic(topic, found, zstd_allowed), found)
            for topic, found in topics
        ]

    async def _topic(self, topic: ProduceTopic, found: Topic, zstd_allowed: bool) -> ProduceTopic:
        if not is_repacked(self._effective.topic_config(found.name)):
            return topic
        return topic._replace(
            partitions=[await self._partition(one, found, zstd_allowed) for one in topic.partitions]
        )

    async def _partition(self, one: ProducePartition, found: Topic, zstd_allowed: bool) -> ProducePartition:
        if one.records is None:
            return one
        async with self._lock:
            config = self._effective.topic_config(found.name)
            records = await self._filesystem.run(
                repack_produced, one.records, config, zstd_allowed=zstd_allowed
            )
        return one._replace(records=memoryview(records))
