"""The buckets of batches that are kept for all logs of a broker, within one limit."""

from __future__ import annotations

from barnabas.storage.key_buckets import KeyBuckets, LogKeyBuckets


def test_a_log_finds_the_buckets_that_it_has_added() -> None:
    log = LogKeyBuckets(KeyBuckets())
    log.add(7, 0b101)
    assert (log.find(7), log.find(8)) == (0b101, None)


def test_the_oldest_batches_of_the_log_that_waits_longest_are_dropped() -> None:
    kept = KeyBuckets(batches_max=4)
    first, second = LogKeyBuckets(kept), LogKeyBuckets(kept)
    for offset in range(3):
        first.add(offset, offset)
    for offset in range(2):
        second.add(offset, offset)
    assert (first.find(0), first.find(1), len(first), len(second), len(kept)) == (None, 1, 2, 2, 4)
    for offset in range(2, 5):
        second.add(offset, offset)
    assert (len(first), second.find(0), second.find(1), len(kept)) == (0, None, 1, 4)


def test_a_log_that_forgets_makes_room_for_others() -> None:
    kept = KeyBuckets(batches_max=2)
    first, second = LogKeyBuckets(kept), LogKeyBuckets(kept)
    first.add(0, 1)
    first.add(1, 1)
    first.forget()
    assert (len(first), len(kept)) == (0, 0)
    second.add(0, 1)
    second.add(1, 1)
    assert len(second) == len(kept) == 2
    second.add(2, 1)
    assert (second.find(0), second.find(2), len(kept)) == (None, 1, 2)


def test_a_log_that_forgot_everything_can_begin_again() -> None:
    kept = KeyBuckets(batches_max=2)
    log = LogKeyBuckets(kept)
    log.forget()
    log.add(3, 1)
    assert (log.find(3), len(kept)) == (1, 1)
