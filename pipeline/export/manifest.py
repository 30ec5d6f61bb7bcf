"""What an exported directory says of itself: `manifest.json`, version 1 (pure).

It is written twice: as the plan, before the first record, with `is_complete` false, and once all records are
there. A run that was stopped goes on with the plan that it finds, so that what is exported is one picture of
the topics and groups, however often it was resumed.

Offsets are those of the source. Ends are exclusive, `last_offset` is inclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from barnabas.pipeline.export.json_file import decode, encode

FORMAT: Final = "barnabas-export"
VERSION: Final = 1
FILE_NAME: Final = "manifest.json"

AVAILABLE: Final = "available"
ACCEPTED: Final = "accepted"
ARCHIVED: Final = "archived"


@dataclass(frozen=True, slots=True)
class ExportedSlice:
    """Some records of a partition, in the order of their offsets, in one Parquet file.

    `sha256` is that of `record_digest`; it, counts and sizes are known once the slice is there.
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
        return sum(one.record_count for one in self.slices)


@dataclass(frozen=True, slots=True)
class ExportedTopic:
    """A topic: what it is set to, as far as it was set for it, and its partitions by number."""

    name: str
    topic_id: str
    settings: dict[str, str]
    partitions: tuple[ExportedPartition, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """Records at or above a group's start offset that aren't as new to it.

    `state` is one of `AVAILABLE`, `ACCEPTED`, `ARCHIVED`. A record that was locked counts as available.
    """

    first_offset: int
    last_offset: int
    state: str
    delivery_count: int


@dataclass(frozen=True, slots=True)
class SharePosition:
    """How far a share group is in one partition.

    `start_offset` is the SPSO, below which everything is done. `in_flight` is None where the source didn't
    tell: what was accepted out of order above the start is delivered again then.
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
class CommittedOffset:
    """How far an ordinary consumer group is in one partition: the next offset that it reads."""

    topic: str
    partition: int
    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """An ordinary consumer group with what it has committed of the exported topics."""

    group_id: str
    offsets: tuple[CommittedOffset, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What an export was asked for beside its topics, as far as it decides what is in it."""

    isolation: str
    """`read_committed` or `read_uncommitted`."""
    slice_offsets: int
    groups: tuple[str, ...] | None
    """Sorted; None for all that are somewhere in the topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that was exported, or is to be."""

    created_at: str
    """ISO 8601, UTC."""
    cluster_id: str
    is_complete: bool
    choices: Choices
    topics: tuple[ExportedTopic, ...]
    share_groups: tuple[ShareGroup, ...] = ()
    consumer_groups: tuple[ConsumerGroup, ...] = ()
    left_out: tuple[str, ...] = field(default=())
    """What could not be read, one sentence each."""

    @property
    def record_count(self) -> int:
        return sum(one.record_count for topic in self.topics for one in topic.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(
            piece.size_bytes for topic in self.topics for one in topic.partitions for piece in one.slices
        )


def encode_manifest(manifest: Manifest) -> str:
    """The file's content."""
    return encode(manifest, VERSION, format=FORMAT)


def decode_manifest(text: str, path: str) -> Manifest:
    """The manifest from its file. Raises `PipelineError`, which names the file, for any other content."""
    return decode(Manifest, text, path, VERSION, format=FORMAT)
