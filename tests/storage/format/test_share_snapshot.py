"""The bytes of the share snapshot: written content is read, other bytes are refused."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.format.share_snapshot import (
    ShareSnapshot,
    ShareSnapshotCorrupt,
    decode_share_snapshot,
    encode_share_snapshot,
)

OFFSETS = st.integers(-(2**63), 2**63 - 1)
SNAPSHOTS = st.builds(
    ShareSnapshot,
    OFFSETS,
    st.integers(-(2**31), 2**31 - 1),
    st.dictionaries(st.text(max_size=20), OFFSETS, max_size=6),
)
SNAPSHOT = ShareSnapshot(130, 2, {"orders": 17, "größer": 129})


def sealed(body: bytes) -> bytes:
    return b"\x00\x01" + crc32c(body).to_bytes(4, "big") + body


@given(SNAPSHOTS)
def test_written_content_is_read_back(snapshot: ShareSnapshot) -> None:
    assert decode_share_snapshot(encode_share_snapshot(snapshot)) == snapshot


def test_the_bytes_are_the_documented_ones() -> None:
    body = bytes.fromhex("0000000000000082 00000002 00000001 0001 67 0000000000000011")
    assert encode_share_snapshot(ShareSnapshot(130, 2, {"g": 17})) == sealed(body)


@pytest.mark.parametrize("length", range(len(encode_share_snapshot(SNAPSHOT))))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(ShareSnapshotCorrupt):
        decode_share_snapshot(encode_share_snapshot(SNAPSHOT)[:length])


@pytest.mark.parametrize("position", range(len(encode_share_snapshot(SNAPSHOT))))
def test_a_file_with_one_wrong_byte_is_refused(position: int) -> None:
    data = bytearray(encode_share_snapshot(SNAPSHOT))
    data[position] ^= 0x10
    with pytest.raises(ShareSnapshotCorrupt):
        decode_share_snapshot(bytes(data))


BODY = encode_share_snapshot(SNAPSHOT)[6:]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BODY + b"\x00", "number of its entries"),
        (BODY[:15] + b"\x01" + BODY[16:], "number of its entries"),
        (BODY[:15] + b"\x03" + BODY[16:], "cut short"),
        (BODY[:12] + b"\xff\xff\xff\xff" + BODY[16:], "number of its entries"),
        (BODY.replace("ö".encode(), b"\xff\xff"), "not UTF-8"),
        (b"\x00" * 12 + b"\x00\x00\x00\x02" + b"\x00\x01g" + bytes(8) + b"\x00\x01g" + bytes(8), "entries"),
    ],
)
def test_a_contradictory_body_is_refused_even_with_a_valid_checksum(body: bytes, reason: str) -> None:
    with pytest.raises(ShareSnapshotCorrupt, match=reason):
        decode_share_snapshot(sealed(body))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for content in (data, sealed(data)):
        try:
            snapshot = decode_share_snapshot(content)
        except ShareSnapshotCorrupt:
            continue
        assert encode_share_snapshot(snapshot) == content
