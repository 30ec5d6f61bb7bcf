"""The partitions of data directories, and the segments of each, as they are at one moment.

A data directory of Barnabas or Apache Kafka has a folder `<topic>-<partition>` for each partition, and files
with an offset per partition. This module locks and changes nothing, so a broker may run on the directory: if
it removes or swaps a file during the listing of a folder, that folder is listed again.

Listing does not check the files' content; readers do.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.log_source.errors import LogFileError
from barnabas.pipeline.log_source.segment_file import LOG_SUFFIX, OFFSET_DIGITS, SegmentFile
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.format.partition_metadata import FILE_NAME as PARTITION_METADATA_FILE

INTERNAL_TOPICS: Final = frozenset(
    {
        "__cluster_metadata",
        "__consumer_offsets",
        "__remote_log_metadata",
        "__share_group_state",
        "__transaction_state",
    }
)
"""Internal topics of brokers; read only by name."""

LISTING_TRIES: Final = 5
"""Tries to list a folder that changes meanwhile."""
LISTING_PAUSE_SECONDS: Final = 0.05

_META_PROPERTIES_FILE = "meta.properties"
_LOG_START_FILE = "log-start-offset-checkpoint"
_RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
_SWAP_SUFFIX = LOG_SUFFIX + ".swap"


@dataclass(frozen=True, slots=True)
class PartitionFolder:
    """One partition's folder: its segments by ascending base offset; there may be none.

    Records below `log_start_offset` are deleted, but may still lie in the first segment. Everything below
    `recovery_point` is on the disk, and the indexes too.
    """

    topic: str
    partition: int
    path: str
    segments: tuple[SegmentFile, ...]
    log_start_offset: int
    recovery_point: int

    @property
    def name(self) -> str:
        """Its name in errors."""
        return f"{self.topic}-{self.partition}"

    def end_of(self, number: int) -> int | None:
        """The upper bound of a segment's offsets, exclusive: the base of the next one; None for the last."""
        return self.segments[number + 1].base_offset if number + 1 < len(self.segments) else None


def find_partitions(paths: Sequence[str], topics: Collection[str] | None) -> list[PartitionFolder]:
    """The partitions of these topics, or of all but the internal ones, by topic and number.

    Raises `LogFileError` for a path that is not a data directory, a damaged folder, or a partition that lies
    in two directories; `OptionError` for a topic that is in none of them.
    """
    found: dict[tuple[str, int], PartitionFolder] = {}
    for path in paths:
        for folder in _partitions_in(Path(path), topics):
            key = folder.topic, folder.partition
            if key in found:
                raise LogFileError(folder.path, f"the same partition lies in {found[key].path} too")
            found[key] = folder
    missing = set(topics or ()) - {topic for topic, _ in found}
    if missing:
        raise OptionError("topics", f"there is no topic {min(missing)!r} in {', '.join(paths)}")
    return [found[key] for key in sorted(found)]


def _partitions_in(directory: Path, topics: Collection[str] | None) -> Iterator[PartitionFolder]:
    names = _names_in(directory)
    folders = [(*key, directory / name) for name in names if (key := _parse_name(name)) is not None]
    _check_is_data_directory(directory, names, has_partitions=bool(folders))
    log_starts = _read_offsets(directory / _LOG_START_FILE)
    recovery_points = _read_offsets(directory / _RECOVERY_POINT_FILE)
    for topic, partition, path in folders:
        if topic in topics if topics is not None else topic not in INTERNAL_TOPICS:
            segments = _list_segments(path)
            first_offset = segments[0].base_offset if segments else 0
            key = topic, partition
            log_start_offset = max(log_starts.get(key, 0), first_offset)
            yield PartitionFolder(
                *key, str(path), segments, log_start_offset, recovery_points.get(key, first_offset)
            )


def _names_in(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError as error:
        raise LogFileError(str(directory), "there is no such directory") from error
    except NotADirectoryError as error:
        raise LogFileError(str(directory), "is a file, and not a data directory") from error


def _parse_name(name: str) -> tuple[str, int] | None:
    """(topic, partition) of a folder; None for another folder, or one marked for deletion."""
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        return None
    return topic, int(partition)


def _check_is_data_directory(directory: Path, names: Sequence[str], *, has_partitions: bool) -> None:
    if any(name.endswith(LOG_SUFFIX) for name in names) and _parse_name(directory.name):
        reason = f"is a partition's folder; name the data directory that it is in: {directory.parent}"
        raise LogFileError(str(directory), reason)
    if not has_partitions and _META_PROPERTIES_FILE not in names:
        reason = f"is not a data directory: it has no {_META_PROPERTIES_FILE} and no folders of partitions"
        raise LogFileError(str(directory), reason)


def _read_offsets(path: Path) -> Mapping[tuple[str, int], int]:
    try:
        return decode_offsets(path.read_bytes())
    except FileNotFoundError:
        return {}
    except CheckpointCorrupt as error:
        raise LogFileError(str(path), f"is damaged: {error}") from error


def _list_segments(folder: Path) -> tuple[SegmentFile, ...]:
    """The segments as they are at one moment. Raises `LogFileError` if the folder changes all the time."""
    for attempt in range(LISTING_TRIES):
        if attempt:
            time.sleep(LISTING_PAUSE_SECONDS)
        names = _names_in(folder)
        swaps = [name for name in names if name.endswith(_SWAP_SUFFIX)]
        if not swaps:
            try:
                segments = _stat_segments(folder, names)
            except FileNotFoundError:
                continue
            if not segments and PARTITION_METADATA_FILE not in names:
                raise LogFileError(str(folder), "is no partition's folder: there is no segment in it")
            return segments
    reason = "compaction of it is not finished; if no broker runs on the directory, start one once"
    raise LogFileError(str(folder), reason)


def _stat_segments(folder: Path, names: Sequence[str]) -> tuple[SegmentFile, ...]:
    return tuple(
        SegmentFile(str(folder / name), _base_offset(folder / name), (folder / name).stat().st_size)
        for name in names
        if name.endswith(LOG_SUFFIX)
    )


def _base_offset(path: Path) -> int:
    stem = path.name.removesuffix(LOG_SUFFIX)
    if len(stem) != OFFSET_DIGITS or not stem.isdigit():
        raise LogFileError(str(path), f"is no segment: those are named by {OFFSET_DIGITS} digits")
    return int(stem)
