"""The records of individually committed ranges of offsets in `__consumer_offsets`.

Only Barnabas has this type of record; Apache Kafka's coordinator and its formatter skip it. The key holds
both ends of the range, so a tombstone removes one range. `record_types` has the bytes around them. The
records stand beside the ordinary committed offset of their partition, see `OffsetCommitValue.keeps_ranges`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias
from uuid import UUID

from barnabas.protocol.record_types import RecordTypes
from barnabas.protocol.schema import Int32, Int64, String, Tag, Uuid

_NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRangeKey:
    """Both offsets are inclusive."""

    group: String
    topic: String
    partition: Int32
    first_offset: Int64
    last_offset: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRangeValue:
    """The time of day of the commit, and in a transaction the member that made it."""

    commit_timestamp_ms: Int64
    topic_id: Annotated[Uuid, Tag(0)] = _NO_TOPIC_ID
    member_id: Annotated[String, Tag(1)] = ""


OffsetRangeRecord: TypeAlias = tuple[OffsetRangeKey, OffsetRangeValue | None]
"""Key and value; a value of None is a tombstone."""

_RECORD_TYPES = RecordTypes[OffsetRangeKey, OffsetRangeValue]({10_000: (OffsetRangeKey, OffsetRangeValue)})

encode_offset_range_key = _RECORD_TYPES.encode_key
encode_offset_range_value = _RECORD_TYPES.encode_value
decode_offset_range_record = _RECORD_TYPES.decode
