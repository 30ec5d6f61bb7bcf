"""Limits the rate of records: each batch waits until the time that the batches before it take. Pure.

The limit holds from the first batch on: time without records is not saved up.
"""

from __future__ import annotations


class Throttle:
    """Times are in seconds, of one monotonic clock."""

    def __init__(self, records_per_second: float | None) -> None:
        """None for no limit."""
        self._records_per_second = records_per_second
        self._due = 0.0
        """When the next batch may begin."""

    def batch_records(self, records_max: int) -> int:
        """The size of a batch: at most the records of one second, but at least one."""
        if self._records_per_second is None:
            return records_max
        return max(1, min(records_max, int(self._records_per_second)))

    def wait_seconds(self, now: float) -> float:
        """How long the next batch has to wait."""
        return max(0.0, self._due - now)

    def note(self, record_count: int, now: float) -> None:
        """A batch with this number of records begins now."""
        if self._records_per_second is not None:
            self._due = max(self._due, now) + record_count / self._records_per_second
