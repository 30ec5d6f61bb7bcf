"""Idle leaders: their state is written as a checkpoint where that is due, and they are dropped from memory.

A leader is idle when no lock runs, no record waits until it is due, nothing is being written, and no request
has used it between two looks. If it has recorded anything since its last checkpoint, it first writes a
checkpoint: so the state of an idle group is quick to load, and no long chain of control records has to be
kept from cleaning. The next fetch loads it again. The same checkpoint is written for all leaders when the
broker is closed cleanly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice

from barnabas.protocol.errors import ApiError
from barnabas.protocol.identity import SharePartitionKey
from barnabas.share.leader.share_partition_leader import SharePartitionLeader
from barnabas.storage.errors import StorageError

LOOK_INTERVAL_MS = 60_000
"""A leader goes after one to two of these without a fetch."""
CHECKPOINTS_PER_LOOK_MAX = 100
"""The number of leaders that write a checkpoint at a time; the others wait for the next look."""
CLOSING_CHECKPOINTS_MAX = 1_000
"""The number of leaders that write a checkpoint when the broker is closed; the chains of the others are
replayed as after a crash.
"""


class IdleLeaders:
    """Looks at the leaders now and then, as long as there are any (`deadlines.Expirable`)."""

    def __init__(
        self,
        leaders: Mapping[SharePartitionKey, SharePartitionLeader],
        forget: Callable[[SharePartitionKey], None],
    ) -> None:
        """`leaders` are those in memory, a view; `forget` drops one."""
        self._leaders = leaders
        self._forget = forget
        self._look_at_ms: int | None = None

    def loaded(self, now_ms: int) -> int:
        """There is a leader; answers when (monotonic) to look at it."""
        if self._look_at_ms is None:
            self._look_at_ms = now_ms + LOOK_INTERVAL_MS
        return self._look_at_ms

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        return self._look_at_ms

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`: drops the idle leaders."""
        unused = [leader for leader in self._leaders.values() if not leader.used and leader.is_idle]
        for leader in self._leaders.values():
            leader.used = False
        checkpoints_left = CHECKPOINTS_PER_LOOK_MAX
        for leader in unused:
            if not _is_checkpoint_due(leader):
                self._forget(leader.key)
            elif checkpoints_left:
                checkpoints_left -= 1
                leader.checkpoint()
        self._look_at_ms = now_ms + LOOK_INTERVAL_MS if self._leaders else None


async def checkpoint_before_closing(leaders: Iterable[SharePartitionLeader]) -> None:
    """Writes a checkpoint for each leader that has recorded anything since its last one.

    A state without a new checkpoint is replayed from its deltas, as after a crash.
    """
    due = islice(filter(_is_checkpoint_due, leaders), CLOSING_CHECKPOINTS_MAX)
    for recorded in [leader.checkpoint() for leader in due]:
        with suppress(StorageError, ApiError):
            await recorded


def _is_checkpoint_due(leader: SharePartitionLeader) -> bool:
    can_record = not leader.closed and leader.log.offline is None and leader.core.is_initialised
    return can_record and leader.image.delta_count > 0
