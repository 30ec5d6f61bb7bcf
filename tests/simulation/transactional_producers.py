"""Producers of transactions: records in several partitions, and a group's offsets, committed or aborted
together.

Older ones add partitions and offsets themselves, newer ones leave that to the broker (KIP-890). They repeat a
request to end whose answer was lost, abandon transactions to their timeout, and come back under the same id.
Sometimes a replaced producer goes on writing, which must have no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG
from tests.simulation.client import Disconnected
from tests.simulation.group_offsets import GroupOffsets
from tests.simulation.model import Violation
from tests.simulation.transaction_model import Outcome, Transaction
from tests.simulation.world import LEDGER_TOPIC, World

_PAUSE_SECONDS_MAX = 0.3
TRIES_MAX = 6
_STEPS_MAX = 4
_BATCH_SIZES = (1, 1, 2, 5)
NO_PRODUCER = ProducerIdentity(-1, -1)
PASSING = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_enough_replicas,
        ErrorCode.kafka_storage_error,
        ErrorCode.not_leader_or_follower,
        ErrorCode.request_timed_out,
    }
)
ENDED_BY_OTHERS = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.invalid_producer_id_mapping,
        ErrorCode.invalid_txn_state,
    }
)


class _Versions(NamedTuple):
    """The versions of requests whose newer versions have another meaning."""

    produce: int
    txn_offset_commit: int
    end_txn: int


_OLDER, _NEWER = _Versions(11, 4, 4), _Versions(13, 5, 5)


class StepFailed(Exception):  # noqa: N818  named as the condition
    """A step of a transaction was refused or not answered."""


class TransactionalProducer:
    """One transactional id and its producers."""

    def __init__(self, world: World, transactional_id: str, group_id: str) -> None:
        """`group_id` is the group for which it commits offsets."""
        self._world = world
        self._id = transactional_id
        self.group_id = group_id
        self._random = world.random(self._id)
        self._client = world.client(self._id)
        self._offsets = GroupOffsets(world, self.group_id, self._client)
        self._versions = _NEWER if self._random.random() < 0.6 else _OLDER
        self._timeout_ms = self._random.choice((1000, 2500, 6000))
        self._values = count()
        self._numbers = count()
        self._producer = NO_PRODUCER
        self._sequences: dict[TopicIdPartition, int] = {}
        self._transaction: Transaction | None = None
        """The last transaction, until all its effects are done."""

    async def run(self) -> None:
        while not self._world.is_ending:
            await asyncio.sleep(self._random.uniform(0.02, _PAUSE_SECONDS_MAX))
            try:
                await self._work()
            except (Disconnected, StepFailed):
                self._client.disconnect()
                self._producer = NO_PRODUCER

    async def _work(self) -> None:
        if self._producer == NO_PRODUCER:
            await self._become_producer()
        chance = self._random.random()
        if chance < 0.08:
            await self._be_replaced()
        elif chance < 0.85:
            await self._run_transaction()
        else:
            await self._look_up_offsets()

    async def _become_producer(self) -> None:
        """InitProducerId: an open transaction is aborted, a decided one is finished."""
        if self._transaction is not None and self._transaction.outcome is Outcome.OPEN:
            self._transaction.abort()
        for _ in range(TRIES_MAX):
            response = await self._client.ask(
                "init_producer_id", transactional_id=self._id, transaction_timeout=self._timeout_ms
            )
            self._note("initialises", response.error_code)
            if response.error_code is ErrorCode.none:
                self._producer = ProducerIdentity(response.producer_id, response.producer_epoch)
                self._sequences.clear()
                self._conclude()
                return
            self._check_passing(response.error_code)
            await asyncio.sleep(self._random.uniform(0.02, 0.3))
        raise StepFailed

    def _conclude(self) -> None:
        """The id is at rest: if the last transaction is not committed by now, it never will be."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction.complete(self._world.now_ms)

    # A transaction.

    async def _run_transaction(self) -> None:
        clock = self._world.machine.clock
        transaction = self._transaction = Transaction(
            f"{self._id}/{next(self._numbers)}", clock.wall_ms(), self._timeout_ms, clock.change_count
        )
        self._world.ordinary.transactions.begin(transaction)
        try:
            for _ in range(self._random.randint(1, _STEPS_MAX)):
                await self._take_step(transaction)
                await asyncio.sleep(self._random.uniform(0, _PAUSE_SECONDS_MAX))
        except StepFailed:
            await self._end(transaction, commit=False)
            return
        chance = self._random.random()
        if not transaction.is_begun:
            self._transaction = None
        elif chance < 0.1:
            await self._abandon(transaction)
        else:
            await self._end(transaction, commit=chance < 0.75)

    async def _take_step(self, transaction: Transaction) -> None:
        if self._random.random() < 0.7:
            await self._produce(transaction)
        else:
            await self._commit_offsets(transaction)

    async def _produce(self, transaction: Transaction) -> None:
        partition = self._any_partition()
        if partition is None:
            return
        values = [
            f"{self._id}/{next(self._values)}".encode() for _ in range(self._random.choice(_BATCH_SIZES))
        ]
        if self._versions is _OLDER:
            await self._add_partition(partition)
        known = self._world.model.partition(partition)
        known.sent.update(values)
        by_value = self._world.ordinary.transactions.by_value
        by_value.update(dict.fromkeys(values, transaction))
        generation = known.generation
        request = self._produce_request(partition, values)
        transaction.is_begun = True
        for _ in range(TRIES_MAX):
            response = await self._client.ask("produce", self._versions.produce, **request)
            answer = response.responses[0].partition_responses[0]
            self._note(f"{partition.topic_id.hex[:4]}-{partition.partition} {len(values)}", answer.error_code)
            if answer.error_code is ErrorCode.none:
                self._sequences[partition] = self._sequences.get(partition, 0) + len(values)
                if known.generation == generation and not known.is_deleted:
                    known.confirm(answer.base_offset, values)
                    self._world.ordinary.transactions.confirm(
                        transaction, partition, answer.base_offset, len(values), self._world.now_ms
                    )
                return
            self._check_passing(answer.error_code)
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        raise StepFailed

    def _produce_request(self, partition: TopicIdPartition, values: list[bytes]) -> dict[str, Any]:
        keyed = self._world.keys.records(values)
        records = self._world.batches.batch(
            keyed,
            self._world.machine.clock.wall_ms(),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._sequences.get(partition, 0),
        )
        data = {
            "name": LEDGER_TOPIC,
            "topic_id": partition.topic_id,
            "partition_data": [{"index": partition.partition, "records": records}],
        }
        return {"transactional_id": self._id, "acks": -1, "topic_data": [data]}

    async def _add_partition(self, partition: TopicIdPartition) -> None:
        topic = {"name": LEDGER_TOPIC, "partitions": [partition.partition]}
        await self._retried(
            "add_partitions_to_txn",
            3,
            lambda one: one.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer.producer_id,
            v3_and_below_producer_epoch=self._producer.producer_epoch,
            v3_and_below_topics=[topic],
        )

    async def _commit_offsets(self, transaction: Transaction) -> None:
        ledger = self._world.ledger
        if ledger is None:
            return
        partition = self._random.choice(ledger.partitions)
        if self._versions is _OLDER:
            await self._retried(
                "add_offsets_to_txn",
                None,
                lambda one: one.error_code,
                **self._who(),
                group_id=self.group_id,
            )
        model = self._world.ordinary.committed(self.group_id, partition)
        commit = model.send(inf)
        transaction.is_begun = True
        transaction.offsets.append((model, commit))
        asked = {"partition_index": partition.partition, "committed_offset": commit.offset}
        await self._retried(
            "txn_offset_commit",
            self._versions.txn_offset_commit,
            lambda one: one.topics[0].partitions[0].error_code,
            **self._who(),
            group_id=self.group_id,
            generation_id=-1,
            topics=[{"name": ledger.name, "partitions": [asked]}],
        )
        transaction.pending.setdefault(model, self._world.now_ms)

    async def _retried(
        self, api: str, version: int | None, code_of: Callable[[Any], ErrorCode], **values: Any
    ) -> Any:
        """The successful response, after as many tries as a client makes."""
        for _ in range(TRIES_MAX):
            response = await self._client.ask(api, version, **values)
            code = code_of(response)
            if code is ErrorCode.none:
                return response
            self._note(api, code)
            self._check_passing(code)
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        raise StepFailed

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        if commit:
            transaction.committing(self._world.now_ms)
        else:
            transaction.abort()
        was_lost = False
        for _ in range(TRIES_MAX):
            try:
                response = await self._client.ask(
                    "end_txn", self._versions.end_txn, **self._who(), committed=commit
                )
            except Disconnected:
                was_lost = True
                await asyncio.sleep(self._random.uniform(0.02, 0.3))
                continue
            self._note(f"{'commits' if commit else 'aborts'} {transaction.name}", response.error_code)
            if response.error_code is ErrorCode.none:
                await self._ended(transaction, response, commit=commit)
                return
            if response.error_code in ENDED_BY_OTHERS and not was_lost:
                transaction.abort()
            self._check_passing(response.error_code)
            was_lost |= response.error_code is not ErrorCode.concurrent_transactions
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        raise StepFailed

    async def _ended(self, transaction: Transaction, response: Any, *, commit: bool) -> None:
        if commit:
            transaction.commit()
        if self._versions is _NEWER:
            self._producer = ProducerIdentity(response.producer_id, response.producer_epoch)
            self._sequences.clear()
        if await self._is_complete():
            self._conclude()

    async def _is_complete(self) -> bool:
        response = await self._client.ask("describe_transactions", transactional_ids=[self._id])
        return str(response.transaction_states[0].transaction_state).startswith("Complete")

    async def _abandon(self, transaction: Transaction) -> None:
        """Sends nothing more: the coordinator aborts the transaction after its timeout."""
        self._note(f"abandons {transaction.name}", ErrorCode.none)
        transaction.abort()
        await asyncio.sleep(self._random.uniform(0, 2 * self._timeout_ms / 1000))
        raise StepFailed

    # Outside of transactions.

    async def _be_replaced(self) -> None:
        """Another producer takes the id over; no reader may ever see later records of this one."""
        before, partition = self._producer, self._any_partition()
        await self._become_producer()
        if partition is None or self._versions is _OLDER:
            return
        after, self._producer = self._producer, before
        request = self._produce_request(partition, [f"{self._id}/fenced".encode()])
        self._producer = after
        response = await self._client.ask("produce", self._versions.produce, **request)
        code = response.responses[0].partition_responses[0].error_code
        self._note("writes though it was replaced", code)
        if code is ErrorCode.none:
            raise Violation(f"{self._id}: {before} was replaced by {after}, but writes")

    async def _look_up_offsets(self) -> None:
        ledger = self._world.ledger
        if ledger is not None:
            await self._offsets.fetch(ledger.partitions, require_stable=self._random.random() < 0.5)

    def _any_partition(self) -> TopicIdPartition | None:
        """Older producers address topics by name, and another topic may get the same name; this cannot happen
        to the ledger.
        """
        ledger = self._world.ledger
        topics = list(self._world.topics.values()) if self._versions is _NEWER else []
        if ledger is not None:
            topics.append(ledger)
        return self._random.choice(self._random.choice(topics).partitions) if topics else None

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self._id,
            "producer_id": self._producer.producer_id,
            "producer_epoch": self._producer.producer_epoch,
        }

    def _check_passing(self, code: ErrorCode) -> None:
        if code not in PASSING:
            raise StepFailed

    def _note(self, what: str, code: ErrorCode) -> None:
        self._world.trace.event(f"{self._id} {what}: {code.name}")
