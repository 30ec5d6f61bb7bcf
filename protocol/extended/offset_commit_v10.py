"""OffsetCommit version 10 with ranges of offsets that are committed individually."""

from dataclasses import dataclass, field

from kio.schema.offset_commit.v10 import request, response

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestPartition(request.OffsetCommitRequestPartition):
    ranges: bytes | None = field(metadata={"kafka_type": "bytes", "tag": 10_000}, default=None)
    """The ranges to commit, see `packed`. Then the committed offset is the position at which a group without
    a committed offset begins, or -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic(request.OffsetCommitRequestTopic):
    partitions: tuple[OffsetCommitRequestPartition, ...]
    """Each partition to commit offsets for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest(request.OffsetCommitRequest):
    topics: tuple[OffsetCommitRequestTopic, ...]
    """The topics to commit offsets for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponsePartition(response.OffsetCommitResponsePartition):
    error_message: str | None = field(metadata={"kafka_type": "string", "tag": 10_000}, default=None)
    """The reason why ranges were refused, and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponseTopic(response.OffsetCommitResponseTopic):
    partitions: tuple[OffsetCommitResponsePartition, ...]
    """The responses for each partition in the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse(response.OffsetCommitResponse):
    topics: tuple[OffsetCommitResponseTopic, ...]
    """The responses for each topic."""
