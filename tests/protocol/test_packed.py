"""The contents of tags with ranges."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ApiError, ErrorCode
from barnabas.protocol.extended.packed import pack_hash_range, unpack_hash_range
from barnabas.protocol.record_keys.hash_range import ALL_HASHES, HashRange, even_ranges


@pytest.mark.parametrize("hashes", [ALL_HASHES, HashRange(5, 5), *even_ranges(3)])
def test_a_hash_range_is_unpacked_as_it_was_packed(hashes: HashRange) -> None:
    assert unpack_hash_range(pack_hash_range(hashes)) == hashes


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"", "has 0 bytes, not 8"),
        (bytes(7), "has 7 bytes, not 8"),
        (bytes(9), "has 9 bytes, not 8"),
        (pack_hash_range(HashRange(6, 5)), "from 6 to 5 is none"),
        (pack_hash_range(HashRange(-1, 5)), "from -1 to 5 is none"),
        (pack_hash_range(HashRange(-2, -1)), "from -2 to -1 is none"),
    ],
)
def test_a_malformed_hash_range_is_an_invalid_request(packed: bytes, message: str) -> None:
    with pytest.raises(ApiError, match=message) as refusal:
        unpack_hash_range(packed)
    assert refusal.value.code is ErrorCode.invalid_request
