"""A member of a KIP-848 group, like Java's consumer; the broker sets the interval of heartbeats."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from benchmarks.load.context import (
    COMMIT_SECONDS,
    REBALANCE_TIMEOUT_MS,
    Load,
    Topic,
    connect_to_coordinator,
    send_heartbeat,
)
from benchmarks.load.offsets import commit, starting_positions
from benchmarks.load.partition_reader import PartitionReader
from benchmarks.load.wire import Connection

_LEAVING = -1


class ConsumerMember:
    """Reads and commits its partitions until it is cancelled; then call `leave`."""

    def __init__(self, load: Load, group: str, topic: Topic) -> None:
        self._load = load
        self._group = group
        self._topic = topic
        self._member_id = str(uuid4())
        self._epoch = 0
        self._is_assigned = asyncio.Event()

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that it reads."""
        return frozenset(self._reader.positions) if self._is_assigned.is_set() else frozenset()

    async def run(self) -> None:
        self._coordinator = await connect_to_coordinator(self._load.address, self._group)
        self._leader = await Connection.open(self._load.address)
        self._reader = PartitionReader(self._load, self._topic, "consumer_delivery", self._leader)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_heartbeats())
            tasks.create_task(self._commit_regularly())
            await self._is_assigned.wait()
            while True:
                await self._reader.poll()

    async def leave(self) -> None:
        """Leave the group."""
        self._epoch = _LEAVING
        await self._heartbeat()

    async def _send_heartbeats(self) -> None:
        """An assignment is applied immediately and confirmed in a heartbeat of its own."""
        response = await self._heartbeat(
            rebalance_timeout=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[self._topic.name],
            topic_partitions=[],
        )
        while True:
            if response.assignment is not None:
                await self._reconcile(response.assignment.topic_partitions)
                response = await self._heartbeat(topic_partitions=self._owned())
            else:
                await asyncio.sleep(response.heartbeat_interval.total_seconds())
                response = await self._heartbeat()

    async def _heartbeat(self, **values: Any) -> Any:
        response = await send_heartbeat(
            self._load,
            self._coordinator,
            "consumer_group_heartbeat",
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            **({"rebalance_timeout": -1, "topic_partitions": None} | values),
        )
        self._epoch = response.member_epoch
        return response

    async def _reconcile(self, assigned: Iterable[Any]) -> None:
        """Commit and release the partitions that are no longer assigned, and start to read the new ones."""
        indexes = {index for topic in assigned for index in topic.partitions}
        positions = self._reader.positions
        if positions.keys() - indexes:
            await self._commit()
        added = indexes - positions.keys()
        starts: dict[int, int] = {}
        if added:
            starts = await starting_positions(
                *(self._coordinator, self._leader, self._group, self._topic, added),
                (self._member_id, self._epoch),
            )
        self._reader.positions = {i: offset for i, offset in positions.items() if i in indexes} | starts
        self._is_assigned.set()

    def _owned(self) -> list[dict[str, object]]:
        indexes = sorted(self._reader.positions)
        return [{"topic_id": self._topic.topic_id, "partitions": indexes}] if indexes else []

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            if self._reader.positions:
                await self._commit()

    async def _commit(self) -> None:
        begin = time.perf_counter()
        member = (self._member_id, self._epoch)
        await commit(self._coordinator, self._group, self._topic, member, self._reader.positions)
        self._load.samples.note("commit", begin)
