"""Share consumers: members that fetch records, and acknowledge them in every way.

They accept, release, reject, skip (GAP) and renew, record by record or in ranges, with the next fetch or in a
separate request. They forget records until the locks expire, disconnect, read slowly, leave and come back.
All answers go into the model, which decides whether they can be true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import TopicIdPartition
from barnabas.storage.log.partition_log import PartitionLog
from tests.conformance.share_member import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    AckBatches,
    Acknowledged,
    Fetched,
    FetchedPartition,
    ShareMember,
    acknowledged,
    fetched,
)
from tests.simulation.client import Disconnected, Pending
from tests.simulation.model import Lease, ShareModel, Wait
from tests.simulation.order_model import Answer, OrderModel, Sending, Types
from tests.simulation.simulated_network import Link
from tests.simulation.transaction_model import Transaction
from tests.simulation.world import World

_HEARTBEAT_MS = 1000
_FETCH_WAIT_MS = 400
_ERROR_PAUSE_SECONDS = 0.05
_EMPTY_PAUSE_SECONDS_MAX = 0.1
_LOCK_MS = 1800
"""Longer than the shortest locks."""
_TYPES = (ACCEPT, ACCEPT, ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP)
_TYPES_WITH_LETTERS = (*_TYPES, REJECT, REJECT, REJECT)

Held = dict[int, int]
"""Delivery count by offset."""


class Sent:
    """Acknowledgements under way: the partitions, the records, and the model's generations."""

    def __init__(self, sent_ms: float, clock_changes: int) -> None:
        self.sent_ms = sent_ms
        self.clock_changes = clock_changes
        self.types: dict[TopicIdPartition, dict[int, tuple[int, int]]] = {}
        """Type and delivery count by offset."""
        self.generations: dict[TopicIdPartition, int] = {}
        self.to_orders: dict[TopicIdPartition, Sending] = {}

    def batches(self, random: Random) -> dict[TopicIdPartition, AckBatches]:
        return {partition: _batches(types, random) for partition, types in self.types.items()}


def _batches(types: dict[int, tuple[int, int]], random: Random) -> AckBatches:
    """The same acknowledgements in one of the forms of the protocol."""
    batches: list[tuple[int, ...]] = []
    for offset, (ack_type, _) in sorted(types.items()):
        if batches and batches[-1][1] + 1 == offset:
            first, _, *before = batches[-1]
            if len(before) > 1 or before[0] != ack_type or random.random() < 0.1:
                before = before if len(before) == offset - first else before * (offset - first)
                batches[-1] = (first, offset, *before, ack_type)
            else:
                batches[-1] = (first, offset, *before)
        else:
            batches.append((offset, offset, ack_type))
    return batches


