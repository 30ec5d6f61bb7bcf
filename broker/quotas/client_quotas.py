"""The clients' usage of their quotas: bytes produced and fetched, request time, changes of metadata.

Each method records usage and returns the throttle time in milliseconds, 0 if the client is within its quota.
Because there is no authentication, every client is the user ANONYMOUS, as on Apache Kafka's plaintext
listener.

Bounds: the usage of `SHARES_MAX` clients is kept; beyond it, that of clients idle for an hour is dropped
first. The quotas of `CLIENTS_MAX` client ids are cached; beyond it the cache is emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.broker.quotas.quota_table import Quota, QuotaShare, find_quota
from barnabas.broker.quotas.token_bucket import TokenBucket
from barnabas.broker.quotas.windowed_rate import WindowedRate
from barnabas.coordinator.metadata.client_quotas import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
)

ANONYMOUS: Final = "ANONYMOUS"
CLIENTS_MAX: Final = 10_000
SHARES_MAX: Final = 10_000

_IDLE_MS = 3_600_000
_NS_PER_PERCENT_OF_A_SECOND = 10_000_000


class QuotaWindows(NamedTuple):
    """The time over which a quota is averaged: a number of samples, and the length of each."""

    sample_count: int
    window_ms: int


class _Usage(Protocol):
    def throttle_ms(self, bound: float, now_ms: int, /) -> int: ...

    def is_idle(self, now_ms: int, idle_ms: int) -> bool: ...


_UsageType = TypeVar("_UsageType", bound=_Usage)


class _Metered(NamedTuple, Generic[_UsageType]):
    bound: float
    usage: _UsageType


class _Meters(Generic[_UsageType]):
    """One kind of quota: each client's bound, and its usage, which clients of the same quota share."""

    def __init__(self, key: str, new_usage: Callable[[], _UsageType]) -> None:
        self._key = key
        self._new_usage = new_usage
        self._quotas: Mapping[QuotaEntity, Mapping[str, float]] = {}
        self._clients: dict[str, _Metered[_UsageType] | None] = {}
        self._usages: dict[QuotaShare, _UsageType] = {}
        self.active = False

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Earlier usage still counts."""
        self._quotas = quotas
        self._clients.clear()
        self.active = any(
            self._key in of_entity and {kind for kind, _ in entity} <= {USER, CLIENT_ID}
            for entity, of_entity in quotas.items()
        )

    def of(self, client_id: str, now_ms: int) -> _Metered[_UsageType] | None:
        """The client's bound and usage; None for a client without such a quota."""
        if not self.active:
            return None
        if client_id not in self._clients:
            if len(self._clients) >= CLIENTS_MAX:
                self._clients.clear()
            quota = find_quota(self._quotas, self._key, ANONYMOUS, client_id)
            self._clients[client_id] = None if quota is None else self._metered(quota, now_ms)
        return self._clients[client_id]

    def _metered(self, quota: Quota, now_ms: int) -> _Metered[_UsageType]:
        usage = self._usages.get(quota.share)
        if usage is None:
            if len(self._usages) >= SHARES_MAX:
                self._forget_some(now_ms)
            usage = self._usages[quota.share] = self._new_usage()
        return _Metered(quota.bound, usage)

    def _forget_some(self, now_ms: int) -> None:
        """Drop idle usages, or else all; after that, every client can exceed its quota by one window."""
        self._usages = {
            share: usage for share, usage in self._usages.items() if not usage.is_idle(now_ms, _IDLE_MS)
        }
        if len(self._usages) >= SHARES_MAX:
            self._usages.clear()
        self._clients.clear()


class ClientQuotas:
    """The quotas of all clients of one broker."""

    def __init__(
        self, clients: QuotaWindows, mutations: QuotaWindows, monotonic_ms: Callable[[], int]
    ) -> None:
        """`clients` are the windows of bytes and request time, `mutations` those of changes of metadata."""
        self._windows = clients
        self._monotonic_ms = monotonic_ms
        self._produced = _Meters(PRODUCER_BYTE_RATE, partial(WindowedRate, *clients))
        self._fetched = _Meters(CONSUMER_BYTE_RATE, partial(WindowedRate, *clients))
        self._handled = _Meters(REQUEST_PERCENTAGE, partial(WindowedRate, *clients))
        self._mutated = _Meters(CONTROLLER_MUTATION_RATE, partial(TokenBucket, *mutations))
        self.active = False
        """Whether any client has any quota; if not, no other method needs to be called."""

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Called with all quotas after each change of one."""
        meters = (self._produced, self._fetched, self._handled, self._mutated)
        for meter in meters:
            meter.quotas_changed(quotas)
        self.active = any(meter.active for meter in meters)

    def produced(self, client_id: str, size_bytes: int) -> int:
        """A produce request of `size_bytes` has arrived."""
        return self._record(self._produced, client_id, size_bytes)

    def fetched(self, client_id: str, size_bytes: int) -> int:
        """A fetch response would have `size_bytes` of records. If the client must wait, the response has no
        records, and none are recorded.
        """
        now_ms = self._monotonic_ms()
        throttle_ms = self._record(self._fetched, client_id, size_bytes)
        if throttle_ms:
            metered = self._fetched.of(client_id, now_ms)
            assert metered is not None
            metered.usage.record(-size_bytes, now_ms)
        return throttle_ms

    def fetch_bytes_max(self, client_id: str) -> int | None:
        """The most bytes that a fetch can return within the quota; a larger response would always make the
        client wait. None without a quota.
        """
        metered = self._fetched.of(client_id, self._monotonic_ms()) if self._fetched.active else None
        if metered is None:
            return None
        return int(metered.bound * (self._windows.sample_count - 1) * self._windows.window_ms / 1000)

    def handled(self, client_id: str, busy_ns: int) -> int:
        """A request has kept the broker busy for `busy_ns`. The wait is one window at most."""
        percent_seconds = busy_ns / _NS_PER_PERCENT_OF_A_SECOND
        return min(self._record(self._handled, client_id, percent_seconds), self._windows.window_ms)

    def mutation_throttle_ms(self, client_id: str) -> int:
        """The time until the client may request a change of metadata again."""
        now_ms = self._monotonic_ms()
        metered = self._mutated.of(client_id, now_ms)
        return 0 if metered is None else metered.usage.throttle_ms(metered.bound, now_ms)

    def mutated(self, client_id: str, partition_count: int) -> None:
        """A client has created or deleted `partition_count` partitions."""
        now_ms = self._monotonic_ms()
        metered = self._mutated.of(client_id, now_ms)
        if metered is not None:
            metered.usage.take(partition_count, metered.bound, now_ms)

    def _record(self, meters: _Meters[WindowedRate], client_id: str, value: float) -> int:
        now_ms = self._monotonic_ms()
        metered = meters.of(client_id, now_ms)
        if metered is None:
            return 0
        metered.usage.record(value, now_ms)
        return metered.usage.throttle_ms(metered.bound, now_ms)
