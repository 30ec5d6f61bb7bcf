"""A record as its reader gets it: its content, and the methods that acknowledge it (KIP-932).

    async with record:              accepts it at the end, releases it if an exception leaves the block
    record.accept()                 the record is processed
    record.release()                deliver it again, to any member
    record.release(delay=...)       the same, but not before this time (a `timedelta`) is over
    record.reject()                 never deliver it again
    await record.renew()            more time

`accept`, `release` and `reject` only queue the acknowledgement: the broker receives it within moments, and
`ShareConsumer.commit` waits for its answer. A lock may end, or the consumer may close and release the record,
before the reader acknowledges it. That is no error of the reader: the acknowledgement then has no effect, and
the outcome reports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import Final, Generic, NamedTuple, Protocol, Self

from barnabas.client.errors import AcknowledgeError, MisuseError
from barnabas.client.record_content import Content, Headers, KeyT, ValueT
from barnabas.client.share.acknowledgements import AcknowledgeType
from barnabas.client.share.held_record import HeldRecord, RecordState, Run
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.identity import TopicIdPartition

RELEASE_DELAY_MAX: Final = timedelta(days=1)
"""The longest delay that any group can allow."""


class Outcome(NamedTuple):
    """The result of some acknowledgements of a partition: `error` is None if the broker accepted them.

    `offsets` are ascending.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    error: AcknowledgeError | None


class Holder(Protocol):
    """Acknowledges on behalf of a record."""

    @property
    def is_implicit(self) -> bool:
        """Whether the consumer acknowledges instead of the reader."""
        ...

    def rejects(self, error: BaseException) -> bool:
        """Whether this exception means that no consumer will ever be able to process the record."""
        ...

    def settle(
        self, record: HeldRecord, acknowledge_type: AcknowledgeType, delay_ms: int | None = None
    ) -> None: ...

    async def settle_in_transaction(
        self,
        records: Sequence[HeldRecord],
        acknowledge_type: AcknowledgeType,
        transaction: AcknowledgingTransaction,
    ) -> None:
        """Have the broker add the acknowledgements to the transaction."""
        ...

    async def renew(self, record: HeldRecord) -> None: ...


class ClaimedRecord(HeldRecord):
    """A record that the broker has locked, with the object that acknowledges it."""

    __slots__ = ("_holder",)

    def __init__(
        self,
        topic_id_partition: TopicIdPartition,
        offset: int,
        delivery_count: int,
        acquired_at_ms: int,
        lock_deadline_ms: int,
        holder: Holder,
        run: Run | None = None,
    ) -> None:
        super().__init__(topic_id_partition, offset, delivery_count, acquired_at_ms, lock_deadline_ms, run)
        self._holder = holder

    @property
    def holder(self) -> Holder:
        """Acknowledges the record; not for readers."""
        return self._holder


class ShareRecord(ClaimedRecord, Generic[KeyT, ValueT]):
    """One delivery of one record. `delivery_count` includes this delivery, so the first is 1."""

    __slots__ = ("_content", "topic")

    def __init__(
        self,
        topic: str,
        topic_id_partition: TopicIdPartition,
        offset: int,
        delivery_count: int,
        acquired_at_ms: int,
        lock_deadline_ms: int,
        content: Content[KeyT, ValueT],
        holder: Holder,
        run: Run | None = None,
    ) -> None:
        super().__init__(
            topic_id_partition, offset, delivery_count, acquired_at_ms, lock_deadline_ms, holder, run
        )
        self.topic = topic
        self._content = content

    @property
    def partition(self) -> int:
        return self.topic_id_partition.partition

    @property
    def key(self) -> KeyT:
        return self._content.key

    @property
    def value(self) -> ValueT:
        return self._content.value

    @property
    def headers(self) -> Headers:
        """Names and values, in the producer's order; a name may occur more than once."""
        return self._content.headers

    @property
    def timestamp_ms(self) -> int:
        return self._content.timestamp_ms

    @property
    def is_held(self) -> bool:
        """Whether the consumer believes that the record is locked for it, and it is not acknowledged yet."""
        return self.state is RecordState.HELD

    def accept(self) -> None:
        """The record is processed.

        Raises `MisuseError` if it was acknowledged before, and in implicit mode.
        """
        self._settle(AcknowledgeType.ACCEPT)

    def release(self, *, delay: timedelta | None = None) -> None:
        """Deliver the record again, unless its delivery limit is reached; raises the errors of `accept`.

        Without `delay` it is delivered as soon as the group's `share.retry.backoff.ms` allows, with a delay
        of 0 at once. Raises `MisuseError` for a delay that is negative or longer than a day, and
        `UnsupportedBrokerError` if the broker does not know delays, such as Apache Kafka. The broker refuses
        the release if the delay is longer than the group's `share.retry.backoff.max.ms`; the outcome reports
        that.
        """
        if delay is None:
            self._settle(AcknowledgeType.RELEASE)
            return
        if not timedelta() <= delay <= RELEASE_DELAY_MAX:
            raise MisuseError(f"A delay must be from 0 to {RELEASE_DELAY_MAX}, not {delay}.")
        self._settle(AcknowledgeType.RELEASE, -(-delay // timedelta(milliseconds=1)))

    def reject(self) -> None:
        """Never deliver the record again; raises the errors of `accept`."""
        self._settle(AcknowledgeType.REJECT)

    async def renew(self) -> None:
        """Start the lock again (KIP-1222).

        Raises `AcknowledgeError` if the broker refuses or the lock has ended, `UnsupportedBrokerError` if the
        broker does not support renewal, and `MisuseError` if the record was acknowledged before. After an
        error the lock is unchanged.
        """
        if self.state is RecordState.SETTLED:
            raise MisuseError(f"{self} was acknowledged before.")
        await self._holder.renew(self)

    def accept_delivered(self) -> None:
        """Accepts the record for a consumer in implicit mode; not for readers."""
        if self.state is RecordState.HELD:
            self._holder.settle(self, AcknowledgeType.ACCEPT)

    def release_unread(self) -> None:
        """Releases the record for a consumer whose reader has not seen it; not for readers.

        It asks for no delay, because the record has not failed.
        """
        if self.state is RecordState.HELD:
            self._holder.settle(self, AcknowledgeType.RELEASE, 0)

    def __repr__(self) -> str:
        return f"<ShareRecord {self.topic}-{self.partition}@{self.offset} {self.state.name.lower()}>"

    async def __aenter__(self) -> Self:
        if self._holder.is_implicit:
            raise MisuseError("In implicit mode records are accepted by the next poll.")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Acknowledges the record if the block did not; an exception is raised further."""
        if self.state is RecordState.SETTLED:
            return
        if error is None:
            self.accept()
        elif self._holder.rejects(error):
            self.reject()
        else:
            self.release()

    def _settle(self, acknowledge_type: AcknowledgeType, delay_ms: int | None = None) -> None:
        if self._holder.is_implicit:
            raise MisuseError("In implicit mode records are accepted by the next poll.")
        if self.state is RecordState.SETTLED:
            raise MisuseError(f"{self} was acknowledged before.")
        self._holder.settle(self, acknowledge_type, delay_ms)
