"""The sources of a release: tracked files only, with fixed modes, and one time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from release.artefacts import leave_out_native_modules
from release.errors import ReleaseError
from release.source_tree import commit_of, copy_tracked_files, source_date_epoch

PROJECT = Path(__file__).resolve().parents[2]
COMMIT_TIME = "2026-11-25T12:00:00+00:00"
COMMIT_EPOCH = 1_795_608_000


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a file, a program, a link and an untracked file."""
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_COMMITTER_DATE", COMMIT_TIME)
    folder = tmp_path / "checkout"
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "module.py").write_text("one")
    (folder / "code" / "module.py").chmod(0o600)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o700)
    (folder / "link").symlink_to("code")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.hooksPath=/dev/null")
    for command in (("init", "-q"), ("add", "."), (*identity, "commit", "-q", "-m", "One")):
        subprocess.run(["git", "-C", folder, *command], check=True)
    (folder / "stray.py").write_text("untracked")
    return folder


def test_only_tracked_files_are_copied_with_their_present_contents(checkout: Path, tmp_path: Path) -> None:
    (checkout / "code" / "module.py").write_text("two")
    copy = copy_tracked_files(checkout, tmp_path / "copy")
    assert sorted(path.name for path in copy.iterdir()) == ["code", "link", "program"]
    assert (copy / "code" / "module.py").read_text() == "two"
    assert (copy / "link").readlink() == Path("code")


def test_modes_do_not_depend_on_the_checkout(checkout: Path, tmp_path: Path) -> None:
    copy = copy_tracked_files(checkout, tmp_path / "copy")
    modes = {name: (copy / name).stat().st_mode & 0o777 for name in ("code/module.py", "program")}
    assert modes == {"code/module.py": 0o644, "program": 0o755}


def test_a_deleted_file_is_left_out_before_its_deletion_is_committed(checkout: Path, tmp_path: Path) -> None:
    (checkout / "program").unlink()
    assert not (copy_tracked_files(checkout, tmp_path / "copy") / "program").exists()


def test_the_time_is_that_of_the_commit(checkout: Path) -> None:
    assert source_date_epoch(checkout) == COMMIT_EPOCH


def test_source_date_epoch_wins(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert source_date_epoch(checkout) == 1_700_000_000
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ReleaseError, match="SOURCE_DATE_EPOCH is 'yesterday'; set it to seconds since 1970"):
        source_date_epoch(checkout)


def test_the_commit_says_whether_files_have_changed(checkout: Path) -> None:
    clean = commit_of(checkout)
    assert len(clean) == 40
    (checkout / "program").write_text("changed")
    assert commit_of(checkout) == f"{clean}-dirty"


def test_a_folder_outside_of_git_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="must be a git checkout with a commit"):
        source_date_epoch(tmp_path)


def test_the_native_modules_can_be_left_out_of_the_projects_own_pyproject(tmp_path: Path) -> None:
    copy = tmp_path / "pyproject.toml"
    text = (PROJECT / "pyproject.toml").read_text()
    copy.write_text(text)
    leave_out_native_modules(copy)
    assert "ext-modules" in text
    assert "ext-modules" not in copy.read_text()
    assert "[tool.setuptools.packages.find]" in copy.read_text()


def test_native_modules_in_another_form_are_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "pyproject.toml"
    copy.write_text('[tool.setuptools]\next-modules = [{ name = "a", sources = ["a.c"] }]\n')
    with pytest.raises(ReleaseError, match="declares native modules in a form"):
        leave_out_native_modules(copy)
