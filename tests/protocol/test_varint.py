"""Variable-length integers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.varint import (
    RecordFormatError,
    read_unsigned_varint,
    read_zigzag_varint,
    unsigned_varint,
    zigzag_varint,
)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_values_have_the_bytes_of_the_protocol_guide(value: int, encoded: str) -> None:
    assert unsigned_varint(value).hex() == encoded
    assert read_unsigned_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_small_signed_values_have_short_encodings(value: int, encoded: str) -> None:
    assert zigzag_varint(value).hex() == encoded
    assert read_zigzag_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**32 - 1))
def test_every_value_survives_encoding_and_decoding(signed: int, unsigned: int) -> None:
    data = b"\xff" + zigzag_varint(signed) + unsigned_varint(unsigned)
    read_signed, position = read_zigzag_varint(memoryview(data), 1)
    assert read_signed == signed
    assert read_unsigned_varint(data, position) == (unsigned, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_value_that_is_cut_short_is_refused(data: bytes) -> None:
    with pytest.raises(RecordFormatError, match="cut short"):
        read_unsigned_varint(data, 0)


def test_a_value_that_is_too_long_is_refused() -> None:
    with pytest.raises(RecordFormatError, match="more than 5"):
        read_unsigned_varint(b"\x80" * 5 + b"\x00", 0)
    with pytest.raises(RecordFormatError, match="more than 10"):
        read_zigzag_varint(b"\x80" * 10 + b"\x00", 0)
