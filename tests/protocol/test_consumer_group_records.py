"""Consumer groups' records in `__consumer_offsets`, compared with records of Kafka 4.3.1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.protocol.consumer_group_records import (
    NO_CLASSIC_METADATA,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    decode_consumer_group_record,
    encode_consumer_group_key,
    encode_consumer_group_value,
)
from barnabas.protocol.varint import RecordFormatError

ROWS: list[dict[str, str | None]] = json.loads(
    (Path(__file__).parent / "vectors" / "consumer_group_records.json").read_text()
)
KEY = encode_consumer_group_key(ConsumerGroupMetadataKey(group_id="g"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["key"])[:4])
def test_a_record_of_kafka_is_encoded_to_the_same_bytes(row: dict[str, str | None]) -> None:
    key = bytes.fromhex(row["key"] or "")
    value = None if row["value"] is None else bytes.fromhex(row["value"])
    decoded = decode_consumer_group_record(key, value)
    assert decoded is not None
    decoded_key, decoded_value = decoded
    assert encode_consumer_group_key(decoded_key) == key
    assert (None if decoded_value is None else encode_consumer_group_value(decoded_value)) == value


def test_all_types_were_recorded_with_tombstones() -> None:
    assert {int(str(row["key"])[:4], 16) for row in ROWS} == {3, 4, 5, 6, 7, 8, 16}
    assert {int(str(row["key"])[:4], 16) for row in ROWS if row["value"] is None} == {3, 4, 5, 6, 7, 8, 16}


def test_a_member_of_the_consumer_protocol_is_written_with_a_null_that_kafka_needs() -> None:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=("t",),
        subscribed_topic_regex="",
        server_assignor=None,
        classic_member_metadata=None,
    )
    encoded = encode_consumer_group_value(value)
    assert encoded.endswith(b"\x01\x00\x01\x00"), "one tagged field, number 0, of one byte: null"
    key = encode_consumer_group_key(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"))
    decoded = decode_consumer_group_record(key, encoded[:-4] + b"\x00")
    assert decoded is not None
    assert isinstance(decoded[1], ConsumerGroupMemberMetadataValue)
    assert decoded[1].classic_member_metadata == NO_CLASSIC_METADATA


@pytest.mark.parametrize("key", ["000100016700017400000000", "0002000167", "0009", "0011000167", "ffff"])
def test_other_records_of_the_topic_are_not_decoded(key: str) -> None:
    assert decode_consumer_group_record(bytes.fromhex(key), b"\x00\x00") is None


@pytest.mark.parametrize(
    ("key", "value"), [(b"", None), (KEY[:-1], None), (KEY, b"\x00\x01"), (KEY, b"\x00\x00")]
)
def test_a_malformed_record_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_consumer_group_record(key, value)
