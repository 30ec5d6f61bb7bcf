"""Which partition a record goes to."""

from __future__ import annotations

from barnabas.client.produce.partitioner import KeylessTurns, partition_of_key


def test_the_sign_of_the_hash_is_dropped_before_the_division() -> None:
    assert partition_of_key(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7


def test_keyless_records_stay_until_the_batch_is_full() -> None:
    turns = KeylessTurns(5)
    assert [turns.current("orders", 3) for _ in range(3)] == [2, 2, 2]
    turns.next("orders")
    assert (turns.current("orders", 3), turns.current("returns", 3)) == (0, 2)
