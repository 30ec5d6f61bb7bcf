"""The checks of the data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.cli.checks.disk import (
    FREE_BYTES_GOOD,
    FREE_BYTES_MIN,
    FSYNC_COUNT,
    check_directory,
    file_system_of,
)
from barnabas.cli.checks.finding import Finding, Result
from barnabas.storage.filesystem import DiskSpace

MOUNTS = """\
overlay / overlay rw 0 0
/dev/sda1 /data ext4 rw 0 0
server:/share /data/my\\040share nfs4 rw 0 0
tmpfs /run tmpfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mounts"
    path.write_text(f"/dev/sda1 {tmp_path} ext4 rw 0 0\n")
    return path


def findings(directory: Path, mounts: Path) -> dict[str, Finding]:
    return {one.check: one for one in check_directory(str(directory), mounts)}


def test_a_directory_that_will_be_created_is_well_and_nothing_is_left_in_its_parent(
    tmp_path: Path, mounts: Path
) -> None:
    found = findings(tmp_path / "new" / "data", mounts)
    assert found["data directory"].result is Result.OK
    assert "will be created" in found["data directory"].detail
    assert set(found) == {"data directory", "fsync", "free space", "file system"}
    assert list(tmp_path.iterdir()) == [mounts]


def test_a_file_in_the_way_is_a_failure_with_a_remedy(tmp_path: Path, mounts: Path) -> None:
    (tmp_path / "data").write_text("")
    found = findings(tmp_path / "data", mounts)
    assert list(found) == ["data directory"]
    assert found["data directory"].result is Result.FAILURE
    assert "Name another with --data-dir" in (found["data directory"].remedy or "")


def test_a_disk_that_fails_is_a_failure(tmp_path: Path, mounts: Path) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, os.strerror(5))

    (finding,) = [one for one in check_directory(str(tmp_path), mounts, fsync=fail) if one.check == "fsync"]
    assert finding.result is Result.FAILURE
    assert "Input/output error" in finding.detail


def test_fsync_is_measured_several_times(tmp_path: Path, mounts: Path) -> None:
    flushed: list[int] = []
    (finding,) = [
        one for one in check_directory(str(tmp_path), mounts, fsync=flushed.append) if one.check == "fsync"
    ]
    assert (len(flushed), finding.result) == (FSYNC_COUNT, Result.OK)


@pytest.mark.parametrize(
    ("free_bytes", "result"),
    [
        (FREE_BYTES_GOOD, Result.OK),
        (FREE_BYTES_GOOD - 1, Result.WARNING),
        (FREE_BYTES_MIN, Result.WARNING),
        (FREE_BYTES_MIN - 1, Result.FAILURE),
    ],
)
def test_a_disk_with_little_room_is_a_warning_and_with_none_a_failure(
    free_bytes: int, result: Result, tmp_path: Path, mounts: Path
) -> None:
    space = DiskSpace(1 << 40, free_bytes)
    found = check_directory(str(tmp_path), mounts, disk_space=lambda _: space)
    (finding,) = [one for one in found if one.check == "free space"]
    assert (finding.result, finding.remedy is None) == (result, result is Result.OK)
    assert "of 1,048,576 MiB" in finding.detail


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("ext4", Result.OK),
        ("xfs", Result.OK),
        ("overlay", Result.WARNING),
        ("tmpfs", Result.WARNING),
        ("nfs4", Result.WARNING),
    ],
)
def test_a_file_system_that_loses_data_is_a_warning(kind: str, result: Result, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"device {tmp_path} {kind} rw 0 0\n")
    found = findings(tmp_path, mounts)["file system"]
    assert (found.result, kind in found.detail) == (result, True)
    assert (found.remedy is None) == (result is Result.OK)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/data/orders", "ext4"),
        ("/data/my share/x", "nfs4"),
        ("/database", "overlay"),
        ("/run", "tmpfs"),
    ],
)
def test_the_deepest_mount_holds_a_path(place: str, kind: str) -> None:
    assert file_system_of(Path(place), MOUNTS) == kind


def test_without_mounts_the_file_system_is_unknown() -> None:
    assert file_system_of(Path("/data"), "") is None
