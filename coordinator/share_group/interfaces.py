"""What the group coordinator needs from outside besides its log and the topics: the keeper of share state."""

from typing import Protocol
from uuid import UUID

from barnabas.coordinator.replay.interfaces import Ticket


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
