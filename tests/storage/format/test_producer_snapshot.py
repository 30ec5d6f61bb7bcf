"""The bytes of the producers' `.snapshot` file (KIP-98)."""

import pytest

from barnabas.storage.format.producer_snapshot import (
    ProducerSnapshotEntry,
    SnapshotCorrupt,
    decode_snapshot,
    encode_snapshot,
)

ENTRIES = [
    ProducerSnapshotEntry(9, 1, 41, 120, 3, 1_700_000_000_000, -1, -1),
    ProducerSnapshotEntry(2**40, 0, -1, -1, 0, 5, 3, 7),
]


def test_content_is_read_back() -> None:
    for entries in ([], ENTRIES[:1], ENTRIES):
        assert decode_snapshot(encode_snapshot(entries)) == entries


def test_layout_is_kafkas() -> None:
    data = encode_snapshot(ENTRIES[:1])
    assert data[:2] + data[6:] == bytes.fromhex(
        "0001 00000001 0000000000000009 0001 00000029 0000000000000078 00000003 0000018bcfe56800 ffffffff"
        "ffffffffffffffff"
    )


@pytest.mark.parametrize("position", range(len(encode_snapshot(ENTRIES))))
def test_any_changed_byte_is_noticed(position: int) -> None:
    data = bytearray(encode_snapshot(ENTRIES))
    data[position] ^= 4
    with pytest.raises(SnapshotCorrupt):
        decode_snapshot(bytes(data))


@pytest.mark.parametrize("size", [0, 5, 9, 20])
def test_a_snapshot_that_is_cut_short_is_corrupt(size: int) -> None:
    with pytest.raises(SnapshotCorrupt):
        decode_snapshot(encode_snapshot(ENTRIES)[:size])
