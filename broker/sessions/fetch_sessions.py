"""Fetch sessions (KIP-227): the broker keeps a client's partitions between its requests.

In a session, requests and responses contain only changes. The session epoch counts the requests, so that a
lost or repeated one is detected. Sessions belong to no connection: an unused one stays until its slot is
needed. A client without a session sends full requests.

Pure: `broker/fetch/` reads the partitions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.coordinator.metadata.topic_names import NAME_LENGTH_MAX
from barnabas.protocol.encode.fetch import FetchPartitionResult
from barnabas.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.metadata.image import Topic
    from barnabas.protocol.decode.fetch import FetchPartition, FetchTopic
    from barnabas.storage.log.partition_log import PartitionLog

NO_SESSION: Final = 0
"""The session id of a request or response without a session."""
FINAL_EPOCH: Final = -1
"""The session epoch of a full request that ends its session and opens no other."""
INITIAL_EPOCH: Final = 0
"""The session epoch of a full request that ends its session and opens another."""
_EPOCH_MAX: Final = 2**31 - 1

EVICTION_MS: Final = 120_000
"""A session that was unused for longer is evicted for any other; one that is older, for a larger one."""
CACHED_PARTITIONS_MAX: Final = 200_000
"""The most partitions of all sessions together. Beyond it no session is opened, and one that grows is ended.
"""
_DECLINED_MS: Final = 1_000
"""For this time after a search that found no session to evict, only a larger session starts a new search."""

NOTHING_SENT: Final = (-1, -1)
"""The offsets in place of those in a client's last response, if it does not know them."""

PartitionKey = tuple[str | UUID, int]
"""A topic by name or id, as in the request, and a partition's index."""


class WantedPartition:
    """One partition that a client fetches, in one request or in all requests of a session.

    The client's own fields are set from the beginning. `partition_fetch.look_up` sets the broker's: `topic`,
    or the error that there is no such partition. The fetch sets `log`.
    """

    __slots__ = ("asked", "error_code", "key", "last_sent", "log", "topic", "topic_name", "topics_revision")

    def __init__(self, key: PartitionKey, asked: FetchPartition) -> None:
        self.key = key
        self.asked = asked
        self.topics_revision = -1
        """The revision of the metadata's topics at the look-up."""
        self.topic: Topic | None = None
        self.topic_name = ""
        """Kept after the topic is deleted."""
        self.error_code = ErrorCode.none
        self.log: PartitionLog | None = None
        self.last_sent = NOTHING_SENT
        """The high watermark and the log start offset in the client's last response."""

    @property
    def is_missing(self) -> bool:
        """Whether there is no such partition."""
        return self.topic is None and self.error_code is not ErrorCode.inconsistent_topic_id

    def has_changes(self, result: FetchPartitionResult) -> bool:
        """Whether `result` contains something that the client does not know from earlier responses."""
        return bool(
            result.records
            or (result.high_watermark, result.log_start_offset) != self.last_sent
            or result.error_code
            or result.diverging is not None
            or self.advances_position(result)
        )

    def advances_position(self, result: FetchPartitionResult) -> bool:
        """Whether the client's position changes by `result`."""
        looked_until = result.looked_until
        return bool(result.records) or (looked_until is not None and looked_until > self.asked.fetch_offset)

    def note_sent(self, result: FetchPartitionResult) -> None:
        """`result` is in the client's response. After an error the next result is always reported."""
        self.last_sent = (
            NOTHING_SENT if result.error_code else (result.high_watermark, result.log_start_offset)
        )


def wanted_partitions(topics: Iterable[FetchTopic]) -> list[WantedPartition]:
    """The partitions of a full request, in its order; if one is named twice, the last entry counts."""
    partitions: dict[PartitionKey, WantedPartition] = {}
    _merge(partitions, topics)
    return list(partitions.values())


