"""Who follows the metadata log, and how far each has come. Pure.

A follower is known by its fetches alone. While it reads a snapshot it counts as having come to that one's
end, so that the snapshot stays until it is read. One that hasn't been heard of for `FOLLOWER_SESSION_MS` is
forgotten, and comes back with its next fetch.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

FOLLOWER_SESSION_MS = 300_000
"""As long as Kafka's leader counts an observer among its followers."""

FOLLOWERS_MAX = 1_000
"""Beyond it the one that was silent longest is forgotten: the log no longer waits for it."""


class FollowerKey(NamedTuple):
    """One replica: its node id and the id of its data directory (KIP-853), None from an old one."""

    node_id: int
    directory_id: UUID | None


class Heard(NamedTuple):
    """What a follower said last. Times are monotonic, in ms."""

    offset: int
    """It has everything below."""
    at_ms: int
    caught_up_at_ms: int | None
    """When it had everything there was; None if it never had."""


class Followers:
    """The live followers. Times are monotonic, in ms."""

    def __init__(self) -> None:
        self._heard: dict[FollowerKey, Heard] = {}
        """Those silent longest first."""

    def __len__(self) -> int:
        return len(self._heard)

    def heard(self, key: FollowerKey, offset: int, now_ms: int, *, caught_up: bool = False) -> None:
        """The follower has everything below `offset`; with `caught_up` that is all there is."""
        before = self._heard.pop(key, None)
        caught_up_before_ms = None if before is None else before.caught_up_at_ms
        self._heard[key] = Heard(offset, now_ms, now_ms if caught_up else caught_up_before_ms)
        if len(self._heard) > FOLLOWERS_MAX:
            del self._heard[next(iter(self._heard))]

    def live(self, now_ms: int) -> Mapping[FollowerKey, Heard]:
        """Those that aren't forgotten."""
        while self._heard:
            silent_longest = next(iter(self._heard))
            if now_ms - self._heard[silent_longest].at_ms < FOLLOWER_SESSION_MS:
                break
            del self._heard[silent_longest]
        return self._heard

    def replicated_offset(self, now_ms: int) -> int | None:
        """What all live followers have ends here; None if there are none."""
        return min((heard.offset for heard in self.live(now_ms).values()), default=None)
