"""The zeros behind the entries of an index file."""

import pytest

from barnabas.storage.format.index_bytes import entries_bytes


@pytest.mark.parametrize(
    ("data", "size_bytes"),
    [
        (b"", 0),
        (bytes(80), 0),
        (b"\x01" * 8, 8),
        (b"\x01" + bytes(7), 8),
        (b"\x01" * 8 + bytes(16), 8),
        (b"\x01" * 9, 8),
        (b"\x01" * 9 + bytes(7), 16),
    ],
)
def test_zeros_at_the_end_are_not_entries(data: bytes, size_bytes: int) -> None:
    assert entries_bytes(data, 8) == size_bytes
