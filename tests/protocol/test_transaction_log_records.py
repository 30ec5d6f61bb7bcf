"""The records of `__transaction_state`, byte for byte as written by Apache Kafka 4.3.1."""

from __future__ import annotations

import pytest

from barnabas.protocol.transaction_log_records import (
    TransactionLogKey,
    TransactionLogValue,
    TransactionPartitions,
    decode_transaction_record,
    encode_transaction_key,
    encode_transaction_value,
)
from barnabas.protocol.varint import RecordFormatError

KEY = TransactionLogKey(transactional_id="tx")
EMPTY = TransactionLogValue(
    producer_id=7,
    previous_producer_id=7,
    producer_epoch=1,
    transaction_timeout_ms=60_000,
    transaction_status=0,
    transaction_partitions=None,
    transaction_last_update_timestamp_ms=1_000,
    transaction_start_timestamp_ms=-1,
)
ONGOING = TransactionLogValue(
    producer_id=7,
    previous_producer_id=7,
    next_producer_id=8,
    producer_epoch=1,
    transaction_timeout_ms=60_000,
    transaction_status=1,
    transaction_partitions=(TransactionPartitions(topic="t", partition_ids=(0, 2)),),
    transaction_last_update_timestamp_ms=1_001,
    transaction_start_timestamp_ms=1_001,
    client_transaction_version=2,
)
KEY_BYTES = bytes.fromhex("0000 0002 7478")
EMPTY_BYTES = bytes.fromhex(
    "0001 0000000000000007 0001 0000ea60 00 00 00000000000003e8 ffffffffffffffff01 00 08 0000000000000007"
)
ONGOING_BYTES = bytes.fromhex(
    "0001 0000000000000007 0001 0000ea60 01 02 02 74 03 00000000 00000002 00"
    "00000000000003e9 00000000000003e9"
    "03 00 08 0000000000000007 01 08 0000000000000008 02 02 0002"
)


@pytest.mark.parametrize(("value", "data"), [(EMPTY, EMPTY_BYTES), (ONGOING, ONGOING_BYTES)])
def test_a_state_is_written_and_read(value: TransactionLogValue, data: bytes) -> None:
    assert encode_transaction_key(KEY) == KEY_BYTES
    assert encode_transaction_value(value, 2) == encode_transaction_value(value, 1) == data
    assert decode_transaction_record(KEY_BYTES, data) == (KEY, value)


def test_before_level_1_raised_epochs_are_not_recorded() -> None:
    data = encode_transaction_value(ONGOING, 0)
    assert data[:2] == b"\0\0"
    decoded = decode_transaction_record(KEY_BYTES, data)
    assert decoded is not None
    _, value = decoded
    assert value is not None
    assert (value.producer_id, value.next_producer_id, value.client_transaction_version) == (7, -1, 0)
    assert value.transaction_partitions == ONGOING.transaction_partitions


def test_a_tombstone_deletes_an_id() -> None:
    assert decode_transaction_record(KEY_BYTES, None) == (KEY, None)


@pytest.mark.parametrize(("key", "value"), [(b"\0\1\0\2tx", EMPTY_BYTES), (KEY_BYTES, b"\0\2later")])
def test_records_of_later_versions_are_skipped(key: bytes, value: bytes) -> None:
    assert decode_transaction_record(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0", None), (KEY_BYTES[:-1], None), (KEY_BYTES, EMPTY_BYTES[:-1]), (KEY_BYTES, b"\xff\xff")],
)
def test_a_malformed_record_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_transaction_record(key, value)
