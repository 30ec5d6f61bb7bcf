"""The needs of share groups besides their log and the topics: the store of share state."""

from typing import Final, Protocol
from uuid import UUID

from barnabas.runtime.completion import Completion

START_UNDECIDED: Final = -1
"""The first fetch decides: by the group's own record of zero starts, or by its reset policy."""


class ShareStateInitialiser(Protocol):
    """The store of share-partition state, which has the offset where a group starts to read."""

    def initialise(
        self,
        group_id: str,
        group_incarnation: int,
        topic_id: UUID,
        partition: int,
        start_offset: int,
        state_epoch: int,
    ) -> Completion[None]:
        """Begin (or begin again) the state of one partition in a group.

        `start_offset` is -1 if the group's reset policy decides at the first fetch. The completion ends when
        the state would survive a crash. After a failure the partition is left out of assignments until the
        next attempt. The same call may be repeated after a crash, with the same or a greater `state_epoch`.
        """
        ...

    def delete(
        self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int
    ) -> Completion[None]:
        """Delete the state of one partition in a group. Deleting an unknown state succeeds."""
        ...
