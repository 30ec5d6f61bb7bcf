"""The topics of a restore's target: finds or creates them, and at the end sets the exported settings.

The target must not delete records while the restore writes: a created topic keeps all records and timestamps
until its records are verified, and only then gets the settings in `HELD_BACK`. A topic that existed before
keeps its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.cluster.topics import EARLIEST, LATEST, Topic, Topics
from barnabas.client.errors import UnknownTopicError
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.export.manifest import ExportedTopic
from barnabas.pipeline.export.requests import check, with_retries
from barnabas.pipeline.export.restore_state import RestoredTopic
from barnabas.pipeline.export.settings import Kind, apply_settings, read_settings
from barnabas.protocol.client.admin_apis import CREATE_TOPICS
from barnabas.protocol.counted import counted
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import TopicName, i16, i32, milliseconds

HELD_BACK: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""Settings that could delete or change records, with their values during the restore."""

CREATE_MS: Final = 30_000
"""How long a broker may take to create a topic."""


class TargetTopics:
    """Topics of one cluster."""

    def __init__(self, cluster: Cluster, *, replication_factor: int, append: bool) -> None:
        """`append` allows writing behind existing records; a factor of -1 is the broker's default."""
        self._cluster = cluster
        self._topics = Topics(cluster)
        self._replication_factor = replication_factor
        self._append = append

    def close(self) -> None:
        self._topics.close()

    async def inspect(self, exported: ExportedTopic, known: RestoredTopic | None) -> RestoredTopic:
        """The plan for a topic; changes nothing.

        Raises `PipelineError` if it has other partitions, or records that aren't this restore's.
        """
        found = await self._find(exported.name)
        if found is None:
            if known is not None and known.topic_id is not None:
                raise PipelineError(f"The topic {exported.name} was deleted since its restore began.")
            count = len(exported.partitions)
            return RestoredTopic(exported.name, is_ours=True, topic_id=None, begin_offsets=(0,) * count)
        if found.partition_count != len(exported.partitions):
            raise PipelineError(
                f"The topic {found.name} has {counted(found.partition_count, 'partition')}, and was exported "
                f"with {len(exported.partitions)}: a record must go to its old partition."
            )
        if known is not None and known.topic_id == str(found.topic_id):
            return known
        is_ours = known is not None and known.topic_id is None and known.is_ours
        return RestoredTopic(found.name, is_ours, str(found.topic_id), await self._begin_offsets(found))

    async def make(self, exported: ExportedTopic, planned: RestoredTopic) -> tuple[RestoredTopic, list[str]]:
        """Creates a topic, without its settings of `HELD_BACK`; returns refused settings.

        May be called again for a topic that an earlier run created, maybe not completely: the topic's present
        settings stay, because a user may have changed them.
        """
        if not planned.is_ours:
            return planned, []
        if planned.topic_id is None:
            await with_retries(lambda: self._create(exported))
        found = await with_retries(lambda: self._appeared(exported.name))
        own = (await read_settings(self._cluster, Kind.TOPIC, [exported.name]))[exported.name]
        early = {
            name: value
            for name, value in exported.settings.items()
            if name not in HELD_BACK and name not in own
        }
        refused = await apply_settings(self._cluster, Kind.TOPIC, exported.name, early)
        return replace(planned, topic_id=str(found.topic_id)), list(refused.values())

    async def finish(self, exported: ExportedTopic, restored: RestoredTopic) -> list[str]:
        """Sets the settings that were held back; returns refused ones."""
        if not restored.is_ours:
            return [f"{exported.name}: it was there before, so its settings are left as they are"]
        late = {name: exported.settings.get(name) for name in HELD_BACK}
        return list((await apply_settings(self._cluster, Kind.TOPIC, exported.name, late)).values())

    async def _find(self, name: str) -> Topic | None:
        try:
            (found,) = await self._topics.find([name])
        except UnknownTopicError:
            return None
        return found

    async def _appeared(self, name: str) -> Topic:
        """The topic, once the brokers know it, which takes a moment."""
        found = await self._find(name)
        if found is None:
            check(ErrorCode.unknown_topic_or_partition, name)
        assert found is not None
        return found

    async def _begin_offsets(self, topic: Topic) -> tuple[int, ...]:
        starts = await self._topics.offsets(topic.partitions, EARLIEST)
        ends = await self._topics.offsets(topic.partitions, LATEST)
        if starts != ends and not self._append:
            raise PipelineError(f"The topic {topic.name} has records already; --append writes behind them.")
        return tuple(ends[partition] or 0 for partition in topic.partitions)

    async def _create(self, exported: ExportedTopic) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in HELD_BACK.items()]
        topic = CreatableTopic(
            name=TopicName(exported.name),
            num_partitions=i32(len(exported.partitions)),
            replication_factor=i16(self._replication_factor),
            assignments=(),
            configs=tuple(configs),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout=milliseconds(CREATE_MS))
        for result in (await self._cluster.ask(CREATE_TOPICS, request)).topics:
            if result.error_code is not ErrorCode.topic_already_exists:
                check(result.error_code, f"the topic {exported.name}: {result.error_message}")
