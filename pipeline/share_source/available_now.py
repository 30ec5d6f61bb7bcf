"""Decides when a query with Trigger.AvailableNow has read all records that were there at its start.

A run ends when the group is done with every record below the noted end offsets, in the partitions that are
assigned to this member. Other members may hold records that never come to this one. So a run also ends if it
could read for `quiet_ms` and got no record. While the brokers cannot be reached it tries again, for at most
`UNREACHABLE_MS_MAX`. Then it fails, because a clean end would mean that everything was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.share_source.group_admin import GroupPosition
from barnabas.pipeline.share_source.ledger import UNKNOWN_OFFSET
from barnabas.protocol.identity import TopicIdPartition

ASSIGNMENT_MS_MAX: Final = 15_000
"""How long a run waits for an assignment: a member of a large group may never get one."""
UNREACHABLE_MS_MAX: Final = 60_000


class AvailableNow:
    """One run. Times are the loop's, in milliseconds."""

    def __init__(self, end_offsets: Mapping[TopicIdPartition, int], quiet_ms: int, now_ms: int) -> None:
        """`end_offsets` are exclusive."""
        self.end_offsets = end_offsets
        self._quiet_ms = quiet_ms
        self._last_news_ms = now_ms
        self._last_read_ms = now_ms
        self._unassigned_since_ms: int | None = None
        self._was_assigned = False

    def note_news(self, now_ms: int) -> None:
        """Records came: the wait for `quiet_ms` begins again."""
        self._last_news_ms = now_ms

    def go_on(self, now_ms: int) -> None:
        """A batch is done: its time doesn't count as a wait for records or brokers."""
        self._last_news_ms = self._last_read_ms = now_ms

    def note_read(self, is_reading: bool, now_ms: int) -> None:
        """Whether all partitions could be read. Raises `PipelineError` if that has failed for too long."""
        if is_reading:
            self._last_read_ms = now_ms
            return
        self._last_news_ms = now_ms
        if self._was_assigned and now_ms - self._last_read_ms >= UNREACHABLE_MS_MAX:
            raise PipelineError(
                f"servers: some partitions could not be read for {UNREACHABLE_MS_MAX // 1000} s, so it "
                "isn't known whether all that was available has been read."
            )

    def note_assignment(self, assignment: Iterable[TopicIdPartition], now_ms: int) -> None:
        """Begins the wait for records when there is an assignment. A restarted broker may revoke the
        assignment and give it again, so a run does not end after a short time without one."""
        if not any(True for _ in assignment):
            if self._unassigned_since_ms is None:
                self._unassigned_since_ms = now_ms
        elif not self._was_assigned or self._unassigned_since_ms is not None:
            self._was_assigned = True
            self._unassigned_since_ms = None
            self.go_on(now_ms)

    def is_over(
        self,
        assignment: Iterable[TopicIdPartition],
        positions: Mapping[TopicIdPartition, GroupPosition] | None,
        now_ms: int,
    ) -> bool:
        """Whether no more of the noted records will come. Call `note_assignment` before."""
        if self._unassigned_since_ms is not None:
            return now_ms - self._unassigned_since_ms >= ASSIGNMENT_MS_MAX
        if now_ms - self._last_news_ms >= self._quiet_ms:
            return True
        return positions is not None and all(self._is_done(partition, positions) for partition in assignment)

    def _is_done(
        self, partition: TopicIdPartition, positions: Mapping[TopicIdPartition, GroupPosition]
    ) -> bool:
        end_offset = self.end_offsets.get(partition, 0)
        start_offset = positions.get(partition, GroupPosition()).start_offset
        return not end_offset or UNKNOWN_OFFSET != start_offset >= end_offset
