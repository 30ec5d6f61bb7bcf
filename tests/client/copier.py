"""A program that copies records to another topic in transactions, in a process that can be killed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from random import Random

from barnabas.client import Producer
from tests.client.consumer_world import Records, all_that_come, consumer, producer
from tests.client.virtual_world import World
from tests.simulation.virtual_loop import Process

OUT = "results"


class Copier(ABC):
    """Begins at once. Each kind of copier reads in its own way."""

    def __init__(self, world: World, name: str, random: Random) -> None:
        self._world = world
        self._name = name
        self._random = random
        self._is_leaving = False
        self._process = Process(name)
        self._copying = asyncio.create_task(self._process.run(self._copy()))
        self._copying.add_done_callback(lambda task: task.exception())

    def kill(self) -> None:
        self._process.kill()

    async def leave(self) -> None:
        self._is_leaving = True
        await self._copying

    @abstractmethod
    async def _copy(self) -> None:
        """Copy records until `_is_leaving`, with a `_writer`."""

    def _writer(self) -> Producer:
        return producer(self._world, transactional_id=self._name, transaction_timeout_ms=15_000)

    async def _pause_or_fail(self, failures: float) -> None:
        """The last step of each transaction; in this share of them, it raises ZeroDivisionError."""
        await asyncio.sleep(self._random.random() * 0.5)
        if self._random.random() < failures:
            raise ZeroDivisionError


async def committed_copies(world: World) -> Records:
    """The copies of committed transactions, in the order of the log."""
    async with consumer(world, OUT, group="checks", isolation_level="read_committed") as checks:
        return await all_that_come(checks)
