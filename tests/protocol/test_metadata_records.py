"""The cluster's metadata records, compared with records of Kafka 4.3.1 and of its classes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
    SnapshotFooterRecord,
    TopicRecord,
    decode_metadata_control,
    decode_metadata_record,
    encode_metadata_control,
    encode_metadata_record,
)
from barnabas.protocol.varint import RecordFormatError
from tests.protocol.recorded_bytes import as_plain, load_recorded

ROWS = load_recorded("metadata_records")
RECORDS = [row for row in ROWS if row["key"] is None]
CONTROL_RECORDS = [row for row in ROWS if row["key"] is not None]
TOPIC = TopicRecord(name="t", topic_id=UUID(int=1))


@pytest.mark.parametrize("row", RECORDS, ids=lambda row: str(row["type"]))
def test_a_record_of_kafka_is_encoded_to_the_same_bytes(row: dict[str, Any]) -> None:
    value = bytes.fromhex(row["value"])
    version = value[2]
    record = decode_metadata_record(memoryview(value))
    assert type(record).__name__ == row["type"]
    assert as_plain(record) == row["fields"]
    assert encode_metadata_record(record, version) == value


@pytest.mark.parametrize("row", CONTROL_RECORDS, ids=lambda row: str(row["type"]))
def test_a_control_record_of_kafka_is_encoded_to_the_same_bytes(row: dict[str, Any]) -> None:
    key, value = bytes.fromhex(row["key"]), bytes.fromhex(row["value"])
    record = decode_metadata_control(key, value)
    assert record is not None
    assert type(record).__name__ == row["type"]
    assert as_plain(record) == row["fields"]
    assert encode_metadata_control(record) == (key, value)


def test_records_are_written_in_the_newest_version() -> None:
    partition = PartitionRecord(topic_id=UUID(int=1), replicas=(1,), isr=(1,))
    change = PartitionChangeRecord(topic_id=UUID(int=1), leader=1)
    assert [encode_metadata_record(record)[:3] for record in (partition, change, TOPIC)] == [
        b"\x01\x03\x02",
        b"\x01\x05\x02",
        b"\x01\x02\x00",
    ]


def test_a_version_that_lacks_a_changed_field_cannot_be_written() -> None:
    change = PartitionChangeRecord(topic_id=UUID(int=1), directories=(UUID(int=2),))
    with pytest.raises(ValueError, match="version 0 has no directories"):
        encode_metadata_record(change, 0)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01\x02",
        b"\x02" + encode_metadata_record(TOPIC)[1:],
        b"\x01\x02\x01" + encode_metadata_record(TOPIC)[3:],
        b"\x01\x63\x00\x00",
        encode_metadata_record(TOPIC)[:-1],
        encode_metadata_record(TOPIC) + b"\x00",
    ],
)
def test_a_record_that_is_malformed_newer_or_of_an_unknown_type_is_refused(value: bytes) -> None:
    with pytest.raises(RecordFormatError):
        decode_metadata_record(value)


def test_control_records_of_other_types_are_skipped() -> None:
    assert decode_metadata_control(bytes.fromhex("00000005"), bytes.fromhex("0000000100")) is None


@pytest.mark.parametrize("value", [None, b"", b"\x00\x01\x00", b"\x00\x00", b"\x00\x00\x00\x00"])
def test_a_malformed_or_newer_control_record_is_refused(value: bytes | None) -> None:
    key, _ = encode_metadata_control(SnapshotFooterRecord())
    with pytest.raises(RecordFormatError):
        decode_metadata_control(key, value)
