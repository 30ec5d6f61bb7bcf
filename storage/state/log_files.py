"""The directory of one log: its creation and cleanup, and the small files beside the segments.

`segment_recovery` opens the segments themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from barnabas.runtime.logging import get_logger
from barnabas.storage.errors import InconsistentTopicId
from barnabas.storage.filesystem import FileSystem, put_whole, read_whole
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt
from barnabas.storage.format.leader_epochs import LeaderEpochs
from barnabas.storage.format.partition_metadata import (
    FILE_NAME as PARTITION_METADATA_FILE,
)
from barnabas.storage.format.partition_metadata import (
    decode_partition_metadata,
    encode_id,
    encode_partition_metadata,
)
from barnabas.storage.log_config import LogConfig, StorageConfig
from barnabas.storage.segments.segment import DELETED_SUFFIX, LOG_SUFFIX, OFFSET_DIGITS, SEGMENT_SUFFIXES
from barnabas.storage.segments.swap import complete_swaps
from barnabas.storage.state.shared_parts import SharedParts
from barnabas.storage.topic_partition import TopicPartition

LEADER_EPOCH_FILE: Final = "leader-epoch-checkpoint"

_LEFTOVER_SUFFIXES: Final = (".tmp", DELETED_SUFFIX, ".cleaned", ".swap")

logger = get_logger("recovery")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogPlace:
    """A log to open: its directory, its settings, and what all logs of the data directory share.

    The offsets are those in the checkpoint files, and exclusive.
    """

    filesystem: FileSystem
    directory: str
    topic_partition: TopicPartition
    topic_id: UUID
    config: LogConfig
    storage: StorageConfig
    shared: SharedParts
    recovery_point: int = 0
    """See `Durability`. Recovery scans what is behind it."""
    log_start_offset: int = 0
    gaps_until: int = 0
    """Below it, and below the recovery point, segments need not follow each other."""


def prepare_directory(place: LogPlace) -> list[str]:
    """Creates a missing directory, completes swaps of the cleaner, and removes files that no segment needs.

    Returns the names of the remaining files. The caller must make the directory's own name durable: one sync
    serves many logs.
    """
    filesystem, directory = place.filesystem, place.directory
    if not filesystem.exists(directory):
        filesystem.make_directory(directory)
    complete_swaps(filesystem, directory)
    names = filesystem.list_directory(directory)
    segments = {name.removesuffix(LOG_SUFFIX) for name in names if name.endswith(LOG_SUFFIX)}
    kept: list[str] = []
    for name in names:
        stem, dot, suffix = name.partition(".")
        is_orphan = dot + suffix in SEGMENT_SUFFIXES and stem not in segments
        if is_orphan or name.endswith(_LEFTOVER_SUFFIXES):
            filesystem.remove(f"{directory}/{name}")
        else:
            kept.append(name)
    return kept


def settle_topic_id(place: LogPlace, names: Sequence[str]) -> None:
    """Checks or records the topic's id in the directory. InconsistentTopicId for another topic's; OSError.

    The id's file is synced before it gets its name. The name becomes durable before any record, because the
    flush that makes the first records durable syncs the directory.
    """
    is_there = PARTITION_METADATA_FILE in names
    found = read_topic_id(place.filesystem, place.directory) if is_there else None
    path = f"{place.directory}/{PARTITION_METADATA_FILE}"
    if found is None:  # missing or unreadable: the directory's name and the metadata log identify the topic
        if is_there:
            logger.warning("a topic id cannot be read, and is written again", path=path)
        put_whole(place.filesystem, path, encode_partition_metadata(place.topic_id))
    elif found != place.topic_id:
        raise InconsistentTopicId(
            f"{path} names the topic id {encode_id(found)}, and the metadata has {encode_id(place.topic_id)} "
            f"for {place.topic_partition.topic}. If the file is damaged, stop the broker and run "
            f"`barnabas log restore-topic-id {place.directory}`. If the records belong to another topic, "
            "move the directory away."
        )


def read_topic_id(filesystem: FileSystem, directory: str) -> UUID | None:
    """The topic id in the directory; None without a readable one. For a thread; raises OSError."""
    data = read_file(filesystem, f"{directory}/{PARTITION_METADATA_FILE}")
    try:
        return None if data is None else decode_partition_metadata(data)
    except CheckpointCorrupt:
        return None


def read_leader_epochs(place: LogPlace, names: Sequence[str]) -> LeaderEpochs:
    """The leader epochs of the last flush; raises OSError.

    Without a good file they are those of the batches at the log's end, which recovery reads. Clients then
    notice no truncation of the log before these.
    """
    if LEADER_EPOCH_FILE not in names:
        return LeaderEpochs()
    path = f"{place.directory}/{LEADER_EPOCH_FILE}"
    try:
        epochs = LeaderEpochs.decode(read_whole(place.filesystem, path))
        if not epochs.entries and _has_batches(place, names):
            raise CheckpointCorrupt("It is empty, and the log is not.")
        return epochs
    except CheckpointCorrupt as error:
        logger.warning(
            "the leader epochs are damaged, and are read from the log's end", path=path, reason=str(error)
        )
        return LeaderEpochs()


def _has_batches(place: LogPlace, names: Sequence[str]) -> bool:
    paths = (f"{place.directory}/{name}" for name in names if name.endswith(LOG_SUFFIX))
    return any(map(place.filesystem.file_size, paths))


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets in the names of the files with this suffix, ascending."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == OFFSET_DIGITS and stem.isdigit())


def read_file(filesystem: FileSystem, path: str) -> bytes | None:
    """The content of a file; None if it does not exist."""
    try:
        return read_whole(filesystem, path)
    except FileNotFoundError:
        return None
