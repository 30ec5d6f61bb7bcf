"""The clients around a sharing group: its members, the producer of its records, an administrator who changes
its offsets, an observer; and the conditions that must hold at the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.simulation.client import Disconnected
from tests.simulation.orders import Orders
from tests.simulation.readers import READ_COMMITTED, committed_records
from tests.simulation.shared_offsets import Committed, SharedOffsets
from tests.simulation.sharers import Sharer
from tests.simulation.sharing_administrator import SharingAdministrator
from tests.simulation.world import LiveTopic, World

_PAUSE_SECONDS_MAX = 0.6


class NotYet(Exception):  # noqa: N818  named as the condition
    """A condition of the end does not hold yet."""


class SharingClients:
    """All of them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._model = world.ordinary.sharing
        self._random = world.random("sharing-observer")
        self._client = world.client("sharing-observer")
        self._offsets = SharedOffsets(world, self._client)
        self._sharers = [Sharer(world, number) for number in range(world.scenario.sharers)]

    def members(self) -> list[Coroutine[Any, Any, None]]:
        """The clients that work until the end of the run."""
        return [*(one.run() for one in self._sharers), self._observe()]

    def changing(self) -> list[Coroutine[Any, Any, None]]:
        """The clients that stop before the last phase."""
        return [Orders(self._world).run(), SharingAdministrator(self._world).run()]

    async def _observe(self) -> None:
        """Looks up the offsets from time to time."""
        while True:
            await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS_MAX))
            with suppress(Disconnected):
                if self._world.orders is not None:
                    await self._look_up(self._world.orders, require_stable=self._random.random() < 0.3)

    async def _look_up(self, orders: LiveTopic, *, require_stable: bool) -> dict[TopicIdPartition, Any]:
        try:
            return await self._offsets.fetch(orders.partitions, require_stable=require_stable)
        except Disconnected:
            self._client.disconnect()
            raise

    # The end

    async def check_done(self) -> None:
        """The stable offset has reached the end of each partition, and no commit waits."""
        orders, broker = self._world.orders, self._world.machine.broker
        if orders is None or broker is None:
            return
        for partition, found in (await self._look_up(orders, require_stable=True)).items():
            log = self._world.log(partition)
            if log is None or not isinstance(found, Committed):
                raise NotYet(f"{orders.name}-{partition.partition}: {found}")
            if found.next_offset < log.log_end_offset:
                raise NotYet(f"{orders.name}-{partition.partition} is done up to {found.next_offset}")
        if broker.groups.offsets.waiting_count:
            raise NotYet(f"{broker.groups.offsets.waiting_count} commits wait")

    async def check_results(self) -> None:
        """Each record has its result, as far as they are promised."""
        orders, results = self._world.orders, self._world.results
        if orders is None or results is None or not self._model.is_exact:
            return
        if not self._world.scenario.shares_in_transactions:
            return
        values: list[bytes] = []
        for partition in results.partitions:
            values += [value for _, value in await self._read(partition)]
        self._model.check_results(values)
        orders_read = {one: await self._read(one) for one in orders.partitions}
        expected = {one: {offset for offset, _ in records} for one, records in orders_read.items()}
        self._model.check_complete(values, expected)

    async def _read(self, partition: TopicIdPartition) -> list[tuple[int, bytes]]:
        """All committed records of a partition."""
        records: list[tuple[int, bytes]] = []
        next_offset = 0
        while True:
            asked = {
                "partition": partition.partition,
                "fetch_offset": next_offset,
                "partition_max_bytes": 1 << 20,
            }
            response = await self._client.ask(
                "fetch",
                min_bytes=0,
                max_bytes=1 << 20,
                isolation_level=READ_COMMITTED,
                topics=[{"topic_id": partition.topic_id, "partitions": [asked]}],
            )
            answer = response.responses[0].partitions[0]
            if answer.error_code is not ErrorCode.none:
                raise NotYet(f"{partition}: {answer.error_code.name}")
            committed = committed_records(answer, next_offset)
            if committed.next_offset == next_offset:
                return records
            records += [(offset, value or b"") for offset, value in committed.records]
            next_offset = committed.next_offset
