"""What the group coordinator needs from outside besides its log and the topics: the keeper of share state."""

from typing import Final, Protocol
from uuid import UUID

from barnabas.runtime.completion import Completion

START_UNDECIDED: Final = -1
"""The first fetch decides: by the group's own record of zero starts, or by its reset policy."""


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
    ) -> Completion[None]:
        """Begin (or begin anew) the state of one partition in a group.

        `start_offset` is -1 if the group's reset policy is to decide at the first fetch. The completion ends
        when the state would survive a crash; a failure leaves the partition out of assignments until the
        next try. The same call may come again after a crash, with the same or a greater `state_epoch`.
        """
        ...

    def delete(
        self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int
    ) -> Completion[None]:
        """Forget the state of one partition in a group. Deleting what isn't there succeeds."""
        ...
