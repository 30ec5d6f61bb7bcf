"""A bucket of tokens that fills at the quota's rate; a change of metadata takes tokens (KIP-599). Pure.

A bucket begins full, and holds the tokens of all samples' time. A change may take more tokens than there are;
then the next changes wait until the bucket is no longer negative.
"""

from barnabas.broker.quotas.throttling import whole_ms


class TokenBucket:
    """Times are monotonic, in ms."""

    __slots__ = ("_burst_seconds", "_tokens", "_updated_ms")

    def __init__(self, sample_count: int, window_ms: int) -> None:
        self._burst_seconds = sample_count * window_ms / 1000
        self._tokens: float | None = None
        """None until the first change."""
        self._updated_ms = 0

    def take(self, count: float, rate: float, now_ms: int) -> None:
        """Take tokens from the bucket, which fills at `rate` per second. The result may be negative."""
        self._refill(rate, now_ms)
        assert self._tokens is not None
        self._tokens -= count

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """The time until the bucket is no longer negative; 0 if it is not."""
        self._refill(rate, now_ms)
        assert self._tokens is not None
        return whole_ms(-self._tokens / rate * 1000) if self._tokens < 0 else 0

    def is_idle(self, now_ms: int, idle_ms: int) -> bool:
        """Whether no tokens were taken for `idle_ms`."""
        return now_ms - self._updated_ms >= idle_ms

    def _refill(self, rate: float, now_ms: int) -> None:
        burst = self._burst_seconds * rate
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + rate * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
