"""Transactions of members that consume, process and produce: results for records, and the records' offsets as
ranges, committed or aborted together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import inf
from random import Random
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity, TopicIdPartition
from barnabas.protocol.record_batch import TRANSACTIONAL_FLAG, build_batch
from barnabas.protocol.record_keys.hash_range import HashRange
from tests.simulation.client import REQUEST_TIMEOUT_SECONDS, Disconnected
from tests.simulation.model import Violation
from tests.simulation.shared_offsets import codes_of, first_error, topics_of
from tests.simulation.sharer_member import Committer
from tests.simulation.transaction_model import Outcome, Transaction
from tests.simulation.transactional_producers import (
    ENDED_BY_OTHERS,
    NO_PRODUCER,
    PASSING,
    TRIES_MAX,
    StepFailed,
)
from tests.simulation.world import World

_ADDING_VERSION = 13
"""Of Produce: it adds partitions to the transaction by itself."""


class SharerTransactions:
    """One transactional id and its producers, one after another."""

    def __init__(self, world: World, name: str, transactional_id: str, random: Random) -> None:
        self._world = world
        self._model = world.ordinary.sharing
        self._id = transactional_id
        self._name = name
        self._random = random
        self._client = world.client(name)
        self._committer = world.client(f"{name}-commits")
        """A commit that waits needs a connection of its own."""
        self._timeout_ms = random.choice((1500, 3000, 6000))
        self._producer = NO_PRODUCER
        self._sequences: dict[int, int] = {}
        self._unfinished = self._model.unfinished.setdefault(transactional_id, [])
        """The transactions of the id whose effects may not be done; the last one is the current one."""

    def disconnect(self) -> None:
        self._client.disconnect()
        self._committer.disconnect()

    def forget(self) -> None:
        """The producer does not know any longer how far it is."""
        self._producer = NO_PRODUCER

    @property
    def transaction(self) -> Transaction:
        """The current one."""
        return self._unfinished[-1]

    @property
    def is_at_rest(self) -> bool:
        """Whether the outcome of the last transaction is known."""
        return self._producer != NO_PRODUCER

    async def become_producer(self) -> None:
        """InitProducerId: an open transaction is aborted, a decided one is finished."""
        for transaction in self._unfinished:
            self._model.may_end(transaction)
            if transaction.outcome is Outcome.OPEN:
                transaction.abort()
        fields = {"transactional_id": self._id, "transaction_timeout": self._timeout_ms}
        response = await self._retried("init_producer_id", None, **fields)
        self._is_now(response)
        self._conclude(list(self._unfinished))

    def _conclude(self, transactions: Sequence[Transaction]) -> None:
        """All effects of their ends are done: else the broker would begin no producer and no transaction."""
        for transaction in transactions:
            transaction.complete(self._world.now_ms)
            self._model.concluded(transaction)
            self._unfinished.remove(transaction)

    # The steps of a transaction

    def begin(self) -> Transaction:
        clock = self._world.machine.clock
        transaction = Transaction(
            f"{self._name}/{self._model.new_number()}", clock.wall_ms(), self._timeout_ms, clock.change_count
        )
        self._world.ordinary.transactions.begin(transaction)
        self._unfinished.append(transaction)
        return transaction

    async def write(self, partition: int, records: Sequence[tuple[bytes | None, bytes]]) -> None:
        """Results with their keys."""
        results = self._world.results
        if results is None:
            raise StepFailed
        batch = build_batch(
            0,
            records,
            leader_epoch=-1,
            timestamp_ms=self._world.machine.clock.wall_ms(),
            attributes=TRANSACTIONAL_FLAG,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            base_sequence=self._sequences.get(partition, 0),
        )
        data = {
            "topic_id": results.topic_id,
            "partition_data": [{"index": partition, "records": batch}],
        }
        await self._retried("produce", _ADDING_VERSION, transactional_id=self._id, acks=-1, topic_data=[data])
        self._conclude(self._unfinished[:-1])
        self._sequences[partition] = self._sequences.get(partition, 0) + len(records)

    async def commit_ranges(
        self,
        member: Committer,
        shares: Mapping[TopicIdPartition, HashRange],
        offsets: Mapping[TopicIdPartition, Sequence[int]],
    ) -> None:
        """TxnOffsetCommit. In a group that commits in order it waits."""
        transaction, sent_ms = self.transaction, self._world.now_ms
        incarnation = self._world.ordinary.incarnation
        opened = self._model.opens(member.member_id, shares, offsets, transaction)
        # The end of a transaction that a power failure may have removed decides nothing.
        since_ms = sent_ms if transaction.outcome is Outcome.LOST else inf
        sent = {one: self._model.ranges(one).send(ones, since_ms) for one, ones in offsets.items()}
        for commit in sent.values():
            commit.is_transactional = True
        transaction.ranges += [(self._model.ranges(one), commit) for one, commit in sent.items()]
        for _ in range(TRIES_MAX):
            response = await self._wait_for_commit(member, topics_of(sent, -1))
            code = first_error(codes_of(response.topics))
            self._note("commits ranges", code)
            if code is ErrorCode.none:
                break
            self._check_passing(code)
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        else:
            raise StepFailed
        self._conclude(self._unfinished[:-1])
        if incarnation != self._world.ordinary.incarnation:
            return
        now_ms = self._world.now_ms
        for one in opened:
            one.told_ms = now_ms
        for partition, hashes in shares.items():
            self._model.members.committed(member.member_id, partition, hashes, sent_ms=sent_ms, now_ms=now_ms)
        if self._world.scenario.shares_in_order:
            for partition, ranges_commit in sent.items():
                self._model.ranges(partition).reached(ranges_commit)

    async def _wait_for_commit(self, member: Committer, topics: list[dict[str, Any]]) -> Any:
        client = self._committer if self._world.scenario.shares_in_order else self._client
        await client.connect()
        was_calm = self._world.is_calm
        pending = client.send(
            "txn_offset_commit",
            None,
            **self._who(),
            group_id=self._model.name,
            member_id=member.member_id,
            generation_id=member.epoch,
            topics=topics,
        )
        try:
            return await client.answered(pending, REQUEST_TIMEOUT_SECONDS + self._timeout_ms / 1000)
        except Disconnected:
            waited_ms = self._world.now_ms - pending.sent_ms
            if was_calm and waited_ms > self._timeout_ms:
                raise Violation(f"{self._name}: a commit has no answer after {waited_ms} ms") from None
            raise

    async def end(self, *, commit: bool) -> bool:
        """Returns whether the transaction is surely committed; raises StepFailed if that is unknown."""
        transaction = self.transaction
        self._model.may_end(transaction)
        if commit:
            transaction.committing(self._world.now_ms)
        else:
            transaction.abort()
        was_lost = False
        for _ in range(TRIES_MAX):
            try:
                response = await self._client.ask("end_txn", 5, **self._who(), committed=commit)
            except Disconnected:
                was_lost = True
                await asyncio.sleep(self._random.uniform(0.02, 0.3))
                continue
            code = response.error_code
            self._note(f"{'commits' if commit else 'aborts'} {transaction.name}", code)
            if code is ErrorCode.none:
                if commit:
                    transaction.commit()
                self._is_now(response)
                return commit
            if code in ENDED_BY_OTHERS and not was_lost:
                transaction.abort()
            self._check_passing(code)
            was_lost |= code is not ErrorCode.concurrent_transactions
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        raise StepFailed

    # Requests

    async def _retried(self, api: str, version: int | None, **values: Any) -> Any:
        """The successful response, after as many tries as a client makes."""
        for _ in range(TRIES_MAX):
            response = await self._client.ask(api, version, **values)
            code = _code_of(response)
            self._note(api, code)
            if code is ErrorCode.none:
                return response
            self._check_passing(code)
            await asyncio.sleep(self._random.uniform(0.02, 0.2))
        raise StepFailed

    def _who(self) -> dict[str, Any]:
        return {
            "transactional_id": self._id,
            "producer_id": self._producer.producer_id,
            "producer_epoch": self._producer.producer_epoch,
        }

    def _is_now(self, response: Any) -> None:
        self._producer = ProducerIdentity(response.producer_id, response.producer_epoch)
        self._sequences.clear()

    def _check_passing(self, code: ErrorCode) -> None:
        if code not in PASSING:
            raise StepFailed

    def _note(self, what: str, code: ErrorCode) -> None:
        self._world.trace.event(f"{self._name} {what}: {code.name}")


def _code_of(response: Any) -> ErrorCode:
    if hasattr(response, "responses"):
        return ErrorCode(response.responses[0].partition_responses[0].error_code)
    return ErrorCode(response.error_code)
