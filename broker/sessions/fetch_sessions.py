"""Fetch sessions (KIP-227): what clients fetch, kept between their requests.

A client in a session names only what has changed, and is told only what has changed. The session epoch
counts its requests, so that a lost or repeated one shows. Sessions belong to no connection: one that nobody
uses stays until its slot is needed. A client that gets none goes on with full requests.

Pure. What the partitions have for their clients is the fetch operation's to find out (`fetch_operation.py`).
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
"""The session id of those who have none."""
FINAL_EPOCH: Final = -1
"""Of a full request that ends the session it names and opens no other."""
INITIAL_EPOCH: Final = 0
"""Of a full request that ends the session it names and opens another."""
_EPOCH_MAX: Final = 2**31 - 1

EVICTION_MS: Final = 120_000
"""A session that was not used for longer makes room for any other; one that is older, for a larger one."""
CACHED_PARTITIONS_MAX: Final = 200_000
"""Of all sessions together. Beyond it no session is opened, and one that would grow is ended."""
_DECLINED_MS: Final = 1_000
"""So long it is taken for granted that no session makes room, unless for a larger one than was declined."""

_NOTHING_TOLD: Final = (-1, -1)

PartitionKey = tuple[str | UUID, int]
"""A topic as its client calls it, by name or by id, and a partition's index."""


class WantedPartition:
    """One partition that a client fetches, in one request or in all of a session.

    What the client knows it by is there from the beginning, what that is at the moment once it has been
    looked up (`partition_fetch.py`): `topic` and `log`, or the error that there is no such partition.
    """

    __slots__ = ("asked", "error_code", "key", "log", "told", "topic", "topic_name", "topics_revision")

    def __init__(self, key: PartitionKey, asked: FetchPartition) -> None:
        self.key = key
        self.asked = asked
        self.topics_revision = -1
        """Of the metadata, when the topic was looked up."""
        self.topic: Topic | None = None
        self.topic_name = ""
        """Stays when the topic goes."""
        self.error_code = ErrorCode.none
        self.log: PartitionLog | None = None
        self.told = _NOTHING_TOLD
        """The high watermark and the log start that the client was told last."""

    @property
    def is_missing(self) -> bool:
        """Whether there is no such partition."""
        return self.topic is None and self.error_code is not ErrorCode.inconsistent_topic_id

    def is_news(self, result: FetchPartitionResult) -> bool:
        """Whether a client that has been told before has to be told of `result`."""
        return bool(
            result.records
            or (result.high_watermark, result.log_start_offset) != self.told
            or result.error_code
            or result.diverging is not None
        )

    def note_told(self, result: FetchPartitionResult) -> None:
        """The client is told of `result`. That an error is over is news, whatever the watermark is then."""
        self.told = _NOTHING_TOLD if result.error_code else (result.high_watermark, result.log_start_offset)


def wanted_partitions(topics: Iterable[FetchTopic]) -> list[WantedPartition]:
    """The partitions of a full request, in its order; of one that it names twice, the last is meant."""
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
        self.partitions = {one.key: one for one in partitions}
        self.epoch = INITIAL_EPOCH + 1
        self.created_ms = self.last_used_ms = now_ms

    def move_to_end(self, partitions: Iterable[WantedPartition]) -> None:
        """Partitions whose records were given come after those that may still wait for their turn."""
        for one in partitions:
            del self.partitions[one.key]
            self.partitions[one.key] = one


class FetchSessionCache:
    """The sessions of a broker: at most `slots_max` (max.incremental.fetch.session.cache.slots)."""

    def __init__(
        self,
        slots_max: int,
        new_session_id: Callable[[], int],
        *,
        partitions_max: int = CACHED_PARTITIONS_MAX,
    ) -> None:
        """`new_session_id` gives a number from 0 to 2^31 - 1 that nobody can guess, so that a client of an
        earlier run of the broker doesn't meet somebody else's session.
        """
        self._slots_max = slots_max
        self._new_session_id = new_session_id
        self._partitions_max = partitions_max
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        """The one that was used longest ago comes first."""
        self._declined_until_ms = 0
        self._declined_size = 0
        self.partition_count = 0
        """Partitions in all sessions; one in two sessions counts twice."""
        self.eviction_count = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, partitions: Sequence[WantedPartition], *, by_id: bool, now_ms: int) -> int:
        """The id of a new session with these partitions; `NO_SESSION` if there is no room for one, or if it
        would keep names that no topic can have.
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
        """The session that an incremental request goes on with.

        ApiError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, and FETCH_SESSION_TOPIC_ID_ERROR
        for a client that has changed between names and ids.
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
        """Takes over what an incremental request says, and the next epoch; whether the session goes on.

        One that has no partitions left is ended. ApiError FETCH_SESSION_ID_NOT_FOUND if it was ended because
        it had grown beyond all bounds.
        """
        if not all(_may_exist(reference) for reference, _ in named):
            self.close(session.session_id)
            raise ApiError(ErrorCode.fetch_session_id_not_found, "No topic can have such a name.")
        # From here on whoever still waits with the last epoch is told so, even if the session ends.
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
        """Ends the session, if there is one of this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.partitions)

    def _make_room(self, size: int, now_ms: int) -> bool:
        """Whether there is a free slot for a session of so many partitions, maybe after evicting another."""
        if len(self._sessions) < self._slots_max:
            return True
        evicted = self._evictable(size, now_ms)
        if evicted is None:
            return False
        self.close(evicted.session_id)
        self.eviction_count += 1
        return True

    def _evictable(self, size: int, now_ms: int) -> FetchSession | None:
        """One that nobody uses any more, or the smallest if it is smaller and not new."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms > EVICTION_MS:
            return oldest
        if now_ms < self._declined_until_ms and size <= self._declined_size:
            return None
        candidates = [one for one in self._sessions.values() if now_ms - one.created_ms > EVICTION_MS]
        smallest = min(candidates, key=lambda one: len(one.partitions), default=None)
        if smallest is not None and len(smallest.partitions) < size:
            return smallest
        self._declined_until_ms = now_ms + _DECLINED_MS
        self._declined_size = size
        return None


def next_epoch(epoch: int) -> int:
    """The epoch of the request after one of this epoch; it wraps to 1, since 0 would open a new session."""
    return 1 if epoch == _EPOCH_MAX else epoch + 1


def _names(partitions: Iterable[WantedPartition]) -> list[str]:
    return [str(one.key[0]) for one in partitions]


def _may_exist(reference: str | UUID) -> bool:
    """Names are kept with the session: longer ones than topics can have would let it grow without bounds."""
    return isinstance(reference, UUID) or len(reference) <= NAME_LENGTH_MAX


def _merge(partitions: dict[PartitionKey, WantedPartition], topics: Iterable[FetchTopic]) -> None:
    for reference, of_topic in topics:
        for asked in of_topic:
            key = reference, asked.partition
            partitions.setdefault(key, WantedPartition(key, asked)).asked = asked
