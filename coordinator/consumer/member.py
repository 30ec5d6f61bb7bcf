"""One member of a consumer group as the log has it (KIP-848). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias
from uuid import UUID

from barnabas.coordinator.consumer.sharing import NO_SHARES, Shares
from barnabas.protocol.identity import TopicIdPartition
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
"""The epoch of a member that left."""
STATIC_LEAVE_EPOCH = -2
"""The epoch of a static member that left and will be back."""

PartitionEpochs: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Topic id -> partition -> the epoch at which the member got it; no topic without a partition."""

NO_PARTITIONS: PartitionEpochs = MappingProxyType({})


class MemberState(IntEnum):
    """A member's progress towards its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to give up partitions before it reaches the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is at the newest epoch, and waits for partitions that others have not given up."""
    UNKNOWN = 127
    """A state that a newer version wrote."""


class ClassicMetadata(NamedTuple):
    """The JoinGroup fields of a member of the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, its favourite first."""


class ConsumerMember(NamedTuple):
    """A member. `previous_member_epoch` is accepted too, because the answer with the newer epoch may have
    been lost.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    """Empty if there is none."""
    rebalance_timeout_ms: int = -1
    """How long it may take to give up partitions."""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    """None for a member of the consumer protocol."""
    individual_commit: bool = False
    """Whether it commits offsets individually, and so can share a partition."""
    assigned: PartitionEpochs = NO_PARTITIONS
    revoking: PartitionEpochs = NO_PARTITIONS
    """Partitions that it is to give up, and may still have."""
    shares: Shares = NO_SHARES
    """Its ranges of those of these partitions that it shares."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether it has reached the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def hashes_of(self, topic_id: UUID, partition: int) -> HashRange:
        """The keys that it reads of a partition that it has: all, or a range of their hashes."""
        return self.shares.get(TopicIdPartition(topic_id, partition), ALL_HASHES)

    def epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch at which it got a partition that it has or is giving up; None for any other partition."""
        for partitions in (self.assigned, self.revoking):
            epoch = partitions.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


NO_MEMBER = ConsumerMember("")
"""Stands for a member before it joins or after it leaves."""
