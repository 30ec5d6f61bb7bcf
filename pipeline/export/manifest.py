"""The manifest of an export: `manifest.json`, version 1 or 2. Pure.

It is written twice: as the plan, before the first record, with `is_complete` false, and after all records. A
run goes on with the plan of a stopped run, so the export shows topics and groups at one time, even if it was
resumed several times.

Offsets are those of the source. Ends are exclusive, `last_offset` is inclusive. Version 2 is written only for
records on their way to dead letters, so that an older release reads all other exports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from barnabas.pipeline.export.json_file import decode, encode

FORMAT: Final = "barnabas-export"
VERSION: Final = 2
"""The newest version that is read."""
FILE_NAME: Final = "manifest.json"

AVAILABLE: Final = "available"
ACCEPTED: Final = "accepted"
ARCHIVED: Final = "archived"
ARCHIVING: Final = "archiving"


@dataclass(frozen=True, slots=True)
class ExportedSlice:
    """Some records of a partition, in the order of their offsets, in one Parquet file.

    `sha256` is that of `record_digest`. Digest, count and size are known when the slice is written.
    """

    path: str
    """Relative to the directory."""
    start_offset: int
    end_offset: int
    record_count: int = 0
    size_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The records of one partition from `start_offset` to `end_offset`, in slices by ascending offset."""

    partition: int
    start_offset: int
    end_offset: int
    slices: tuple[ExportedSlice, ...]

    @property
    def record_count(self) -> int:
        return sum(piece.record_count for piece in self.slices)


@dataclass(frozen=True, slots=True)
class ExportedTopic:
    """A topic: the settings that were made for it, and its partitions by number."""

    name: str
    topic_id: str
    settings: dict[str, str]
    partitions: tuple[ExportedPartition, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """Records at or above a group's start offset that are not new to it.

    `state` is one of `AVAILABLE`, `ACCEPTED`, `ARCHIVED`, and `ARCHIVING` for a record on its way to a dead
    letter. A record that was locked counts as available.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int


@dataclass(frozen=True, slots=True)
class SharePosition:
    """The position of a share group in one partition.

    `start_offset` is the SPSO, below which everything is done. `in_flight` is None if the source didn't
    report it: records that were accepted out of order above the start are delivered again then.
    """

    topic: str
    partition: int
    start_offset: int
    in_flight: tuple[InFlight, ...] | None = None


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A share group with its settings and positions in the exported topics."""

    group_id: str
    settings: dict[str, str]
    positions: tuple[SharePosition, ...]


@dataclass(frozen=True, slots=True)
class CommittedRange:
    """Offsets that a consumer group has committed individually; both ends are inclusive."""

    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The position of an ordinary consumer group in one partition: the next offset that it reads.

    `ranges` are committed beyond it, ascending. Exports of earlier versions have none.
    """

    topic: str
    partition: int
    offset: int
    metadata: str
    ranges: tuple[CommittedRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """An ordinary consumer group with its committed offsets of the exported topics."""

    group_id: str
    offsets: tuple[CommittedOffset, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of an export, beside its topics, that decide its contents."""

    isolation: str
    """`read_committed` or `read_uncommitted`."""
    slice_offsets: int
    groups: tuple[str, ...] | None
    """Sorted; None for all groups with a position in the topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of an export, finished or planned."""

    created_at: str
    """ISO 8601, UTC."""
    cluster_id: str
    is_complete: bool
    choices: Choices
    topics: tuple[ExportedTopic, ...]
    share_groups: tuple[ShareGroup, ...] = ()
    consumer_groups: tuple[ConsumerGroup, ...] = ()
    left_out: tuple[str, ...] = field(default=())
    """The parts that could not be read, one sentence each."""

    @property
    def record_count(self) -> int:
        return sum(partition.record_count for topic in self.topics for partition in topic.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(
            piece.size_bytes
            for topic in self.topics
            for partition in topic.partitions
            for piece in partition.slices
        )


def encode_manifest(manifest: Manifest) -> str:
    """The file's content."""
    return encode(manifest, VERSION if _has_letters(manifest) else 1, format=FORMAT)


def _has_letters(manifest: Manifest) -> bool:
    positions = (position for group in manifest.share_groups for position in group.positions)
    return any(records.state == ARCHIVING for position in positions for records in position.in_flight or ())


def decode_manifest(text: str, path: str) -> Manifest:
    """The manifest from its file. Raises `PipelineError`, which names the file, for any other content."""
    return decode(Manifest, text, path, VERSION, kind="the manifest of an export", format=FORMAT)
