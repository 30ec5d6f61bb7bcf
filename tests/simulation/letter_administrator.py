"""The administrator of dead letters: prepares the groups and their topic, and holds the letters back for a
while, by the settings of the broker and of the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from barnabas.protocol.errors import ErrorCode
from tests.conformance.dead_lettering import (
    COPIES_RECORDS,
    CREATES_TOPICS,
    ENABLE,
    ON_FAILURE,
    TOPIC_NAME,
)
from tests.simulation.asking import Asking
from tests.simulation.client import Disconnected
from tests.simulation.letter_settings import LETTER_TOPIC
from tests.simulation.world import World

_PAUSE_SECONDS_MAX = 3.0
_TOPIC, _BROKER, _GROUP = 2, 4, 32
"""Types of resources."""


class LetterAdministrator(Asking):
    """One administrator, who does one thing at a time."""

    def __init__(self, world: World) -> None:
        super().__init__(world.client("letter-administrator"))
        self._world = world
        self._settings = world.scenario.letters
        self._random = world.random("letter-administrator")

    async def prepare(self) -> None:
        """Before the first record is delivered."""
        for group_id in self._settings.group_ids:
            values = {
                TOPIC_NAME: LETTER_TOPIC,
                COPIES_RECORDS: "true" if self._settings.copies else "false",
                ON_FAILURE: "hold" if self._settings.holds else "archive",
            }
            await self._insistently(partial(self._alter, _GROUP, group_id, values))
        if self._settings.is_created_early:
            await self._insistently(self._create_topic)

    async def run(self) -> None:
        """Holds letters back, and lets them go, until the last phase of the run."""
        if self._settings.are_given_up:
            await asyncio.sleep(self._random.uniform(0, self._world.scenario.active_ms) / 1000)
            await self._insistently(self._create_topic)
            await self._insistently(partial(self._switch_topic, "false"))
            return
        actions: list[Callable[[str], Awaitable[None]]] = []
        if self._settings.is_created_late:
            actions.append(self._allow_creation)
        if self._settings.is_switched:
            actions.append(self._switch_topic)
        while actions and not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.2, _PAUSE_SECONDS_MAX))
            with suppress(Disconnected):
                await self._random.choice(actions)(self._random.choice(("true", "true", "false")))

    async def give_up(self) -> None:
        """The groups do without letters from now on."""
        for group_id in self._settings.group_ids:
            await self._insistently(partial(self._alter, _GROUP, group_id, {TOPIC_NAME: ""}))

    async def settle(self) -> None:
        """Nothing holds letters back any longer, unless they are given up."""
        if self._settings.are_given_up:
            return
        if self._settings.is_created_late:
            await self._insistently(partial(self._allow_creation, "true"))
        if self._settings.is_switched:
            await self._insistently(partial(self._switch_topic, "true"))

    async def _create_topic(self) -> None:
        topic = {
            "name": LETTER_TOPIC,
            "num_partitions": self._settings.partition_count,
            "replication_factor": 1,
            "configs": [{"name": ENABLE, "value": "true"}],
        }
        response = await self._ask("create_topics", topics=[topic])
        error = ErrorCode(response.topics[0].error_code)
        self._note(f"creates {LETTER_TOPIC}", error)
        if error not in (ErrorCode.none, ErrorCode.topic_already_exists):
            raise Disconnected

    async def _allow_creation(self, value: str) -> None:
        await self._alter(_BROKER, "", {CREATES_TOPICS: value})

    async def _switch_topic(self, value: str) -> None:
        """A topic that the broker has not created yet has no settings."""
        if await self._has_topic():
            await self._alter(_TOPIC, LETTER_TOPIC, {ENABLE: value})

    async def _has_topic(self) -> bool:
        response = await self._ask("metadata", topics=None)
        return any(topic.name == LETTER_TOPIC for topic in response.topics)

    async def _alter(self, resource_type: int, name: str, values: Mapping[str, str]) -> None:
        configs = [{"name": key, "config_operation": 0, "value": value} for key, value in values.items()]
        resource = {"resource_type": resource_type, "resource_name": name, "configs": configs}
        response = await self._ask("incremental_alter_configs", resources=[resource])
        error = ErrorCode(response.responses[0].error_code)
        self._note(f"sets {values} of {name or 'the broker'}", error)
        if error is not ErrorCode.none:
            raise Disconnected

    def _note(self, what: str, error: ErrorCode) -> None:
        self._world.trace.event(f"the administrator of dead letters {what}: {error.name}")
