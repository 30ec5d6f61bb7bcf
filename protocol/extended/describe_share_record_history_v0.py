"""DescribeShareRecordHistory version 0, an API that only Barnabas has: the steps in the history of one record
for a share group, newest first, page by page. `record_history` has the steps.
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
    "DescribeShareRecordHistoryRequest",
    "DescribeShareRecordHistoryResponse",
    "DescribedStep",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareRecordHistoryRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_002)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    group_id: GroupId = field(metadata={"kafka_type": "string"})
    """The group."""
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    """The topic."""
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    """The partition."""
    offset: i64 = field(metadata={"kafka_type": "int64"})
    """The offset of the record."""
    before_offset: i64 = field(metadata={"kafka_type": "int64"})
    """Only control records before this offset; -1 for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStep:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_002)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    control_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The offset of the control record."""
    timestamp_ms: i64 = field(metadata={"kafka_type": "int64"})
    """The time of the decision, in milliseconds since 1970."""
    kind: i8 = field(metadata={"kafka_type": "int8"})
    """The kind of the control record."""
    state: i8 = field(metadata={"kafka_type": "int8"})
    """The state of the record."""
    delivery_count: i16 = field(metadata={"kafka_type": "int16"})
    """The number of deliveries so far; -1 if the control record does not tell."""
    cause: i8 = field(metadata={"kafka_type": "int8"})
    """The cause of the change, as in control records; 0 for none."""
    member_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The member that caused it, or that lost its lock; null if there is none."""
    condition: bytes | None = field(metadata={"kafka_type": "bytes"}, default=None)
    """The condition of the state, as in a control record of version 2; null for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeShareRecordHistoryResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_002)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    """The time for which the client must send nothing, because of a quota."""
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    """The error code, or 0."""
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The error message, or null."""
    is_recorded: bool = field(metadata={"kafka_type": "bool"}, default=False)
    """Whether the broker keeps histories: not with share.state.store=topic."""
    steps: tuple[DescribedStep, ...]
    """The steps, newest first."""
    next_offset: i64 = field(metadata={"kafka_type": "int64"})
    """As `before_offset`, continues with the next page; -1 if there is none."""
