"""How often an address may connect (KIP-612): a connection that comes too early is kept waiting, and closed
then, so that the client tries once more. It isn't counted, lest the next wait be longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

from barnabas.broker.quotas.client_quotas import QuotaWindows
from barnabas.broker.quotas.windowed_rate import WindowedRate
from barnabas.coordinator.metadata.client_quotas import CONNECTION_CREATION_RATE, IP, QuotaEntity

ADDRESSES_MAX = 10_000
"""So many addresses are remembered; beyond it those who have connected within the windows are let off once.
"""

_Address = IPv4Address | IPv6Address | None


class ConnectionQuotas:
    """The quotas of all addresses, and what they have used. Times are monotonic, in ms."""

    def __init__(self, windows: QuotaWindows, monotonic_ms: Callable[[], int]) -> None:
        self._windows = windows
        self._monotonic_ms = monotonic_ms
        self._bounds: dict[_Address, float] = {}
        """By address, None for all others."""
        self._rates: dict[_Address, WindowedRate] = {}

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """To be told of all quotas whenever one changed."""
        self._bounds = {
            None if name is None else ip_address(name): values[CONNECTION_CREATION_RATE]
            for ((kind, name), *_), values in quotas.items()
            if kind == IP and CONNECTION_CREATION_RATE in values
        }

    def connected(self, host: str) -> int:
        """A connection has come from `host`; for how many milliseconds it is to be kept waiting and not be
        served, 0 if it is welcome.
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
    """The address of a peer in Kafka's notation; None for what is none, such as a local socket."""
    try:
        return ip_address(host.removeprefix("/"))
    except ValueError:
        return None
