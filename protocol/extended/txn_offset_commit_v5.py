"""TxnOffsetCommit version 5 with ranges of offsets that are committed individually."""

from dataclasses import dataclass, field

from kio.schema.txn_offset_commit.v5 import request, response

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition(request.TxnOffsetCommitRequestPartition):
    ranges: bytes | None = field(metadata={"kafka_type": "bytes", "tag": 10_000}, default=None)
    """The ranges to commit, see `packed`. Then the committed offset has no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic(request.TxnOffsetCommitRequestTopic):
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]
    """The partitions of the topic with offsets to commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest(request.TxnOffsetCommitRequest):
    topics: tuple[TxnOffsetCommitRequestTopic, ...]
    """Each topic that we want to commit offsets for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition(response.TxnOffsetCommitResponsePartition):
    error_message: str | None = field(metadata={"kafka_type": "string", "tag": 10_000}, default=None)
    """The reason why ranges were refused, and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic(response.TxnOffsetCommitResponseTopic):
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]
    """The responses for each partition in the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse(response.TxnOffsetCommitResponse):
    topics: tuple[TxnOffsetCommitResponseTopic, ...]
    """The responses for each topic."""
