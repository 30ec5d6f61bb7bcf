"""Finds the logs of a path on the command line: a data directory, a partition's directory, or one segment.

From the data directory's checkpoint files it also reads each partition's recovery point, its log start
offset, and whether compaction may have left holes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.cli.log_tool.files import UnreadableError, read_if_there
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, is_internal
from barnabas.storage.directory.checkpoints import (
    CLEANED_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_COPY,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
)
from barnabas.storage.directory.clean_shutdown import CLEAN_SHUTDOWN_FILE
from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.segments.segment import (
    LOG_SUFFIX,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
)
from barnabas.storage.topic_partition import TopicPartition, parse_directory_name

CHECKPOINT_FILES = (RECOVERY_POINT_FILE, LOG_START_FILE, LOG_START_COPY, HIGH_WATERMARK_FILE, CLEANED_FILE)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of one segment."""

    log_path: Path

    @property
    def base_offset(self) -> int:
        return int(self.log_path.stem)

    @property
    def index_paths(self) -> Sequence[Path]:
        """The paths of the offset, time, share and transaction index, which may not exist."""
        return [self.log_path.with_suffix(suffix) for suffix in SEGMENT_SUFFIXES if suffix != LOG_SUFFIX]


def _base_offset(segment: SegmentFiles) -> int:
    return segment.base_offset


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """A partition's directory, or one segment of it. Offsets are None if no checkpoint file has them."""

    path: Path
    segments: Sequence[SegmentFiles]
    names: Sequence[str] = ()
    """The names of all files in the directory; empty if the path names one segment."""
    recovery_point: int | None = None
    log_start_offset: int | None = None
    was_cleaned: bool = False
    """Whether compaction may have left holes between the offsets."""
    was_closed: bool = False
    """Whether the data directory was closed cleanly, so that no file may be incomplete."""

    @property
    def key(self) -> TopicPartition | None:
        return parse_directory_name(self.path.name)

    @property
    def topic(self) -> str:
        return self.path.name if self.key is None else self.key.topic

    def end_offset(self, segment: SegmentFiles) -> int | None:
        """The base offset of the next segment, which no batch of this one may reach; None for the last."""
        following = bisect_right(self.segments, segment.base_offset, key=_base_offset)
        return self.segments[following].base_offset if following < len(self.segments) else None

    def named(self, name: str) -> str:
        """The name of a file of the directory in messages."""
        return f"{self.path.name}/{name}"


@dataclass(frozen=True, slots=True)
class Place:
    """The partitions of a path, and the data directory if the path names it."""

    partitions: Sequence[PartitionFiles]
    data_directory: Path | None = None


@dataclass(slots=True)
class _Checkpoints:
    """The checkpoint files of a data directory; a file that cannot be read counts as empty."""

    offsets: dict[str, dict[tuple[str, int], int]] = field(
        default_factory=dict[str, dict[tuple[str, int], int]]
    )
    is_data_directory: bool = False
    was_closed: bool = False

    def recovery_point(self, key: TopicPartition) -> int | None:
        """The recovery point; None if it is unknown. A log that was never flushed has no entry: it is 0."""
        return self.offsets[RECOVERY_POINT_FILE].get(key, 0 if self.is_data_directory else None)


def find_place(text: str) -> Place:
    """The logs at the path. Raises UnreadableError if there are none."""
    path = Path(text)
    try:
        resolved = path.resolve(strict=True)
        if resolved.is_dir():
            return _directory(resolved)
        if resolved.suffix == LOG_SUFFIX and _is_offset(resolved.stem):
            return Place([_partition(resolved.parent, only=resolved)])
    except OSError as error:
        raise UnreadableError(f"{text}: {error.strerror}.") from error
    raise UnreadableError(
        f"{text} is not a segment: the name of a segment is {OFFSET_DIGITS} digits and {LOG_SUFFIX}."
    )


def single_partition(place: Place) -> PartitionFiles:
    """The partition whose directory the path names. Raises UnreadableError for another path."""
    if place.data_directory is not None or not place.partitions[0].names:
        raise UnreadableError("Name the directory of one partition.")
    return place.partitions[0]


def _directory(path: Path) -> Place:
    names = sorted(entry.name for entry in path.iterdir())
    if any(_is_segment(name) for name in names):
        return Place([_partition(path)])
    partitions = [name for name in names if parse_directory_name(name) and _holds_segments(path / name)]
    if not partitions and META_PROPERTIES_FILE not in names:
        raise UnreadableError(f"{path} is not a data directory, and not the directory of a partition.")
    checkpoints = _read_checkpoints(path)
    ordered = sorted(partitions, key=lambda name: parse_directory_name(name) or TopicPartition(name, 0))
    return Place([_partition(path / name, checkpoints) for name in ordered], path)


def _partition(
    path: Path, checkpoints: _Checkpoints | None = None, only: Path | None = None
) -> PartitionFiles:
    checkpoints = checkpoints or _read_checkpoints(path.parent)
    names = [] if only else sorted(entry.name for entry in path.iterdir())
    logs = [only] if only else [path / name for name in names if _is_segment(name)]
    key = parse_directory_name(path.name)
    topic = path.name if key is None else key.topic

    def told(file: str) -> int | None:
        return None if key is None else checkpoints.offsets[file].get(key)

    return PartitionFiles(
        path,
        [SegmentFiles(log) for log in logs],
        names,
        recovery_point=None if key is None else checkpoints.recovery_point(key),
        log_start_offset=told(LOG_START_FILE),
        was_cleaned=told(CLEANED_FILE) is not None or (is_internal(topic) and topic != METADATA_TOPIC),
        was_closed=checkpoints.was_closed,
    )


def _read_checkpoints(data_directory: Path) -> _Checkpoints:
    found = _Checkpoints(
        is_data_directory=(data_directory / META_PROPERTIES_FILE).exists(),
        was_closed=(data_directory / CLEAN_SHUTDOWN_FILE).exists(),
    )
    for name in CHECKPOINT_FILES:
        try:
            found.offsets[name] = decode_offsets(read_if_there(data_directory / name) or b"")
        except (CheckpointCorrupt, OSError):
            found.offsets[name] = {}
    if not found.offsets[LOG_START_FILE]:
        found.offsets[LOG_START_FILE] = found.offsets[LOG_START_COPY]  # as a start of the broker
    return found


def _holds_segments(path: Path) -> bool:
    return path.is_dir() and any(_is_segment(entry.name) for entry in path.iterdir())


def _is_segment(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and _is_offset(name.removesuffix(LOG_SUFFIX))


def _is_offset(stem: str) -> bool:
    return len(stem) == OFFSET_DIGITS and stem.isascii() and stem.isdigit()
