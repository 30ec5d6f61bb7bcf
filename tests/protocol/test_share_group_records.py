"""Share groups' records in `__consumer_offsets`, compared with records of Kafka 4.3.1."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.share_group_records import (
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
    decode_share_group_record,
    encode_share_group_key,
    encode_share_group_value,
)
from barnabas.protocol.varint import RecordFormatError
from tests.protocol.recorded_bytes import as_plain, from_hex, load_recorded

ROWS = load_recorded("group_records")
KEY = encode_share_group_key(ShareGroupMetadataKey(group_id="g"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["type"]))
def test_a_record_of_kafka_is_encoded_to_the_same_bytes(row: dict[str, Any]) -> None:
    key, value = bytes.fromhex(row["key"]), from_hex(row["value"])
    decoded = decode_share_group_record(key, value)
    assert decoded is not None
    decoded_key, decoded_value = decoded
    assert type(decoded_key).__name__ == row["type"]
    assert as_plain(decoded_key) == row["key_fields"]
    assert without_own_fields(as_plain(decoded_value)) == row["value_fields"]
    assert encode_share_group_key(decoded_key) == key
    assert (None if decoded_value is None else encode_share_group_value(decoded_value)) == value


def without_own_fields(fields: object) -> object:
    """The fields without those that Apache Kafka lacks; they have their defaults in its records."""
    return json.loads(json.dumps(fields).replace(', "zero_starts": []', ""))


def test_all_six_types_and_tombstones_were_recorded() -> None:
    assert {int(row["key"][:4], 16) for row in ROWS} == {10, 11, 12, 13, 14, 15}
    assert any(row["value"] is None for row in ROWS)


def test_the_group_incarnation_is_a_tagged_field_that_kafka_skips() -> None:
    # Kafka's own ShareGroupMetadataValue reads epoch 2 and hash 5 from these bytes.
    value = ShareGroupMetadataValue(group_epoch=2, metadata_hash=5, group_incarnation=42)
    encoded = encode_share_group_value(value)
    assert encoded.hex() == "000000000002000000000000000501904e08000000000000002a"
    assert decode_share_group_record(KEY, encoded) == (ShareGroupMetadataKey(group_id="g"), value)


def test_zero_starts_are_a_tagged_field_that_kafka_skips() -> None:
    info = TopicPartitionsInfo(topic_id=UUID(int=1), topic_name="t", partitions=(0, 1), zero_starts=(1,))
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=(), initialized_topics=(info,), deleting_topics=()
    )
    key = encode_share_group_key(ShareGroupStatePartitionMetadataKey(group_id="g"))
    encoded = encode_share_group_value(value)
    assert bytes.fromhex("01904e050200000001") in encoded  # one tag, number 10000, 5 bytes, one partition
    group = ShareGroupStatePartitionMetadataKey(group_id="g")
    assert decode_share_group_record(key, encoded) == (group, value)


@pytest.mark.parametrize("key", ["000100016700017400000000", "00020001 67", "0003", "0011 0001 67", "ffff"])
def test_other_records_of_the_topic_are_not_decoded(key: str) -> None:
    assert decode_share_group_record(bytes.fromhex(key), b"\x00\x00") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\x00", None),
        (KEY[:-1], None),
        (KEY + b"\x00", None),
        (KEY, b"\x00"),
        (KEY, b"\x00\x01" + bytes(13)),
        (KEY, b"\x00\x00" + bytes(12)),
        (KEY, b"\x00\x00" + bytes(14)),
    ],
)
def test_a_malformed_or_newer_record_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_share_group_record(key, value)
