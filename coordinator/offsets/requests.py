"""What is asked of committed offsets, and what is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.committed_offset import CommittedOffset
from barnabas.protocol.identity import ProducerIdentity

NO_MEMBER_EPOCH = -1


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit, of a topic that exists."""

    topic_name: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class CommitRequest(NamedTuple):
    """OffsetCommit, after authorization. `generation_id` is the member epoch where the group has those."""

    group_id: str
    identity: MemberIdentity
    generation_id: int
    offsets: Sequence[OffsetToCommit]
    tells_not_found: bool
    """Whether the client knows the errors of consumer groups (OffsetCommit from version 9 on, TxnOffsetCommit
    from version 6 on): a group that does not exist is GROUP_ID_NOT_FOUND then, and not ILLEGAL_GENERATION."""


class TransactionalCommit(NamedTuple):
    """TxnOffsetCommit, after authorization."""

    request: CommitRequest
    producer: ProducerIdentity
    check_transaction: Callable[[], None]
    """Raises the ApiError of a producer whose transaction does not take part in the group's partition now."""


class FetchedOffset(NamedTuple):
    """What OffsetFetch tells of a partition: what was committed, if anything."""

    topic_name: str
    partition: int
    committed: CommittedOffset | None
    is_unstable: bool = False
    """A transaction that hasn't ended may commit another one: whoever wants stable offsets has to wait."""
