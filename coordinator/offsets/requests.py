"""Requests for committed offsets, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.coordinator.group.member_identity import MemberIdentity
from barnabas.coordinator.offsets.committed_offset import CommittedOffset
from barnabas.protocol.committed_ranges import OffsetRange
from barnabas.protocol.identity import ProducerIdentity

NO_MEMBER_EPOCH = -1

NO_START = -1
"""The start of a commit of ranges that does not name one."""


class OffsetToCommit(NamedTuple):
    """One partition of an OffsetCommit, of a topic that exists.

    With `ranges` the commit is individual: it commits these offsets. Then `offset` is the position at which
    a group without a committed offset begins, or NO_START; it does nothing for any other group.
    """

    topic_name: str
    topic_id: UUID
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    ranges: Sequence[OffsetRange] | None = None


class CommitRequest(NamedTuple):
    """OffsetCommit. `generation_id` is the member epoch in groups that have epochs."""

    group_id: str
    identity: MemberIdentity
    generation_id: int
    offsets: Sequence[OffsetToCommit]
    tells_not_found: bool
    """Whether the client knows the errors of consumer groups (OffsetCommit from version 9 on, TxnOffsetCommit
    from version 6 on). Then an unknown group is GROUP_ID_NOT_FOUND, and not ILLEGAL_GENERATION.
    """


class TransactionalCommit(NamedTuple):
    """TxnOffsetCommit."""

    request: CommitRequest
    producer: ProducerIdentity
    check_transaction: Callable[[], None]
    """Raises ApiError if the producer's transaction does not include the group's partition now."""
    wait_until_ms: int
    """The end (monotonic) of the wait in a group that commits in order."""


class FetchedOffset(NamedTuple):
    """The answer of OffsetFetch for one partition, with its committed offset if there is one."""

    topic_name: str
    partition: int
    committed: CommittedOffset | None
    is_unstable: bool = False
    """Whether an open transaction may commit another offset: a client that needs stable offsets has to wait.
    """
    ranges: Sequence[OffsetRange] = ()
    """The ranges beyond the offset that were committed individually, ascending."""
