"""A group of consumers in processes that join, leave and are killed, and a journal of their work.

Each member processes its records one after the other, and commits them by batches. The journal then proves
that each record was committed by one member, and that the records of a key were processed in their order.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import NamedTuple

from barnabas.client import CommitFailedError
from tests.client.consume.sharing import sharer
from tests.client.consumer_world import BytesConsumer
from tests.client.virtual_world import World
from tests.simulation.virtual_loop import Process

Place = tuple[int, int]
"""A partition and an offset."""


class Work(NamedTuple):
    """A batch that one member has processed."""

    member: str
    places: list[Place]
    keys: list[bytes | None]


class Journal:
    """The work of all members. A batch is `committed` if its member has learned that."""

    def __init__(self) -> None:
        self.committed: list[Work] = []
        self.in_doubt: list[Work] = []
        """Work of members that were killed before they learned the result of the commit."""
        self.refused: list[Work] = []
        """Commits that were refused; they can only have taken place if the broker was killed meanwhile."""
        self.broker_was_killed = False

    def check(self, written: dict[int, list[bytes | None]]) -> None:
        """`written` are the keys of all records, by partition and in the order of their offsets."""
        places = [place for work in self.committed for place in work.places]
        assert len(places) == len(set(places)), "two members have committed the same record"
        all_places = {(index, offset) for index, keys in written.items() for offset in range(len(keys))}
        left = all_places - set(places)
        in_doubt = self.in_doubt + (self.refused if self.broker_was_killed else [])
        doubtful = {place for work in in_doubt for place in work.places}
        assert left <= doubtful, f"skipped: {sorted(left - doubtful)}"
        self._check_order()

    def _check_order(self) -> None:
        last: dict[tuple[int, bytes], int] = {}
        for work in self.committed:
            for (index, offset), key in zip(work.places, work.keys, strict=True):
                if key is None:
                    continue
                assert last.get((index, key), -1) < offset, f"{work.member} processes {key!r} out of order"
                last[index, key] = offset


class Member:
    """One consumer in a process of its own."""

    def __init__(self, world: World, name: str, journal: Journal, random: Random) -> None:
        self.name = name
        self._world = world
        self._journal = journal
        self._random = random
        self._process = Process(name)
        self._outstanding: Work | None = None
        self._is_leaving = False
        self._reading: asyncio.Task[None] | None = None
        self.consumer: BytesConsumer | None = None

    def start(self) -> None:
        self._reading = asyncio.create_task(self._process.run(self._read()))

    async def leave(self) -> None:
        """Close the consumer in order."""
        self._is_leaving = True
        assert self._reading is not None
        await self._reading

    def kill(self) -> None:
        self._process.kill()
        assert self._reading is not None
        self._reading.add_done_callback(lambda task: task.exception())
        if self._outstanding is not None:
            self._journal.in_doubt.append(self._outstanding)

    async def _read(self) -> None:
        options = {"max_records": self._random.choice([1, 3, 10]), "random": self._random.random}
        one = self.consumer = sharer(
            self._world, enable_auto_commit=False, max_poll_interval_ms=20_000, **options
        )
        async with one:
            while not self._is_leaving:
                records = await one.poll(timeout=1)
                if records:
                    await asyncio.sleep(self._random.random() * 0.2)
                    places = [(record.partition, record.offset) for record in records]
                    await self._commit(one, Work(self.name, places, [record.key for record in records]))

    async def _commit(self, one: BytesConsumer, work: Work) -> None:
        self._outstanding = work
        try:
            await one.commit()
        except CommitFailedError:
            self._journal.refused.append(work)
        else:
            self._journal.committed.append(work)
        self._outstanding = None
