"""The kind of a data directory before anything is changed in it: new, Barnabas's, Apache Kafka's, or foreign.

Barnabas's and Kafka's have the same format (KIP-866). A directory of Kafka's has a file of its Raft layer,
which this broker does not use.
"""

from __future__ import annotations

from enum import Enum, auto

from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.errors import InvalidDirectory
from barnabas.storage.filesystem import FileSystem

BOOTSTRAP_FILE = "bootstrap.checkpoint"
"""Written by Kafka's `kafka-storage.sh format`."""
UNFINISHED_IMPORT_FILE = ".import-unfinished"
"""Exists in a directory during an import of Kafka's data."""

_QUORUM_STATE_FILE = "__cluster_metadata-0/quorum-state"
_SET_ASIDE_METADATA = "__cluster_metadata-0.kafka"
_HARMLESS = frozenset({"lost+found", f"{META_PROPERTIES_FILE}.tmp"})
_NAMED_MAX = 3


class DirectoryKind(Enum):
    NEW = auto()
    """Missing, or without relevant files."""
    OWN = auto()
    KAFKA = auto()
    """Of a KRaft node of Apache Kafka, or with an unfinished import in place."""


def find_kind(filesystem: FileSystem, path: str) -> DirectoryKind:
    """The kind of `path`. InvalidDirectory for a foreign directory or an unfinished import; OSError."""
    if not filesystem.exists(path):
        return DirectoryKind.NEW
    names = filesystem.list_directory(path)
    if UNFINISHED_IMPORT_FILE in names:
        if _SET_ASIDE_METADATA in names:
            return DirectoryKind.KAFKA
        raise InvalidDirectory(f"An import into {path} was not finished. Empty it, and import again.")
    if META_PROPERTIES_FILE not in names:
        _check_empty(path, names)
        return DirectoryKind.NEW
    if BOOTSTRAP_FILE in names or filesystem.exists(f"{path}/{_QUORUM_STATE_FILE}"):
        return DirectoryKind.KAFKA
    return DirectoryKind.OWN


def _check_empty(path: str, names: list[str]) -> None:
    foreign = [name for name in names if not name.startswith(".") and name not in _HARMLESS]
    if foreign:
        named = ", ".join(foreign[:_NAMED_MAX]) + (", ..." if len(foreign) > _NAMED_MAX else "")
        raise InvalidDirectory(
            f"{path} is no data directory: it has no {META_PROPERTIES_FILE}, but {named}. Name an empty "
            "directory, or one that a broker made."
        )
