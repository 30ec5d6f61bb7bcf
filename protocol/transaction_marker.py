"""Transaction markers: the control records that end a producer's transaction in a partition (KIP-98).

    key     version i16 = 0, type i16 (0 abort, 1 commit)
    value   version i16 = 0, coordinator_epoch i32

A marker is the only record of a control batch with the producer's id and epoch, transactional and without a
sequence number. A compacted log may hold such a batch without its record, once all data of that transaction
is gone.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from barnabas.protocol.control_record import ControlType, control_key, read_control_type
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, BatchHeader, build_batch
from barnabas.protocol.records import iterate_records
from barnabas.protocol.varint import Buffer, RecordFormatError

_VALUE = Struct(">hi")
_VALUE_VERSION = 0


class TransactionEnd(NamedTuple):
    """The content of a marker: commit or abort, and the epoch of the coordinator that decided it."""

    commit: bool
    coordinator_epoch: int


def build_marker_batch(
    base_offset: int,
    producer: ProducerIdentity,
    end: TransactionEnd,
    *,
    leader_epoch: int,
    timestamp_ms: int,
    attributes: int = 0,
) -> bytes:
    """The control batch in Kafka's form; `attributes` must not contain transactional and control."""
    key = control_key(ControlType.COMMIT if end.commit else ControlType.ABORT)
    return build_batch(
        base_offset,
        [(key, _VALUE.pack(_VALUE_VERSION, end.coordinator_epoch))],
        leader_epoch=leader_epoch,
        timestamp_ms=timestamp_ms,
        attributes=attributes | TRANSACTIONAL_FLAG | CONTROL_FLAG,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )


def read_marker_batch(batch: Buffer, header: BatchHeader) -> TransactionEnd | None:
    """The content of a whole control batch; None if it has no record, or a record that is not a marker.

    RecordFormatError for a malformed marker. Later versions of the value begin with the fields of this one.
    """
    record = next(iterate_records(batch), None) if header.record_count else None
    if record is None:
        return None
    control_type = read_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise RecordFormatError(f"The transaction marker at {header.base_offset} is cut short.")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < _VALUE_VERSION:
        raise RecordFormatError(f"The transaction marker at {header.base_offset} has the version {version}.")
    return TransactionEnd(control_type == ControlType.COMMIT, coordinator_epoch)
