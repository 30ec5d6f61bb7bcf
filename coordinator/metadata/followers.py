"""The followers of the metadata log, and how far each has come. Pure.

A follower is known by its fetches only. While it reads a snapshot it counts as having the records up to the
snapshot's end, so that the snapshot stays until it is read. A follower without a fetch for
`FOLLOWER_SESSION_MS` is forgotten; its next fetch brings it back.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

FOLLOWER_SESSION_MS = 300_000
"""The same time for which Kafka's leader counts an observer among its followers."""

FOLLOWERS_MAX = 1_000
"""With more followers the one that was silent longest is forgotten: the log no longer waits for it."""


class FollowerKey(NamedTuple):
    """One replica: its node id and the id of its data directory (KIP-853), None from an old one."""

    node_id: int
    directory_id: UUID | None


class Heard(NamedTuple):
    """The state of a follower after its last fetch. Times are monotonic, in ms."""

    offset: int
    """It has all records below."""
    at_ms: int
    caught_up_at_ms: int | None
    """When it last had all records; None if never."""


class Followers:
    """The live followers. Times are monotonic, in ms."""

    def __init__(self) -> None:
        self._heard: dict[FollowerKey, Heard] = {}
        """Ordered by the time of the last fetch, oldest first."""

    def __len__(self) -> int:
        return len(self._heard)

    def heard(self, key: FollowerKey, offset: int, now_ms: int, *, caught_up: bool = False) -> None:
        """The follower has all records below `offset`; with `caught_up` there are no others."""
        before = self._heard.pop(key, None)
        caught_up_before_ms = None if before is None else before.caught_up_at_ms
        self._heard[key] = Heard(offset, now_ms, now_ms if caught_up else caught_up_before_ms)
        if len(self._heard) > FOLLOWERS_MAX:
            del self._heard[next(iter(self._heard))]

    def live(self, now_ms: int) -> Mapping[FollowerKey, Heard]:
        """The followers that are not forgotten."""
        while self._heard:
            silent_longest = next(iter(self._heard))
            if now_ms - self._heard[silent_longest].at_ms < FOLLOWER_SESSION_MS:
                break
            del self._heard[silent_longest]
        return self._heard

    def replicated_offset(self, now_ms: int) -> int | None:
        """All live followers have the records below this offset; None without followers."""
        return min((heard.offset for heard in self.live(now_ms).values()), default=None)
