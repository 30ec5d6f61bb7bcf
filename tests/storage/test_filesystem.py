"""The real filesystem: files, directories, locks, whole files, and failed fsyncs."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.protocol.varint import Buffer
from barnabas.storage import filesystem as module
from barnabas.storage.errors import DirectoryLocked
from barnabas.storage.filesystem import RealFileSystem


@pytest.fixture
def filesystem() -> RealFileSystem:
    return RealFileSystem()


def test_written_buffers_are_appended_in_order(filesystem: RealFileSystem, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    file = filesystem.open(path, create=True)
    file.write([b"one", memoryview(b"two"), bytearray(b"three")])
    file.write([b"four"])
    assert (file.read(3, 8), file.size()) == (b"twothree", 15)
    file.truncate(6)
    file.write([b"!"])
    file.sync()
    file.close()
    assert (tmp_path / "log").read_bytes() == b"onetwo!"


def test_more_buffers_than_one_call_takes_are_written(filesystem: RealFileSystem, tmp_path: Path) -> None:
    file = filesystem.open(str(tmp_path / "log"), create=True)
    file.write([b"%05d" % number for number in range(5000)])
    assert file.read(4999 * 5, 5) == b"04999"
    file.close()


def test_short_write_is_continued(
    filesystem: RealFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_five(descriptor: int, buffers: Sequence[Buffer]) -> int:
        return os.write(descriptor, b"".join(buffers)[:5])

    monkeypatch.setattr(os, "writev", write_five)
    file = filesystem.open(str(tmp_path / "log"), create=True)
    file.write([b"four", b"five", b"six"])
    assert file.read(0, 100) == b"fourfivesix"
    file.close()


def test_short_read_is_continued(
    filesystem: RealFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = filesystem.open(str(tmp_path / "log"), create=True)
    file.write([b"0123456789"])
    pread = os.pread

    def read_three(descriptor: int, size: int, position: int) -> bytes:
        return pread(descriptor, min(size, 3), position)

    monkeypatch.setattr(os, "pread", read_three)
    assert file.read(1, 7) == b"1234567"
    assert file.read(8, 100) == b"89"
    assert file.read(100, 5) == b""
    file.close()


def test_missing_file_is_only_made_on_request(filesystem: RealFileSystem, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        filesystem.open(str(tmp_path / "log"), create=False)


def test_directories_are_made_listed_renamed_and_removed(filesystem: RealFileSystem, tmp_path: Path) -> None:
    path = f"{tmp_path}/a/b"
    filesystem.make_directory(path)
    filesystem.make_directory(path)
    filesystem.open(f"{path}/x", create=True).close()
    assert filesystem.list_directory(path) == ["x"]
    assert (filesystem.exists(f"{path}/x"), filesystem.file_size(f"{path}/x")) == (True, 0)
    filesystem.rename(path, f"{tmp_path}/a/c")
    filesystem.sync_directory(f"{tmp_path}/a")
    filesystem.remove(f"{tmp_path}/a/c/x")
    filesystem.remove_tree(f"{tmp_path}/a")
    assert not filesystem.exists(f"{tmp_path}/a")


def test_second_lock_is_refused_with_the_holders_process(filesystem: RealFileSystem, tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = filesystem.lock(path)
    with pytest.raises(DirectoryLocked) as refused:
        RealFileSystem().lock(path)
    assert refused.value.pid == os.getpid()
    lock.release()
    filesystem.lock(path).release()


async def test_whole_file_is_replaced_and_read(filesystem: RealFileSystem, tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    await filesystem.replace_whole(path, b"one")
    await filesystem.replace_whole(path, b"two")
    assert await filesystem.read_whole(path) == b"two"
    assert filesystem.list_directory(str(tmp_path)) == ["checkpoint"]


async def test_run_calls_in_another_thread(filesystem: RealFileSystem) -> None:
    assert await filesystem.run(threading.get_ident) != threading.get_ident()


def test_time_goes_on(filesystem: RealFileSystem) -> None:
    assert filesystem.monotonic_ns() <= filesystem.monotonic_ns()


def test_a_failed_sync_is_not_tried_again(
    filesystem: RealFileSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system would report success: it has reported the loss once, and forgotten it."""
    asked: list[int] = []

    def fail(descriptor: int) -> None:
        asked.append(descriptor)
        raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(module, "_sync_data", fail)
    file = filesystem.open(str(tmp_path / "file"), create=True)
    for _ in range(2):
        with pytest.raises(OSError, match=r"lost|earlier fsync"):
            file.sync()
    assert len(asked) == 1
    file.close()


def test_a_lock_is_seen_by_programs_that_lock_as_kafka_does(
    filesystem: RealFileSystem, tmp_path: Path
) -> None:
    lock = filesystem.lock(str(tmp_path / ".lock"))
    script = (
        "import fcntl, sys\n"
        "with open(sys.argv[1], 'r+b') as file:\n"
        "    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / ".lock")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    lock.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
