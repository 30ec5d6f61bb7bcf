"""Directories that go out of the way: those of deleted topics, and strays.

A directory that looks like a partition's and isn't wanted is renamed, so that its name is free. One of a
deleted topic gets a suffix by which it's removed, now or at the next start; a stray, of which nobody knows
whose it is, gets another one and is kept. All renames of a call become durable with one sync of the data
directory: thousands take a thread some 0.1 s. What is deleted is for the metadata to say, not for this.
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
"""What is kept of a directory's name when it's marked; file names have 255 bytes at most."""


class Leftovers(NamedTuple):
    """The partitions in a data directory that belong to no topic: of deleted ones, and strays."""

    deleted: Sequence[TopicPartition]
    strays: Sequence[TopicPartition]


def find_leftovers(
    filesystem: FileSystem,
    path: str,
    on_disk: Iterable[TopicPartition],
    topics: Collection[str],
    deleted_topics: Mapping[UUID, str],
) -> Leftovers:
    """Sorts out what is in the data directory `path`; `topics` are those that there are, `deleted_topics` the
    names by id of those that there were. For a thread; raises OSError.

    A directory is a deleted topic's by the id in it, also if there is another topic of the name now. One that
    doesn't tell its id is by its name, unless that is another topic's.
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

    One that cannot be renamed doesn't keep the others from it; then raises the last OSError.
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
