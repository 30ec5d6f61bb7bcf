"""What the group coordinator needs from outside, as protocols: a log, the topics, and the keeper of share
state.

The composition root passes implementations in; tests pass small fakes. Nothing here is specific to any of
them.
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


class CoordinatorLog(Protocol):
    """The partitions of `__consumer_offsets`."""

    def append(self, partition: int, records: list[tuple[bytes, bytes | None]]) -> Ticket:
        """Append (key, value) records as one batch, all or nothing; a value of None is a tombstone.

        The coordinator appends to a partition only after its last append there has ended.
        """
        ...


class TopicShape(NamedTuple):
    """What the coordinator needs to know of a topic."""

    name: str
    topic_id: UUID
    partition_count: int


class TopicCatalog(Protocol):
    """The topics that exist now, to be read at any time and in constant time."""

    def topic_by_name(self, name: str) -> TopicShape | None: ...

    def topic_by_id(self, topic_id: UUID) -> TopicShape | None: ...


class ShareStateInitialiser(Protocol):
    """The keeper of share-partition state: where a group starts to read, kept with the partition."""

    def initialise(
        self,
        group_id: str,
        group_incarnation: int,
        topic_id: UUID,
        partition: int,
        start_offset: int,
        state_epoch: int,
    ) -> Ticket:
        """Begin (or begin anew) the state of one partition in a group.

        `start_offset` is -1 if the group's reset policy is to decide at the first fetch. The ticket ends when
        the state would survive a crash; one that failed leaves the partition out of assignments until it is
        tried again. The same call may come again after a crash, with the same or a greater `state_epoch`.
        """
        ...

    def delete(self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int) -> Ticket:
        """Forget the state of one partition in a group. Deleting what isn't there succeeds."""
        ...
