"""AlterShareRecords version 0, an API that only Barnabas has: an administrator releases, archives or
dead-letters records of a share group. `record_inspection` has the actions and the limit.
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

__all__ = ["AlterShareRecordsRequest", "AlterShareRecordsResponse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareRecordsRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_001)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    group_id: GroupId = field(metadata={"kafka_type": "string"})
    """The group."""
    topic_id: UUID | None = field(metadata={"kafka_type": "uuid"})
    """The topic."""
    partition_index: i32 = field(metadata={"kafka_type": "int32"})
    """The partition."""
    action: i8 = field(metadata={"kafka_type": "int8"})
    """1 releases, 2 archives, and 3 dead-letters the records."""
    first_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The first offset of the records."""
    last_offset: i64 = field(metadata={"kafka_type": "int64"})
    """The last offset of the records, inclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterShareRecordsResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(10_001)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    """The time for which the client must send nothing, because of a quota."""
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    """The error code, or 0."""
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)
    """The error message, or null."""
    record_count: i32 = field(metadata={"kafka_type": "int32"})
    """The number of records that were changed."""
