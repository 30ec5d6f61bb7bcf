"""The codecs of record batches."""

from __future__ import annotations

import gzip
from random import Random

import cramjam
import pytest
from aiokafka import codec as aiokafka_codec  # pyright: ignore[reportMissingTypeStubs]

from barnabas.protocol.compression import LargerThanBound, compress, decompress, unpack, unpack_stored
from barnabas.protocol.record_batch import Compression
from barnabas.protocol.varint import RecordFormatError

COMPRESSING = [codec for codec in Compression if codec is not Compression.NONE]
SAMPLES = [b"", b"x", b"kafka " * 7, bytes(200_000), bytes(range(256)) * 500]

AIOKAFKA_DECODERS = {
    Compression.GZIP: aiokafka_codec.gzip_decode,
    Compression.SNAPPY: aiokafka_codec.snappy_decode,
    Compression.LZ4: aiokafka_codec.lz4_decode,
    Compression.ZSTD: aiokafka_codec.zstd_decode,
}


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_data_survives_compression(codec: Compression, data: bytes) -> None:
    assert decompress(codec, compress(codec, memoryview(data))) == data


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("data", SAMPLES[1:], ids=len)
def test_aiokafka_reads_compressed_data(codec: Compression, data: bytes) -> None:
    assert bytes(AIOKAFKA_DECODERS[codec](compress(codec, data))) == data


def test_uncompressed_data_is_passed_on() -> None:
    assert compress(Compression.NONE, b"data") == b"data"


def test_snappy_is_written_in_blocks_after_javas_header() -> None:
    framed = compress(Compression.SNAPPY, bytes(40_000))
    assert framed.startswith(bytes.fromhex("82534e41505059 00 00000001 00000001"))
    first_block_bytes = int.from_bytes(framed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(framed[20 : 20 + first_block_bytes]) == 32 * 1024


def test_snappy_is_read_without_a_header_too() -> None:
    bare = bytes(cramjam.snappy.compress_raw(b"librdkafka writes this" * 9))
    assert decompress(Compression.SNAPPY, bare) == b"librdkafka writes this" * 9


def test_gzip_of_the_standard_library_is_read() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"data" * 99)) == b"data" * 99


@pytest.mark.parametrize("codec", COMPRESSING)
def test_data_larger_than_allowed_is_refused(codec: Compression) -> None:
    data = compress(codec, bytes(1_000_000))
    assert len(decompress(codec, data, bytes_max=1_000_000)) == 1_000_000
    with pytest.raises(RecordFormatError, match="larger than"):
        decompress(codec, data, bytes_max=999_999)


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("damage", ["cut short", "garbage", "nothing"])
def test_malformed_data_is_refused(codec: Compression, damage: str) -> None:
    good = compress(codec, bytes(range(256)) * 50)
    malformed = {"cut short": good[:-9], "garbage": good[:20] + b"\xff" * 40, "nothing": b""}[damage]
    with pytest.raises(RecordFormatError):
        decompress(codec, malformed, bytes_max=1 << 20)


def test_a_snappy_block_length_that_is_cut_short_or_negative_is_refused() -> None:
    good = compress(Compression.SNAPPY, b"data")
    for malformed in (good[:18], good[:16] + b"\xff\xff\xff\xff"):
        with pytest.raises(RecordFormatError, match="snappy block"):
            decompress(Compression.SNAPPY, malformed)


def test_lz4_blocks_are_independent_and_larger_data_has_several() -> None:
    """Java's clients and Kafka require bit 5 of the byte after the magic."""
    for data in (b"", b"a" * 100_000, Random(1).randbytes(200_000)):
        compressed = compress(Compression.LZ4, data)
        assert compressed[4] & 0x20
        assert decompress(Compression.LZ4, compressed) == data


PLAIN = b"a record of an earlier version " * 5000


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        pytest.param(Compression.LZ4, bytes(cramjam.lz4.compress(PLAIN)), id="LZ4 with linked blocks"),
        pytest.param(
            Compression.GZIP, gzip.compress(PLAIN[:7]) + gzip.compress(PLAIN[7:]), id="gzip with two members"
        ),
    ],
)
def test_data_that_is_refused_from_clients_is_read_from_a_log(codec: Compression, packed: bytes) -> None:
    with pytest.raises(RecordFormatError):
        unpack(codec, packed)
    assert decompress(codec, packed) == PLAIN
    with pytest.raises(LargerThanBound):
        unpack_stored(codec, packed, bytes_max=len(PLAIN) - 1)
