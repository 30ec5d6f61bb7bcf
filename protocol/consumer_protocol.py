"""The metadata of consumers in the classic protocol: subscriptions and assignments.

JoinGroup and SyncGroup carry them as bytes that only clients need. A coordinator reads them when a group
changes its protocol (KIP-848), and to know which topics a group still reads. The schemas are Kafka's
ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3. A newer version is read as
version 3, and its additional fields are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from barnabas.protocol import schema
from barnabas.protocol.record_prefix import PREFIX_BYTES, prefix, read_prefix
from barnabas.protocol.schema import Bytes, Int32, Since, String
from barnabas.protocol.varint import Buffer, RecordFormatError

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type in JoinGroup that marks this metadata."""

_VERSION_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPartitions:
    topic: String
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The topics that a consumer reads, and the partitions that it owns until the next assignment."""

    topics: tuple[String, ...]
    user_data: Bytes | None = None
    owned_partitions: Annotated[tuple[NamedPartitions, ...], Since(1)] = ()
    generation_id: Annotated[Int32, Since(2)] = -1
    rack_id: Annotated[String | None, Since(3)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _TopicsOfSubscription:
    """The first field of every version."""

    topics: tuple[String, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The partitions that a consumer must read."""

    assigned_partitions: tuple[NamedPartitions, ...]
    user_data: Bytes | None = None


def decode_subscription(metadata: Buffer) -> Subscription:
    """RecordFormatError if it is malformed."""
    version = protocol_version(metadata)
    return schema.decode_first(Subscription, metadata[PREFIX_BYTES:], version, flexible=False)[0]


def decode_topics(metadata: Buffer) -> tuple[str, ...]:
    """The topics of a subscription, ignoring everything after them; RecordFormatError if it is malformed."""
    read_prefix(metadata, "A subscription")
    return schema.decode_first(_TopicsOfSubscription, metadata[PREFIX_BYTES:], 0, flexible=False)[0].topics


def decode_assignment(assignment: Buffer) -> Assignment:
    """RecordFormatError if it is malformed."""
    version = protocol_version(assignment)
    return schema.decode_first(Assignment, assignment[PREFIX_BYTES:], version, flexible=False)[0]


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    """Encode for a consumer whose subscription has this version."""
    return prefix(version) + schema.encode(assignment, version, flexible=False)


def protocol_version(data: Buffer) -> int:
    """The version, at most the newest known; RecordFormatError if it is missing or negative."""
    version = read_prefix(data, "A consumer's metadata")
    if version < 0:
        raise RecordFormatError(f"A consumer's metadata has the version {version}.")
    return min(version, _VERSION_MAX)
