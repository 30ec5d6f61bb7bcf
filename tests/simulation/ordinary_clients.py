"""Ordinary clients beside the share groups: the clients of a run, and the conditions that must hold at its
end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from barnabas.coordinator.metadata.topic_names import OFFSETS_TOPIC
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.group.partition_count import GROUP_PARTITION_COUNT
from tests.simulation.classic_members import ClassicMember
from tests.simulation.client import Disconnected
from tests.simulation.consumer_members import ConsumerMember
from tests.simulation.marker_forger import MarkerForger
from tests.simulation.model import Violation
from tests.simulation.readers import Reader
from tests.simulation.sharing_clients import NotYet, SharingClients
from tests.simulation.transactional_producers import TransactionalProducer
from tests.simulation.world import World

_CLASSIC_GROUP, _CONSUMER_GROUP = "classic", "reconciled"
_END_SECONDS_MAX = 60.0
_AT_REST = ("Empty", "CompleteCommit", "CompleteAbort")


class OrdinaryClients:
    """All ordinary clients of a run."""

    def __init__(self, world: World) -> None:
        self._world = world
        scenario = world.scenario
        self._classic = [
            ClassicMember(world, _CLASSIC_GROUP, number, cooperative=scenario.classic_is_cooperative)
            for number in range(scenario.classic_members)
        ]
        self._consumers = [
            ConsumerMember(world, _CONSUMER_GROUP, number) for number in range(scenario.consumer_members)
        ]
        self._producers = [
            TransactionalProducer(world, f"transactions-{number}", f"ledger-{number}")
            for number in range(scenario.producers_of_transactions)
        ]
        self._reader = Reader(world) if self._producers else None
        self._forger = MarkerForger(world) if self._producers else None
        self._sharing = SharingClients(world) if scenario.sharers else None
        self._client = world.client("auditor")

    def members(self) -> list[Coroutine[Any, Any, None]]:
        """The clients that work until the end of the run."""
        sharing = [] if self._sharing is None else self._sharing.members()
        return [*(one.run() for one in self._classic), *(one.run() for one in self._consumers), *sharing]

    def producers(self) -> list[Coroutine[Any, Any, None]]:
        """Ends all transactions in the last phase; the observers check the result."""
        others = [one.run() for one in (self._reader, self._forger) if one is not None]
        sharing = [] if self._sharing is None else self._sharing.changing()
        return [*(one.run() for one in self._producers), *others, *sharing]

    async def settle(self) -> None:
        """Faults and producers have stopped: every transaction must end by itself, and be visible as a whole
        or not at all.
        """
        if self._sharing is not None:
            await self._insistently(self._check_at_rest)
            self._world.network.end_silence()
            self._world.is_calm = True
            await self._insistently(self._sharing.check_done)
            await self._insistently(self._sharing.check_results)
        if self._reader is None:
            return
        await self._insistently(self._check_at_rest)
        await self._insistently(self._reader.read_everything)
        for transaction in self._world.ordinary.transactions.all:
            transaction.complete(self._world.now_ms)
        await self._insistently(self._look_up_all_offsets)

    async def _check_at_rest(self) -> None:
        response = await self._client.ask("list_transactions")
        if response.error_code is not ErrorCode.none:
            raise NotYet(response.error_code.name)
        for one in response.transaction_states:
            if one.transaction_state not in _AT_REST:
                raise NotYet(f"{one.transactional_id} is in {one.transaction_state}")
        if self._world.ordinary.incarnation:
            await self._abort_forgotten()
        self._check_stable_offsets()

    def _check_stable_offsets(self) -> None:
        """No record is held back from readers any longer."""
        for partition, model in self._world.model.partitions.items():
            log = None if model.is_deleted else self._world.log(partition)
            if log is not None and log.last_stable_offset < log.high_watermark:
                raise NotYet(f"{model.name} is stable below {log.last_stable_offset} alone")

    async def _abort_forgotten(self) -> None:
        """A power failure without a promise may have removed transactions from the coordinator while
        partitions still have them. An administrator ends those (KIP-664).
        """
        topics = [*self._world.topics.values(), *self._world.lasting_topics]
        counts = {one.name: one.partition_count for one in topics} | {OFFSETS_TOPIC: GROUP_PARTITION_COUNT}
        asked = [{"name": name, "partition_indexes": list(range(count))} for name, count in counts.items()]
        response = await self._client.ask("describe_producers", topics=asked)
        markers = [
            {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "transaction_result": False,
                "coordinator_epoch": max(producer.coordinator_epoch, 0),
                "topics": [{"name": topic.name, "partition_indexes": [partition.partition_index]}],
            }
            for topic in response.topics
            for partition in topic.partitions
            for producer in partition.active_producers
            if producer.current_txn_start_offset >= 0
        ]
        if markers:
            self._world.trace.event(f"an administrator aborts {len(markers)} forgotten transactions")
            await self._client.ask("write_txn_markers", markers=markers)

    async def _look_up_all_offsets(self) -> None:
        """The offsets of every group that has committed in transactions."""
        assert self._reader is not None
        codes = await self._reader.look_up_all_offsets()
        for code in codes:
            if code is not ErrorCode.none:
                raise NotYet(f"the answer for offsets is {code.name}")

    async def _insistently(self, action: Callable[[], Awaitable[None]]) -> None:
        """Repeats it until it succeeds."""
        reason = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS_MAX):
                while True:
                    try:
                        await action()
                    except (Disconnected, NotYet) as error:
                        reason = str(error)
                    else:
                        return
                    await asyncio.sleep(0.2)
        raise Violation(f"after {_END_SECONDS_MAX} s without faults transactions are not done: {reason}")
