"""The transactions of one producer (KIP-98, KIP-360): the allowed steps, and the contents of a transaction.

    phase        meaning                                      allowed
    NEW          the transactional id is not registered yet   initialise
    READY        no transaction is open                       begin
    OPEN         a transaction is open                        produce, acknowledge, commit, abort
    FAILED       a step failed; see `cause`                   abort
    COMMITTING   the commit's answer is missing               commit again
    FENCED       another producer has taken over              -

The broker learns of a transaction with its first partition, so an empty one needs no request at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NoReturn

from barnabas.client.errors import (
    AcknowledgeError,
    BrokerError,
    BrokerUnavailableError,
    CommitFailedError,
    ConsumerError,
    MisuseError,
    ProduceError,
    ProducerFencedError,
    TransactionAbortedError,
)
from barnabas.client.group.offsets import CommittedOffset, GroupMetadata
from barnabas.client.produce import transaction_acknowledgements
from barnabas.client.produce.batch_delivery import BatchDelivery
from barnabas.client.produce.producer_options import ProducerSettings
from barnabas.client.produce.transactions import Transactions, Writer
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.record import ClaimedRecord
from barnabas.client.topic_partition import TopicPartition
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.errors import ErrorCode

_FENCED: Final = frozenset(
    {
        ErrorCode.producer_fenced,
        ErrorCode.invalid_producer_epoch,
        # After the broker was killed, the next producer of a transactional id gets a new producer id.
        ErrorCode.invalid_producer_id_mapping,
    }
)
_REMOVED: Final = frozenset(
    {
        ErrorCode.illegal_generation,
        ErrorCode.stale_member_epoch,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
    }
)
_FENCED_BECAUSE: Final = (
    "another producer uses this transactional id, the transaction was open for longer than "
    "transaction_timeout_ms, or the broker has forgotten the id, which was not used for a long time; "
    "close this producer"
)


class Phase(Enum):
    NEW = auto()
    READY = auto()
    OPEN = auto()
    FAILED = auto()
    COMMITTING = auto()
    FENCED = auto()


class ProducerTransaction:
    """The transactions of one transactional id, one after the other."""

    def __init__(
        self, transactions: Transactions, delivery: BatchDelivery, settings: ProducerSettings
    ) -> None:
        self.phase = Phase.NEW
        self.cause: Exception | None = None
        """The error of the step that failed."""
        self._transactions = transactions
        self._delivery = delivery
        self._settings = settings
        self._added: set[TopicPartition] = set()
        self._has_offsets = False
        self._has_acknowledgements = False
        self._unconfirmed_count = 0
        """Calls whose acknowledgements may or may not have joined the transaction."""
        self._adding = asyncio.Lock()
        self._committing_ranges = asyncio.Lock()

    async def initialise(self) -> None:
        """Register the transactional id: fences its former producer, and aborts that one's transaction."""
        self._require("init_transactions", Phase.NEW)
        self._delivery.become(await self._begin(None))
        self.phase = Phase.READY

    def begin(self) -> None:
        self._require("begin_transaction", Phase.READY)
        self.phase = Phase.OPEN

    def check_send(self) -> None:
        """Raises `TransactionAbortedError` or `ProducerFencedError` if nothing can be produced any more."""
        self._require("send", Phase.OPEN)

    async def add(self, partition: TopicPartition) -> None:
        """Add a partition before its first batch is produced; raises the errors of `check_send`."""
        self._require("send", Phase.OPEN)
        async with self._adding:
            if partition in self._added:
                return
            await self._transactions.add(self._delivery.writer, {partition.topic: [partition.partition]})
            self._added.add(partition)

    async def add_offsets(
        self, offsets: Mapping[TopicPartition, CommittedOffset], group: GroupMetadata
    ) -> None:
        """Add a group's offsets. After an error only an abort is possible."""
        await self._add_to_group(
            lambda: self._transactions.commit_offsets(self._delivery.writer, group, offsets), group
        )

    async def add_ranges(
        self, ranges: Mapping[TopicPartition, Sequence[OffsetRange]], group: GroupMetadata
    ) -> None:
        """Add ranges that are committed individually; the same errors as `add_offsets`."""
        timeout_ms = self._settings.transaction_timeout_ms
        async with self._committing_ranges:
            await self._add_to_group(
                lambda: self._transactions.commit_ranges(self._delivery.writer, group, ranges, timeout_ms),
                group,
            )

    async def _add_to_group(self, commit: Callable[[], Awaitable[None]], group: GroupMetadata) -> None:
        self._require("send_offsets_to_transaction", Phase.OPEN)
        try:
            self._has_offsets = True
            await commit()
        except BrokerError as error:
            if error.code in _REMOVED:
                failure = CommitFailedError(group.group_id, f"the answer is {error.code.name}")
                self.note_failure(failure)
                raise failure from error
            if error.code is ErrorCode.transaction_abortable:
                self.note_failure(error)
                raise TransactionAbortedError(error) from error
            self._fail(error)
        except BrokerUnavailableError as error:
            self._fail(error)

    async def add_acknowledgements(
        self, records: Sequence[ClaimedRecord], acknowledge_type: AcknowledgeType
    ) -> None:
        """Acknowledge records of share consumers. After an error only an abort is possible."""
        self._require("acknowledge", Phase.OPEN)
        transaction_acknowledgements.check(records, acknowledge_type)
        if not records:
            return  # the broker learns of a transaction with its first record
        self._has_acknowledgements = True
        self._unconfirmed_count += 1
        try:
            await transaction_acknowledgements.settle(records, acknowledge_type, self._delivery.writer)
        except AcknowledgeError as error:
            self._fail(error)
        except asyncio.CancelledError:
            self.note_failure(ConsumerError("A call of acknowledge was cancelled."))
            raise
        self._unconfirmed_count -= 1

    def check_commit(self) -> None:
        """Raises the error that prevents a commit."""
        self._require("commit_transaction", Phase.OPEN, Phase.COMMITTING)

    async def commit(self) -> None:
        """Commit, once all records are delivered; it can be repeated after `BrokerUnavailableError`."""
        self.check_commit()
        self.phase = Phase.COMMITTING
        await self._end(commit=True)
        self._become_ready()

    async def abort(self, *, needs_new_epoch: bool) -> None:
        """Abort, once no record is in flight. `needs_new_epoch` if a batch may or may not be written."""
        self._require("abort_transaction", Phase.OPEN, Phase.FAILED)
        self.phase = Phase.FAILED
        await self._end(commit=False)
        # A late acknowledgement of the old epoch is refused, so it cannot join the next transaction.
        if needs_new_epoch or self._unconfirmed_count:
            self._delivery.become(await self._begin(self._delivery.writer))
        self._become_ready()

    def note_failure(self, error: Exception) -> None:
        """A step has failed."""
        if isinstance(error, BrokerError | ProduceError | AcknowledgeError) and error.code in _FENCED:
            self.phase = Phase.FENCED
        elif self.phase in {Phase.OPEN, Phase.FAILED}:
            self.phase = Phase.FAILED
        self.cause = self.cause or error

    async def _begin(self, current: Writer | None) -> Writer:
        settings = self._settings
        assert settings.transactional_id is not None, "only a transactional producer has transactions"
        try:
            return await self._transactions.begin(
                settings.transactional_id, settings.transaction_timeout_ms, current
            )
        except BrokerError as error:
            self._fail(error)

    async def _end(self, *, commit: bool) -> None:
        if self._added or self._has_offsets or self._has_acknowledgements:
            try:
                await self._transactions.end(self._delivery.writer, commit=commit)
            except BrokerError as error:
                if commit:
                    self.phase = Phase.FAILED
                elif self._unconfirmed_count and error.code is ErrorCode.invalid_txn_state:
                    return  # the acknowledgements that would have begun it have not arrived
                self._fail(error)

    def _become_ready(self) -> None:
        self._added.clear()
        self._has_offsets = False
        self._has_acknowledgements = False
        self._unconfirmed_count = 0
        self.cause = None
        self.phase = Phase.READY

    def _fail(self, error: Exception) -> NoReturn:
        self.note_failure(error)
        if self.phase is Phase.FENCED:
            raise _fenced() from error
        raise error

    def _require(self, step: str, *phases: Phase) -> None:
        if self.phase in phases:
            return
        if self.phase is Phase.FENCED:
            raise _fenced()
        if self.phase is Phase.FAILED:
            assert self.cause is not None, "a transaction fails with an error"
            raise TransactionAbortedError(self.cause)
        raise MisuseError(_MISUSES[self.phase].format(step=step))


def _fenced() -> ProducerFencedError:
    return ProducerFencedError(ErrorCode.producer_fenced, _FENCED_BECAUSE)


_MISUSES: Final = {
    Phase.NEW: "{step}: call init_transactions first.",
    Phase.READY: "{step}: no transaction is open; call begin_transaction first.",
    Phase.OPEN: "{step}: a transaction is open.",
    Phase.COMMITTING: "{step}: the result of the commit is unknown; call commit_transaction again.",
}
