"""Converts batches and records to rows (`printing`)."""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, cast
from uuid import UUID

from barnabas.cli.printing import Row, Value, bytes_entry
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, OFFSETS_TOPIC, SHARE_STATE_TOPIC
from barnabas.protocol.control_record import (
    ControlType,
    ShareCheckpoint,
    ShareDelta,
    decode_control_record,
    read_control_type,
)
from barnabas.protocol.delivery_state import (
    Cause,
    Condition,
    Due,
    PendingAcknowledgement,
    StateRange,
    decode_condition,
)
from barnabas.protocol.metadata_records import decode_metadata_control, decode_metadata_record
from barnabas.protocol.record_batch import COMPRESSION_MASK, Compression
from barnabas.protocol.records import Record, iterate_records
from barnabas.protocol.share_group_records import decode_share_group_record
from barnabas.protocol.share_state_records import StateBatchValue, decode_share_state_record
from barnabas.protocol.varint import RecordFormatError
from barnabas.share.partition.acknowledgement import AcknowledgeType
from barnabas.storage.format.cleaned_mark import is_mark
from barnabas.storage.format.partition_metadata import encode_id
from barnabas.storage.segments.segment_scan import ScannedBatch

_CODECS = {int(codec): codec.name.lower() for codec in Compression}
_COORDINATOR_EPOCH = slice(2, 6)
"""The field in the value of a transaction's marker."""


def batch_row(batch: ScannedBatch) -> dict[str, Value]:
    """The row of a good batch."""
    position, header, data = batch
    codec = header.attributes & COMPRESSION_MASK
    has_producer = header.producer_id >= 0
    return {
        "type": "cleaned" if is_mark(header) else "batch",
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "record_count": header.record_count,
        "position": position,
        "size_bytes": len(data),
        "codec": _CODECS.get(codec, str(codec)),
        "crc": header.crc,
        "crc_ok": True,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id if has_producer else None,
        "producer_epoch": header.producer_epoch if has_producer else None,
        "base_sequence": header.base_sequence if has_producer and header.base_sequence >= 0 else None,
        "base_timestamp_ms": header.base_timestamp_ms,
        "max_timestamp_ms": header.max_timestamp_ms,
        "log_append_time": header.log_append_time,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }


def record_rows(topic: str, batch: ScannedBatch) -> Iterator[Row]:
    """The records of a good batch; the broker's own records are decoded. Raises RecordFormatError."""
    _, header, data = batch
    for record in iterate_records(data):
        if header.is_control:
            yield _control_row(topic, record)
        else:
            yield _data_row(topic, record)


def _data_row(topic: str, record: Record) -> Row:
    decode = _DECODERS.get(topic)
    if decode is not None:
        try:
            fields = decode(record)
        except RecordFormatError as error:
            fields = {"unreadable": str(error)}
        if fields is not None:
            return {"type": "record", "offset": record.offset, **fields}
    headers = [{"key": name, **bytes_entry("value", value)} for name, value in record.headers]
    return {
        "type": "record",
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **bytes_entry("key", record.key),
        **bytes_entry("value", record.value),
        "headers": headers,
    }


def _metadata_fields(record: Record) -> dict[str, Value] | None:
    return _fields(decode_metadata_record(record.value or b""))


def _keyed_fields(
    decode: Callable[[bytes, bytes | None], tuple[object, object] | None], record: Record
) -> dict[str, Value] | None:
    decoded = decode(record.key or b"", record.value)
    if decoded is None:
        return None
    key, value = decoded
    return {"key": _fields(key), "value": None if value is None else _fields(value)}


def _share_state_fields(record: Record) -> dict[str, Value] | None:
    """As `_keyed_fields`, with the conditions of the states decoded."""
    fields = _keyed_fields(decode_share_state_record, record)
    decoded = decode_share_state_record(record.key or b"", record.value)
    if fields is None or decoded is None or decoded[1] is None:
        return fields
    batches = [_batch_fields(batch) for batch in decoded[1].state_batches]
    return {**fields, "value": {**cast("dict[str, Value]", fields["value"]), "state_batches": batches}}


