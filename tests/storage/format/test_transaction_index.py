"""The bytes of the `.txnindex` file (KIP-98), and look-ups in it."""

import pytest

from barnabas.protocol.varint import RecordFormatError
from barnabas.storage.format.transaction_index import ENTRY_BYTES, AbortedTransaction, TransactionIndex

ENTRIES = [
    AbortedTransaction(9, 0, 4, 2),
    AbortedTransaction(2**40, 2, 7, 8),
    AbortedTransaction(9, 8, 256, 256),
]


def written(entries: list[AbortedTransaction]) -> bytes:
    index = TransactionIndex()
    return b"".join(index.append(entry) for entry in entries)


def test_written_content_is_read_back() -> None:
    index = TransactionIndex(written(ENTRIES))
    assert list(index.entries_from(0)) == ENTRIES
    assert len(index) == 3
    assert index.is_sane()


def test_layout_is_kafkas() -> None:
    assert written([AbortedTransaction(1000, 0, 6, 2)]) == bytes.fromhex(
        "0000 00000000000003e8 0000000000000000 0000000000000006 0000000000000002"
    )


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (4, 0), (5, 1), (7, 1), (8, 2), (257, 3)])
def test_entries_are_found_by_their_markers(offset: int, first: int) -> None:
    assert list(TransactionIndex(written(ENTRIES)).entries_from(offset)) == ENTRIES[first:]


def test_truncation_at_a_marker_drops_it() -> None:
    index = TransactionIndex(written(ENTRIES))
    index.truncate_to(7)
    assert list(index.entries_from(0)) == ENTRIES[:1]


@pytest.mark.parametrize("extra_bytes", [1, ENTRY_BYTES - 1])
def test_a_torn_entry_at_the_end_is_ignored(extra_bytes: int) -> None:
    data = written(ENTRIES)
    assert len(TransactionIndex(data[: 2 * ENTRY_BYTES + extra_bytes])) in (2, 3)
    assert len(TransactionIndex(data[:ENTRY_BYTES] + b"\x00" * 100)) == 1


def test_another_version_is_an_error() -> None:
    data = bytearray(written(ENTRIES))
    data[ENTRY_BYTES + 1] = 1
    with pytest.raises(RecordFormatError, match="version 1"):
        TransactionIndex(bytes(data))


@pytest.mark.parametrize(
    "entries",
    [
        [ENTRIES[0]._replace(producer_id=-1)],
        [ENTRIES[0]._replace(first_offset=-1)],
        [ENTRIES[0]._replace(first_offset=5)],
        [ENTRIES[0]._replace(last_stable_offset=6)],
        [ENTRIES[0], ENTRIES[1]._replace(last_stable_offset=1)],
    ],
)
def test_impossible_entries_are_not_sane(entries: list[AbortedTransaction]) -> None:
    assert not TransactionIndex(written(entries)).is_sane()


def test_entries_out_of_order_are_not_sane() -> None:
    data = written(ENTRIES)
    assert not TransactionIndex(data[ENTRY_BYTES:] + data[:ENTRY_BYTES]).is_sane()
