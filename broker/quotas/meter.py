"""Charges a request to its client's quotas: a meter exists from the arrival of the request to its answer.

Requests have a meter only if quotas are set. It counts the time for which the request occupies the loop or a
thread, not its waits. A produce request's bytes are charged when it is answered, as in Apache Kafka. Handlers
charge fetched bytes and changes of metadata themselves; the response has their throttle time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from time import perf_counter_ns
from typing import TypeVar

from kio.static.protocol import Entity

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.protocol.api import ApiKey
from barnabas.protocol.primitive import milliseconds, to_milliseconds

T = TypeVar("T")


class Meter:
    """The meter of one request."""

    __slots__ = ("_api_key", "_busy_ns", "_client_id", "_quotas", "_request_bytes", "_started_ns")

    def __init__(self, quotas: ClientQuotas, api_key: int, client_id: str | None, request_bytes: int) -> None:
        """The clock runs from now on."""
        self._quotas = quotas
        self._api_key = api_key
        self._client_id = client_id or ""
        self._request_bytes = request_bytes
        self._busy_ns = 0
        self._started_ns = perf_counter_ns()

    def stop_clock(self) -> None:
        """The request begins to wait."""
        self._busy_ns += perf_counter_ns() - self._started_ns

    def start_clock(self) -> None:
        """The wait is over."""
        self._started_ns = perf_counter_ns()

    def charge(self, charged_ms: int, *, is_answered: bool) -> int:
        """Charge the handled request; returns the client's throttle time in milliseconds.

        `charged_ms` is the throttle time from the handler's own charges; the longest one counts. The time of
        a request without an answer is not charged, because no answer could tell the client to wait.
        """
        self.stop_clock()
        throttle_ms = charged_ms
        if self._api_key == ApiKey.PRODUCE:
            throttle_ms = max(throttle_ms, self._quotas.produced(self._client_id, self._request_bytes))
        if is_answered:
            throttle_ms = max(throttle_ms, self._quotas.handled(self._client_id, self._busy_ns))
        return throttle_ms


def metered(meter: Meter | None, function: Callable[[], T]) -> T:
    """The result of `function`. A meter, whose clock must be stopped, counts the time of the call."""
    if meter is None:
        return function()
    meter.start_clock()
    try:
        return function()
    finally:
        meter.stop_clock()


def charged_ms(response: Entity) -> int:
    """The response's throttle time in milliseconds, from the charges of its handler."""
    throttle_time: timedelta | None = getattr(response, "throttle_time", None)
    return 0 if throttle_time is None else to_milliseconds(throttle_time)


def with_throttle(response: Entity, throttle_ms: int) -> Entity:
    """The response with this throttle time, or unchanged if its version has no such field."""
    if throttle_ms == 0 or not hasattr(response, "throttle_time"):
        return response
    return dataclasses.replace(response, throttle_time=milliseconds(throttle_ms))