class FetchSession:
    """The partitions of a session in their order, and the epoch that its next request must have."""

    __slots__ = ("by_id", "created_ms", "epoch", "last_used_ms", "partitions", "session_id")

    def __init__(
        self, session_id: int, partitions: Iterable[WantedPartition], *, by_id: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.by_id = by_id
        """Whether its requests name topics by their ids."""
        self.partitions = {partition.key: partition for partition in partitions}
        self.epoch = INITIAL_EPOCH + 1
        self.created_ms = self.last_used_ms = now_ms

    def move_to_end(self, partitions: Iterable[WantedPartition]) -> None:
        """Moves partitions whose positions change behind the others."""
        for partition in partitions:
            del self.partitions[partition.key]
            self.partitions[partition.key] = partition


class FetchSessionCache:
    """The sessions of a broker: at most `slots_max` (max.incremental.fetch.session.cache.slots)."""

    def __init__(
        self,
        slots_max: int,
        new_session_id: Callable[[], int],
        *,
        partitions_max: int = CACHED_PARTITIONS_MAX,
    ) -> None:
        """`new_session_id` returns a random number from 0 to 2^31 - 1, so that a client of an earlier run of
        the broker does not use another client's session.
        """
        self._slots_max = slots_max
        self._new_session_id = new_session_id
        self._partitions_max = partitions_max
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """The least recently used session comes first."""
        self._declined_until_ms = 0
        self._declined_size = 0
        self.partition_count = 0
        """Partitions in all sessions; one in two sessions counts twice."""
        self.eviction_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, partitions: Sequence[WantedPartition], *, by_id: bool, now_ms: int) -> int:
        """The id of a new session with these partitions; `NO_SESSION` if there is no room for it, or if a
        topic name is too long to exist.
        """
        size = len(partitions)
        if not by_id and max(map(len, _names(partitions)), default=0) > NAME_LENGTH_MAX:
            return NO_SESSION
        if self.partition_count + size > self._partitions_max or not self._make_room(size, now_ms):
            return NO_SESSION
        session_id = self._new_session_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_session_id()
        self._sessions[session_id] = FetchSession(session_id, partitions, by_id=by_id, now_ms=now_ms)
        self.partition_count += size
        return session_id

    def find(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession:
        """The session of an incremental request.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, and
        FETCH_SESSION_TOPIC_ID_ERROR for a client that changed between topic names and ids.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        return session

    def advance(
        self,
        session: FetchSession,
        named: Sequence[FetchTopic],
        forgotten: Iterable[tuple[str | UUID, Iterable[int]]],
        now_ms: int,
    ) -> bool:
        """Apply the changes of an incremental request, and advance the epoch. Returns False if the session
        has no partitions left and is ended.

        Raises ApiError FETCH_SESSION_ID_NOT_FOUND for a session that is ended because it exceeds the bounds.
        """
        if not all(_may_exist(reference) for reference, _ in named):
            self.close(session.session_id)
            raise ApiError(ErrorCode.fetch_session_id_not_found, "No topic can have such a name.")
        # An earlier request that still waits sees the new epoch and is refused, even if the session ends.
        session.epoch = next_epoch(session.epoch)
        size = len(session.partitions)
        if named:
            _merge(session.partitions, named)
        for reference, indexes in forgotten:
            for index in indexes:
                session.partitions.pop((reference, index), None)
        self.partition_count += len(session.partitions) - size
        if not session.partitions:
            self.close(session.session_id)
            return False
        if self.partition_count > self._partitions_max and len(session.partitions) > size:
            self.close(session.session_id)
            raise ApiError(ErrorCode.fetch_session_id_not_found, "The sessions hold too many partitions.")
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        return True

    def close(self, session_id: int) -> None:
        """End the session, if there is one with this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.partitions)

    def _make_room(self, size: int, now_ms: int) -> bool:
        """Whether there is a slot for a session of `size` partitions, if necessary after an eviction."""
        if len(self._sessions) < self._slots_max:
            return True
        evicted = self._evictable(size, now_ms)
        if evicted is None:
            return False
        self.close(evicted.session_id)
        self.eviction_count += 1
        return True

    def _evictable(self, size: int, now_ms: int) -> FetchSession | None:
        """The least recently used session if it is unused for `EVICTION_MS`; else the smallest of the
        sessions older than that, if it is smaller than `size`.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms > EVICTION_MS:
            return oldest
        if now_ms < self._declined_until_ms and size <= self._declined_size:
            return None
        candidates = [
            session for session in self._sessions.values() if now_ms - session.created_ms > EVICTION_MS
        ]
        smallest = min(candidates, key=lambda session: len(session.partitions), default=None)
        if smallest is not None and len(smallest.partitions) < size:
            return smallest
        self._declined_until_ms = now_ms + _DECLINED_MS
        self._declined_size = size
        return None


def next_epoch(epoch: int) -> int:
    """The epoch after this one; it wraps to 1, because 0 would open a new session."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1


def _names(partitions: Iterable[WantedPartition]) -> list[str]:
    return [str(partition.key[0]) for partition in partitions]


def _may_exist(reference: str | UUID) -> bool:
    """Whether a topic can have this name. The session keeps names, so longer ones would have no bound."""
    return isinstance(reference, UUID) or len(reference) <= NAME_LENGTH_MAX


def _merge(partitions: dict[PartitionKey, WantedPartition], topics: Iterable[FetchTopic]) -> None:
    for reference, of_topic in topics:
        for asked in of_topic:
            key = reference, asked.partition
            wanted = partitions.setdefault(key, WantedPartition(key, asked))
            if wanted.asked.hash_range != asked.hash_range:
                wanted.last_sent = NOTHING_SENT  # an error of the new range is reported at once
            wanted.asked = asked
