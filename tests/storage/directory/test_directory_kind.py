"""The kinds of data directories, and the refusal of foreign ones."""

import pytest

from barnabas.storage.directory.directory_kind import DirectoryKind, find_kind
from barnabas.storage.errors import InvalidDirectory
from tests.storage.memory_filesystem import MemoryFileSystem

NEW, OWN, KAFKA = DirectoryKind.NEW, DirectoryKind.OWN, DirectoryKind.KAFKA


def holding(*names: str) -> MemoryFileSystem:
    """A filesystem with these files, and the directories that they need, in /data."""
    filesystem = MemoryFileSystem()
    filesystem.make_directory("/data")
    for name in names:
        filesystem.make_directory(f"/data/{name}".rpartition("/")[0])
        filesystem.open(f"/data/{name}", create=True).close()
    return filesystem


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ((), NEW),
        ((".lock", ".gitkeep", "lost+found/x", "meta.properties.tmp"), NEW),
        (("meta.properties",), OWN),
        (("meta.properties", "t-0/x.log", "notes.txt", "__cluster_metadata-0/x.log"), OWN),
        (("meta.properties", "bootstrap.checkpoint"), KAFKA),
        (("meta.properties", "__cluster_metadata-0/quorum-state"), KAFKA),
        (("meta.properties", ".import-unfinished", "__cluster_metadata-0.kafka/x.log"), KAFKA),
    ],
)
def test_the_kind_of_a_directory_follows_from_its_files(names: tuple[str, ...], kind: DirectoryKind) -> None:
    assert find_kind(holding(*names), "/data") is kind


def test_a_directory_that_is_missing_is_new() -> None:
    assert find_kind(MemoryFileSystem(), "/data") is NEW


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (("notes.txt",), "it has no meta.properties, but notes.txt."),
        (("a", "b", "c", "d"), "but a, b, c, ...."),
        (("t-0/x.log",), "but t-0."),
        (("meta.properties", ".import-unfinished"), "Empty it, and import again"),
        ((".import-unfinished",), "Empty it, and import again"),
    ],
)
def test_another_directory_is_refused_with_a_reason(names: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(InvalidDirectory) as refused:
        find_kind(holding(*names), "/data")
    assert complaint in str(refused.value)
