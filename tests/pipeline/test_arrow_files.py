"""A file has its name only once it is whole and, on a local file system, durable."""

import os
from pathlib import Path

import pytest

from barnabas.pipeline.arrow_files import ArrowFiles


def test_a_local_file_is_durable_before_it_gets_its_name_and_its_name_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    final = tmp_path / "export" / "records" / "one"
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def noting(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((str(path.relative_to(tmp_path)), final.exists()))
        assert path.is_dir() or path.read_bytes() == b"whole"
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    with ArrowFiles(str(tmp_path / "export")).replacing("records/one") as file:
        file.write(b"whole")
    assert synced == [
        ("export", False),  # which has a new directory
        (".", False),
        ("export/records/one.unfinished", False),
        ("export/records", True),
    ]
    assert final.read_bytes() == b"whole"


def test_a_file_keeps_its_former_content_if_the_new_one_is_not_finished(tmp_path: Path) -> None:
    files = ArrowFiles(str(tmp_path))
    with files.replacing("one") as file:
        file.write(b"former")
    with pytest.raises(ZeroDivisionError), files.replacing("one") as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert files.read("one") == b"former"
