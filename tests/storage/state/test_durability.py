"""What of a log is durable: bounds of unsynced appends, bytes behind a sync and a flush, names of files."""

import pytest

from barnabas.storage.state.durability import Durability


def sync(durability: Durability, log_end_offset: int, *, appended_meanwhile: int = 0) -> bool:
    """Whether the directory had to be synced, too."""
    with durability.syncing(log_end_offset) as directory_changed:
        durability.appended_bytes += appended_meanwhile
    return directory_changed


def test_an_opened_log_is_durable_up_to_its_recovery_point() -> None:
    durability = Durability(7)
    assert (durability.durable_offset, durability.recovery_point) == (7, 7)
    assert (durability.unflushed_bytes, durability.recovery_scan_bytes) == (0, 0)


def test_the_bound_of_unsynced_appends_follows_the_durable_offset() -> None:
    durability = Durability(7)
    durability.allow_unsynced(3)
    assert durability.unsynced_end_max == 10
    durability.note_durable(9)
    assert durability.unsynced_end_max == 12
    durability.allow_unsynced(0)
    assert durability.unsynced_end_max == 9


def test_the_durable_offset_never_moves_back() -> None:
    durability = Durability(7)
    with durability.syncing(8):
        durability.note_durable(9)  # by an append with its own fsync
    assert durability.durable_offset == 9


def test_bytes_appended_during_a_sync_wait_for_the_next_one() -> None:
    durability = Durability(0)
    durability.appended_bytes += 100
    sync(durability, 1, appended_meanwhile=10)
    assert (durability.unflushed_bytes, durability.recovery_scan_bytes) == (10, 110)
    durability.move_recovery_point(1)
    assert (durability.recovery_point, durability.recovery_scan_bytes) == (1, 10)


def test_the_first_sync_and_syncs_after_a_change_include_the_directory() -> None:
    durability = Durability(0)
    assert [sync(durability, 0), sync(durability, 0)] == [True, False]
    durability.directory_changed = True
    assert [sync(durability, 0), sync(durability, 0)] == [True, False]


def test_a_failed_sync_makes_nothing_durable() -> None:
    durability = Durability(0)
    durability.appended_bytes += 100
    with pytest.raises(OSError, match="no sync"), durability.syncing(1):
        raise OSError("no sync")
    assert (durability.durable_offset, durability.unflushed_bytes) == (0, 100)
    assert sync(durability, 1), "the directory is still to be synced"
