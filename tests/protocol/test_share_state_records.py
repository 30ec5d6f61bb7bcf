"""Records of `__share_group_state`, compared with records of Kafka 4.3.1's own classes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from barnabas.protocol.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatchValue,
    decode_share_state_record,
    encode_share_state_record,
    share_state_kind,
)
from barnabas.protocol.varint import RecordFormatError
from tests.protocol.recorded_bytes import as_plain, from_hex, load_recorded

ROWS = load_recorded("share_state_records")
KEY, _ = encode_share_state_record((ShareSnapshotKey(group_id="g", topic_id=UUID(int=7), partition=0), None))


def _without_conditions(value: Any) -> Any:
    """Kafka's records have none."""
    for batch in value["state_batches"] if value else ():
        assert batch.pop("condition") == "b''"
    return value


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["type"]))
def test_a_record_of_kafka_is_encoded_to_the_same_bytes(row: dict[str, Any]) -> None:
    key, value = bytes.fromhex(row["key"]), from_hex(row["value"])
    decoded = decode_share_state_record(key, value)
    assert decoded is not None
    assert type(decoded[0]).__name__ == row["type"]
    assert as_plain(decoded[0]) == row["key_fields"]
    assert _without_conditions(as_plain(decoded[1])) == row["value_fields"]
    assert encode_share_state_record(decoded) == (key, value)


def test_a_condition_is_a_tagged_field_that_kafka_skips() -> None:
    batch = StateBatchValue(
        first_offset=0, last_offset=1, delivery_state=3, delivery_count=1, condition=b"some bytes"
    )
    value = ShareUpdateValue(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(batch,))
    key = ShareUpdateKey(group_id="g", topic_id=UUID(int=7), partition=0)
    encoded = encode_share_state_record((key, value))
    assert decode_share_state_record(*encoded) == (key, value)
    assert encoded[1] is not None
    assert bytes.fromhex("0001 01 904e 0b 0b") + b"some bytes" in encoded[1]  # the count, then the tag


def test_snapshots_updates_and_a_tombstone_were_recorded() -> None:
    assert {row["type"] for row in ROWS} == {"ShareSnapshotKey", "ShareUpdateKey"}
    assert any(row["value"] is None for row in ROWS)


def test_snapshot_and_update_of_one_share_partition_have_the_same_identity() -> None:
    snapshot, update = (bytes.fromhex(row["key"]) for row in ROWS[:2])
    assert share_state_kind(snapshot) == (False, snapshot[2:])
    assert share_state_kind(update) == (True, snapshot[2:])


@pytest.mark.parametrize("key", ["0002", "000a0001 67", "ffff"])
def test_other_records_are_not_decoded(key: str) -> None:
    assert decode_share_state_record(bytes.fromhex(key), b"\x00\x00") is None
    assert share_state_kind(bytes.fromhex(key)) is None


def test_a_count_from_before_kip_1226_is_unknown() -> None:
    value = bytes.fromhex("0000" + "00" * 12 + "00" * 24 + "01" + "00")
    decoded = decode_share_state_record(KEY, value)
    assert decoded is not None
    assert isinstance(decoded[1], ShareSnapshotValue)
    assert decoded[1].delivery_complete_count == -1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (KEY[:-1], None),
        (KEY + b"\x00", None),
        (KEY, b"\x00"),
        (KEY, b"\x00\x01"),
        (KEY, b"\x00\x00"),
    ],
)
def test_a_malformed_or_newer_record_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_share_state_record(key, value)
