"""The tag for delays of released records, and the condition of a record that waits."""

from __future__ import annotations

import pytest

from barnabas.protocol.delivery_state import Due, decode_condition, encode_condition
from barnabas.protocol.extended.release_delays import (
    MISFIT,
    ReleaseDelay,
    pack_release_delays,
    unpack_release_delays,
)
from barnabas.protocol.varint import RecordFormatError


def test_delays_are_numbers_side_by_side() -> None:
    delays = (ReleaseDelay(1, 2, 3), ReleaseDelay(2**40, 2**40, 86_400_000))
    packed = pack_release_delays(delays)
    assert packed[:20] == bytes.fromhex("0000000000000001 0000000000000002 00000003")
    assert unpack_release_delays(packed) == delays


def test_a_field_of_another_size_is_no_list_of_delays() -> None:
    assert unpack_release_delays(b"1234567") == (MISFIT,)
    assert unpack_release_delays(b"") == ()


def test_a_due_time_is_a_condition() -> None:
    encoded = encode_condition(Due(1_700_000_000_123))
    assert encoded == b"\x02" + (1_700_000_000_123).to_bytes(8, "big")
    assert decode_condition(encoded) == Due(1_700_000_000_123)


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x02" + bytes(7), b"\x02" + bytes(9), b"\x03" + bytes(8)])
def test_an_unknown_condition_is_refused(data: bytes) -> None:
    with pytest.raises(RecordFormatError, match="unknown condition"):
        decode_condition(data)
