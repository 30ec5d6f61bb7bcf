"""Finding partitions and segments, and refused directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source import directories
from barnabas.pipeline.log_source.directories import find_partitions
from barnabas.pipeline.log_source.errors import LogFileError
from tests.pipeline.log_source.written_directory import WrittenDirectory, batch_of


@pytest.fixture
def written(tmp_path: Path) -> WrittenDirectory:
    return WrittenDirectory(tmp_path / "data")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories, "LISTING_PAUSE_SECONDS", 0)


def test_partitions_come_by_topic_and_number(written: WrittenDirectory) -> None:
    for topic, partition in (("b", 10), ("b", 2), ("a-b", 0)):
        written.segment([batch_of(0, 1)], topic=topic, partition=partition)
    found = find_partitions([str(written.path)], None)
    assert [(one.topic, one.partition) for one in found] == [("a-b", 0), ("b", 2), ("b", 10)]


def test_several_directories_are_read_as_one(tmp_path: Path) -> None:
    for name, partition in (("one", 0), ("two", 1)):
        WrittenDirectory(tmp_path / name).segment([batch_of(0, 1)], partition=partition)
    found = find_partitions([str(tmp_path / "one"), str(tmp_path / "two")], ["t"])
    assert [one.partition for one in found] == [0, 1]


def test_internal_topics_are_read_only_by_name(written: WrittenDirectory) -> None:
    for topic in ("t", "__consumer_offsets", "__mine"):
        written.segment([batch_of(0, 1)], topic=topic)
    assert [one.topic for one in find_partitions([str(written.path)], None)] == ["__mine", "t"]
    named = find_partitions([str(written.path)], ["__consumer_offsets"])
    assert [one.topic for one in named] == ["__consumer_offsets"]


def test_folders_marked_for_deletion_are_no_partitions(written: WrittenDirectory) -> None:
    written.segment([batch_of(0, 1)])
    for name in ("t-1.0123456789abcdef-delete", "t-2.0123456789abcdef-stray", "lost+found"):
        (written.path / name).mkdir()
    assert [one.partition for one in find_partitions([str(written.path)], None)] == [0]


def test_segments_come_by_offset_without_deleted_or_unfinished_files(written: WrittenDirectory) -> None:
    for base_offset in (100, 0, 20):
        path = written.segment([batch_of(base_offset, 1)])
    for suffix in (".log.deleted", ".log.cleaned"):
        (path.parent / f"{5:020d}{suffix}").write_bytes(b"")
    assert [segment.base_offset for segment in written.folder().segments] == [0, 20, 100]


def test_the_log_start_is_that_of_the_checkpoint_or_of_the_first_segment(written: WrittenDirectory) -> None:
    written.segment([batch_of(10, 10)])
    assert written.folder().log_start_offset == 10
    written.checkpoint("log-start-offset-checkpoint", {("t", 0): 15})
    assert written.folder().log_start_offset == 15


def test_a_folder_without_segments_is_an_empty_partition(written: WrittenDirectory) -> None:
    folder = written.path / "t-0"
    folder.mkdir()
    (folder / "partition.metadata").write_bytes(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA")
    assert written.folder().segments == ()


def test_a_folder_that_changes_while_it_is_listed_is_listed_again(
    written: WrittenDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written.segment([batch_of(0, 1)])
    swap = path.with_name(f"{0:020d}.log.swap")
    path.rename(swap)
    pauses: list[float] = []

    def finish_swap(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == directories.LISTING_TRIES - 1:
            swap.rename(path)

    monkeypatch.setattr("time.sleep", finish_swap)
    assert len(written.folder().segments) == 1


def spoil_with_nothing(path: Path) -> None:
    (path / "meta.properties").unlink()


def spoil_with_a_file(path: Path) -> None:
    spoil_with_nothing(path)
    path.rmdir()
    path.write_bytes(b"")


def spoil_with_a_foreign_folder(path: Path) -> None:
    (path / "backup-2024").mkdir()
    (path / "backup-2024" / "photo.jpg").write_bytes(b"")


def spoil_with_a_misnamed_segment(path: Path) -> None:
    (path / "t-0").mkdir()
    (path / "t-0" / "server.log").write_bytes(b"")


def spoil_with_an_unfinished_swap(path: Path) -> None:
    (path / "t-0").mkdir()
    (path / "t-0" / f"{0:020d}.log.swap").write_bytes(b"")


def spoil_with_a_damaged_checkpoint(path: Path) -> None:
    (path / "log-start-offset-checkpoint").write_bytes(b"0\n5\nt 0 1\n")


BAD_DIRECTORIES = [
    (spoil_with_nothing, "", "is not a data directory"),
    (spoil_with_a_file, "", "is a file"),
    (spoil_with_a_foreign_folder, "/backup-2024", "is no partition's folder"),
    (spoil_with_a_misnamed_segment, "/t-0/server.log", "is no segment"),
    (spoil_with_an_unfinished_swap, "/t-0", "compaction of it is not finished"),
    (spoil_with_a_damaged_checkpoint, "/log-start-offset-checkpoint", "is damaged"),
]


@pytest.mark.parametrize(("spoil", "place", "reason"), BAD_DIRECTORIES)
def test_a_path_that_is_no_data_directory_is_named(
    written: WrittenDirectory, spoil: Callable[[Path], None], place: str, reason: str
) -> None:
    spoil(written.path)
    with pytest.raises(LogFileError, match=reason) as error:
        find_partitions([str(written.path)], None)
    assert error.value.path == f"{written.path}{place}"


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match=r"/nothing: there is no such directory"):
        find_partitions([str(tmp_path / "nothing")], None)


def test_a_partitions_own_folder_is_refused_with_advice(written: WrittenDirectory) -> None:
    folder = written.segment([batch_of(0, 1)]).parent
    with pytest.raises(LogFileError, match=f"name the data directory that it is in: {written.path}"):
        find_partitions([str(folder)], None)


def test_a_missing_topic_is_named(written: WrittenDirectory) -> None:
    written.segment([batch_of(0, 1)])
    with pytest.raises(OptionError, match=r"^topics: there is no topic 'absent' in "):
        find_partitions([str(written.path)], ["t", "absent"])


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        WrittenDirectory(tmp_path / name).segment([batch_of(0, 1)])
    with pytest.raises(LogFileError, match=r"two/t-0: the same partition lies in .*one/t-0 too"):
        find_partitions([str(tmp_path / "one"), str(tmp_path / "two")], None)
