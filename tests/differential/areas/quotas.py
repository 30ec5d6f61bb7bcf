"""Clients with quotas: the throttled ones, the others, and the answers to throttled clients.

The throttle time depends on the moment, so quotas are either far away or far exceeded. The use before a
client had a quota may count or not, so each client that exceeds its quota is new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.differential.stage import Stage, batch
from tests.differential.versions import KAFKA_VERSIONS

_STEPS = 12
_FAR_AWAY = 1e9
_BYTE_RATE = 1_000.0
"""On an average of ten seconds: far more than `_LITTLE`, far less than `_MUCH`."""
_LITTLE, _MUCH = 100, 13_000
_BATCH_COUNT, _BATCH_BYTES = 20, 1_000
"""The number of records to fetch."""
_MUTATION_RATE = 0.1
_PARTITION_COUNT = 2
"""More changes than allowed in ten seconds."""


class _Client:
    """One client with a unique name, a topic to write to and one to read."""

    def __init__(self, stage: Stage, written_id: UUID, read_id: UUID) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.written_id = written_id
        self.read_id = read_id
        self.connection = 1

    def steps(self) -> dict[Callable[[], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.produce_freely: 3,
            self.fetch_freely: 3,
            self.ask_around: 2,
            self.produce_too_much: 2,
            self.fetch_too_much: 2,
            self.create_too_much: 2,
            self.alter_far_away: 2,
            self.describe: 3,
        }

    def entity(self) -> list[dict[str, Any]]:
        return [{"entity_type": "client-id", "entity_name": self.stage.client_id}]

    async def set(self, key: str, value: float | None) -> None:
        op = {"key": key, "value": value or 0.0, "remove": value is None}
        entries = [{"entity": self.entity(), "ops": [op]}]
        versions = KAFKA_VERSIONS["alter_client_quotas"]
        await self.stage.ask(
            0, "alter_client_quotas", self.chance.choice(versions), entries=entries, validate_only=False
        )
        await self.stage.settle()

    async def describe(self) -> None:
        component = self.chance.choice(
            [
                {"entity_type": "client-id", "match_type": 0, "match": self.stage.client_id},
                {"entity_type": "client-id", "match_type": 0, "match": self.stage.name("nobody")},
            ]
        )
        versions = KAFKA_VERSIONS["describe_client_quotas"]
        await self.stage.ask(
            0,
            "describe_client_quotas",
            self.chance.choice(versions),
            components=[component],
            strict=self.chance.random() < 0.5,
        )

    async def alter_far_away(self) -> None:
        """A quota that is never reached, in place of none, or none again."""
        key = self.chance.choice(["producer_byte_rate", "consumer_byte_rate", "request_percentage"])
        await self.set(key, self.chance.choice([_FAR_AWAY, _FAR_AWAY, None]))

    # Within all quotas.

    async def produce_freely(self) -> None:
        await self.produce(_LITTLE)

    async def produce(self, size_bytes: int) -> None:
        data = {"index": 0, "records": batch(1, value_bytes=size_bytes)}
        topic = {"name": self.stage.name("t"), "topic_id": self.written_id, "partition_data": [data]}
        version = self.chance.choice(KAFKA_VERSIONS["produce"])
        await self.stage.ask(self.connection, "produce", version, acks=-1, timeout=10_000, topic_data=[topic])

    async def fetch_freely(self) -> None:
        await self.fetch(1)

    async def fetch(self, max_bytes: int) -> None:
        partition = {
            "partition": 0,
            "fetch_offset": 0,
            "partition_max_bytes": max_bytes,
            "current_leader_epoch": -1,
            "last_fetched_epoch": -1,
        }
        topic = {"topic": self.stage.name("r"), "topic_id": self.read_id, "partitions": [partition]}
        await self.stage.ask(
            self.connection,
            "fetch",
            self.chance.choice(KAFKA_VERSIONS["fetch"]),
            max_wait=0,
            max_bytes=max_bytes,
            session_epoch=-1,
            topics=[topic],
        )

    async def ask_around(self) -> None:
        """Requests without an effect on quotas of bytes."""
        asked: list[tuple[str, dict[str, Any]]] = [
            ("metadata", {"topics": [{"name": self.stage.name("t"), "topic_id": self.written_id}]}),
            ("find_coordinator", {"key_type": 0, "coordinator_keys": [self.stage.name("g")]}),
            ("list_config_resources", {"resource_types": [16]}),
            ("describe_cluster", {"endpoint_type": 1}),
        ]
        api, values = self.chance.choice(asked)
        await self.stage.ask(self.connection, api, **values)

    # Beyond.

    def begin_anew(self) -> None:
        """As another client: the broker does not read from a throttled client's connection."""
        self.connection += 1
        self.stage.client_id = self.stage.name(f"client-{self.connection}")

    async def produce_too_much(self) -> None:
        self.begin_anew()
        await self.set("producer_byte_rate", _BYTE_RATE)
        await self.produce(_LITTLE)
        await self.produce(_MUCH)
        self.begin_anew()

    async def fetch_too_much(self) -> None:
        """A change beyond the quota is not executed."""
        self.begin_anew()
        await self.set("consumer_byte_rate", _BYTE_RATE)
        await self.fetch(3 * _BATCH_BYTES)
        await self.fetch(1 << 20)
        self.begin_anew()

    async def create_too_much(self) -> None:
        """A client whose version knows the error is refused."""
        self.begin_anew()
        await self.set("controller_mutation_rate", _MUTATION_RATE)
        for number in range(2):
            name = self.stage.name(f"many-{self.connection}-{number}")
            topic: dict[str, Any] = {"name": name, "num_partitions": _PARTITION_COUNT, "configs": []}
            topic["replication_factor"] = 1
            await self.stage.ask(self.connection, "create_topics", topics=[topic], timeout=10_000)
        self.begin_anew()


async def play(stage: Stage) -> None:
    written_id, read_id = [await stage.create_topic(name) for name in "tr"]
    await stage.produce(read_id, 0, batch(1))
    for _ in range(_BATCH_COUNT):
        await stage.produce(read_id, 0, batch(1, value_bytes=_BATCH_BYTES))
    client = _Client(stage, written_id, read_id)
    client.begin_anew()
    await client.ask_around()
    steps = client.steps()
    for step in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await step()
