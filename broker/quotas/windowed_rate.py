"""A rate over the last few seconds, and how long to wait until it is within a bound (KIP-13).

The arithmetic is Apache Kafka's (`Rate` over a `WindowedSum`), so that clients are throttled alike: what was
recorded falls into samples of one window each, of which a fixed number counts, and the time over which it is
averaged is never less than all of them but the one that is being filled. So a burst of one sample's length is
spread over all of them. Pure.
"""

from barnabas.broker.quotas.throttling import whole_ms


class _Sample:
    """What was recorded since `start_ms`, until `last_ms` so far."""

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
        """One more than count: the oldest may lie partly within the time that counts."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Take in so many units; below 0 takes back what was recorded at the same moment."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """For how long nothing must be recorded until the rate is down to `bound`; 0 if it isn't above."""
        self._forget_old(now_ms)
        window_ms = self._measured_ms(now_ms)
        rate = sum(sample.value for sample in self._samples) / (window_ms / 1000)
        return whole_ms((rate - bound) / bound * window_ms) if rate > bound else 0

    def is_idle(self, now_ms: int, idle_ms: int) -> bool:
        """Whether nothing was recorded for so long."""
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
        """The time that the samples stand for."""
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self._sample_count - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)
