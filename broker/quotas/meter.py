"""What one request costs its client: a meter runs from its arrival until it is answered.

Only where quotas are set is there a meter at all. It counts the time for which the request keeps the loop, or
a thread, busy, not that for which it waits. A produce request's bytes are charged when it is answered, as
Apache Kafka does. A response says what its handler has charged itself: fetched bytes and changes of metadata.
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
    """One request's."""

    __slots__ = ("_api_key", "_busy_ns", "_client_id", "_quotas", "_request_bytes", "_resumed_ns")

    def __init__(self, quotas: ClientQuotas, api_key: int, client_id: str | None, request_bytes: int) -> None:
        """Runs from now on."""
        self._quotas = quotas
        self._api_key = api_key
        self._client_id = client_id or ""
        self._request_bytes = request_bytes
        self._busy_ns = 0
        self._resumed_ns = perf_counter_ns()

    def pause(self) -> None:
        """The request waits for something."""
        self._busy_ns += perf_counter_ns() - self._resumed_ns

    def resume(self) -> None:
        self._resumed_ns = perf_counter_ns()

    def charge(self, charged_ms: int, *, is_answered: bool) -> int:
        """The request is handled: for how many milliseconds its client is to wait, which may be because of
        what its handler charged. The time of a request without an answer isn't charged, since its client
        would not hear of it.
        """
        self.pause()
        throttle_ms = charged_ms
        if self._api_key == ApiKey.PRODUCE:
            throttle_ms = max(throttle_ms, self._quotas.produced(self._client_id, self._request_bytes))
        if is_answered:
            throttle_ms = max(throttle_ms, self._quotas.handled(self._client_id, self._busy_ns))
        return throttle_ms


def metered(meter: Meter | None, function: Callable[[], T]) -> T:
    """What `function` returns; its time counts, if there is a meter, which must stand still."""
    if meter is None:
        return function()
    meter.resume()
    try:
        return function()
    finally:
        meter.pause()


def charged_ms(response: Entity) -> int:
    """For how long the client is to wait because of what its handler charged, as the response says."""
    throttle_time: timedelta | None = getattr(response, "throttle_time", None)
    return 0 if throttle_time is None else to_milliseconds(throttle_time)


def with_throttle(response: Entity, throttle_ms: int) -> Entity:
    """The response with that in it, unless its version has no place for it."""
    if throttle_ms == 0 or not hasattr(response, "throttle_time"):
        return response
    return dataclasses.replace(response, throttle_time=milliseconds(throttle_ms))
