"""The map of the latest offset of each key, in bounded memory."""

from __future__ import annotations

from barnabas.storage.cleaner.offset_map import ENTRY_BYTES, OffsetMap


def test_the_latest_offset_of_a_key_counts() -> None:
    offsets = OffsetMap(10_000)
    offsets.put(b"key", 1)
    offsets.put(b"key", 7)
    assert (offsets.get(b"key"), offsets.get(b"other"), len(offsets)) == (7, -1, 1)


def test_long_keys_are_distinguished() -> None:
    offsets = OffsetMap(10_000)
    offsets.put(b"k" * 100, 1)
    offsets.put(b"k" * 99, 2)
    offsets.put(b"", 3)
    assert [offsets.get(b"k" * 100), offsets.get(b"k" * 99), offsets.get(b"k" * 31), offsets.get(b"")] == [
        1,
        2,
        -1,
        3,
    ]


def test_the_map_is_full_at_its_bound() -> None:
    offsets = OffsetMap(2 * ENTRY_BYTES)
    offsets.put(b"a", 1)
    assert not offsets.is_full
    offsets.put(b"a", 2)
    assert not offsets.is_full
    offsets.put(b"b", 3)
    assert offsets.is_full


def test_the_map_holds_one_key_at_any_size() -> None:
    offsets = OffsetMap(0)
    assert not offsets.is_full
    offsets.put(b"a", 1)
    assert offsets.is_full
