"""The needs of share groups besides their log and the topics: their settings, the store of share state, and
the loads of partitions.
"""

from typing import Final, NamedTuple, Protocol
from uuid import UUID

from barnabas.coordinator.group.membership_configs import MembershipConfigs
from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion

START_UNDECIDED: Final = -1
"""The first fetch decides: by the group's own record of zero starts, or by its reset policy."""


class ShareMembershipConfigs(MembershipConfigs, Protocol):
    """The settings of membership in each share group."""

    def assignor(self, group_id: str) -> str:
        """`share.assignor.name`: "simple" or "load"."""
        ...


class PartitionLoad(NamedTuple):
    """The work that a group has left in a partition."""

    unfinished_count: int
    """Records that are waiting or in flight."""
    end_offset: int
    """The end of the log, exclusive."""


class PartitionLoads(Protocol):
    """The loads of partitions, from the leaders of share-partitions."""

    def load_of(self, key: SharePartitionKey, before_offset: int | None) -> PartitionLoad | None:
        """The load now; only records below `before_offset` count, if it is given. None if it is not known:
        no member has fetched for a while, or the group's start offset is undecided.
        """
        ...


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

    def is_in_transaction(self, group_id: str, topic_id: UUID, partition: int) -> bool:
        """Whether acknowledgements of the group in the partition may wait for the end of a transaction."""
        ...

    def delete(
        self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int
    ) -> Completion[None]:
        """Delete the state of one partition in a group. Deleting an unknown state succeeds."""
        ...
