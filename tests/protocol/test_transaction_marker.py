"""Transaction markers, compared with Apache Kafka."""

import pytest

from barnabas.protocol.control_record import ControlType, control_key
from barnabas.protocol.identity import ProducerIdentity
from barnabas.protocol.record_batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, build_batch, read_header
from barnabas.protocol.transaction_marker import TransactionEnd, build_marker_batch, read_marker_batch
from barnabas.protocol.varint import RecordFormatError

PRODUCER = ProducerIdentity(1000, 3)


def control_batch(key: bytes, value: bytes | None) -> bytes:
    return build_batch(
        5,
        [(key, value)],
        leader_epoch=0,
        timestamp_ms=7,
        attributes=CONTROL_FLAG | TRANSACTIONAL_FLAG,
        producer_id=9,
        producer_epoch=0,
    )


@pytest.mark.parametrize("end", [TransactionEnd(True, 4), TransactionEnd(False, 2**31 - 1)])
def test_a_marker_survives_encoding_and_decoding(end: TransactionEnd) -> None:
    batch = build_marker_batch(5, PRODUCER, end, leader_epoch=2, timestamp_ms=7)
    header = read_header(batch)
    assert (header.base_offset, header.leader_epoch, header.record_count) == (5, 2, 1)
    assert header[9:12] == (1000, 3, -1)
    assert read_marker_batch(batch, header) == end


def test_a_marker_has_kafkas_bytes() -> None:
    """Apache Kafka 4.3.1 wrote these bytes for an abort marker of coordinator epoch 4."""
    batch = build_marker_batch(6, PRODUCER, TransactionEnd(False, 4), leader_epoch=0, timestamp_ms=1_000_000)
    assert batch[21:] == bytes.fromhex(
        "0030 00000000 00000000000f4240 00000000000f4240 00000000000003e8 0003 ffffffff 00000001"
        "20 00 00 00 08 00000000 0c 000000000004 00"
    )


def test_a_batch_without_its_record_is_no_marker() -> None:
    batch = build_marker_batch(5, PRODUCER, TransactionEnd(True, 4), leader_epoch=0, timestamp_ms=7)
    header = read_header(batch)._replace(record_count=0)
    assert read_marker_batch(batch, header) is None


def test_other_control_records_end_no_transaction() -> None:
    batch = control_batch(control_key(7), b"")
    assert read_marker_batch(batch, read_header(batch)) is None


def test_the_known_fields_of_a_later_version_are_read() -> None:
    batch = control_batch(control_key(ControlType.COMMIT), b"\x00\x01\x00\x00\x00\x09more")
    assert read_marker_batch(batch, read_header(batch)) == TransactionEnd(True, 9)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x09"])
def test_a_malformed_marker_is_an_error(value: bytes | None) -> None:
    batch = control_batch(control_key(ControlType.ABORT), value)
    with pytest.raises(RecordFormatError):
        read_marker_batch(batch, read_header(batch))
