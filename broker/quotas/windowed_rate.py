"""A rate over the last few seconds, and the wait until it is within a bound (KIP-13).

The arithmetic is Apache Kafka's (`Rate` over a `WindowedSum`), so that throttle times are the same. Values
are added to samples of one window each, and a fixed number of samples counts. The rate is averaged over at
least the time of all samples except the current one, so that a burst within one sample is spread over all.
Pure.
"""

from barnabas.broker.quotas.throttling import whole_ms


class _Sample:
    """The sum of the values from `start_ms` to `last_ms`."""

    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class WindowedRate:
    """Units per second. Times are monotonic, in ms."""

    __slots__ = ("_current", "_sample_count", "_samples", "_window_ms")

    def __init__(self, sample_count: int, window_ms: int) -> None:
        self._sample_count = sample_count
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        """One more than `sample_count`, because the oldest may be partly within the time that counts."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add `value` units; a negative value reverts a record of the same moment."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """The time without new records after which the rate is down to `bound`; 0 if it is not above."""
        self._forget_old(now_ms)
        window_ms = self._measured_ms(now_ms)
        rate = sum(sample.value for sample in self._samples) / (window_ms / 1000)
        return whole_ms((rate - bound) / bound * window_ms) if rate > bound else 0

    def is_idle(self, now_ms: int, idle_ms: int) -> bool:
        """Whether nothing was recorded for `idle_ms`."""
        return all(now_ms - sample.last_ms >= idle_ms for sample in self._samples)

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._sample_count + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _forget_old(self, now_ms: int) -> None:
        counts_ms = self._sample_count * self._window_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= counts_ms:
                sample.reset(now_ms)

    def _measured_ms(self, now_ms: int) -> int:
        """The time over which the rate is averaged."""
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self._sample_count - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)
