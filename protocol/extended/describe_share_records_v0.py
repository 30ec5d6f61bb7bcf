"""DescribeShareRecords version 0, an API that only Barnabas has: the state of each record of a partition for
a share group. `record_inspection` has the states, the reasons to wait, and the limits.
"""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import GroupId
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

__all__ = [
    "DescribeShareRecordsRequest",
    "DescribeShareRecordsResponse",
    "DescribedRange",
    "LastChange",
    "LockHolder",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareRecordsRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_000)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    group_id: GroupId = field(metadata={"kafka_type": "string"})
    """The group."""
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    """The topic."""
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    """The partition."""
    first_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The first offset to describe; -1 for the share-partition start offset."""
    max_ranges: i32 = field(metadata={"kafka_type": "int32"})
    """The most ranges in the response."""
    include_last_changes: bool = field(metadata={"kafka_type": "bool"})
    """Whether to look for the last recorded change of each record."""
    include_authorized_operations: bool = field(metadata={"kafka_type": "bool"})
    """Whether to name the operations that are authorized on the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_000)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    member_id: str = field(metadata={"kafka_type": "string"})
    """The member that holds the records."""
    client_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """Its client id; null if it is no member of the group."""
    client_host: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """Its host; null if it is no member of the group."""
    lock_deadline_ms: i64 = field(metadata={"kafka_type": "int64"})
    """The end of the lock, in milliseconds since 1970."""
    lock_remaining_ms: i64 = field(metadata={"kafka_type": "int64"})
    """The time until the end of the lock, at least 0."""
    acquired_ms: i64 = field(metadata={"kafka_type": "int64", "tag": 0}, default=i64(0))
    """When the member acquired the records, in milliseconds since 1970; 0 if the broker does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_000)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    cause: i8 = field(metadata={"kafka_type": "int8"})
    """The cause of the change, as in control records; 0 if no change was ever recorded."""
    timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})
    """The time of the change, in milliseconds since 1970; -1 if no change was ever recorded."""
    member_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The member that caused it, or that lost its lock; null if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRange:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_000)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    first_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The first offset of the range."""
    last_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The last offset of the range, inclusive. Some offsets in between may have no record."""
    state: i8 = field(metadata={"kafka_type": "int8"})
    """The state of the records."""
    delivery_count: i16 = field(metadata={"kafka_type": "int16"})
    """The number of deliveries so far."""
    wait: i8 = field(metadata={"kafka_type": "int8"})
    """The reason why the records wait; 0 if they do not."""
    holder: LockHolder | None = field(default=None)
    """The holder of the records; null if they are not acquired."""
    last_change: LastChange | None = field(default=None)
    """The last recorded change; null if it is unknown, or was not asked for."""
    due_ms: i64 = field(metadata={"kafka_type": "int64", "tag": 0}, default=i64(0))
    """When the first of the records is due, in milliseconds since 1970; 0 if they do not wait for that."""
    priority: i8 = field(metadata={"kafka_type": "int8", "tag": 1}, default=i8(-1))
    """The priority of the records, from 0 to 9; -1 if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareRecordsResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_000)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    """The time for which the client must send nothing, because of a quota."""
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    """The error code, or 0."""
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The error message, or null."""
    start_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The share-partition start offset; -1 if the group has not begun, or beside an error."""
    end_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The share-partition end offset, exclusive; -1 if the group has not begun, or beside an error."""
    log_start_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The first offset of the log."""
    high_watermark: i64 = field(metadata={"kafka_type": "int64"})
    """The high watermark of the partition."""
    ranges: tuple[DescribedRange, ...]
    """The ranges, ascending and disjoint."""
    next_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The first offset of the next page; -1 if there is none."""
    authorized_operations: i32 = field(metadata={"kafka_type": "int32"}, default=i32(-2147483648))
    """The bits of the operations that are authorized on the group."""
