"""A reader of the dead letters, like an ordinary consumer: it reads their topic on and on, and begins anew
from time to time. A letter that it has read stays the same, and where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import Record, iterate_records
from tests.conformance.dead_lettering import Letter, letter_of
from tests.simulation.client import Disconnected
from tests.simulation.letter_checks import LetterChecks
from tests.simulation.letter_settings import LETTER_TOPIC
from tests.simulation.model import Violation
from tests.simulation.world import LiveTopic, World

_PAUSE_SECONDS_MAX = 0.8
_MAX_BYTES = (1, 400, 1 << 20)
_READ_SECONDS_MAX = 30.0

Place = tuple[int, int]
"""Partition and offset in the topic of the letters."""


class LetterReader:
    """One reader of all partitions of the topic."""

    def __init__(self, world: World, checks: LetterChecks) -> None:
        self._world = world
        self._checks = checks
        self._random = world.random("letter-reader")
        self._client = world.client("letter-reader")
        self._topic: LiveTopic | None = None
        self._positions: dict[int, int] = {}
        self._known: dict[Place, Letter] = {}
        self._power_losses_seen = 0

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.05, _PAUSE_SECONDS_MAX))
            try:
                topic = await self._find_topic()
                if topic is not None:
                    index = self._random.randrange(topic.partition_count)
                    await self._read(topic, index, self._random.choice(_MAX_BYTES))
            except Disconnected:
                self._client.disconnect()
            if self._random.random() < 0.1:
                self._positions.clear()

    async def read_everything(self) -> list[Letter]:
        """All letters, by partition and offset. The disk and the network do not fail any longer."""
        async with asyncio.timeout(_READ_SECONDS_MAX):
            while True:
                try:
                    return await self._read_from_the_start()
                except Disconnected:
                    self._client.disconnect()
                    await asyncio.sleep(0.2)

    async def _read_from_the_start(self) -> list[Letter]:
        self._positions.clear()
        found: dict[Place, Letter] = {}
        topic = await self._find_topic()
        for index in range(0 if topic is None else topic.partition_count):
            assert topic is not None
            while letters := await self._read(topic, index, 1 << 20):
                found |= letters
        if missing := self._known.keys() - found.keys():
            raise Violation(f"the dead letters at {sorted(missing)} were read once, and are gone")
        return list(found.values())

    async def _find_topic(self) -> LiveTopic | None:
        """The topic, once it exists. It is never deleted."""
        if self._topic is None:
            response = await self._client.ask("metadata", topics=None)
            found = [one for one in response.topics if one.name == LETTER_TOPIC]
            if found:
                self._topic = LiveTopic(LETTER_TOPIC, found[0].topic_id, len(found[0].partitions))
        return self._topic

    async def _read(self, topic: LiveTopic, index: int, max_bytes: int) -> dict[Place, Letter]:
        """The letters of one fetch, from the end of the last one; none at the end of the partition."""
        self._forget_lost()
        power_losses = self._power_losses_seen
        position = self._positions.get(index, 0)
        answer = await self._fetch(topic, index, position, max_bytes)
        self._forget_lost()
        if power_losses != self._power_losses_seen:
            return {}
        if answer.error_code is not ErrorCode.none:
            raise Disconnected
        found = {
            (index, record.offset): letter_of(index, record)
            for record in _records(bytes(answer.records or b""))
            if record.offset >= position
        }
        for place, letter in found.items():
            self._note(place, letter)
            self._positions[index] = place[1] + 1
        return found

    def _note(self, place: Place, letter: Letter) -> None:
        known = self._known.setdefault(place, letter)
        if known != letter:
            raise Violation(f"the dead letter at {place} was {known}, and is {letter}")
        self._checks.check_letter(letter)

    def _forget_lost(self) -> None:
        """A loss of power may take letters that were read before they were durable."""
        power_losses = self._world.machine.power_loss_count
        if power_losses != self._power_losses_seen and not self._world.scenario.survives_power_loss:
            self._positions.clear()
            self._known.clear()
        self._power_losses_seen = power_losses

    async def _fetch(self, topic: LiveTopic, index: int, offset: int, max_bytes: int) -> Any:
        asked = {"partition": index, "fetch_offset": offset, "partition_max_bytes": max_bytes}
        response = await self._client.ask(
            "fetch",
            min_bytes=0,
            max_bytes=1 << 20,
            topics=[{"topic_id": topic.topic_id, "partitions": [asked]}],
        )
        if response.error_code is not ErrorCode.none:
            raise Disconnected
        return response.responses[0].partitions[0]


def _records(data: bytes) -> Iterator[Record]:
    for position, header in iterate_headers(data):
        if not header.is_control:
            yield from iterate_records(data, position)
