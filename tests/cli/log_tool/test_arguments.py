from pathlib import Path

import pytest

from barnabas.__main__ import main
from tests.cli.log_tool.written_logs import FIRST, LogCommand


def test_the_help_names_all_actions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["log", "--help"])
    assert end.value.code == 0
    help_text = capsys.readouterr().out
    assert all(
        word in help_text for word in ("dump", "describe", "verify", "examples:", "Nothing is written")
    )


@pytest.mark.parametrize("action", ["dump", "describe", "verify"])
def test_a_missing_path_is_one_line(log_command: LogCommand, action: str) -> None:
    assert log_command.run(action, "/no/such/place") == (
        2,
        ["barnabas: /no/such/place: No such file or directory."],
    )


def test_a_directory_without_logs_is_one_line(log_command: LogCommand, tmp_path: Path) -> None:
    (tmp_path / "photos-2024").mkdir()
    assert log_command.run("verify", tmp_path) == (
        2,
        [f"barnabas: {tmp_path} is not a data directory, and not the directory of a partition."],
    )


def test_a_file_that_is_not_a_segment_is_one_line(log_command: LogCommand, tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    path.touch()
    assert log_command.run("dump", path) == (
        2,
        [f"barnabas: {path} is not a segment: the name of a segment is 20 digits and .log."],
    )


def test_a_file_without_read_permission_is_one_line(
    log_command: LogCommand, log_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("barnabas.cli.log_tool.files.os.open", refuse)
    exit_code, printed = log_command.run("dump", log_path)
    assert (exit_code, printed[-1]) == (2, f"barnabas: {log_path / FIRST}.log: Permission denied.")


@pytest.mark.parametrize("action", ["dump", "describe", "verify"])
def test_reading_changes_no_file(log_command: LogCommand, log_path: Path, action: str) -> None:
    before = {path: path.stat() for path in sorted(log_path.parent.rglob("*"))}
    assert log_command.run(action, log_path.parent)[0] == 0
    after = {path: path.stat() for path in sorted(log_path.parent.rglob("*"))}
    assert [(path, stat.st_mtime_ns, stat.st_size) for path, stat in after.items()] == [
        (path, stat.st_mtime_ns, stat.st_size) for path, stat in before.items()
    ]


def test_several_paths_are_read_one_by_one(log_command: LogCommand, log_path: Path) -> None:
    rows = log_command.rows("verify", log_path, log_path / f"{FIRST}.log")
    assert [row["batch_count"] for row in rows] == [10, 5]
