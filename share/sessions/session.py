"""A share session: the partitions that one member fetches, request by request (KIP-932, "Share sessions").

The session remembers which partitions a member reads, so that requests and responses name only changes. It
does not have the records that the member holds; the caller that ends a session releases them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from barnabas.protocol.identity import TopicIdPartition

INITIAL_SHARE_SESSION_EPOCH = 0
FINAL_SHARE_SESSION_EPOCH = -1
SHARE_SESSION_EPOCH_MAX = 2**31 - 1


def next_share_session_epoch(share_session_epoch: int) -> int:
    """The epoch of the request after one of this epoch; it wraps to 1, since 0 would open a new session."""
    return 1 if share_session_epoch == SHARE_SESSION_EPOCH_MAX else share_session_epoch + 1


class ShareSessionKey(NamedTuple):
    """The group and member that a session belongs to."""

    group_id: str
    member_id: str


class ShareSession:
    """The partitions of a session in their order, and the epoch that its next request must have.

    `connection_id` is that of the connection that opened it; requests may come over any.
    """

    __slots__ = (
        "_owes_answer",
        "_owing_count",
        "_topic_ids",
        "connection_id",
        "has_begun_all",
        "key",
        "lock_duration_ms",
        "repeats_requests",
        "share_session_epoch",
        "wants_runs",
    )

    def __init__(
        self, key: ShareSessionKey, partitions: Iterable[TopicIdPartition], connection_id: int
    ) -> None:
        self.key = key
        self.connection_id = connection_id
        self.share_session_epoch = next_share_session_epoch(INITIAL_SHARE_SESSION_EPOCH)
        self._owes_answer = dict.fromkeys(partitions, True)
        """For each partition, whether the next response must name it even without records or error."""
        self._owing_count = len(self._owes_answer)
        self._topic_ids: frozenset[UUID] | None = None
        self.has_begun_all = False
        """Whether the group has a start offset in every partition."""
        self.lock_duration_ms: int | None = None
        """The duration of the member's locks, if it has asked for one; else the group's value holds."""
        self.repeats_requests = False
        """Whether the client repeats a request after a lost connection, so that answers are kept for it."""
        self.wants_runs = False
        """Whether the responses tell the runs of records; see `protocol.extended.runs`."""

    def __len__(self) -> int:
        return len(self._owes_answer)

    def __contains__(self, partition: TopicIdPartition) -> bool:
        return partition in self._owes_answer

    @property
    def partitions(self) -> list[TopicIdPartition]:
        """All partitions, in session order."""
        return list(self._owes_answer)

    @property
    def topic_ids(self) -> Collection[UUID]:
        """The topics of all partitions."""
        if self._topic_ids is None:
            self._topic_ids = frozenset([partition.topic_id for partition in self._owes_answer])
        return self._topic_ids

    @property
    def owes_answers(self) -> bool:
        """Whether the next response must name some partitions even without records or error."""
        return self._owing_count > 0

    def update(self, added: Collection[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        """Adds partitions, then forgets some; those that are forgotten keep their records' locks."""
        if added:
            # Whole dicts are put together without a look at each partition: a request may add thousands.
            owes_answer = self._owes_answer
            self._owes_answer = owes_answer | dict.fromkeys(added, True) | owes_answer
            added_count = len(self._owes_answer) - len(owes_answer)
            if added_count:
                self._owing_count += added_count
                self._topic_ids = None
                self.has_begun_all = False
        for partition in forgotten:
            self._owing_count -= self._owes_answer.pop(partition, False)
            self._topic_ids = None

    def note_begun(self, partitions: Collection[TopicIdPartition]) -> None:
        """The group has a start offset in these partitions, which are all of an earlier request at least."""
        self.has_begun_all = len(partitions) == len(self._owes_answer)

    def advance_epoch(self) -> None:
        """A request has used the epoch up."""
        self.share_session_epoch = next_share_session_epoch(self.share_session_epoch)

    def partitions_in_turn(self, share_session_epoch: int) -> list[TopicIdPartition]:
        """The order in which a fetch of this epoch serves the partitions, so that each is first at times.

        Once the group has begun everywhere, that is session order: a fetch may stop early then, and the
        partitions that it has answered for go to the end (`must_answer`). Turning them as well would make
        some partitions wait for many fetches.
        """
        partitions = list(self._owes_answer)
        if not partitions or share_session_epoch < 1 or self.has_begun_all:
            return partitions
        first = share_session_epoch % len(partitions)
        return partitions[first:] + partitions[:first]

    def was_answered(self, partition: TopicIdPartition) -> bool:
        """Whether an answer of this session has had the partition, the last one without an error."""
        return self._owes_answer.get(partition) is False

    def must_answer(self, partition: TopicIdPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether the response names the partition, to be asked once per response.

        It does if there are records or an error, if the partition is new, and once after an error. Results of
        acknowledgements are the caller's concern. A partition with records or an error goes to the session's
        end, so that neither keeps the others waiting.
        """
        owed = self._owes_answer.get(partition)
        if owed is None:
            return has_records or has_error
        if (has_records or has_error) and len(self._owes_answer) > 1:
            del self._owes_answer[partition]
        self._owes_answer[partition] = has_error
        self._owing_count += has_error - owed
        return owed or has_records or has_error
