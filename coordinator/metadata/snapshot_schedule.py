"""When a metadata snapshot is due (KIP-630, "When to Snapshot"; KIP-876 for the interval). Pure.

Among the records that are in no snapshot yet, either of these makes one due: (1) they have `record_bytes`,
and at least `cleanable_ratio` of the newest snapshot's records was replaced or deleted: by a new value of a
setting, or by the deletion of a topic with all that belonged to it. A record that only adds does not count.
Without a snapshot the bytes are enough. (2) The first of them is `interval_ms` old.

So a log that only grows is not written again without need, and a ratio of 0 gives Kafka's own rule.
"""

from dataclasses import dataclass

from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings

RETRY_MS = 60_000
"""Pause after a snapshot that could not be written."""


@dataclass(slots=True)
class _Uncovered:
    """The records that are in no snapshot."""

    size_bytes: int = 0
    superseded_count: int = 0
    """How many earlier records they replaced or deleted."""
    since_ms: int | None = None
    """When the first of them was replayed (monotonic); None if there are none."""

    def add(self, other: "_Uncovered") -> None:
        self.size_bytes += other.size_bytes
        self.superseded_count += other.superseded_count
        times_ms = [at_ms for at_ms in (self.since_ms, other.since_ms) if at_ms is not None]
        self.since_ms = min(times_ms, default=None)


class SnapshotSchedule:
    """Counts the records that are in no snapshot. Times are monotonic, in ms."""

    def __init__(self, settings: SnapshotSettings) -> None:
        self._settings = settings
        self._uncovered = _Uncovered()
        self._under_way: _Uncovered | None = None
        self._retry_at_ms: int | None = None
        self._record_count = 0

    def loaded(self, record_count: int) -> None:
        """A snapshot of this many records was loaded; the records after it are noted next."""
        self._record_count = record_count

    def note(self, size_bytes: int, superseded_count: int, now_ms: int) -> None:
        """Records were replayed."""
        self._uncovered.add(_Uncovered(size_bytes, superseded_count, now_ms))

    def is_due(self, now_ms: int) -> bool:
        """Whether to take a snapshot now; not while one is under way."""
        uncovered, settings = self._uncovered, self._settings
        if self._under_way is not None or uncovered.since_ms is None:
            return False
        if self._retry_at_ms is not None:
            return now_ms >= self._retry_at_ms
        if settings.interval_ms and now_ms - uncovered.since_ms >= settings.interval_ms:
            return True
        is_worth_it = uncovered.superseded_count >= settings.cleanable_ratio * self._record_count
        return uncovered.size_bytes >= settings.record_bytes and is_worth_it

    def next_deadline_ms(self) -> int | None:
        """When `is_due` becomes true without further records; None if it does not."""
        if self._under_way is not None or self._uncovered.since_ms is None:
            return None
        if self._retry_at_ms is not None:
            return self._retry_at_ms
        interval_ms = self._settings.interval_ms
        return self._uncovered.since_ms + interval_ms if interval_ms else None

    def begun(self) -> None:
        """A snapshot of all records noted so far is being written."""
        self._under_way, self._uncovered = self._uncovered, _Uncovered()

    def succeeded(self, record_count: int) -> None:
        """The snapshot is on the disk, with this many records."""
        self._under_way = self._retry_at_ms = None
        self._record_count = record_count

    def failed(self, now_ms: int) -> None:
        """The snapshot could not be written: its records wait on, and it is tried again after a pause."""
        assert self._under_way is not None, "nothing is under way"
        self._uncovered.add(self._under_way)
        self._under_way = None
        self._retry_at_ms = now_ms + RETRY_MS
