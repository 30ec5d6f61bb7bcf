"""Fetch sessions: partitions are named, added, forgotten and answered, with topics that come and go, and
wrong epochs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.differential.stage import Stage, batch

_TOPICS = ("a", "b")
_PARTITION_COUNT = 2
_STEPS = 18


class _Session:
    """One client's session over two topics."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.chance = stage.chance
        self.version = self.chance.choice([7, 9, 11, 12, 13, 16, 18])
        self.ids: dict[str, UUID] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.session_id = 0
        self.epoch = 0

    def steps(self) -> dict[Callable[[], Awaitable[Any]], int]:
        """The possible next steps, with their weights."""
        return {
            self.fetch: 8,
            self.fetch_wrongly: 2,
            self.produce: 4,
            self.delete_records: 1,
            self.delete_topic: 1,
            self.begin_anew: 1,
        }

    async def create(self, name: str) -> None:
        self.ids[name] = await self.stage.create_topic(name, _PARTITION_COUNT)
        self.ends.update({(name, index): 0 for index in range(_PARTITION_COUNT)})

    def wanted(self, name: str) -> dict[str, Any]:
        indexes = self.chance.sample(range(_PARTITION_COUNT + 1), self.chance.choice([1, 1, 2]))
        return {**self.topic(name), "partitions": [self.partition(name, index) for index in indexes]}

    def partition(self, name: str, index: int) -> dict[str, Any]:
        end = self.ends.get((name, index), 0)
        return {
            "partition": index,
            "fetch_offset": self.chance.choice([0, end, end, max(0, end - 2), end + 3]),
            "partition_max_bytes": self.chance.choice([1, 150, 1 << 20]),
            "current_leader_epoch": self.chance.choice([-1, -1, -1, 0, 4]),
            "last_fetched_epoch": -1,
        }

    def topic(self, name: str) -> dict[str, Any]:
        return {"topic": self.stage.name(name), "topic_id": self.ids[name]}

    def request(self) -> dict[str, Any]:
        named = self.chance.sample(_TOPICS, self.chance.choice([0, 0, 1, 2]))
        if self.epoch == 0 and not named:
            named = ["a"]
        forgotten = self.chance.sample(_TOPICS, self.chance.choice([0, 0, 0, 1])) if self.epoch else []
        return {
            "session_id": self.session_id,
            "session_epoch": self.epoch,
            "max_wait": self.chance.choice([0, 0, 20]),
            "min_bytes": 1,
            "max_bytes": self.chance.choice([1, 200, 1 << 20]),
            "topics": [self.wanted(name) for name in named],
            "forgotten_topics_data": [
                {**self.topic(name), "partitions": [self.chance.randrange(_PARTITION_COUNT)]}
                for name in forgotten
            ],
        }

    async def fetch(self) -> None:
        response = await self.stage.ask(0, "fetch", self.version, **self.request())
        if response.error_code:
            self.session_id = self.epoch = 0
        else:
            self.session_id = response.session_id
            self.epoch = self.epoch + 1 if response.session_id else 0

    async def fetch_wrongly(self) -> None:
        """One property of the session's request is wrong; the session goes on."""
        wrong = self.chance.choice(
            [
                {"session_epoch": self.epoch + 1},
                {"session_epoch": max(self.epoch - 1, 1)},
                {"session_id": 0, "session_epoch": 3},
                {"session_epoch": -2},
            ]
        )
        version = self.version
        if self.session_id and self.chance.random() < 0.3:
            wrong, version = {"session_epoch": self.epoch}, 12 if version >= 13 else 13
        if wrong.get("session_epoch") == self.epoch and version == self.version:
            return
        request: dict[str, Any] = {**self.request(), **wrong}
        await self.stage.ask(0, "fetch", version, **request)

    async def produce(self) -> None:
        name, partition = self.chance.choice(_TOPICS), self.chance.randrange(_PARTITION_COUNT)
        size = self.chance.choice([1, 3])
        answer = await self.stage.produce(self.ids[name], partition, batch(size))
        if answer.error_code == 0:
            self.ends[name, partition] += size

    async def delete_records(self) -> None:
        name, partition = self.chance.choice(_TOPICS), self.chance.randrange(_PARTITION_COUNT)
        partitions = [{"partition_index": partition, "offset": self.chance.choice([-1, 1])}]
        topics = [{"name": self.stage.name(name), "partitions": partitions}]
        await self.stage.ask(0, "delete_records", topics=topics, timeout=2_000)

    async def delete_topic(self) -> None:
        """The topic is created again under the same name."""
        name = self.chance.choice(_TOPICS)
        asked = [{"name": self.stage.name(name), "topic_id": None}]
        await self.stage.ask(0, "delete_topics", topics=asked, timeout=5_000)
        await self.stage.until(lambda: self.is_gone(name))
        if self.chance.random() < 0.5:
            await self.fetch()
        await self.create(name)

    async def is_gone(self, name: str) -> bool:
        asked = [{"topic_id": None, "name": self.stage.name(name)}]
        response = await self.stage.quietly(0, "metadata", topics=asked, allow_auto_topic_creation=False)
        gone: bool = response.topics[0].error_code != 0
        return gone

    async def begin_anew(self) -> None:
        """A full request ends the session that it names; one with the final epoch opens none."""
        self.epoch = self.chance.choice([0, -1])
        request: dict[str, Any] = {**self.request(), "topics": [self.wanted("a"), self.wanted("b")]}
        response = await self.stage.ask(0, "fetch", self.version, **request)
        self.session_id = response.session_id
        self.epoch = 1 if response.session_id else 0


async def play(stage: Stage) -> None:
    session = _Session(stage)
    for name in _TOPICS:
        await session.create(name)
    steps = session.steps()
    for step in stage.chance.choices(list(steps), weights=list(steps.values()), k=_STEPS):
        await step()
