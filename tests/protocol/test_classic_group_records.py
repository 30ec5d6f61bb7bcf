"""The records of classic groups and committed offsets, in the form of Apache Kafka 4.3.1."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.classic_group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_classic_record,
    encode_classic_key,
    encode_classic_value,
)
from barnabas.protocol.varint import RecordFormatError

OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
OFFSET = OffsetCommitValue(
    offset=7, leader_epoch=2, metadata="note", commit_timestamp_ms=99, topic_id=UUID(int=5)
)
EXPIRING = OffsetCommitValue(offset=7, metadata="", commit_timestamp_ms=99, expire_timestamp_ms=100)
GROUP_KEY = GroupMetadataKey(group="g")
MEMBER = MemberMetadata(
    member_id="m",
    group_instance_id="desk",
    client_id="c",
    client_host="/127.0.0.1",
    rebalance_timeout_ms=2,
    session_timeout_ms=1,
    subscription=b"\x01",
    assignment=b"\x02\x03",
)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=4,
    protocol="range",
    leader="m",
    current_state_timestamp_ms=99,
    members=(MEMBER,),
)


@pytest.mark.parametrize(
    ("key", "value", "version"),
    [(OFFSET_KEY, OFFSET, 4), (OFFSET_KEY, EXPIRING, 1), (GROUP_KEY, GROUP, 3), (OFFSET_KEY, None, None)],
)
def test_a_record_survives_encoding_and_decoding(
    key: OffsetCommitKey | GroupMetadataKey,
    value: OffsetCommitValue | GroupMetadataValue | None,
    version: int | None,
) -> None:
    encoded = None if value is None else encode_classic_value(value)
    assert decode_classic_record(encode_classic_key(key), encoded) == (key, value)
    if encoded is not None:
        assert int.from_bytes(encoded[:2], "big") == version


def test_keys_have_kafkas_layout() -> None:
    assert encode_classic_key(OFFSET_KEY).hex() == "0001" + "000167" + "000174" + "00000003"
    assert encode_classic_key(GROUP_KEY).hex() == "0002" + "000167"


def test_values_have_kafkas_layout() -> None:
    plain = OffsetCommitValue(offset=1, metadata="n", commit_timestamp_ms=2)
    assert encode_classic_value(plain).hex() == (
        "0004" + "0000000000000001" + "ffffffff" + "026e" + "0000000000000002" + "00"
    )
    with_topic = encode_classic_value(OFFSET).hex()
    assert with_topic.endswith("01" + "00" + "10" + UUID(int=5).hex)


@pytest.mark.parametrize(
    ("version", "value", "expected"),
    [
        (0, "0000000000000001" + "00016e" + "0000000000000002", (1, -1, -1)),
        (1, "0000000000000001" + "00016e" + "0000000000000002" + "0000000000000003", (1, -1, 3)),
        (2, "0000000000000001" + "00016e" + "0000000000000002", (1, -1, -1)),
        (3, "0000000000000001" + "00000004" + "00016e" + "0000000000000002", (1, 4, -1)),
    ],
)
def test_offsets_of_older_brokers_are_read(version: int, value: str, expected: tuple[int, int, int]) -> None:
    key = encode_classic_key(OFFSET_KEY)
    decoded = decode_classic_record(key, version.to_bytes(2, "big") + bytes.fromhex(value))
    assert decoded is not None
    offset = decoded[1]
    assert isinstance(offset, OffsetCommitValue)
    assert (offset.offset, offset.leader_epoch, offset.expire_timestamp_ms) == expected


def test_offsets_from_before_0_9_are_read_alike() -> None:
    legacy = b"\x00\x00" + encode_classic_key(OFFSET_KEY)[2:]
    assert decode_classic_record(legacy, None) == (OFFSET_KEY, None)


def test_groups_of_older_brokers_have_no_instances_and_one_timeout() -> None:
    value = bytes.fromhex("0000") + b"\x00\x08consumer" + bytes(4) + b"\xff\xff\xff\xff" + bytes(4)
    assert decode_classic_record(encode_classic_key(GROUP_KEY), value) == (
        GROUP_KEY,
        GroupMetadataValue(protocol_type="consumer", generation=0, protocol=None, leader=None, members=()),
    )


@pytest.mark.parametrize("key", ["0003000167", "000a000167", "ffff"])
def test_other_records_of_the_topic_are_not_decoded(key: str) -> None:
    assert decode_classic_record(bytes.fromhex(key), None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\x00", None),
        (encode_classic_key(OFFSET_KEY)[:-1], None),
        (encode_classic_key(GROUP_KEY) + b"\x00", None),
        (encode_classic_key(OFFSET_KEY), b"\x00\x05"),
        (encode_classic_key(OFFSET_KEY), encode_classic_value(OFFSET)[:-1]),
        (encode_classic_key(GROUP_KEY), encode_classic_value(GROUP) + b"\x00"),
    ],
)
def test_malformed_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_classic_record(key, value)
