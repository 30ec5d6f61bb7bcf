"""The text of Kafka's checkpoint files."""

import pytest

from barnabas.storage.format.checkpoint_file import (
    CheckpointCorrupt,
    decode_lines,
    decode_offsets,
    encode_lines,
    encode_offsets,
)

OFFSETS = {("orders", 0): 12, ("orders", 10): 0, ("bills-2", 1): 2**40}


def test_content_is_kafkas() -> None:
    assert encode_offsets(OFFSETS) == b"0\n3\nbills-2 1 1099511627776\norders 0 12\norders 10 0\n"


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
