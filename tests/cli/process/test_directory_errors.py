import errno
import os
from pathlib import Path

import pytest

from barnabas.cli.process.directory_errors import explain


def error(code: int, path: Path | None = None) -> OSError:
    return OSError(code, os.strerror(code)) if path is None else OSError(code, os.strerror(code), str(path))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_explained_although_writes_name_no_file(tmp_path: Path, code: int) -> None:
    explained = explain(error(code), str(tmp_path))
    assert explained is not None
    assert explained.startswith(f"There is no room left for {tmp_path} on its disk.")


def test_a_read_only_filesystem_is_explained(tmp_path: Path) -> None:
    explained = explain(error(errno.EROFS, tmp_path / ".lock"), str(tmp_path))
    assert explained is not None
    assert "read-only" in explained


def test_owner_and_user_are_named_with_the_command_that_helps(tmp_path: Path) -> None:
    directory = tmp_path / "missing" / "data"
    explained = explain(error(errno.EACCES, directory), str(directory))
    assert explained is not None
    user = os.geteuid()
    assert f"{tmp_path} belongs to user {tmp_path.stat().st_uid}" in explained
    assert f"(mkdir -p {directory} && chown -R {user} {directory})" in explained
    directory.mkdir(parents=True)
    explained = explain(error(errno.EACCES, directory / ".lock"), str(directory))
    assert explained is not None
    assert f"(chown -R {user} {directory})" in explained


def test_a_file_in_place_of_the_directory_or_of_a_parent_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for directory in (file, file / "below"):
        explained = explain(error(errno.ENOTDIR, directory), str(directory))
        assert explained is not None
        assert f"{file} is a file, not a directory" in explained


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any directory")
def test_a_parent_that_may_not_be_searched_is_named_with_its_owner(tmp_path: Path) -> None:
    parent = tmp_path / "private"
    parent.mkdir(mode=0o600)
    explained = explain(error(errno.EACCES, parent / "data"), str(parent / "data"))
    assert explained is not None
    assert f"{parent} belongs to user {parent.stat().st_uid}" in explained


def test_a_path_that_cannot_be_inspected_is_explained_by_its_parent(tmp_path: Path) -> None:
    directory = tmp_path / ("x" * 300)
    with pytest.raises(OSError, match="name too long"):
        directory.exists()
    explained = explain(error(errno.EACCES, directory), str(directory))
    assert explained is not None
    assert f"{tmp_path} belongs to user {tmp_path.stat().st_uid}" in explained


@pytest.mark.parametrize(
    "unrelated", [error(errno.EACCES), error(errno.EADDRINUSE), error(errno.EACCES, Path("/etc/shadow"))]
)
def test_an_error_outside_the_directory_is_not_explained(tmp_path: Path, unrelated: OSError) -> None:
    assert explain(unrelated, str(tmp_path)) is None
