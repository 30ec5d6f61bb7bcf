"""Quotas of new connections per address (KIP-612).

A connection above the quota waits and is then closed, so that the client tries again. It is not counted,
because it would make the next wait longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

from barnabas.broker.quotas.client_quotas import QuotaWindows
from barnabas.broker.quotas.windowed_rate import WindowedRate
from barnabas.coordinator.metadata.client_quotas import CONNECTION_CREATION_RATE, IP, QuotaEntity

ADDRESSES_MAX = 10_000
"""The most addresses whose connections are counted; beyond it all counts begin at 0 again."""

_Address = IPv4Address | IPv6Address | None


class ConnectionQuotas:
    """The quotas of all addresses, and their recent connections. Times are monotonic, in ms."""

    def __init__(self, windows: QuotaWindows, monotonic_ms: Callable[[], int]) -> None:
        self._windows = windows
        self._monotonic_ms = monotonic_ms
        self._bounds: dict[_Address, float] = {}
        """By address; None for every other address."""
        self._rates: dict[_Address, WindowedRate] = {}

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Called with all quotas after each change of one."""
        self._bounds = {
            None if name is None else ip_address(name): values[CONNECTION_CREATION_RATE]
            for ((kind, name), *_), values in quotas.items()
            if kind == IP and CONNECTION_CREATION_RATE in values
        }

    def connected(self, host: str) -> int:
        """A connection has come from `host`. Returns how many milliseconds it must wait before it is closed;
        0 if it is served.
        """
        if not self._bounds:
            return 0
        address = _parse(host)
        bound = self._bounds.get(address, self._bounds.get(None))
        if bound is None:
            return 0
        now_ms, rate = self._monotonic_ms(), self._rate(address)
        rate.record(1, now_ms)
        throttle_ms = rate.throttle_ms(bound, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return min(throttle_ms, self._windows.sample_count * self._windows.window_ms)

    def _rate(self, address: _Address) -> WindowedRate:
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= ADDRESSES_MAX:
                self._rates.clear()
            rate = self._rates[address] = WindowedRate(*self._windows)
        return rate


def _parse(host: str) -> _Address:
    """The address of a peer in Kafka's notation; None for a peer without one, such as a local socket."""
    try:
        return ip_address(host.removeprefix("/"))
    except ValueError:
        return None
