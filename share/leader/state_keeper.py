"""The start offsets of groups, kept with the partitions: the group coordinator's access to the share state.

The coordinator decides which partitions of a group have state, and when that state is reset or deleted. The
store records it. The state keeper ensures that there is no leader until it is recorded.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.identity import SharePartitionKey
from barnabas.runtime.completion import Completion
from barnabas.share.leader.share_partitions import SharePartitions
from barnabas.share.leader.state_store import ShareStateStore
from barnabas.storage.format.share_image import UNDECIDED_OFFSET


class StateKeeper:
    """Initialises, resets and deletes the state of one group on one partition (`ShareStateInitialiser`)."""

    def __init__(self, share_partitions: SharePartitions, store: ShareStateStore) -> None:
        self._share_partitions = share_partitions
        self._store = store

    def initialise(
        self,
        group_id: str,
        group_incarnation: int,
        topic_id: UUID,
        partition: int,
        start_offset: int,
        state_epoch: int,
    ) -> Completion[None]:
        """See `ShareStateInitialiser.initialise`. A negative start that is not undecided means offset 0."""
        key = SharePartitionKey(group_id, topic_id, partition)
        start_offset = start_offset if start_offset == UNDECIDED_OFFSET else max(start_offset, 0)
        self._share_partitions.forget(key)
        recorded = self._store.initialise(key, group_incarnation, start_offset, state_epoch)
        self._share_partitions.hold_back(key, recorded)
        return recorded

    def is_in_transaction(self, group_id: str, topic_id: UUID, partition: int) -> bool:
        """See `ShareStateInitialiser.is_in_transaction`."""
        key = SharePartitionKey(group_id, topic_id, partition)
        return self._share_partitions.transactions.has_acknowledgements(key)

    def delete(
        self, group_id: str, group_incarnation: int, topic_id: UUID, partition: int
    ) -> Completion[None]:
        """See `ShareStateInitialiser.delete`."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._share_partitions.forget(key)
        recorded = self._store.delete(key, group_incarnation)
        self._share_partitions.hold_back(key, recorded)
        return recorded
