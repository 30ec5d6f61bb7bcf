"""The quotas of a broker, with the windows of its settings."""

from __future__ import annotations

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.runtime.clock import Clock

_MS_PER_SECOND = 1000


def make_client_quotas(config: BrokerConfig, clock: Clock) -> ClientQuotas:
    """The quotas of clients and of changes by administrators."""
    return ClientQuotas(_windows(config, "quota"), _windows(config, "controller.quota"), clock.monotonic_ms)


def make_connection_quotas(config: BrokerConfig, clock: Clock) -> ConnectionQuotas:
    """The quotas of new connections."""
    return ConnectionQuotas(_windows(config, "quota"), clock.monotonic_ms)


def _windows(config: BrokerConfig, prefix: str) -> QuotaWindows:
    return QuotaWindows(
        config.integer(f"{prefix}.window.num"),
        config.integer(f"{prefix}.window.size.seconds") * _MS_PER_SECOND,
    )
