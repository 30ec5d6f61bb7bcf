"""Topics, partitions and settings: created, described, altered, enlarged and deleted, with valid and invalid
requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.differential.stage import Stage
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 14
_NO_TOPIC = UUID(int=5)
_TOPIC, _BROKER, _BROKER_LOGGER, _GROUP = 2, 4, 8, 32
_SETTINGS = (
    ("retention.ms", "1000000"),
    ("retention.ms", "-2"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "burn"),
    ("compression.type", "lz4"),
    ("segment.bytes", "10"),
    ("segment.bytes", "1048576"),
    ("max.message.bytes", "abc"),
    ("min.insync.replicas", "1"),
    ("no.such.setting", "1"),
    ("message.timestamp.type", "LogAppendTime"),
    ("delete.retention.ms", ""),
    ("retention.bytes", None),
)
_GROUP_SETTINGS = (
    ("share.auto.offset.reset", "earliest"),
    ("share.auto.offset.reset", "by_duration:PT1H"),
    ("share.auto.offset.reset", "never"),
    ("share.record.lock.duration.ms", "20000"),
    ("share.record.lock.duration.ms", "1"),
    ("share.isolation.level", "read_committed"),
    ("consumer.session.timeout.ms", "46000"),
    ("consumer.session.timeout.ms", "1"),
    ("no.such.setting", "1"),
)


class _Admin:
    """The actions of an administrator on a few topics and one group."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.names = [stage.name("a"), stage.name("b"), stage.name("a.b"), stage.name("nothing")]
        self.ids: dict[str, UUID] = {}

    def steps(self) -> dict[Callable[[], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.create: 3,
            self.grow: 2,
            self.delete: 1,
            self.look: 4,
            self.describe_partitions: 1,
            self.alter_configs: 3,
            self.alter_configs_wholly: 1,
            self.alter_group: 2,
            self.describe_configs: 3,
        }

    def version(self, api: str, minimum: int = 0) -> int:
        return self.chance.choice([one for one in KAFKA_VERSIONS[api] if one >= minimum])

    def some_name(self) -> str:
        return self.chance.choice(self.names)

    async def catch_up(self) -> None:
        """Kafka's brokers learn metadata changes a little later."""
        await self.stage.settle()

    async def create(self) -> None:
        name = self.chance.choice(
            [*self.names[:3]] * 4 + ["", ".", "x" * 250, "no spaces", "__consumer_offsets"]
        )
        setting, value = self.chance.choice(_SETTINGS)
        topic: dict[str, Any] = {
            "name": name,
            "num_partitions": self.chance.choice([1, 3, 3, -1, 0, -2]),
            "replication_factor": self.chance.choice([1, 1, 1, -1, 2, 0]),
            "assignments": [],
            "configs": [{"name": setting, "value": value}] if self.chance.random() < 0.4 else [],
        }
        if self.chance.random() < 0.2:
            brokers = self.chance.choice([[1], [1], [2], [1, 1], []])
            topic["assignments"] = [{"partition_index": index, "broker_ids": brokers} for index in (0, 1)]
            topic["num_partitions"] = topic["replication_factor"] = self.chance.choice([-1, 1])
        topics = [topic] * self.chance.choice([1, 1, 1, 1, 2])
        version = self.version("create_topics")
        validate_only = self.chance.random() < 0.15
        response = await self.stage.ask(
            0, "create_topics", version, topics=topics, timeout=10_000, validate_only=validate_only
        )
        await self.catch_up()
        if response is None or validate_only:  # the answer has an id, but there is no topic
            return
        for created in response.topics:
            if created.error_code == 0 and getattr(created, "topic_id", None):
                self.ids[created.name] = created.topic_id

    async def grow(self) -> None:
        topic = {
            "name": self.some_name(),
            "count": self.chance.choice([4, 5, 1, 0, -1]),
            "assignments": self.chance.choice(
                [None, None, None, [{"broker_ids": [1]}], [{"broker_ids": [7]}]]
            ),
        }
        await self.stage.ask(
            0,
            "create_partitions",
            self.version("create_partitions"),
            topics=[topic] * self.chance.choice([1, 1, 1, 2]),
            timeout=10_000,
            validate_only=self.chance.random() < 0.2,
        )
        await self.catch_up()

    async def delete(self) -> None:
        version, name = self.version("delete_topics"), self.some_name()
        by_id = {"name": None, "topic_id": self.ids.get(name, _NO_TOPIC)}
        asked = by_id if self.chance.random() < 0.5 else {"name": name, "topic_id": None}
        await self.stage.ask(0, "delete_topics", version, topics=[asked], topic_names=[name], timeout=10_000)
        self.ids.pop(name, None)
        await self.catch_up()

    async def look(self) -> None:
        """Versions before 4 create missing topics, so they request existing ones."""
        version = self.version("metadata", minimum=0 if self.ids else 4)
        known = sorted(self.ids) if version < 4 else self.names
        names: list[dict[str, Any]] = [
            {"name": name, "topic_id": None} for name in self.chance.sample(known, min(2, len(known)))
        ]
        if version >= 12 and self.chance.random() < 0.5:
            names = [{"name": None, "topic_id": self.ids.get(self.some_name(), _NO_TOPIC)}]
        await self.stage.ask(
            0,
            "metadata",
            version,
            topics=names,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=self.chance.random() < 0.3,
            include_topic_authorized_operations=self.chance.random() < 0.3,
        )

    async def describe_partitions(self) -> None:
        topics = [{"name": name} for name in sorted(self.chance.sample(self.names, 2))]
        await self.stage.ask(
            0,
            "describe_topic_partitions",
            topics=topics,
            response_partition_limit=self.chance.choice([2000, 2, 1]),
            cursor=None,
        )

    def resources(self, operations: list[int]) -> list[dict[str, Any]]:
        configs = [
            {"name": name, "value": value, "config_operation": self.chance.choice(operations)}
            for name, value in self.chance.sample(_SETTINGS, self.chance.choice([1, 1, 2]))
        ]
        resource = {"resource_type": _TOPIC, "resource_name": self.some_name(), "configs": configs}
        return [resource]

    async def alter_configs(self) -> None:
        await self.stage.ask(
            0,
            "incremental_alter_configs",
            self.version("incremental_alter_configs"),
            resources=self.resources([0, 0, 0, 1, 2, 3]),
            validate_only=self.chance.random() < 0.2,
        )
        await self.catch_up()

    async def alter_configs_wholly(self) -> None:
        await self.stage.ask(
            0,
            "alter_configs",
            self.version("alter_configs"),
            resources=self.resources([0]),
            validate_only=self.chance.random() < 0.2,
        )
        await self.catch_up()

    async def alter_group(self) -> None:
        configs = [
            {"name": name, "value": value, "config_operation": self.chance.choice([0, 0, 0, 1, 2])}
            for name, value in self.chance.sample(_GROUP_SETTINGS, self.chance.choice([1, 2]))
        ]
        name = self.chance.choice([self.stage.name("g")] * 6 + [""])
        resource = {"resource_type": _GROUP, "resource_name": name, "configs": configs}
        await self.stage.ask(0, "incremental_alter_configs", resources=[resource], validate_only=False)
        await self.catch_up()

    async def describe_configs(self) -> None:
        group = {
            "resource_type": _GROUP,
            "resource_name": self.chance.choice([self.stage.name("g"), ""]),
            "configuration_keys": self.chance.choice([None, ["share.auto.offset.reset"]]),
        }
        topic = {
            "resource_type": _TOPIC,
            "resource_name": self.some_name(),
            "configuration_keys": self.chance.choice(
                [None, ["retention.ms", "cleanup.policy"], ["no.such.setting"], []]
            ),
        }
        await self.stage.ask(
            0,
            "describe_configs",
            self.version("describe_configs"),
            resources=[self.chance.choice([group, topic, topic])],
            include_synonyms=self.chance.random() < 0.5,
            include_documentation=False,
        )


async def play(stage: Stage) -> None:
    admin = _Admin(stage)
    await admin.create()
    steps = admin.steps()
    for step in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await step()
