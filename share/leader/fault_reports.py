"""The log lines about faults of batches that a share group reads."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.runtime.logging import get_logger
from barnabas.share.leader.batch_keys import InvalidPriority
from barnabas.share.leader.record_source import RecordSource
from barnabas.share.leader.unreadable_batches import UnreadableBatch

log = get_logger("share")


class FaultReports:
    """Logs each malformed batch once, although a group may skip it in parts, and the first invalid priority
    that the leader has read.
    """

    def __init__(self, source: RecordSource, group_id: str) -> None:
        self._partition_name = source.topic_partition.directory_name
        self._group_id = group_id
        self._reported_offset = -1
        """The base offset of the last malformed batch that was logged."""
        self._has_reported_priority = False

    def report_malformed(self, unreadable: Sequence[UnreadableBatch]) -> None:
        for base_offset, last_offset, reason in unreadable:
            if base_offset > self._reported_offset:
                self._reported_offset = base_offset
                log.error(
                    "a share group passes over a malformed batch",
                    partition=self._partition_name,
                    first_offset=base_offset,
                    last_offset=last_offset,
                    reason=reason,
                    group=self._group_id,
                )

    def report_priority(self, invalid: InvalidPriority) -> None:
        if not self._has_reported_priority:
            self._has_reported_priority = True
            log.warning(
                "a record has an invalid priority, which counts as 0: send one digit from 0 to 9",
                partition=self._partition_name,
                offset=invalid.offset,
                value=invalid.value,
                group=self._group_id,
            )
