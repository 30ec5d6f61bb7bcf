"""When a snapshot is due: by bytes and ratio together, by time alone, and after one that failed."""

import pytest

from barnabas.coordinator.metadata.snapshot_schedule import RETRY_MS, SnapshotSchedule
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings

HOUR_MS = 3_600_000
SETTINGS = SnapshotSettings(record_bytes=1_000, interval_ms=HOUR_MS, cleanable_ratio=0.5)


def schedule_after(snapshot_record_count: int, settings: SnapshotSettings = SETTINGS) -> SnapshotSchedule:
    """A schedule whose newest snapshot has this number of records."""
    schedule = SnapshotSchedule(settings)
    schedule.loaded(snapshot_record_count)
    return schedule


@pytest.mark.parametrize(
    ("size_bytes", "superseded_count", "ratio", "due"),
    [
        (1_000, 50, 0.5, True),
        (999, 50, 0.5, False),
        (1_000, 49, 0.5, False),
        (1_000_000, 0, 0.5, False),
        (1_000, 0, 0.0, True),
        (1_000, 99, 1.0, False),
        (1_000, 100, 1.0, True),
        (1_000, 300, 1.0, True),
    ],
)
def test_bytes_count_once_enough_of_the_snapshot_has_changed(
    size_bytes: int, superseded_count: int, ratio: float, due: bool
) -> None:
    schedule = schedule_after(100, SETTINGS._replace(cleanable_ratio=ratio))
    schedule.note(size_bytes, superseded_count, 0)
    assert schedule.is_due(0) is due


def test_changes_add_up() -> None:
    schedule = schedule_after(100)
    for _ in range(10):
        schedule.note(100, 5, 0)
    assert schedule.is_due(0)


def test_without_a_snapshot_the_bytes_are_enough() -> None:
    schedule = SnapshotSchedule(SETTINGS)
    schedule.note(999, 0, 0)
    assert not schedule.is_due(0)
    schedule.note(1, 0, 0)
    assert schedule.is_due(0)


def test_no_record_waits_longer_than_the_interval() -> None:
    schedule = schedule_after(100)
    schedule.note(1, 0, 500)
    schedule.note(1, 0, 2_000)
    assert schedule.next_deadline_ms() == HOUR_MS + 500
    assert not schedule.is_due(HOUR_MS + 499)
    assert schedule.is_due(HOUR_MS + 500)


def test_without_records_nothing_is_due() -> None:
    schedule = schedule_after(100)
    assert not schedule.is_due(10 * HOUR_MS)
    assert schedule.next_deadline_ms() is None


def test_without_an_interval_time_makes_nothing_due() -> None:
    schedule = schedule_after(100, SETTINGS._replace(interval_ms=0))
    schedule.note(1, 0, 0)
    assert schedule.next_deadline_ms() is None
    assert not schedule.is_due(10 * HOUR_MS)


def test_while_one_is_written_no_other_is_due_and_new_records_count_for_the_next() -> None:
    schedule = SnapshotSchedule(SETTINGS)
    schedule.note(1_000, 0, 0)
    schedule.begun()
    schedule.note(2_000, 50, 10)
    assert not schedule.is_due(10 * HOUR_MS)
    assert schedule.next_deadline_ms() is None
    schedule.succeeded(100)
    assert schedule.is_due(10)


def test_a_snapshot_that_failed_is_tried_again_after_a_pause() -> None:
    schedule = SnapshotSchedule(SETTINGS)
    schedule.note(1_000, 0, 0)
    schedule.begun()
    schedule.failed(40)
    assert not schedule.is_due(40)
    assert schedule.next_deadline_ms() == 40 + RETRY_MS
    assert schedule.is_due(40 + RETRY_MS)
    schedule.begun()
    schedule.succeeded(10)
    assert schedule.next_deadline_ms() is None


def test_the_longest_waiting_record_counts_after_a_failure() -> None:
    schedule = schedule_after(100)
    schedule.note(1, 0, 5)
    schedule.begun()
    schedule.note(1, 0, 9)
    schedule.failed(10)
    schedule.begun()
    schedule.succeeded(100)
    schedule.note(1, 0, 77)
    assert schedule.next_deadline_ms() == HOUR_MS + 77
