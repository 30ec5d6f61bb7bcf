"""The durable half of this broker's share-partition leaders, whatever it is kept in (`share.state.store`).

There are two: `log_state_store` keeps it in the partitions' own logs, `topic_state_store` in
`__share_group_state`. Which one a broker has is decided once, at its start (docs/decisions/0009).
"""

from __future__ import annotations

from typing import Protocol

from barnabas.protocol.identity import SharePartitionKey, TopicIdPartition
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partition_leader import DecisionStore
from barnabas.storage.format.share_image import ShareStateImage
from barnabas.storage.log.partition_log import PartitionLog


class ShareStateStore(Protocol):
    """The state of every share-partition that this broker leads. Used on the loop's thread only."""

    def load(
        self, key: SharePartitionKey, log: PartitionLog, group_incarnation: int, state_epoch: int
    ) -> Completion[ShareStateImage]:
        """The durable state, with an undecided start if there is none; `state_epoch` is the epoch of a state
        that begins now. StorageError, or ApiError as a member is to see it.
        """
        ...

    def decisions_of(self, partition: TopicIdPartition, log: PartitionLog) -> DecisionStore:
        """Where the leaders on this partition have their decisions recorded."""
        ...

    def initialise(
        self, key: SharePartitionKey, group_incarnation: int, start_offset: int, state_epoch: int
    ) -> Completion[None]:
        """Begin the state, or begin it anew. The completion ends when that would survive a crash.

        No leader may decide anything any more; what one has decided before comes first, or never.
        """
        ...

    def delete(self, key: SharePartitionKey, group_incarnation: int) -> Completion[None]:
        """End the state; see `initialise`. Deleting what isn't there succeeds."""
        ...

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """The partition's log is no more, and nobody leads on it."""
        ...

    async def drained(self) -> None:
        """Returns once everything handed in before is recorded, or has failed."""
        ...
