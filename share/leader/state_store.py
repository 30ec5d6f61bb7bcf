"""The durable half of this broker's share-partition leaders, in any store (`share.state.store`).

There are two stores: `log_state_store` keeps the state in the partitions' own logs, `topic_state_store` in
`__share_group_state`. A broker selects its store at its start (docs/decisions/0009).
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
        that begins now. Raises StorageError, or ApiError with the error code for the member.
        """
        ...

    def decisions_of(self, partition: TopicIdPartition, log: PartitionLog) -> DecisionStore:
        """Where the leaders on this partition have their decisions recorded."""
        ...

    def initialise(
        self, key: SharePartitionKey, group_incarnation: int, start_offset: int, state_epoch: int
    ) -> Completion[None]:
        """Initialises the state, or replaces it. The completion ends when that would survive a crash.

        From now on no leader may decide anything. Earlier decisions of a leader are recorded before, or
        never.
        """
        ...

    def delete(self, key: SharePartitionKey, group_incarnation: int) -> Completion[None]:
        """Deletes the state; see `initialise`. Deleting a missing state succeeds."""
        ...

    def forget_partition(self, partition: TopicIdPartition) -> None:
        """The partition's log is closed or deleted, and the partition has no leaders."""
        ...

    async def drained(self) -> None:
        """Returns once everything handed in before is recorded, or has failed."""
        ...
