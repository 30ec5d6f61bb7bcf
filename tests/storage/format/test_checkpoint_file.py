"""The text of Kafka's checkpoint files."""

from itertools import product

import pytest
from crc32c import crc32c

from barnabas.storage.format.checkpoint_file import (
    CheckpointCorrupt,
    decode_lines,
    decode_offsets,
    encode_lines,
    encode_offsets,
)

OFFSETS = {("orders", 0): 12, ("orders", 10): 0, ("bills-2", 1): 2**40}


def test_content_is_kafkas_with_a_checksum_as_its_last_entry() -> None:
    covered = b"0\n4\nbills-2 1 1099511627776\norders 0 12\norders 10 0\n"
    assert encode_offsets(OFFSETS) == covered + b"##crc32c 0 %d\n" % crc32c(covered)


def test_a_file_of_kafka_has_no_checksum() -> None:
    assert decode_offsets(b"0\n1\norders 0 12\n") == {("orders", 0): 12}


@pytest.mark.parametrize("offsets", [OFFSETS, {}, {("orders", 0): 2}], ids=["several", "none", "one"])
def test_no_changed_byte_gives_other_offsets(offsets: dict[tuple[str, int], int]) -> None:
    written = encode_offsets(offsets)
    for position, other in product(range(len(written)), range(256)):
        content = bytearray(written)
        content[position] = other
        try:
            found = decode_offsets(bytes(content))
        except CheckpointCorrupt:
            continue
        # The entry of the checksum may have become that of another topic, which does not exist.
        unknown = found.keys() - offsets.keys()
        assert len(unknown) <= 1 and all("#" in topic for topic, _ in unknown), (position, other)
        assert {key: offset for key, offset in found.items() if key not in unknown} == offsets


def test_written_content_is_read_back() -> None:
    assert decode_offsets(encode_offsets(OFFSETS)) == OFFSETS
    assert decode_lines(encode_lines([])) == []


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_a_file_may_have_no_entries(content: bytes) -> None:
    assert decode_lines(content) == []


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"x\n0\n", b"0\n2\na 0 1\n", b"0\nx\n", b"0\n1\na 0\n", b"0\n1\na b c\n", b"\xff\n"],
)
def test_anything_else_is_corrupt(content: bytes) -> None:
    with pytest.raises(CheckpointCorrupt):
        decode_offsets(content)
