"""When a partition, or a share of one, may go to a new owner (KIP-848, "Reconciliation"). Pure.

The last owner must have given it up, and the transactions in which it has committed offsets individually must
have ended. Otherwise the new owner would process records again that such a transaction commits later.
"""

from __future__ import annotations

from uuid import UUID

from barnabas.coordinator.consumer.consumer_group import ConsumerGroup
from barnabas.coordinator.consumer.interfaces import PendingCommits
from barnabas.coordinator.replay.interfaces import TopicCatalog
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange


class Handover:
    """The rule for all groups."""

    def __init__(self, catalog: TopicCatalog, pending: PendingCommits) -> None:
        self._catalog = catalog
        self._pending = pending

    def is_taken(
        self,
        group: ConsumerGroup,
        member_id: str,
        topic_id: UUID,
        partition: int,
        hashes: HashRange = ALL_HASHES,
    ) -> bool:
        """Whether a member that does not have these hashes of a partition must wait for them."""
        if group.is_owned_by_another(member_id, topic_id, partition, hashes):
            return True
        topic = self._catalog.topic_by_id(topic_id)
        if topic is None:
            return False
        committers = self._pending.pending_committers(group.group_id, topic.name, topic_id, partition)
        return any(
            committer_id == member_id or not _is_owner(group, committer_id, topic_id, partition)
            for committer_id in committers
        )


def _is_owner(group: ConsumerGroup, member_id: str, topic_id: UUID, partition: int) -> bool:
    """Whether the member still has the partition, or a share of it, which no other member reads then."""
    member = group.members.get(member_id)
    return member is not None and member.epoch_of(topic_id, partition) is not None
