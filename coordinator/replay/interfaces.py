"""What a coordinator needs from outside whatever it coordinates, as protocols: a log, and the topics.

The composition root passes implementations in; tests pass small fakes.
"""

from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID

from barnabas.protocol.identity import ProducerIdentity
from barnabas.storage.log.appended import Append

NO_PRODUCER_ID = -1


class StoredRecord(NamedTuple):
    """A record as a log has it; a value of None is a tombstone.

    With a producer id it belongs to a transaction of that producer, and counts when that is committed.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int = NO_PRODUCER_ID


class StoredMarker(NamedTuple):
    """The end of a producer's transaction, as a log has it."""

    offset: int
    producer_id: int
    commit: bool


Stored: TypeAlias = StoredRecord | StoredMarker


class TransactionMarker(NamedTuple):
    """The end of a producer's transaction, to be written by who coordinates it in that epoch."""

    producer: ProducerIdentity
    coordinator_epoch: int
    commit: bool
    transaction_version: int = 0
    """That of the client: from 2 on the producer's epoch is raised by the end (KIP-890), and one that isn't
    newer than what the transaction was written in comes late."""


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
        """Append the end of a transaction; the error is an ApiError where the log refuses it."""
        ...


class TopicShape(NamedTuple):
    """What a coordinator needs to know of a topic."""

    name: str
    topic_id: UUID
    partition_count: int


class TopicCatalog(Protocol):
    """The topics that exist now, to be read at any time and in constant time."""

    def topic_by_name(self, name: str) -> TopicShape | None: ...

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None: ...
