"""Hashes against known values of Java, and table sizes at their limits."""

from uuid import UUID

import pytest

from barnabas.coordinator.assignor.java_hash_map import (
    bucket_of,
    default_capacity,
    int_walk_order,
    presized_capacity,
    string_hash,
    topic_partition_hash,
    uuid_hash,
    walk_order,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("polygenelubricants", 1 << 31),
        ("\u00e9", 0xE9),
        # Outside the basic plane two surrogates count: D83D DE00.
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
    ],
)
def test_string_hash_is_javas(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_uuid_hash_folds_both_halves_twice() -> None:
    assert uuid_hash(UUID(int=0)) == 0
    assert uuid_hash(UUID("00000001-0000-0002-0000-000400000008")) == 1 ^ 2 ^ 4 ^ 8


def test_topic_partition_hash_wraps_at_32_bits() -> None:
    assert topic_partition_hash(3, 4) == 97
    assert topic_partition_hash(0xFFFFFFFF, 1) == (31 * 0xFFFFFFFF + 1) % (1 << 32)


def test_bucket_mixes_the_upper_half_in() -> None:
    assert bucket_of(0x00050003, 16) == 3 ^ 5


@pytest.mark.parametrize(
    ("keys", "capacity"), [(0, 16), (12, 16), (13, 32), (24, 32), (25, 64), (1000, 2048)]
)
def test_default_table_doubles_above_three_quarters(keys: int, capacity: int) -> None:
    assert default_capacity(keys) == capacity


@pytest.mark.parametrize(
    ("expected", "keys", "capacity"),
    [
        (0, 0, 2),
        (1, 1, 4),
        (4, 4, 8),
        (10, 10, 16),
        (11, 11, 32),
        (10, 13, 16),
        (10, 14, 32),
        (10_000, 10_000, 16384),
    ],
)
def test_presized_table_doubles_one_key_later(expected: int, keys: int, capacity: int) -> None:
    assert presized_capacity(expected, keys) == capacity


def test_keys_of_one_bucket_are_walked_in_the_order_of_their_insertion() -> None:
    assert walk_order([19, 3, 2, 35], int, 16) == [2, 19, 3, 35]


@pytest.mark.parametrize("keys", [[], [19, 3, 2, 35], [65535, 15, 31], [65536, 0, 1 << 17 | 1, 3]])
def test_ints_are_walked_as_keys_that_are_their_own_hashes(keys: list[int]) -> None:
    assert int_walk_order(keys, 16) == walk_order(keys, int, 16)
