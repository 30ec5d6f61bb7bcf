"""The keys and priorities that a leader reads from batches."""

from __future__ import annotations

import pytest

from barnabas.protocol.record_batch import Compression, read_header
from barnabas.protocol.record_keys import NO_KEY, KeyHashes, key_hash
from barnabas.protocol.records import Record, encode_records
from barnabas.share.leader import batch_keys
from barnabas.share.leader.batch_keys import FoundKeys, InvalidPriority, keys_of_batches
from barnabas.share.partition.key_order import BatchKeys
from barnabas.share.partition.limits import PriorityLimits, ShareLimits
from barnabas.storage.reading.log_slice import BatchSlice, BatchSpan

KEYS = ShareLimits(key_run_max=1)
PRIORITIES = ShareLimits(priority=PriorityLimits("priority"))
BOTH = PRIORITIES._replace(key_run_max=1)

RECORDS = [
    Record(5, 0, b"a", b"", (("priority", b"7"),)),
    Record(6, 0, None, b"", (("priority", b"high"), ("other", b"1"))),
    Record(7, 0, b"b", b""),
    Record(8, 0, b"b", b"", (("priority", None),)),
]


def found(
    limits: ShareLimits, *records: Record, codec: Compression = Compression.NONE, keys_until: int = 0
) -> FoundKeys:
    data = encode_records(records or RECORDS, compression=codec)
    header = read_header(data)
    span = BatchSpan(header.base_offset, header.last_offset, 0, len(data))
    return keys_of_batches([BatchSlice([span], memoryview(data))], keys_until, (), limits)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_keys_and_priorities_are_read_together(codec: Compression) -> None:
    got = found(BOTH, codec=codec)
    hashes = [key_hash(b"a"), NO_KEY, key_hash(b"b"), key_hash(b"b")]
    assert got.keys == [BatchKeys(5, 8, KeyHashes([0, 1, 2, 3], hashes), b"\x07\0\0\0")]


def test_records_have_no_keys_without_an_order_of_keys() -> None:
    assert found(PRIORITIES).keys == [BatchKeys(5, 8, KeyHashes([0, 1, 2, 3], [NO_KEY] * 4), b"\x07\0\0\0")]


def test_headers_are_not_read_without_priorities() -> None:
    got = found(KEYS)
    assert [one.priorities for one in got.keys] == [b""]
    assert not got.invalid


def test_a_batch_in_which_all_priorities_are_0_has_none() -> None:
    (one,) = found(PRIORITIES, *RECORDS[1:]).keys
    assert one.priorities == b""


def test_invalid_priorities_are_counted() -> None:
    got = found(PRIORITIES, *RECORDS, Record(9, 0, None, None, (("priority", b"07"),)))
    assert got.invalid == [InvalidPriority(6, b"high"), InvalidPriority(9, b"07")]


def test_invalid_priorities_of_records_that_were_read_before_are_not_counted_again() -> None:
    assert found(PRIORITIES, *RECORDS, keys_until=7).invalid == []


def test_a_batch_that_was_read_before_is_not_read_again() -> None:
    assert found(BOTH, keys_until=9).keys == []


def test_a_batch_that_inflates_beyond_the_bound_has_no_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_BYTES_MAX", 10)
    (one,) = found(PRIORITIES, codec=Compression.ZSTD).keys
    assert one == BatchKeys(5, 8, KeyHashes([0, 1, 2, 3], [NO_KEY] * 4))


@pytest.mark.parametrize("limits", [KEYS, BOTH])
def test_in_an_order_of_keys_such_a_batch_is_delivered_alone(
    monkeypatch: pytest.MonkeyPatch, limits: ShareLimits
) -> None:
    monkeypatch.setattr(batch_keys, "HASHED_BYTES_MAX", 10)
    (one,) = found(limits, codec=Compression.ZSTD).keys
    assert one.keys is None


def test_such_a_batch_is_delivered_alone_if_it_lacks_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then its offsets alone do not tell its records."""
    monkeypatch.setattr(batch_keys, "HASHED_BYTES_MAX", 10)
    (one,) = found(PRIORITIES, RECORDS[0], RECORDS[3], codec=Compression.ZSTD).keys
    assert one.keys is None
