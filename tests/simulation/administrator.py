"""The administrator creates, enlarges and deletes topics, deletes records and groups, resets groups and
changes settings while the clients work.

Before a request that takes knowledge away (a reset, a deletion), the model forgets that knowledge. When the
answer has arrived it forgets again, because clients got confirmations in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from tests.conformance.harness import batch, produce_fields
from tests.simulation.asking import Asking
from tests.simulation.client import Disconnected
from tests.simulation.letter_settings import LETTER_TOPIC
from tests.simulation.model import BACKOFF_MAX_MS, ShareModel
from tests.simulation.prioritised_records import HEADER_NAME
from tests.simulation.refused_changes import check_ended, open_transactions
from tests.simulation.world import (
    COLD_TOPIC,
    LEDGER_PARTITIONS,
    LEDGER_TOPIC,
    ORDERS_TOPIC,
    RESULTS_TOPIC,
    LiveTopic,
    World,
)

_TOPICS_MAX = 3
_LEAVE_SECONDS_MAX = 8.0
_LASTING_TOPICS = (COLD_TOPIC, LEDGER_TOPIC, LETTER_TOPIC, ORDERS_TOPIC, RESULTS_TOPIC)
_TOPIC_CONFIGS: tuple[Mapping[str, str | None], ...] = (
    {"segment.ms": "800"},
    {"retention.ms": "4000", "segment.ms": "800"},
    {"retention.ms": None},
)
_SYNCED = [{"name": "flush.messages", "value": "1"}]
_COMPACTED: Mapping[str, str | None] = {"cleanup.policy": "compact", "segment.ms": "800"}
_NOT_COMPACTED: Mapping[str, str | None] = {"cleanup.policy": None}


class Administrator(Asking):
    """One administrator, who does one thing at a time."""

    def __init__(self, world: World) -> None:
        super().__init__(world.client("administrator"))
        self._world = world
        self._random = world.random("administrator")

    async def prepare(self) -> None:
        """Creates the topics, one of them without readers, and the groups, which begin at the first
        record.
        """
        for group_id in self._world.scenario.group_ids:
            await self._insistently(partial(self._configure_group, group_id))
        await self._insistently(self.create_topic)
        await self._insistently(self._create_cold_topic)
        if self._world.scenario.producers_of_transactions:
            await self._insistently(self._create_ledger)
        if self._world.scenario.sharers:
            await self._insistently(self._prepare_sharing)

    async def run(self) -> None:
        """Changes something from time to time, until the last phase of the run."""
        actions: list[Callable[[], Awaitable[object]]] = [
            self.create_topic,
            self.delete_topic,
            self.create_partitions,
            self.delete_records,
            self.alter_topic,
            self.alter_internal_topic,
            self.alter_limits,
            self.alter_limits,
            self.alter_offsets,
            self.delete_offsets,
            self.delete_group,
        ]
        if self._world.scenario.order.group_ids:
            actions += [self.alter_order, self.alter_order]
        if self._world.scenario.priorities.group_ids:
            actions += [self.alter_priorities]
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0, 2 * self._world.scenario.admin_pause_ms) / 1000)
            with suppress(Disconnected):
                await self._random.choice(actions)()

    async def find_topics(self) -> None:
        """Looks up the result of requests that were never answered."""
        response = await self._ask("metadata", topics=None)
        self._world.topics = {
            topic.name: LiveTopic(topic.name, topic.topic_id, len(topic.partitions))
            for topic in response.topics
            if not topic.is_internal and topic.name not in _LASTING_TOPICS
        }

    async def settle_limits(self) -> None:
        """Sets every group's limits again, so that they are known for certain."""
        for group_id in self._world.scenario.group_ids:
            await self._insistently(partial(self._set_limits, group_id))
            await self._insistently(partial(self._set_timing, group_id))

    async def settle_topics(self) -> None:
        """Looks the topics up again, so that they are known for certain."""
        await self._insistently(self.find_topics)

    # Topics.

    async def create_topic(self) -> None:
        if len(self._world.topics) >= _TOPICS_MAX:
            return
        name = f"topic-{self._random.randrange(_TOPICS_MAX)}"
        partition_count = self._random.randint(1, self._world.scenario.partitions_max)
        topic: dict[str, Any] = {
            "name": name,
            "num_partitions": partition_count,
            "replication_factor": 1,
            "configs": _SYNCED if self._world.scenario.letters.syncs_records else [],
        }
        response = await self._ask("create_topics", topics=[topic])
        created = response.topics[0]
        self._note(f"creates {name} with {partition_count} partitions", created.error_code)
        if created.error_code is ErrorCode.none:
            self._world.topics[name] = LiveTopic(name, created.topic_id, partition_count)
        elif created.error_code is ErrorCode.topic_already_exists:
            await self.find_topics()

    async def _create_cold_topic(self) -> None:
        """Records without readers, in which bits may flip."""
        topic = {"name": COLD_TOPIC, "num_partitions": 1, "replication_factor": 1}
        await self._ask("create_topics", topics=[topic])
        found = (await self._ask("metadata", topics=[{"name": COLD_TOPIC}])).topics[0]
        records = batch(50, self._world.machine.clock.wall_ms(), value_bytes=100)
        await self._ask("produce", **produce_fields(found.topic_id, 0, records))

    async def _create_ledger(self) -> None:
        """A topic that stays unchanged."""
        self._world.ledger = await self._create_lasting(LEDGER_TOPIC, LEDGER_PARTITIONS)

    async def _prepare_sharing(self) -> None:
        """The topics of the group whose members share partitions, and its setting."""
        scenario, group_id = self._world.scenario, self._world.ordinary.sharing.name
        order = "partition" if scenario.shares_in_order else "none"
        await self._alter(32, group_id, {"individual.commit.order": order})
        self._world.orders = await self._create_lasting(ORDERS_TOPIC, scenario.orders_partitions)
        self._world.results = await self._create_lasting(RESULTS_TOPIC, scenario.orders_partitions)

    async def _create_lasting(self, name: str, partition_count: int) -> LiveTopic:
        topic = {"name": name, "num_partitions": partition_count, "replication_factor": 1}
        await self._ask("create_topics", topics=[topic])
        (found,) = (await self._ask("metadata", topics=[{"name": name}])).topics
        if found.error_code is not ErrorCode.none:
            raise Disconnected
        return LiveTopic(name, found.topic_id, partition_count)

    async def delete_topic(self) -> None:
        topic = self._any_topic()
        if topic is None or self._random.random() < 0.5:
            return
        del self._world.topics[topic.name]
        self._world.model.forget_topic(topic.topic_id)
        response = await self._ask("delete_topics", topics=[{"name": topic.name}])
        self._note(f"deletes {topic.name}", response.responses[0].error_code)

    async def create_partitions(self) -> None:
        topic = self._any_topic()
        if topic is None or topic.partition_count >= self._world.scenario.partitions_max:
            return
        asked = {"name": topic.name, "count": topic.partition_count + 1}
        response = await self._ask("create_partitions", topics=[asked])
        self._note(f"adds a partition to {topic.name}", response.results[0].error_code)
        if response.results[0].error_code is ErrorCode.none:
            self._world.topics[topic.name] = topic._replace(partition_count=topic.partition_count + 1)

    async def delete_records(self) -> None:
        topic = self._any_topic()
        if topic is None:
            return
        partition = self._random.choice(topic.partitions)
        offsets = list(self._world.model.partition(partition).confirmed)
        before_offset = self._random.choice([*offsets[-40:], -1])
        asked = {"partition_index": partition.partition, "offset": before_offset}
        response = await self._ask("delete_records", topics=[{"name": topic.name, "partitions": [asked]}])
        answer = response.topics[0].partitions[0]
        self._note(
            f"deletes the records of {topic.name}-{partition.partition} below {answer.low_watermark}",
            answer.error_code,
        )

    async def alter_topic(self) -> None:
        """Sets a short retention and small segments, or the defaults again."""
        topic = self._any_topic()
        if topic is None:
            return
        configs = list(_TOPIC_CONFIGS)
        if self._world.scenario.order.compacts:
            configs += [_COMPACTED, _COMPACTED, _NOT_COMPACTED]
        await self._alter(2, topic.name, self._random.choice(configs))

    async def alter_internal_topic(self) -> None:
        """Makes the coordinators' topics compact early, or as usual."""
        name = self._random.choice(("__consumer_offsets", "__transaction_state"))
        segment_ms = self._random.choice(("300", "800", None))
        await self._alter(2, name, {"segment.ms": segment_ms})

    # Groups.

    async def alter_limits(self) -> None:
        await self._set_limits(self._random.choice(self._world.scenario.group_ids))

    async def _set_limits(self, group_id: str) -> None:
        model = self._world.model.group(group_id)
        count_max, lock_ms = self._random.choice((2, 3, 5, 10)), self._random.choice((1000, 2000, 4000))
        model.delivery_count_max.change(count_max)
        model.lock_duration_ms.change(lock_ms)
        values = {"share.delivery.count.limit": str(count_max), "share.record.lock.duration.ms": str(lock_ms)}
        await self._alter(32, group_id, values)
        model.delivery_count_max.settle(count_max, self._world.now_ms)
        model.lock_duration_ms.settle(lock_ms, self._world.now_ms)

    async def alter_order(self) -> None:
        """Most changes are from one order of keys to another."""
        group_id = self._random.choice(self._world.scenario.order.group_ids)
        await self._set_order(group_id, self._random.choice((0, 1, 1, 3)))

    async def alter_priorities(self) -> None:
        """Two of three changes name the usual header."""
        group_id = self._random.choice(self._world.scenario.priorities.group_ids)
        await self._set_priorities(group_id, self._random.choice(("", HEADER_NAME, HEADER_NAME)))

    async def _set_priorities(self, group_id: str, header_name: str) -> None:
        settings = self._world.scenario.priorities
        values = {
            "share.priority.header": header_name,
            "share.priority.window.records": str(self._random.choice((settings.window_records, 10))),
            "share.priority.overtaken.max": str(self._random.choice((settings.overtaken_max, 4))),
        }
        await self._alter(32, group_id, values)

    async def _set_order(self, group_id: str, key_run_max: int) -> None:
        model = self._world.model.group(group_id).key_run_max
        model.change(key_run_max)
        values = {"share.order": "key", "share.order.key.in.flight.max": str(key_run_max)}
        await self._alter(32, group_id, values if key_run_max else {"share.order": "none"})
        model.settle(key_run_max, self._world.now_ms)

    async def _configure_group(self, group_id: str) -> None:
        is_committed = group_id in self._world.scenario.groups_of_committed
        isolation = "read_committed" if is_committed else "read_uncommitted"
        is_by_load = self._world.scenario.group_ids.index(group_id) % 2 == 1
        values = {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": isolation,
            "share.assignor.name": "load" if is_by_load else "simple",
        }
        await self._alter(32, group_id, values)
        if group_id in self._world.scenario.order.group_ids:
            await self._set_order(group_id, self._random.choice((1, 1, 3)))
        if group_id in self._world.scenario.priorities.group_ids:
            await self._set_priorities(group_id, HEADER_NAME)
        if self._world.scenario.backoff_ms:
            await self._set_backoff(group_id, self._world.scenario.backoff_ms)
        await self._set_timing(group_id)

    async def _set_timing(self, group_id: str) -> None:
        timing = self._world.scenario.timing
        if group_id in timing.group_ids:
            await self._alter(32, group_id, timing.values)

    async def _set_backoff(self, group_id: str, backoff_ms: int) -> None:
        model = self._world.model.group(group_id).backoff_ms
        model.change(backoff_ms)
        values = {"share.retry.backoff.ms": backoff_ms, "share.retry.backoff.max.ms": BACKOFF_MAX_MS}
        await self._alter(32, group_id, {name: str(value) for name, value in values.items()})
        model.settle(backoff_ms, self._world.now_ms)

    async def alter_offsets(self) -> None:
        topic = self._any_topic()
        if topic is None:
            return
        partition = self._random.choice(topic.partitions)
        start_offset = self._random.choice([*self._world.model.partition(partition).confirmed, 0])

        async def alter(group_id: str) -> ErrorCode:
            share = self._world.model.share(group_id, partition)
            share.skipped_until = max(share.skipped_until, start_offset)
            asked = {"partition_index": partition.partition, "start_offset": start_offset}
            response = await self._ask(
                "alter_share_group_offsets",
                group_id=group_id,
                topics=[{"topic_name": topic.name, "partitions": [asked]}],
            )
            return ErrorCode(response.error_code or response.responses[0].partitions[0].error_code)

        await self._reset(f"sets {topic.name}-{partition.partition} to {start_offset}", alter, [partition])

    async def delete_offsets(self) -> None:
        topic = self._any_topic()
        if topic is None:
            return

        async def delete(group_id: str) -> ErrorCode:
            response = await self._ask(
                "delete_share_group_offsets", group_id=group_id, topics=[{"topic_name": topic.name}]
            )
            return ErrorCode(response.error_code or response.responses[0].error_code)

        await self._reset(f"deletes the offsets of {topic.name}", delete, topic.partitions)

    async def delete_group(self) -> None:
        async def delete(group_id: str) -> ErrorCode:
            response = await self._ask("delete_groups", groups_names=[group_id])
            return ErrorCode(response.results[0].error_code)

        await self._reset("deletes the group", delete, self._all_partitions())

    async def _reset(
        self,
        what: str,
        ask: Callable[[str], Awaitable[ErrorCode]],
        partitions: Sequence[TopicIdPartition],
    ) -> None:
        """Makes a group's members leave, sends the request, which is about these partitions, and lets the
        members come back.
        """
        group_id = self._random.choice(self._world.scenario.group_ids)
        shares = self._world.model.shares_of(group_id)
        self._world.left[group_id] = set()
        self._world.leaving.add(group_id)
        try:
            await self._wait_until_left(group_id)
            waiting = open_transactions(self._world, group_id, partitions)
            _forget(shares)
            code = await ask(group_id)
            self._note(f"{what} for {group_id}", code)
            if code is ErrorCode.none:
                check_ended(self._world, waiting, f"{what} for {group_id}")
        finally:
            _forget(self._world.model.shares_of(group_id))
            self._world.leaving.discard(group_id)

    async def _wait_until_left(self, group_id: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS_MAX):
                while len(self._world.left[group_id]) < self._world.scenario.members_per_group:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    # Requests.

    def _all_partitions(self) -> list[TopicIdPartition]:
        return [partition for topic in self._world.topics.values() for partition in topic.partitions]

    def _any_topic(self) -> LiveTopic | None:
        topics = list(self._world.topics.values())
        return self._random.choice(topics) if topics else None

    async def _alter(self, resource_type: int, name: str, values: Mapping[str, str | None]) -> None:
        configs = [
            {"name": key, "config_operation": 1 if value is None else 0, "value": value}
            for key, value in values.items()
        ]
        resource = {"resource_type": resource_type, "resource_name": name, "configs": configs}
        response = await self._ask("incremental_alter_configs", resources=[resource])
        error = response.responses[0].error_code
        self._note(f"sets {values} of {name}", error)
        if error is not ErrorCode.none:
            raise Disconnected

    def _note(self, what: str, error: ErrorCode) -> None:
        self._world.trace.event(f"the administrator {what}: {error.name}")


def _forget(shares: list[ShareModel]) -> None:
    for share in shares:
        share.reset()
