from __future__ import annotations

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.record_batch import Compression, validate_produced
from barnabas.protocol.record_keys import RECORD_ERRORS_MAX, RecordsRejected, check_keys
from barnabas.protocol.record_walk import RECORDS_PER_STEP
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.stepwise import do_at_once


def produced(*keys: bytes | None, codec: Compression = Compression.NONE) -> bytes:
    records = [Record(offset, 1_000, key, b"value") for offset, key in enumerate(keys)]
    return encode_records(records, compression=codec)


def check(batch: bytes) -> None:
    do_at_once(check_keys(batch, validate_produced(batch, message_bytes_max=2**20)))


@pytest.mark.parametrize("codec", list(Compression))
def test_records_without_a_key_are_named(codec: Compression) -> None:
    check(produced(b"a", b"", codec=codec))
    with pytest.raises(RecordsRejected, match="2 of 3") as rejected:
        check(produced(None, b"a", None, codec=codec))
    assert rejected.value.code is ErrorCode.invalid_record
    assert [index for index, _ in rejected.value.record_errors] == [0, 2]


def test_no_more_than_a_bound_are_named() -> None:
    with pytest.raises(RecordsRejected, match=f"{RECORD_ERRORS_MAX + 1} of") as rejected:
        check(produced(*[None] * (RECORD_ERRORS_MAX + 1)))
    assert len(rejected.value.record_errors) == RECORD_ERRORS_MAX


def test_records_that_cannot_be_read_are_refused() -> None:
    batch = encode_records([Record(0, 0, b"a", b"b")])
    header = validate_produced(batch, message_bytes_max=2**20)
    with pytest.raises(ApiError, match="cannot be read"):
        do_at_once(check_keys(batch[:61] + b"\x7e" + batch[62:], header))


def test_many_records_are_looked_into_in_steps() -> None:
    batch = produced(*[b"k"] * (3 * RECORDS_PER_STEP), codec=Compression.ZSTD)
    steps = check_keys(batch, validate_produced(batch, message_bytes_max=2**20))
    assert len(list(steps)) == 3
