"""Metrics of requests by API: their number, sizes and times (Kafka's RequestMetrics).

A request is handled on the loop's thread at once. After that it is answered, or it waits for an append, for
records or for a deadline. The handling is its local time, the wait its remote time. Times are differences of
a clock in whole milliseconds: single ones are rough, but their sum is accurate. Kafka's queue times do not
exist here, because there are no threads to queue for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from barnabas.protocol.api import APIS, ApiKey
from barnabas.runtime.metrics import BYTES_BOUNDS, MS_BOUNDS, Histogram, Labelled, Metrics

_PREFIX: Final = "kafka_network_requestmetrics_"


class RequestMeasures:
    """The measures of one API's requests."""

    __slots__ = (
        "_answered_at_once_ms",
        "_throttled_ms",
        "_waited_local_ms",
        "_waited_remote_ms",
        "_waited_total_ms",
        "count_by_version",
        "request_bytes",
    )

    def __init__(self) -> None:
        self.count_by_version: defaultdict[int, int] = defaultdict(int)
        self.request_bytes = Histogram(BYTES_BOUNDS)
        self._answered_at_once_ms = Histogram(MS_BOUNDS)
        """The total times of requests that did not wait. They are the most, and need only this observation.
        """
        self._waited_local_ms = Histogram(MS_BOUNDS)
        self._waited_remote_ms = Histogram(MS_BOUNDS)
        self._waited_total_ms = Histogram(MS_BOUNDS)
        self._throttled_ms = Histogram(MS_BOUNDS)
        """The throttle times of requests that were throttled."""

    def answered_at_once(self, took_ms: int, throttle_ms: int) -> None:
        """A request that did not wait is answered; `throttle_ms` is its throttle time."""
        self._answered_at_once_ms.observe(took_ms)
        if throttle_ms:
            self._throttled_ms.observe(throttle_ms)

    def waited(self, local_ms: int, remote_ms: int, throttle_ms: int) -> None:
        """A request that waited is answered."""
        if throttle_ms:
            self._throttled_ms.observe(throttle_ms)
        self._waited_local_ms.observe(local_ms)
        self._waited_remote_ms.observe(remote_ms)
        self._waited_total_ms.observe(local_ms + remote_ms)

    def local_ms(self) -> Histogram:
        """The time for which each request occupied the loop's thread."""
        return self._answered_at_once_ms.plus(self._waited_local_ms)

    def remote_ms(self) -> Histogram:
        """The time for which each request waited; 0 for those that did not."""
        at_once_count = self._answered_at_once_ms.count
        return Histogram(MS_BOUNDS).plus(self._waited_remote_ms, times_zero=at_once_count)

    def throttle_ms(self) -> Histogram:
        """The throttle time of each request; 0 for those without one."""
        unthrottled_count = self.total_ms().count - self._throttled_ms.count
        return Histogram(MS_BOUNDS).plus(self._throttled_ms, times_zero=unthrottled_count)

    def total_ms(self) -> Histogram:
        """The time from each request's arrival until its answer was ready."""
        return self._answered_at_once_ms.plus(self._waited_total_ms)


RequestMetrics = dict[int, RequestMeasures]
"""The measures of every API that is served, by API key."""


MakeMeasures = Callable[[int], RequestMeasures]
"""Makes the measures of the API with this key."""


def plain_measures(_: int) -> RequestMeasures:
    return RequestMeasures()


def publish_requests(metrics: Metrics, make_measures: MakeMeasures = plain_measures) -> RequestMetrics:
    """Publishes measures of all APIs, and returns them for the dispatcher, which fills them."""
    measures = {int(key): make_measures(int(key)) for key in APIS}
    metrics.family(_PREFIX + "requests_total", lambda: _counts(measures))
    histograms: dict[str, Callable[[RequestMeasures], Histogram]] = {
        "requestbytes": lambda api: api.request_bytes,
        "localtimems": RequestMeasures.local_ms,
        "remotetimems": RequestMeasures.remote_ms,
        "throttletimems": RequestMeasures.throttle_ms,
        "totaltimems": RequestMeasures.total_ms,
    }
    for name, read in histograms.items():
        metrics.histograms(_PREFIX + name, partial(_of_each_api, measures, read))
    return measures


def _counts(measures: RequestMetrics) -> Labelled[float]:
    for api_key, api in measures.items():
        for version, count in sorted(api.count_by_version.items()):
            yield {"request": request_name(api_key), "version": str(version)}, count


def _of_each_api(
    measures: RequestMetrics, read: Callable[[RequestMeasures], Histogram]
) -> Iterator[tuple[dict[str, str], Histogram]]:
    """The histograms of the APIs with requests; the empty ones of some sixty others are omitted."""
    for api_key, api in measures.items():
        if api.count_by_version:
            yield {"request": request_name(api_key)}, read(api)


def request_name(api_key: int) -> str:
    """The name of the API in Kafka's metrics."""
    return "".join(word.capitalize() for word in APIS[ApiKey(api_key)].name.split("_"))
