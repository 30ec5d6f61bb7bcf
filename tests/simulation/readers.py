"""Readers of committed records, like ordinary consumers: they fetch a partition from start to end again and
again, leave out aborted records as the response says, and look up offsets that a transaction holds back.

A confirmed record within the range they read must be there, unless its transaction was aborted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_batch import iterate_headers
from barnabas.protocol.records import iterate_records
from tests.simulation.client import Disconnected, SimulatedClient
from tests.simulation.group_offsets import GroupOffsets
from tests.simulation.model import Violation
from tests.simulation.world import World

READ_COMMITTED = 1
_PAUSE_SECONDS_MAX = 0.4
_MAX_BYTES = (1, 400, 1 << 20)


class Committed(NamedTuple):
    """The part of a response that matters to a reader of committed records."""

    records: list[tuple[int, bytes | None]]
    next_offset: int
    """The offset of the next fetch; the reader has read everything before it."""


class Reader:
    """One reader of all partitions."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random("reader")
        self._client = world.client("reader")
        self._positions: dict[TopicIdPartition, int] = {}
        self._offsets = {
            group_id: GroupOffsets(world, group_id, self._client)
            for group_id in (f"ledger-{one}" for one in range(world.scenario.producers_of_transactions))
        }

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))
            try:
                if self._random.random() < 0.75:
                    await self._read_on()
                else:
                    await self._look_up_offsets(self._random.choice(list(self._offsets)))
            except Disconnected:
                self._client.disconnect()

    async def read_everything(self) -> None:
        """Reads each partition once, from its start to its end."""
        for partition in self._partitions():
            self._positions[partition] = 0
            while not await self._read(partition, max_bytes=1 << 20):
                pass

    async def _read_on(self) -> None:
        partitions = self._partitions()
        if partitions:
            await self._read(self._random.choice(partitions), max_bytes=self._random.choice(_MAX_BYTES))

    async def _read(self, partition: TopicIdPartition, *, max_bytes: int) -> bool:
        """One fetch, from the end of the last one; True if nothing is left to fetch."""
        first_offset = self._positions.get(partition, 0)
        clock, model = self._world.machine.clock, self._world.model.partition(partition)
        sent_ms, generation = self._world.now_ms, model.generation
        confirmed = {offset: value for offset, value in model.confirmed.items() if offset >= first_offset}
        answer = await fetch_committed(self._client, partition, first_offset, max_bytes)
        if answer is None:
            raise Disconnected
        if model.generation != generation or model.is_deleted:
            self._positions.pop(partition, None)
            return True
        if answer.error_code is ErrorCode.offset_out_of_range:
            self._positions[partition] = answer.log_start_offset if first_offset == 0 else 0
            return first_offset != 0
        if answer.error_code is not ErrorCode.none:
            raise Disconnected
        self._world.ordinary.transactions.check_stable_offset(
            partition,
            answer.last_stable_offset if answer.log_start_offset < answer.last_stable_offset else 0,
            sent_ms=sent_ms,
            wall_ms=clock.wall_ms(),
            clock_changes=clock.change_count,
        )
        committed = committed_records(answer, first_offset)
        self._check(partition, committed, confirmed)
        self._positions[partition] = committed.next_offset
        if committed.next_offset > first_offset:
            return False
        if self._random.random() < 0.3:
            del self._positions[partition]
        return True

    def _check(self, partition: TopicIdPartition, committed: Committed, confirmed: dict[int, bytes]) -> None:
        """`confirmed` are the records that were confirmed before the fetch was sent."""
        self._world.model.partition(partition).saw(committed.records)
        transactions = self._world.ordinary.transactions
        for offset, value in committed.records:
            transaction = transactions.by_value.get(value or b"")
            if transaction is not None:
                transaction.saw(f"{partition} {offset}")
        seen = {offset for offset, _ in committed.records}
        for offset in confirmed:
            if offset >= committed.next_offset or offset in seen:
                continue
            transaction = transactions.at(partition, offset)
            if transaction is not None:
                transaction.missed(f"{partition} {offset}")
            elif confirmed[offset] not in transactions.by_value:
                raise Violation(f"{partition} {offset} is confirmed, but was not read")

    async def _look_up_offsets(self, group_id: str) -> None:
        ledger, clock = self._world.ledger, self._world.machine.clock
        if ledger is None:
            return
        sent_ms, incarnation = self._world.now_ms, self._world.ordinary.incarnation
        codes = await self._offsets[group_id].fetch(ledger.partitions, require_stable=True)
        if incarnation != self._world.ordinary.incarnation:
            return
        for partition, code in codes.items():
            model = self._world.ordinary.committed(group_id, partition)
            pends = self._world.ordinary.transactions.pends(
                model, sent_ms=sent_ms, wall_ms=clock.wall_ms(), clock_changes=clock.change_count
            )
            if code is ErrorCode.none and pends:
                raise Violation(
                    f"offsets of {group_id} for {partition} are stable, but wait for a transaction"
                )

    async def look_up_all_offsets(self) -> list[ErrorCode]:
        """The error codes for the stable offsets of every group that commits in transactions."""
        ledger = self._world.ledger
        codes: list[ErrorCode] = []
        for offsets in self._offsets.values():
            if ledger is not None:
                codes += (await offsets.fetch(ledger.partitions, require_stable=True)).values()
        return codes

    def _partitions(self) -> list[TopicIdPartition]:
        ledger = self._world.ledger
        topics = [*self._world.topics.values(), *((ledger,) if ledger is not None else ())]
        return [partition for topic in topics for partition in topic.partitions]


async def fetch_committed(
    client: SimulatedClient, partition: TopicIdPartition, first_offset: int, max_bytes: int
) -> Any | None:
    """The partition's part of the response; None if the response has an error."""
    asked = {
        "partition": partition.partition,
        "fetch_offset": first_offset,
        "partition_max_bytes": max_bytes,
    }
    response = await client.ask(
        "fetch",
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED,
        topics=[{"topic_id": partition.topic_id, "partitions": [asked]}],
    )
    return response.responses[0].partitions[0] if response.error_code is ErrorCode.none else None


def committed_records(answer: Any, first_offset: int) -> Committed:
    """Leaves out aborted records as a client does: aborted transactions begin where the response says, and
    end with their markers.
    """
    records: list[tuple[int, bytes | None]] = []
    to_come = deque(sorted(answer.aborted_transactions or (), key=lambda one: int(one.first_offset)))
    aborted: set[int] = set()
    next_offset = first_offset
    data = bytes(answer.records or b"")
    for position, header in iterate_headers(data):
        next_offset = header.base_offset + header.last_offset_delta + 1
        while to_come and to_come[0].first_offset < next_offset:
            aborted.add(to_come.popleft().producer_id)
        if header.is_control:
            aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            records += [
                (record.offset, record.value)
                for record in iterate_records(data, position)
                if record.offset >= first_offset
            ]
    return Committed(records, next_offset)
