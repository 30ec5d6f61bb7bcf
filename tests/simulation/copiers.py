"""Members of share groups that acknowledge some of their records in transactions, beside records that they
produce (docs/decisions/0030-acknowledgements-in-transactions.md).

Each has a transactional id of its own. It commits, aborts or abandons its transactions, as the producers in
`transactional_producers` do, loses the answers to its acknowledgements, and sends some when its producer was
replaced. Outside of transactions it is a member like the others.
"""

from __future__ import annotations

from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.identity import ProducerIdentity
from tests.conformance.acknowledging_in_transactions import start_all
from tests.conformance.share_member import Acknowledged, acknowledged
from tests.simulation.client import Disconnected
from tests.simulation.consumers import Consumer, Sent
from tests.simulation.model import Violation
from tests.simulation.transaction_model import Outcome, Transaction
from tests.simulation.transactional_producers import NO_PRODUCER, StepFailed, TransactionalProducer
from tests.simulation.world import World

_CERTAIN = frozenset({ErrorCode.none, ErrorCode.invalid_record_state})
"""The answers after which each acknowledgement has joined the transaction, or never will."""


class Copier(Consumer):
    """One member of one group, and its producer."""

    def __init__(self, world: World, group_id: str, number: int) -> None:
        super().__init__(world, group_id, number)
        self._producer = _CopyingProducer(world, self, f"copier-{self._name}")

    async def _acknowledge(self) -> None:
        if self._random.random() < 0.8 and any(self._held.values()):
            await self._producer.work()
        else:
            await super()._acknowledge()

    async def join(self, transaction: Transaction, named: AcknowledgingTransaction) -> None:
        """Acknowledges some of the records in the transaction. Raises `StepFailed` or `Disconnected` if they
        may or may not have joined it.
        """
        sent = self._choose(transaction)
        if self._member.epoch == 0 or not sent.types:
            return
        transaction.is_begun = True
        try:
            await self._client.connect()
            pending = start_all(self._client, self._member, named, sent.batches(self._random))
            answer = acknowledged(await self._client.answered(pending))
        except Disconnected:
            self._client.disconnect()
            self._lose_session()
            raise
        if answer.error:
            self._world.trace.event(f"{self._name} acknowledges: {ErrorCode(answer.error).name}")
            self._lose_session()
            raise StepFailed
        self._note_joined(transaction, sent, answer)

    def _note_joined(self, transaction: Transaction, sent: Sent, answer: Acknowledged) -> None:
        codes = {one: ErrorCode(code) for one, code in answer.partitions.items()}
        for partition, types in sent.types.items():
            share, code = self._share(partition), codes[partition]
            self._world.trace.event(
                f"{self._name} {partition.topic_id.hex[:4]}-{partition.partition} acknowledged "
                f"{[(offset, *one) for offset, one in types.items()]} in {transaction.name}: {code.name}"
            )
            if code is ErrorCode.none and transaction.outcome is Outcome.ABORTED:
                raise Violation(f"{self._name}: a replaced producer acknowledges {sorted(types)}")
            if code is ErrorCode.none and share.generation == sent.generations[partition]:
                self._note_incarnation(share)
                self._world.pending(self._group_id, partition).joined(types, transaction, self._world.now_ms)
        if not _CERTAIN.issuperset(codes.values()):
            raise StepFailed


class _CopyingProducer(TransactionalProducer):
    """The producer of one member. It does one thing at a time, when the member calls it."""

    def __init__(self, world: World, member: Copier, transactional_id: str) -> None:
        super().__init__(world, transactional_id, group_id="")
        self._member = member
        self._rests_until_ms = 0.0

    async def work(self) -> None:
        """One transaction, or a part of it."""
        if self._world.now_ms < self._rests_until_ms:
            return
        try:
            if self._producer == NO_PRODUCER:
                await self._become_producer()
            elif self._random.random() < 0.1:
                await self._be_replaced()
            await self._run_transaction()
        except (Disconnected, StepFailed):
            self._client.disconnect()
            self._producer = NO_PRODUCER

    async def _take_step(self, transaction: Transaction) -> None:
        if self._random.random() < 0.5:
            await self._produce(transaction)
        else:
            await self._member.join(transaction, self._named(self._producer))

    async def _abandon(self, transaction: Transaction) -> None:
        """The member goes on meanwhile, but begins no other transaction for a while."""
        self._note(f"abandons {transaction.name}", ErrorCode.none)
        transaction.abort()
        self._rests_until_ms = self._world.now_ms + self._random.uniform(0, 2 * self._timeout_ms)
        raise StepFailed

    async def _be_replaced(self) -> None:
        """Another producer takes the id over; acknowledgements of this one must be refused."""
        before = self._producer
        await self._become_producer()
        clock = self._world.machine.clock
        none = Transaction(f"{self._id}/fenced", clock.wall_ms(), self._timeout_ms, clock.change_count)
        none.abort()
        await self._member.join(none, self._named(before))

    def _named(self, producer: ProducerIdentity) -> AcknowledgingTransaction:
        return AcknowledgingTransaction(self._id, producer)