def _batch_fields(batch: StateBatchValue) -> dict[str, Value]:
    fields = {name: value for name, value in dataclasses.asdict(batch).items() if name != "condition"}
    return {**fields, **condition_fields(decode_condition(batch.condition) if batch.condition else None)}


_DECODERS: Mapping[str, Callable[[Record], dict[str, Value] | None]] = {
    METADATA_TOPIC: _metadata_fields,
    OFFSETS_TOPIC: partial(_keyed_fields, decode_share_group_record),
    SHARE_STATE_TOPIC: _share_state_fields,
}


def _control_row(topic: str, record: Record) -> Row:
    control_type = read_control_type(record.key)
    if topic == METADATA_TOPIC:
        decoded = decode_metadata_control(record.key, record.value)
        fields = {"control_type": control_type} if decoded is None else _fields(decoded)
        return {"type": "control", "offset": record.offset, **fields}
    share_state = decode_control_record(record.key, record.value)
    if share_state is not None:
        return share_row(record.offset, share_state)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        epoch = int.from_bytes((record.value or b"")[_COORDINATOR_EPOCH], "big", signed=True)
        name = ControlType(control_type).name.lower()
        return {"type": name, "offset": record.offset, "coordinator_epoch": epoch}
    return {"type": "control", "offset": record.offset, "control_type": control_type}


def share_row(offset: int, record: ShareCheckpoint | ShareDelta) -> Row:
    """A control record of a share group, with its ranges."""
    row: dict[str, Value] = {
        "type": "checkpoint" if isinstance(record, ShareCheckpoint) else "delta",
        "offset": offset,
        "group_id": record.group_id,
        "group_incarnation": record.group_incarnation,
        "checkpoint_epoch": record.checkpoint_epoch,
    }
    if isinstance(record, ShareCheckpoint):
        row |= {
            "state_epoch": record.state_epoch,
            "leader_epoch": record.leader_epoch,
            "start_offset": record.start_offset,
            "end_offset": record.end_offset,
            "delivery_complete_count": record.delivery_complete_count,
            "deleted": record.deleted,
        }
    else:
        row["back_offset"] = record.back_offset
    row["decided_at_ms"] = record.decided_at_ms
    row["states"] = [state_fields(state_range) for state_range in record.states]
    return row


def state_fields(state: StateRange) -> dict[str, Value]:
    """A range of offsets, both inclusive, in one state."""
    return {
        "base_offset": state.base_offset,
        "last_offset": state.last_offset,
        "state": state.state.name.lower(),
        "delivery_count": state.delivery_count,
        "cause": _cause(state.cause),
        "member": state.member,
        **condition_fields(state.condition),
    }


def condition_fields(condition: Condition | None) -> dict[str, Value]:
    """The place and the reason of a dead letter, the time before which a record waits, or the acknowledgement
    that waits for a transaction; if there is one.
    """
    if condition is None:
        return {}
    if isinstance(condition, Due):
        return {"due_ms": condition.due_ms}
    if isinstance(condition, PendingAcknowledgement):
        return {
            "pending_type": AcknowledgeType(condition.acknowledge_type).name.lower(),
            "pending_producer_id": condition.producer_id,
            "pending_producer_epoch": condition.producer_epoch,
            "pending_member": condition.member,
        }
    return {
        "letter_reason": _cause(condition.reason),
        "letter_topic_id": encode_id(condition.topic_id) if condition.is_known else None,
        "letter_partition": condition.partition if condition.is_known else None,
        "letter_from_offset": condition.log_end_offset if condition.is_known else None,
    }


def _cause(cause: Cause) -> str:
    return cause.name.lower().replace("_", " ")


def _fields(record: Any) -> dict[str, Value]:
    """The fields of a decoded record of Barnabas or Kafka, by name."""
    return {"record": type(record).__name__, **_plain(dataclasses.asdict(record))}


def _plain(value: Any) -> Any:
    """The value with only types that JSON can represent."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in cast("Sequence[Any]", value)]
    if isinstance(value, UUID):
        return encode_id(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value
