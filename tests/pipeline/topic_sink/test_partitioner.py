"""Which partition a record goes to. The hashes are those of Kafka 4.3.1's `Utils.murmur2`."""

from __future__ import annotations

import pytest

from barnabas.pipeline.topic_sink.partitioner import KEY_BYTES_MAX, KeylessTurns, murmur2, partition_of_key

VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), VECTORS.items())
def test_a_key_is_hashed_as_java_does(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_the_sign_of_the_hash_is_dropped_before_the_division() -> None:
    assert partition_of_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


def test_keyless_records_stay_until_the_batch_is_full() -> None:
    turns = KeylessTurns(5)
    assert [turns.current("orders", 3) for _ in range(3)] == [2, 2, 2]
    turns.next("orders")
    assert (turns.current("orders", 3), turns.current("returns", 3)) == (0, 2)


@pytest.mark.parametrize("length", [0, KEY_BYTES_MAX, KEY_BYTES_MAX + 1])
def test_keys_of_any_length_go_where_their_hash_says(length: int) -> None:
    key = b"k" * length
    for _ in range(2):
        assert partition_of_key(key, 7) == (murmur2(key) & 0x7FFFFFFF) % 7
