"""A record in its reader's hands: what it says, and what can be said of it.

    async with record:              accepts it at the end, releases it if an exception leaves the block
    record.accept()                 done
    record.release()                to be delivered again, here or elsewhere
    record.reject()                 never to be delivered again
    await record.renew()            more time

Accepting, releasing and rejecting only note what is to be told: the broker hears of it within moments, and
`ShareConsumer.commit` waits for it. A record whose lock has ended before, or that was released because the
consumer was closed meanwhile, is nobody's fault: acknowledging it does nothing, and the outcome says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from barnabas.client.acknowledgements import AcknowledgeType
from barnabas.client.errors import AcknowledgeError, MisuseError
from barnabas.client.held_record import HeldRecord, RecordState
from barnabas.protocol.identity import TopicIdPartition

Headers = tuple[tuple[str, bytes | None], ...]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Outcome(NamedTuple):
    """How some of a partition's acknowledgements were taken: `error` is None if they were.

    `offsets` are ascending.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    error: AcknowledgeError | None


class Holder(Protocol):
    """Who acknowledges on behalf of a record."""

    @property
    def is_implicit(self) -> bool:
        """Whether acknowledging is not the reader's to do."""
        ...

    def rejects(self, error: BaseException) -> bool:
        """Whether this exception says that nobody will ever get the record done."""
        ...

    def settle(self, record: HeldRecord, acknowledge_type: AcknowledgeType) -> None: ...

    async def renew(self, record: HeldRecord) -> None: ...


class Content(NamedTuple, Generic[KeyT, ValueT]):
    """What the producer wrote; `timestamp_ms` is the producer's or the broker's, as the topic says."""

    timestamp_ms: int
    key: KeyT
    value: ValueT
    headers: Headers


class ShareRecord(HeldRecord, Generic[KeyT, ValueT]):
    """One delivery of one record. `delivery_count` counts this delivery, so the first is 1."""

    __slots__ = ("_content", "_holder", "topic")

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
    ) -> None:
        super().__init__(topic_id_partition, offset, delivery_count, acquired_at_ms, lock_deadline_ms)
        self.topic = topic
        self._content = content
        self._holder = holder

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
        """Names and values, in the producer's order; a name may come more than once."""
        return self._content.headers

    @property
    def timestamp_ms(self) -> int:
        return self._content.timestamp_ms

    @property
    def is_held(self) -> bool:
        """Whether the record is locked for this consumer, as far as it knows, and not acknowledged yet."""
        return self.state is RecordState.HELD

    def accept(self) -> None:
        """It is done. Raises `MisuseError` if it was acknowledged before, and in implicit mode."""
        self._settle(AcknowledgeType.ACCEPT)

    def release(self) -> None:
        """Let it be delivered again, unless it has been often enough; see `accept` for what it raises."""
        self._settle(AcknowledgeType.RELEASE)

    def reject(self) -> None:
        """Let it never be delivered again; see `accept` for what it raises."""
        self._settle(AcknowledgeType.REJECT)

    async def renew(self) -> None:
        """Let the lock begin anew (KIP-1222).

        Raises `AcknowledgeError` if the broker refuses or the lock has ended, `UnsupportedBrokerError` if the
        broker cannot renew at all, and `MisuseError` if the record was acknowledged before. The lock then
        stays as it was.
        """
        if self.state is RecordState.SETTLED:
            raise MisuseError(f"{self} was acknowledged before.")
        await self._holder.renew(self)

    def accept_delivered(self) -> None:
        """What a consumer in implicit mode does once its reader has had the record; not for readers."""
        if self.state is RecordState.HELD:
            self._holder.settle(self, AcknowledgeType.ACCEPT)

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
        """Acknowledges what the block has left open; an exception passes through."""
        if self.state is RecordState.SETTLED:
            return
        if error is None:
            self.accept()
        elif self._holder.rejects(error):
            self.reject()
        else:
            self.release()

    def _settle(self, acknowledge_type: AcknowledgeType) -> None:
        if self._holder.is_implicit:
            raise MisuseError("In implicit mode records are accepted by the next poll.")
        if self.state is RecordState.SETTLED:
            raise MisuseError(f"{self} was acknowledged before.")
        self._holder.settle(self, acknowledge_type)
