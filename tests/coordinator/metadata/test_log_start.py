"""Where the metadata log may begin: replicas, time and size, and always two snapshots."""

import pytest

from barnabas.coordinator.metadata.log_start import StoredSnapshot, decide_log_start, waits_for_followers
from barnabas.coordinator.metadata.snapshot import SnapshotId
from barnabas.coordinator.metadata.snapshot_settings import SnapshotSettings

SETTINGS = SnapshotSettings(start_lag_ms=1_000, retention_ms=5_000, retention_bytes=10_000)


def taken_at(*end_offsets: int) -> list[StoredSnapshot]:
    """Snapshots of 100 bytes whose last record is as old as their end offset says, in ms."""
    return [StoredSnapshot(SnapshotId(end_offset, 0), end_offset, 100) for end_offset in end_offsets]


@pytest.mark.parametrize(
    ("end_offsets", "replicated", "now_ms", "log_bytes", "expected"),
    [
        ((), None, 0, 0, 0),
        ((10,), None, 10, 0, 0),
        ((10, 20), None, 20, 0, 10),
        ((10, 20, 30), None, 30, 0, 20),
        ((10, 20, 30), 20, 30, 0, 20),
        ((10, 20, 30), 19, 30, 0, 10),
        ((10, 20, 30), 9, 30, 0, 0),
        ((10, 20, 30), 9, 1_009, 0, 0),
        ((10, 20, 30), 9, 1_010, 0, 10),
        ((10, 20, 30), 9, 1_020, 0, 20),
        ((10, 20, 30), 9, 30, 9_700, 0),
        ((10, 20, 30), 9, 30, 9_701, 20),
    ],
)
def test_the_log_begins_with_the_second_newest_snapshot_that_no_follower_needs(
    end_offsets: tuple[int, ...], replicated: int | None, now_ms: int, log_bytes: int, expected: int
) -> None:
    start = decide_log_start(
        taken_at(*end_offsets),
        0,
        log_bytes=log_bytes,
        replicated_offset=replicated,
        settings=SETTINGS,
        now_ms=now_ms,
    )
    assert start == expected


@pytest.mark.parametrize(("log_start", "expected"), [(10, 20), (20, 20), (25, 25)])
def test_the_log_start_never_goes_back(log_start: int, expected: int) -> None:
    start = decide_log_start(
        taken_at(10, 20, 30),
        log_start,
        log_bytes=0,
        replicated_offset=None,
        settings=SETTINGS,
        now_ms=30,
    )
    assert start == expected


@pytest.mark.parametrize(
    ("lag_ms", "retention_ms", "wait_ms"), [(5, 7, 5), (7, 5, 5), (7, -1, 7), (0, 5, 0), (7, 0, 0)]
)
def test_the_shorter_of_both_times_holds(lag_ms: int, retention_ms: int, wait_ms: int) -> None:
    settings = SnapshotSettings(start_lag_ms=lag_ms, retention_ms=retention_ms)
    assert settings.wait_ms == wait_ms


def test_without_a_limit_of_bytes_size_does_not_count() -> None:
    start = decide_log_start(
        taken_at(10, 20),
        0,
        log_bytes=1 << 50,
        replicated_offset=0,
        settings=SETTINGS._replace(retention_bytes=-1),
        now_ms=20,
    )
    assert start == 0


@pytest.mark.parametrize(
    ("end_offsets", "log_start", "waits"),
    [((), 0, False), ((10,), 0, False), ((10, 20), 0, True), ((10, 20), 10, False), ((10, 20, 30), 10, True)],
)
def test_only_a_snapshot_beyond_the_log_start_is_worth_waiting_for(
    end_offsets: tuple[int, ...], log_start: int, waits: bool
) -> None:
    assert waits_for_followers(taken_at(*end_offsets), log_start) is waits