class Consumer:
    """One member of one group."""

    def __init__(self, world: World, group_id: str, number: int) -> None:
        self._world = world
        self._group_id = group_id
        self._name = f"{group_id}-{number}"
        self._random = world.random(self._name)
        self._client = world.client(self._name)
        self._member = ShareMember(self._client, group_id=group_id, member_id=self._name)
        self._member_epoch = 0
        self._assigned: list[TopicIdPartition] = []
        self._held: dict[TopicIdPartition, Held] = {}
        self._heartbeat_due_ms = 0.0
        self._is_in_order = group_id in world.scenario.order.group_ids
        self._is_in_transactions = group_id in world.scenario.groups_in_transactions
        self._types = _TYPES_WITH_LETTERS if group_id in world.scenario.letters.group_ids else _TYPES

    async def run(self) -> None:
        while True:
            try:
                if self._group_id in self._world.leaving:
                    await self._leave()
                else:
                    await self._work()
            except Disconnected:
                self._client.disconnect()
                self._lose_session()
                await asyncio.sleep(self._random.uniform(20, 300) / 1000)

    async def _work(self) -> None:
        """Does a few things, as a consumer would."""
        await self._client.connect()
        if self._world.now_ms >= self._heartbeat_due_ms or self._member_epoch == 0:
            await self._heartbeat()
        if not self._assigned:
            await asyncio.sleep(0.1)
            return
        chance = self._random.random()
        if self._world.is_ending or chance < 0.6:
            await self._fetch()
        elif chance < 0.8:
            await self._acknowledge()
        elif chance < 0.87:
            await self._renew()
        else:
            await self._misbehave()

    async def _misbehave(self) -> None:
        chance = self._random.random()
        if chance < 0.2:
            self._client.disconnect()
            self._lose_session()
        elif chance < 0.4:
            self._held.clear()  # Forgotten: their locks expire.
        elif chance < 0.55:
            await self._read_slowly()
        elif chance < 0.7:
            await self._close_session()
        else:
            await asyncio.sleep(self._random.uniform(50, 1500) / 1000)

    # The group.

    async def _heartbeat(self) -> None:
        self._heartbeat_due_ms = self._world.now_ms + _HEARTBEAT_MS * self._random.uniform(0.5, 1)
        topics = sorted(self._world.topics)
        if not topics:
            return
        response = await self._member.heartbeat(self._member_epoch, topics)
        if response.error_code is not ErrorCode.none:
            self._world.trace.event(f"{self._name} heartbeat: {response.error_code.name}")
            self._member_epoch = 0
            return
        self._member_epoch = response.member_epoch
        if response.assignment is not None:
            self._assign(
                TopicIdPartition(topic.topic_id, index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            )

    def _assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        assigned = list(partitions)
        if assigned != self._assigned:
            # Simpler than adding and removing: a new session with the new partitions.
            self._assigned = assigned
            self._lose_session()

    async def _leave(self) -> None:
        left = self._world.left.setdefault(self._group_id, set())
        if self._name not in left:
            self._lose_session()
            self._client.disconnect()
            if self._member_epoch:
                await self._client.connect()
                await self._member.heartbeat(-1)
            self._member_epoch = 0
            self._assigned = []
            left.add(self._name)
        await asyncio.sleep(0.02)

    def _lose_session(self) -> None:
        """The next fetch opens a new session, and the records held are released."""
        self._member.epoch = 0
        self._held.clear()
        for share in self._world.model.shares_of(self._group_id):
            share.give_up(self._name)

    # Records.

    async def _fetch(self) -> None:
        link = await self._client.connect()
        if self._member.epoch == 0:
            self._lose_session()
        sent = self._choose() if self._member.epoch else self._new_sending()
        self._member.partitions = self._assigned
        pending = self._member.start_fetch(
            sent.batches(self._random),
            max_wait=self._random.choice((0, _FETCH_WAIT_MS)),
            max_records=self._random.choice((1, 5, 500)),
            batch_size=self._random.choice((1, 3, 500)),
            share_acquire_mode=self._random.choice((0, 0, 1)),
        )
        generations = self._generations(self._assigned)
        logs = {one: self._world.model.partition(one).generation for one in self._assigned}
        serving = {one: self._world.log(one) for one in self._assigned}
        answer = fetched(await self._client.answered(pending))
        if answer.error:
            self._world.trace.event(f"{self._name} fetch: {ErrorCode(answer.error).name}")
            self._lose_session()
            await asyncio.sleep(_ERROR_PAUSE_SECONDS)
            return
        self._note_acknowledged(sent, {key: one.acknowledge_error for key, one in answer.partitions.items()})
        for partition, one in answer.partitions.items():
            model = self._world.model.partition(partition)
            if logs.get(partition) == model.generation:
                model.saw(one.records)
        self._note_fetched(answer, pending, link, generations, serving)
        if not answer.acquired:
            await asyncio.sleep(self._random.uniform(0, _EMPTY_PAUSE_SECONDS_MAX))

    def _note_fetched(
        self,
        answer: Fetched,
        pending: Pending,
        link: Link,
        generations: dict[TopicIdPartition, int],
        serving: dict[TopicIdPartition, PartitionLog | None],
    ) -> None:
        for partition, one in answer.partitions.items():
            if one.error:
                self._world.trace.event(f"{self._name} {_short(partition)} error {ErrorCode(one.error).name}")
                continue
            share = self._share(partition)
            if not one.acquired:
                continue
            self._world.trace.event(f"{self._name} {_short(partition)} acquired {one.acquired}")
            self._check_committed(partition, one)
            for first, last, delivery_count in one.acquired:
                for offset in range(first, last + 1):
                    self._held.setdefault(partition, {})[offset] = delivery_count
            if share.generation != generations.get(partition):
                continue
            share.acquired(
                one.acquired,
                self._lease(partition, pending, link, serving.get(partition)),
                sent_ms=pending.sent_ms,
                now_ms=self._world.now_ms,
                count_limit=self._world.model.group(self._group_id).delivery_count_max,
                clock_changes=self._world.machine.clock.change_count,
            )
            if self._is_in_transactions:
                self._world.pending(self._group_id, partition).delivered(
                    one.acquired,
                    sent_ms=pending.sent_ms,
                    wall_ms=self._world.machine.clock.wall_ms(),
                    clock_changes=self._world.machine.clock.change_count,
                )
            self._note_order(partition, one, pending.sent_ms)

    def _note_order(self, partition: TopicIdPartition, one: FetchedPartition, sent_ms: float) -> None:
        order = self._order(partition)
        if order is not None:
            offsets = [offset for first, last, _ in one.acquired for offset in range(first, last + 1)]
            answer = Answer(self._name, offsets, dict(one.records), sent_ms, self._world.now_ms)
            if self._is_in_transactions:
                order.check_waiting(answer, self._waiting_since(partition, sent_ms))
            order.delivered(answer)

    def _waiting_since(self, partition: TopicIdPartition, sent_ms: float) -> dict[int, float]:
        """See `PendingModel.waiting_since`. An acknowledgement of a record below the group's start offset
        succeeds without effect.
        """
        clock = self._world.machine.clock
        pending = self._world.pending(self._group_id, partition)
        waiting = pending.waiting_since(sent_ms, clock.wall_ms(), clock.change_count)
        start_offset = self._world.group_start_offset(self._group_id, partition)
        return {offset: told_ms for offset, told_ms in waiting.items() if offset >= start_offset}

    def _check_committed(self, partition: TopicIdPartition, one: FetchedPartition) -> None:
        """A group that reads committed records gets no others."""
        if self._group_id not in self._world.scenario.groups_of_committed:
            return
        values = dict(one.records)
        for first, last, _ in one.acquired:
            for offset in range(first, last + 1):
                transaction = self._world.ordinary.transactions.by_value.get(values.get(offset) or b"")
                if transaction is not None:
                    transaction.saw(f"{self._name} {_short(partition)} {offset}")

    def _lease(
        self, partition: TopicIdPartition, pending: Pending, link: Link, log: PartitionLog | None
    ) -> Lease:
        """Records are held at least for the shortest possible lock, counted from the moment when the request
        was sent, in whole ms, as long as the same log stays open: an answer may arrive late.
        """
        durations_ms = self._world.model.group(self._group_id).lock_duration_ms.values_since(pending.sent_ms)
        return Lease(
            self._name,
            int(pending.sent_ms) + min(durations_ms),
            lambda: log is not None and self._world.log(partition) is log and not link.server.is_closing(),
        )

    async def _acknowledge(self) -> None:
        if self._member.epoch == 0:
            return
        sent = self._choose()
        if not sent.types:
            return
        pending = self._member.start_acknowledge(sent.batches(self._random))
        self._note_answer(sent, acknowledged(await self._client.answered(pending)))

    async def _close_session(self) -> None:
        """The last request of a session. Records that it does not acknowledge are released."""
        if self._member.epoch == 0:
            return
        sent = self._choose()
        self._held.clear()
        for share in self._world.model.shares_of(self._group_id):
            share.give_up(self._name)
        pending = self._member.start_acknowledge(sent.batches(self._random), epoch=-1)
        self._member.epoch = 0
        self._note_answer(sent, acknowledged(await self._client.answered(pending)))

    async def _renew(self) -> None:
        if self._member.epoch == 0 or not self._held:
            return
        partition, held = self._random.choice(list(self._held.items()))
        if self._is_in_order and self._random.random() < 0.5:
            await self._renew_all_but_the_first(partition, held)
        else:
            await self._renew_records(partition, held)

    async def _renew_all_but_the_first(self, partition: TopicIdPartition, held: Held) -> None:
        """The lock of the first record ends, and those of the others do not."""
        if held:
            del held[min(held)]
        end_ms = self._world.now_ms + _LOCK_MS
        while self._world.now_ms < end_ms and self._member.epoch and not self._world.is_ending:
            await self._renew_records(partition, self._held.get(partition, {}))
            await asyncio.sleep(self._random.uniform(200, 500) / 1000)

    async def _renew_records(self, partition: TopicIdPartition, held: Held) -> None:
        link = await self._client.connect()
        if not held:
            return
        sent = self._new_sending()
        sent.types[partition] = {offset: (RENEW, count) for offset, count in held.items()}
        sent.generations = self._generations([partition])
        log = self._world.log(partition)
        pending = self._member.start_acknowledge(sent.batches(self._random), renew=True)
        answer = acknowledged(await self._client.answered(pending))
        self._note_answer(sent, answer)
        if not answer.error and not answer.partitions.get(partition, -1):
            order = self._order(partition)
            if order is not None:
                kept = order.renewed(self._name, held, pending.sent_ms, self._world.now_ms)
                held = {one: held[one] for one in kept}
            self._share(partition).renewed(held, self._lease(partition, pending, link, log))

    async def _read_slowly(self) -> None:
        """Sends the request, and reads the answer much later."""
        link = await self._client.connect()
        link.client.pause_reading()
        fetching = asyncio.ensure_future(self._fetch())
        await asyncio.sleep(self._random.uniform(100, 2500) / 1000)
        link.client.resume_reading()
        await fetching

    # Acknowledging.

    def _choose(self, transaction: Transaction | None = None) -> Sent:
        """Acknowledgements for some of the held records, which are no longer held afterwards."""
        sent = self._new_sending()
        for partition, held in self._held.items():
            types: dict[int, tuple[int, int]] = {}
            for offset, count in held.items():
                if self._world.is_ending:
                    types[offset] = ACCEPT, count
                elif self._random.random() < 0.8:
                    types[offset] = self._random.choice(self._types), count
            if types:
                sent.types[partition] = types
                self._note_sent(sent, partition, types, transaction)
        for partition, types in sent.types.items():
            for offset in types:
                del self._held[partition][offset]
        sent.generations = self._generations(sent.types)
        return sent

    def _new_sending(self) -> Sent:
        return Sent(self._world.now_ms, self._world.machine.clock.change_count)

    def _note_sent(
        self,
        sent: Sent,
        partition: TopicIdPartition,
        types: dict[int, tuple[int, int]],
        transaction: Transaction | None,
    ) -> None:
        share = self._share(partition)
        share.give_up(self._name, types)
        order = self._order(partition)
        if transaction is not None:
            self._world.pending(self._group_id, partition).sent(types, transaction)
            if order is not None:
                share.give_up(self._name, order.sent_in_transaction(self._name, types))
            return
        if order is not None:
            sent.to_orders[partition] = order.sent(self._name, types, sent.sent_ms)
            share.give_up(self._name, sent.to_orders[partition].behind)
        for offset, (ack_type, _) in types.items():
            share.acknowledged.setdefault(offset, set()).add(ack_type)

    def _note_answer(self, sent: Sent, answer: Acknowledged) -> None:
        if answer.error:
            self._world.trace.event(f"{self._name} acknowledge: {ErrorCode(answer.error).name}")
            self._lose_session()
            return
        self._note_acknowledged(sent, answer.partitions)

    def _note_acknowledged(self, sent: Sent, errors: dict[TopicIdPartition, int]) -> None:
        for partition, types in sent.types.items():
            error = ErrorCode(errors.get(partition, ErrorCode.unknown_server_error))
            share = self._share(partition)
            self._world.trace.event(
                f"{self._name} {_short(partition)} acknowledged "
                f"{[(offset, *one) for offset, one in types.items()]}: {error.name}"
            )
            if error is ErrorCode.none and share.generation == sent.generations[partition]:
                self._note_incarnation(share)
                order = self._order(partition)
                in_force: Types = types
                if order is not None and partition in sent.to_orders:
                    in_force = order.confirmed(sent.to_orders[partition])
                share.confirm(in_force, self._world.now_ms, self._world.log_end_offset(partition))
                self._note_waits(share, sent, in_force)

    def _note_incarnation(self, share: ShareModel) -> None:
        """An answer may also arrive after the broker has ended."""
        incarnation = self._world.group_incarnation(self._group_id)
        share.incarnation = share.incarnation if incarnation is None else incarnation

    def _note_waits(self, share: ShareModel, sent: Sent, types: Types) -> None:
        """In a run of one key, a record behind a released one waits with it, however often it was delivered
        itself, and only until an administrator archives the released one.
        """
        group = self._world.model.group(self._group_id)
        for offset, (ack_type, count) in types.items():
            if ack_type == RELEASE:
                delay_ms = group.delay_ms_min(1 if self._is_in_order else count, sent.sent_ms)
                share.waits[offset] = Wait(sent.sent_ms + delay_ms - 1, sent.clock_changes)

    def _share(self, partition: TopicIdPartition) -> ShareModel:
        return self._world.model.share(self._group_id, partition)

    def _order(self, partition: TopicIdPartition) -> OrderModel | None:
        """None if the group never has an order of keys."""
        return self._world.order(self._group_id, partition) if self._is_in_order else None

    def _generations(self, partitions: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
        return {partition: self._share(partition).generation for partition in partitions}


def _short(partition: TopicIdPartition) -> str:
    return f"{partition.topic_id.hex[:4]}-{partition.partition}"
