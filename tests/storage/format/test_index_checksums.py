"""The checksums of a log's index files: their own file, and the comparison with an index."""

from itertools import product

import pytest

from barnabas.storage.format.index_checksums import (
    NO_BYTES,
    ChecksumsCorrupt,
    IndexChecksum,
    SegmentChecksums,
    decode_index_checksums,
    encode_index_checksums,
)

SEGMENTS = {
    0: SegmentChecksums(IndexChecksum(8, 1), IndexChecksum(12, 2), IndexChecksum(20, 3), NO_BYTES),
    2**40: SegmentChecksums(NO_BYTES, NO_BYTES, NO_BYTES, NO_BYTES.extended(b"entry")),
}


@pytest.mark.parametrize("segments", [SEGMENTS, {}], ids=["two segments", "none"])
def test_written_content_is_read_back(segments: dict[int, SegmentChecksums]) -> None:
    assert decode_index_checksums(encode_index_checksums(segments)) == segments


def test_each_changed_byte_and_each_cut_is_found() -> None:
    written = encode_index_checksums(SEGMENTS)
    for position, flip in product(range(len(written)), (0x01, 0x80, 0xFF)):
        content = bytearray(written)
        content[position] ^= flip
        with pytest.raises(ChecksumsCorrupt):
            decode_index_checksums(bytes(content))
    for length in range(len(written)):
        with pytest.raises(ChecksumsCorrupt):
            decode_index_checksums(written[:length])


def test_an_index_that_has_grown_still_matches_an_older_checksum() -> None:
    checksum = NO_BYTES.extended(b"one").extended(b"two")
    assert checksum == NO_BYTES.extended(b"onetwo")
    assert checksum.matches(b"onetwo") and checksum.matches(b"onetwothree")
    assert not (checksum.matches(b"onetw") or checksum.matches(b"onetwi") or checksum.matches(b""))
    assert NO_BYTES.matches(b"") and NO_BYTES.matches(b"one")
