"""Directories that are renamed to free their names: those of deleted topics, and strays.

A directory of a deleted topic gets a suffix that marks it for removal, now or at the next start. A stray
looks like a partition's directory, but belongs to no known topic; it gets another suffix and is kept. All
renames of a call become durable with one sync of the data directory: thousands take a thread about 0.1 s. The
metadata decides which topics are deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from barnabas.storage.filesystem import FileSystem
from barnabas.storage.state.log_files import read_topic_id
from barnabas.storage.topic_partition import TopicPartition

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_MARKED_PREFIX_CHARACTERS = 200
"""The part of a directory's name that a marked name keeps; file names have 255 bytes at most."""


class Leftovers(NamedTuple):
    """The partitions in a data directory that belong to no topic: those of deleted topics, and strays."""

    deleted: Sequence[TopicPartition]
    strays: Sequence[TopicPartition]


def find_leftovers(
    filesystem: FileSystem,
    path: str,
    on_disk: Iterable[TopicPartition],
    topics: Collection[str],
    deleted_topics: Mapping[UUID, str],
) -> Leftovers:
    """Finds the leftovers in the data directory `path`. For a thread; raises OSError.

    `topics` are the names of the existing topics, `deleted_topics` the names of deleted topics by id. The id
    in a directory decides whether it belongs to a deleted topic, even if a new topic has the same name. For a
    directory without a readable id the name decides, unless an existing topic has that name.
    """
    deleted_names = set(deleted_topics.values())
    deleted: list[TopicPartition] = []
    strays: list[TopicPartition] = []
    for key in on_disk:
        is_stray = key.topic not in topics
        if key.topic in deleted_names:
            topic_id = read_topic_id(filesystem, f"{path}/{key.directory_name}")
            if topic_id in deleted_topics or (topic_id is None and is_stray):
                deleted.append(key)
                continue
        if is_stray:
            strays.append(key)
    return Leftovers(deleted, strays)


def marked_name(key: TopicPartition, unique: UUID, suffix: str) -> str:
    """The new name of the partition's directory."""
    return f"{key.directory_name[:_MARKED_PREFIX_CHARACTERS]}.{unique.hex}{suffix}"


def rename_durably(filesystem: FileSystem, path: str, renames: Iterable[tuple[str, str]]) -> None:
    """Renames entries of the directory `path`, (from, to), and syncs it once. For a thread.

    All entries are tried. Raises the last OSError if any failed.
    """
    failure: OSError | None = None
    for source, target in renames:
        try:
            filesystem.rename(f"{path}/{source}", f"{path}/{target}")
        except OSError as error:
            failure = error
    filesystem.sync_directory(path)
    if failure is not None:
        raise failure
