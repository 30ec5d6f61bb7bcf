from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from barnabas.cli.process.ready_file import check_ready_file, ready_file, without_old_ready_file
from barnabas.storage.errors import DirectoryLocked, StorageError

ADDRESS = "127.0.0.1:9092"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ready"


def test_the_file_exists_while_the_broker_serves(path: Path) -> None:
    with ready_file(str(path), ADDRESS):
        assert [file.read_text() for file in path.parent.iterdir()] == [f"{ADDRESS}\n"]
    assert not path.exists()


def test_the_ready_file_is_removed_when_the_broker_fails(path: Path) -> None:
    with pytest.raises(RuntimeError), ready_file(str(path), ADDRESS):
        raise RuntimeError("the disk forgot")
    assert not path.exists()


def test_the_ready_file_may_be_removed_by_another_program(path: Path) -> None:
    with capture_logs() as lines, ready_file(str(path), ADDRESS):
        path.unlink()
    assert (lines, list(path.parent.iterdir())) == ([], [])


def test_a_ready_file_that_cannot_be_removed_is_logged_and_does_not_prevent_the_end(path: Path) -> None:
    with capture_logs() as lines, ready_file(str(path), ADDRESS):
        path.unlink()
        path.mkdir()
    assert [(line["event"], line["path"]) for line in lines] == [("ready file not removed", str(path))]


def test_without_a_path_there_is_none(path: Path) -> None:
    with ready_file(None, ADDRESS):
        assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("failure", [None, StorageError("unreadable")])
def test_one_of_an_earlier_broker_is_removed_even_if_the_start_fails(
    path: Path, failure: StorageError | None
) -> None:
    path.write_text("127.0.0.1:4711\n")
    check_ready_file(str(path))
    with suppress(StorageError), without_old_ready_file(str(path)):
        if failure is not None:
            raise failure
    assert list(path.parent.iterdir()) == []


def test_the_file_of_a_running_broker_stays(path: Path) -> None:
    path.write_text(f"{ADDRESS}\n")
    check_ready_file(str(path))
    with pytest.raises(DirectoryLocked), without_old_ready_file(str(path)):
        raise DirectoryLocked("/data/.lock", 7)
    assert path.read_text() == f"{ADDRESS}\n"


def test_an_impossible_path_is_refused_beforehand(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "ready", tmp_path):
        with pytest.raises(OSError):
            check_ready_file(str(path))
    assert list(tmp_path.iterdir()) == []
