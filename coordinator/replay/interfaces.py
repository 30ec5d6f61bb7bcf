"""The needs of every coordinator, as protocols: a log, and the topics.

The broker passes implementations in; tests pass small fakes.
"""

from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID

from barnabas.protocol.identity import ProducerIdentity
from barnabas.storage.log.appended import Append

NO_PRODUCER_ID = -1


class StoredRecord(NamedTuple):
    """A record in a log; a value of None is a tombstone.

    With a producer id it belongs to a transaction of that producer, and counts once that is committed.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID


class StoredMarker(NamedTuple):
    """The end of a producer's transaction, in a log."""

    offset: int
    producer_id: int
    commit: bool


Stored: TypeAlias = StoredRecord | StoredMarker


class TransactionMarker(NamedTuple):
    """The end of a producer's transaction, written by its coordinator in this epoch."""

    producer: ProducerIdentity
    coordinator_epoch: int
    commit: bool
    transaction_version: int = 0
    """The client's version. From 2 on an end raises the producer's epoch (KIP-890), and a marker is late if
    its epoch is not newer than that of the transaction's batches.
    """


class CoordinatorLog(Protocol):
    """The partitions of a coordinator's topic.

    The coordinator appends to a partition only after its last append there has ended.
    """

    def append(
        self,
        partition: int,
        records: list[tuple[bytes, bytes | None]],
        producer: ProducerIdentity | None = None,
    ) -> Append:
        """Append (key, value) records as one batch, all or nothing; a value of None is a tombstone.

        With a producer they are part of its transaction.
        """
        ...

    def append_marker(self, partition: int, marker: TransactionMarker) -> Append:
        """Append the end of a transaction; fails with ApiError if the log refuses it."""
        ...


class TopicShape(NamedTuple):
    """The facts about a topic that a coordinator needs."""

    name: str
    topic_id: UUID
    partition_count: int


class TopicCatalog(Protocol):
    """The topics that exist now. It may be read at any time, in constant time."""

    def topic_by_name(self, name: str) -> TopicShape | None: ...

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None: ...
