"""A share session: the partitions that one member fetches, request by request (KIP-932, "Share sessions").

The session remembers which partitions a member reads, so that requests and responses name only changes. For
each of them it also remembers what every request would have to look up again: its leader. It does not have
the records that the member holds; the caller that ends a session releases them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from barnabas.protocol.decode.acknowledgements import AckTopic
from barnabas.protocol.identity import Place, SharePartitionKey, TopicIdPartition
from barnabas.share.leader.share_partition_leader import SharePartitionLeader

INITIAL_SHARE_SESSION_EPOCH: Final = 0
FINAL_SHARE_SESSION_EPOCH: Final = -1
SHARE_SESSION_EPOCH_MAX: Final = 2**31 - 1


class ShareSessionKey(NamedTuple):
    """The group and member that a session belongs to."""

    group_id: str
    member_id: str


class SessionPartition:
    """One partition, as a session has it; each session has its own."""

    __slots__ = ("key", "leader", "owes_answer", "place")

    def __init__(self, key: SharePartitionKey) -> None:
        self.key = key
        self.place: Place = key.topic_id.int, key.partition
        self.leader: SharePartitionLeader | None = None
        """The leader that was found last. It may have been closed, and its log may be offline."""
        self.owes_answer = True
        """Whether the next response must name the partition even without records or error."""

    @property
    def partition(self) -> TopicIdPartition:
        return self.key.topic_id_partition


SessionPartitions: TypeAlias = dict[Place, SessionPartition]
"""The partitions of a session in their order, or those that are added to one."""


def named_partitions(
    group_id: str, topics: Iterable[AckTopic], known: Mapping[Place, SessionPartition]
) -> SessionPartitions:
    """The partitions in `topics` that are not in `known`."""
    named: SessionPartitions = {}
    for topic_id, partitions in topics:
        topic = topic_id.int
        for partition in partitions:
            place = topic, partition.partition_index
            if place not in known:
                named[place] = SessionPartition(SharePartitionKey(group_id, topic_id, place[1]))
    return named


class ShareSession:
    """The partitions of a session in their order, and the epoch that its next request must have.

    `connection_id` is that of the connection that opened it; requests may come over any.
    """

    __slots__ = (
        "by_place",
        "connection_id",
        "has_begun_all",
        "key",
        "lock_duration_ms",
        "owing_count",
        "repeats_requests",
        "revision",
        "share_session_epoch",
        "topic_ids",
        "wants_runs",
    )

    def __init__(self, key: ShareSessionKey, partitions: SessionPartitions, connection_id: int) -> None:
        self.key = key
        self.connection_id = connection_id
        self.share_session_epoch = INITIAL_SHARE_SESSION_EPOCH + 1
        """That of the next request."""
        self.by_place = partitions
        self.owing_count = len(partitions)
        """The partitions that the next response must name even without records or error."""
        self.topic_ids: frozenset[UUID] | None = None
        """The topics of all partitions; None until `find_topic_ids` is called after a change."""
        self.revision = 0
        """Grows with each change of the partitions."""
        self.has_begun_all = False
        """Whether the group has a start offset in every partition."""
        self.lock_duration_ms: int | None = None
        """The duration of the member's locks, if it has asked for one; else the group's value holds."""
        self.repeats_requests = False
        """Whether the client repeats a request after a lost connection, so that answers are kept for it."""
        self.wants_runs = False
        """Whether the responses tell the runs of records; see `protocol.extended.runs`."""

    def __len__(self) -> int:
        return len(self.by_place)

    def __iter__(self) -> Iterator[SessionPartition]:
        """In session order."""
        return iter(self.by_place.values())

    def find_topic_ids(self) -> frozenset[UUID]:
        """The topics of all partitions."""
        self.topic_ids = frozenset([partition.key.topic_id for partition in self.by_place.values()])
        return self.topic_ids

    def update(self, added: SessionPartitions, forgotten: Iterable[tuple[UUID, Iterable[int]]]) -> None:
        """Adds partitions, then forgets some, by topic; their records stay locked."""
        if added:
            # Whole dicts are put together without a look at each partition: a request may add thousands.
            known = self.by_place
            self.by_place = known | added | known
            added_count = len(self.by_place) - len(known)
            if added_count:
                self.owing_count += added_count
                self._note_change()
                self.has_begun_all = False
        for topic_id, indexes in forgotten:
            for index in indexes:
                partition = self.by_place.pop((topic_id.int, index), None)
                if partition is not None:
                    self.owing_count -= partition.owes_answer
                    self._note_change()

    def _note_change(self) -> None:
        self.topic_ids = None
        self.revision += 1

    def has(self, partition: SessionPartition) -> bool:
        """Whether the partition has not been forgotten."""
        return self.by_place.get(partition.place) is partition

    def note_begun(self, revision: int) -> None:
        """The group has a start offset in all partitions that the session had at this revision."""
        self.has_begun_all = revision == self.revision

    def partitions_in_turn(self, share_session_epoch: int) -> list[SessionPartition]:
        """The order in which a fetch of this epoch serves the partitions, so that each is first at times.

        Once the group has begun everywhere, that is session order: a fetch may stop early then, and the
        partitions that it has answered for go to the end (`must_answer`). Turning them as well would make
        some partitions wait for many fetches.
        """
        partitions = list(self.by_place.values())
        if not partitions or share_session_epoch < 1 or self.has_begun_all:
            return partitions
        first = share_session_epoch % len(partitions)
        return partitions[first:] + partitions[:first]

    def was_answered(self, partition: SessionPartition) -> bool:
        """Whether an answer of this session has had the partition, the last one without an error."""
        return not partition.owes_answer and self.has(partition)

    def must_answer(self, partition: SessionPartition, *, has_records: bool, has_error: bool) -> bool:
        """Whether the response names the partition, to be asked once per response.

        It does if there are records or an error, if the partition is new, and once after an error. Results of
        acknowledgements are the caller's concern. A partition with records or an error goes to the session's
        end, so that neither keeps the others waiting.
        """
        by_place = self.by_place
        if by_place.get(partition.place) is not partition:
            return has_records or has_error
        if (has_records or has_error) and len(by_place) > 1:
            del by_place[partition.place]
            by_place[partition.place] = partition
        owed, partition.owes_answer = partition.owes_answer, has_error
        self.owing_count += has_error - owed
        return owed or has_records or has_error
