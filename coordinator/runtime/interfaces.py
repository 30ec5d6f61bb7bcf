"""What a coordinator needs from outside whatever it coordinates, as protocols: tickets, a log, the topics.

The composition root passes implementations in; tests pass small fakes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol
from uuid import UUID


class Ticket(Protocol):
    """Something under way that ends once, well or badly, on the loop's thread."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        ...

    @property
    def error(self) -> Exception | None:
        """Why it failed; None while under way or if it went well."""
        ...

    def add_done_callback(self, callback: Callable[[Any], None], /) -> None:
        """Call `callback` with the ticket when it ends; at once if it has."""
        ...


class AppendTicket(Ticket, Protocol):
    """An append under way."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record, once the append has ended well."""
        ...


class StoredRecord(NamedTuple):
    """A record as a log has it; a value of None is a tombstone."""

    offset: int
    key: bytes | None
    value: bytes | None


class CoordinatorLog(Protocol):
    """The partitions of a coordinator's topic."""

    def append(self, partition: int, records: list[tuple[bytes, bytes | None]]) -> AppendTicket:
        """Append (key, value) records as one batch, all or nothing; a value of None is a tombstone.

        The coordinator appends to a partition only after its last append there has ended.
        """
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
