"""The snapshots of a directory: found in their order, set aside if damaged, read in pieces, deleted."""

from collections.abc import Sequence

import pytest
from structlog.typing import EventDict

from barnabas.coordinator.metadata.snapshot import SnapshotId
from barnabas.coordinator.metadata.snapshot_files import DAMAGED_SUFFIX, SnapshotFiles
from barnabas.protocol.metadata_records import FeatureLevelRecord, MetadataRecord
from barnabas.runtime.moment import Moment
from tests.storage.memory_filesystem import MemoryFileSystem

DIRECTORY = "/data/__cluster_metadata-0"
MOMENT = Moment(now_ms=10, wall_ms=1_010)


def records(count: int) -> Sequence[MetadataRecord]:
    return [FeatureLevelRecord(name=f"f{number}", feature_level=1) for number in range(count)]


@pytest.fixture
def filesystem() -> MemoryFileSystem:
    made = MemoryFileSystem()
    made.make_directory(DIRECTORY)
    return made


async def with_snapshots(filesystem: MemoryFileSystem, *ids: SnapshotId) -> SnapshotFiles:
    """Snapshots with as many records as their end offset says."""
    files = SnapshotFiles(filesystem, DIRECTORY)
    for snapshot_id in ids:
        last_written = Moment(snapshot_id.end_offset, 1_000 + snapshot_id.end_offset)
        await files.write(snapshot_id, records(snapshot_id.end_offset), last_written)
    return files


async def test_an_empty_directory_has_none(filesystem: MemoryFileSystem) -> None:
    files = SnapshotFiles(filesystem, DIRECTORY)
    assert await files.open(MOMENT) is None
    assert files.stored == []


async def test_the_newest_is_read_and_the_others_are_known(filesystem: MemoryFileSystem) -> None:
    written = await with_snapshots(filesystem, SnapshotId(3, 0), SnapshotId(5, 1))
    files = SnapshotFiles(filesystem, DIRECTORY)
    newest = await files.open(MOMENT)
    assert newest is not None
    assert (newest.snapshot_id, newest.last_timestamp_ms, len(newest.records)) == (SnapshotId(5, 1), 1_005, 5)
    assert files.stored == written.stored


async def test_a_later_epoch_is_newer_and_a_snapshot_that_ends_behind_it_is_set_aside(
    filesystem: MemoryFileSystem,
) -> None:
    await with_snapshots(filesystem, SnapshotId(3, 1), SnapshotId(9, 1), SnapshotId(5, 2))
    files = SnapshotFiles(filesystem, DIRECTORY)
    await files.open(MOMENT)
    assert files.ids == [SnapshotId(3, 1), SnapshotId(5, 2)]
    assert f"{DIRECTORY}/{SnapshotId(9, 1).file_name}{DAMAGED_SUFFIX}" in filesystem.files


async def test_a_snapshot_that_the_disk_does_not_give_is_passed_over_and_left_as_it_is(
    filesystem: MemoryFileSystem, log_lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_snapshots(filesystem, SnapshotId(3, 0), SnapshotId(5, 0))
    original = filesystem.read_whole

    async def read_whole(path: str) -> bytes:
        if SnapshotId(5, 0).file_name in path:
            raise OSError("the disk says no")
        return await original(path)

    monkeypatch.setattr(filesystem, "read_whole", read_whole)
    files = SnapshotFiles(filesystem, DIRECTORY)
    newest = await files.open(MOMENT)
    assert newest is not None
    assert newest.snapshot_id == SnapshotId(3, 0)
    assert files.ids == [SnapshotId(3, 0)]
    assert f"{DIRECTORY}/{SnapshotId(5, 0).file_name}" in filesystem.files
    assert [line["reason"] for line in log_lines] == ["the disk says no"]


async def test_a_damaged_one_is_set_aside_and_the_one_before_it_read(
    filesystem: MemoryFileSystem, log_lines: list[EventDict]
) -> None:
    await with_snapshots(filesystem, SnapshotId(3, 0), SnapshotId(5, 0))
    path = f"{DIRECTORY}/{SnapshotId(5, 0).file_name}"
    filesystem.files[path][-1] ^= 1
    files = SnapshotFiles(filesystem, DIRECTORY)
    newest = await files.open(MOMENT)
    assert newest is not None
    assert newest.snapshot_id == SnapshotId(3, 0)
    assert files.ids == [SnapshotId(3, 0)]
    assert f"{path}{DAMAGED_SUFFIX}" in filesystem.files
    assert [line["path"] for line in log_lines] == [path]


async def test_an_older_one_without_a_header_is_set_aside_too(filesystem: MemoryFileSystem) -> None:
    await with_snapshots(filesystem, SnapshotId(3, 0), SnapshotId(5, 0))
    filesystem.files[f"{DIRECTORY}/{SnapshotId(3, 0).file_name}"].clear()
    files = SnapshotFiles(filesystem, DIRECTORY)
    await files.open(MOMENT)
    assert files.ids == [SnapshotId(5, 0)]


async def test_other_files_are_left_alone(filesystem: MemoryFileSystem) -> None:
    filesystem.files[f"{DIRECTORY}/00000000000000000000.log"] = bytearray(b"x")
    await with_snapshots(filesystem, SnapshotId(3, 0))
    files = SnapshotFiles(filesystem, DIRECTORY)
    await files.open(MOMENT)
    await files.delete_below(100)
    assert list(filesystem.files) == [f"{DIRECTORY}/00000000000000000000.log"]


async def test_snapshots_below_an_offset_are_removed(filesystem: MemoryFileSystem) -> None:
    files = await with_snapshots(filesystem, SnapshotId(3, 0), SnapshotId(5, 0), SnapshotId(7, 0))
    await files.delete_below(5)
    assert files.ids == [SnapshotId(5, 0), SnapshotId(7, 0)]
    assert len(filesystem.files) == 2


async def test_a_file_is_read_in_pieces(filesystem: MemoryFileSystem) -> None:
    snapshot_id = SnapshotId(50, 0)
    files = await with_snapshots(filesystem, snapshot_id)
    stored = files.find(snapshot_id)
    assert stored is not None
    pieces = [await files.read(snapshot_id, position, 7) for position in range(0, stored.size_bytes, 7)]
    whole = b"".join(piece for piece in pieces if piece is not None)
    assert whole == bytes(filesystem.files[f"{DIRECTORY}/{snapshot_id.file_name}"])


async def test_a_snapshot_that_is_gone_cannot_be_read(filesystem: MemoryFileSystem) -> None:
    files = await with_snapshots(filesystem, SnapshotId(3, 0))
    await files.delete_below(4)
    assert files.find(SnapshotId(3, 0)) is None
    assert await files.read(SnapshotId(3, 0), 0, 10) is None


async def test_a_snapshot_that_was_found_survives_a_loss_of_power(filesystem: MemoryFileSystem) -> None:
    await with_snapshots(filesystem, SnapshotId(3, 0))
    filesystem.durable_entries.clear()
    await SnapshotFiles(filesystem, DIRECTORY).open(MOMENT)
    left = await SnapshotFiles(filesystem.after_power_loss(), DIRECTORY).open(MOMENT)
    assert left is not None
