"""Recompressed batches: the records and the other fields of the header do not change."""

import pytest

from barnabas.protocol.batch_body import batch_body
from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.recompression import StoredCompression, recompress
from barnabas.protocol.record_batch import (
    TRANSACTIONAL_FLAG,
    Compression,
    is_checksum_valid,
    read_header,
)
from barnabas.protocol.records import Record, encode_records, iterate_records

BYTES_MAX = 1_000_000
RECORDS = [Record(offset, 1000 + offset, b"key", b"value " * 50, (("h", b"x"),)) for offset in range(20)]


def produced(codec: Compression) -> bytes:
    return encode_records(
        RECORDS,
        compression=codec,
        attributes=TRANSACTIONAL_FLAG,
        producer_id=7,
        producer_epoch=3,
        base_sequence=11,
    )


def repacked(batch: bytes, stored: StoredCompression, *, bytes_max: int = BYTES_MAX) -> bytes:
    header = read_header(batch)
    result = recompress(batch_body(batch, header), header, stored, message_bytes_max=bytes_max)
    assert is_checksum_valid(result, 0, read_header(result))
    return result


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", Compression)
def test_any_codec_can_be_converted_to_any_other(source: Compression, target: Compression) -> None:
    batch = produced(source)
    result = repacked(batch, StoredCompression(target))
    assert list(iterate_records(result)) == RECORDS
    before, after = read_header(batch), read_header(result)
    assert after.compression is target
    same = {"batch_length": 0, "crc": 0, "attributes": 0}
    assert after._replace(**same) == before._replace(**same)
    assert after.is_transactional


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, (1, 9)),
        (Compression.LZ4, (9, 1, 17)),
        (Compression.ZSTD, (-131072, 0, 3, 22)),
    ],
)
def test_every_level_can_be_decompressed(codec: Compression, levels: tuple[int, ...]) -> None:
    for level in levels:
        result = repacked(produced(Compression.NONE), StoredCompression(codec, level))
        assert list(iterate_records(result)) == RECORDS, level


def test_the_level_is_applied() -> None:
    batch = encode_records([Record(0, 0, None, bytes(i * i % 251 for i in range(50_000)))])
    fast, best = (repacked(batch, StoredCompression(Compression.GZIP, level)) for level in (1, 9))
    assert len(best) < len(fast)


def test_a_batch_that_becomes_too_large_is_refused() -> None:
    batch = produced(Compression.ZSTD)
    with pytest.raises(ApiError) as refused:
        repacked(batch, StoredCompression(Compression.NONE), bytes_max=len(batch))
    assert refused.value.code is ErrorCode.message_too_large
