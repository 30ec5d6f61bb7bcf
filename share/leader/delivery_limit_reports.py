"""Log lines about records that have reached the delivery limit of their group and are archived (KIP-932,
"Delivery count limit").

No member receives such a record again, so the group's owner should know of it. A group can lose thousands of
records at once, so one line for each group sums up an interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.runtime.clock import Clock
from barnabas.runtime.deadlines import Deadlines
from barnabas.runtime.logging import get_logger
from barnabas.storage.topic_partition import TopicPartition

log = get_logger("share")

TELL_INTERVAL_MS: Final = 10_000
"""From the first such record to the lines about all of them."""
GROUPS_TOLD_MAX: Final = 20
"""The number of groups with a line of their own; the next line is about all others."""


@dataclass(slots=True)
class _OfGroup:
    """One group's records since the last line, and the partition that the first of them was in."""

    topic_partition: TopicPartition
    first_offset: int
    record_count: int = 0


class DeliveryLimitReports:
    """Sums up the records of all groups, and logs them at the end of the interval (`deadlines.Expirable`)."""

    def __init__(self, clock: Clock, deadlines: Deadlines) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._groups: dict[str, _OfGroup] = {}
        self._tell_at_ms: int | None = None

    def note(
        self, group_id: str, topic_partition: TopicPartition, first_offset: int, record_count: int
    ) -> None:
        """Adds records of one partition, the first of them at `first_offset`."""
        of_group = self._groups.setdefault(group_id, _OfGroup(topic_partition, first_offset))
        of_group.record_count += record_count
        if of_group.topic_partition == topic_partition:
            of_group.first_offset = min(of_group.first_offset, first_offset)
        if self._tell_at_ms is None:
            self._tell_at_ms = self._clock.monotonic_ms() + TELL_INTERVAL_MS
            self._deadlines.schedule(self, self._tell_at_ms)

    def next_deadline_ms(self) -> int | None:
        """See `deadlines.Expirable`."""
        return self._tell_at_ms

    def expire(self, now_ms: int) -> None:
        """See `deadlines.Expirable`; also called at the end of the broker."""
        groups, self._groups, self._tell_at_ms = self._groups, {}, None
        told = list(groups.items())
        for group_id, of_group in told[:GROUPS_TOLD_MAX]:
            log.warning(
                "records reached the delivery limit and are archived",
                group=group_id,
                records=of_group.record_count,
                first=f"{of_group.topic_partition.directory_name} offset {of_group.first_offset}",
            )
        others = [of_group for _, of_group in told[GROUPS_TOLD_MAX:]]
        if others:
            log.warning(
                "records of more groups reached the delivery limit and are archived",
                groups=len(others),
                records=sum(of_group.record_count for of_group in others),
            )
