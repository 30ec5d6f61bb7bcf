"""Tokens for changes of metadata, as Kafka counts them."""

from barnabas.broker.quotas.token_bucket import TokenBucket


def test_a_bucket_begins_full() -> None:
    bucket = TokenBucket(11, 1000)
    bucket.take(11, 1, 0)
    assert bucket.throttle_ms(1, 0) == 0


def test_a_negative_bucket_throttles() -> None:
    bucket = TokenBucket(11, 1000)
    bucket.take(12, 1, 0)
    assert bucket.throttle_ms(1, 0) == 1000
    assert bucket.throttle_ms(1, 400) == 600
    assert bucket.throttle_ms(1, 1000) == 0


def test_the_bucket_never_exceeds_its_size() -> None:
    bucket = TokenBucket(2, 1000)
    bucket.take(1, 10, 0)
    bucket.take(25, 10, 60_000)
    assert bucket.throttle_ms(10, 60_000) == 500


def test_a_bucket_without_changes_is_idle() -> None:
    bucket = TokenBucket(11, 1000)
    bucket.take(1, 1, 5)
    assert not bucket.is_idle(14, 10)
    assert bucket.is_idle(15, 10)
