"""What a path on the command line names: a data directory, a partition's directory, or one segment.

Beside the files themselves it tells what the data directory's checkpoint files say of a partition, which is
how far it is durable, where it begins and whether compaction may have left holes.
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
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
)
from barnabas.storage.directory.log_directory import CLEAN_SHUTDOWN_FILE
from barnabas.storage.directory.meta_properties import FILE_NAME as META_PROPERTIES_FILE
from barnabas.storage.format.checkpoint_file import CheckpointCorrupt, decode_offsets
from barnabas.storage.segments.segment import (
    LOG_SUFFIX,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
)
from barnabas.storage.topic_partition import TopicPartition, parse_directory_name

CHECKPOINT_FILES = (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE, CLEANED_FILE)


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of one segment."""

    log_path: Path

    @property
    def base_offset(self) -> int:
        return int(self.log_path.stem)

    @property
    def index_paths(self) -> Sequence[Path]:
        """The offset, time, share and transaction index, be they there or not."""
        return [self.log_path.with_suffix(suffix) for suffix in SEGMENT_SUFFIXES if suffix != LOG_SUFFIX]


def _base_offset(segment: SegmentFiles) -> int:
    return segment.base_offset


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """A partition's directory, or a part of it; offsets from the checkpoint files are None if not told."""

    path: Path
    segments: Sequence[SegmentFiles]
    names: Sequence[str] = ()
    """Of all files in the directory; none if only one segment was asked for."""
    recovery_point: int | None = None
    log_start_offset: int | None = None
    was_cleaned: bool = False
    """Whether compaction may have left holes between the offsets."""
    was_closed: bool = False
    """Whether the data directory was closed in order, so that nothing may be torn."""

    @property
    def key(self) -> TopicPartition | None:
        return parse_directory_name(self.path.name)

    @property
    def topic(self) -> str:
        return self.path.name if self.key is None else self.key.topic

    def end_offset(self, segment: SegmentFiles) -> int | None:
        """Where the segment behind this one begins, which no batch of it reaches; None for the last."""
        following = bisect_right(self.segments, segment.base_offset, key=_base_offset)
        return self.segments[following].base_offset if following < len(self.segments) else None

    def named(self, name: str) -> str:
        """A file of the directory as it is told to people."""
        return f"{self.path.name}/{name}"


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names: partitions, and the data directory around them if it was named itself."""

    partitions: Sequence[PartitionFiles]
    data_directory: Path | None = None


@dataclass(slots=True)
class _Checkpoints:
    """What the checkpoint files of a data directory say; files that cannot be read say nothing."""

    offsets: dict[str, dict[tuple[str, int], int]] = field(
        default_factory=dict[str, dict[tuple[str, int], int]]
    )
    is_data_directory: bool = False
    was_closed: bool = False

    def recovery_point(self, key: TopicPartition) -> int | None:
        """None if nothing is known; of a log that was never flushed there is no entry."""
        return self.offsets[RECOVERY_POINT_FILE].get(key, 0 if self.is_data_directory else None)


def find_place(text: str) -> Place:
    """What is at the path; UnreadableError if that is nothing that holds logs."""
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
        f"{text} is no segment: those are named by {OFFSET_DIGITS} digits and {LOG_SUFFIX}."
    )


def _directory(path: Path) -> Place:
    names = sorted(one.name for one in path.iterdir())
    if any(_is_segment(name) for name in names):
        return Place([_partition(path)])
    partitions = [name for name in names if parse_directory_name(name) and _holds_segments(path / name)]
    if not partitions and META_PROPERTIES_FILE not in names:
        raise UnreadableError(f"{path} is neither a data directory nor that of a partition.")
    checkpoints = _read_checkpoints(path)
    ordered = sorted(partitions, key=lambda name: parse_directory_name(name) or TopicPartition(name, 0))
    return Place([_partition(path / name, checkpoints) for name in ordered], path)


def _partition(
    path: Path, checkpoints: _Checkpoints | None = None, only: Path | None = None
) -> PartitionFiles:
    checkpoints = checkpoints or _read_checkpoints(path.parent)
    names = [] if only else sorted(one.name for one in path.iterdir())
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
    return found


def _holds_segments(path: Path) -> bool:
    return path.is_dir() and any(_is_segment(one.name) for one in path.iterdir())


def _is_segment(name: str) -> bool:
    return name.endswith(LOG_SUFFIX) and _is_offset(name.removesuffix(LOG_SUFFIX))


def _is_offset(stem: str) -> bool:
    return len(stem) == OFFSET_DIGITS and stem.isascii() and stem.isdigit()
