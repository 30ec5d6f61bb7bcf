"""Settings that may change while the broker runs, brought to those who go by them (KIP-226).

Most need no bringing: the settings of topics and groups are looked up anew whenever one has changed. What is
here was handed out when the broker started. A dynamic value of the last run is applied at the start as well.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.config.effective import EffectiveConfig
from barnabas.storage.log_config import StorageConfig


class DynamicSettings:
    """Applied when it is made, and whenever a setting has changed."""

    def __init__(self, effective: EffectiveConfig, storage: StorageConfig) -> None:
        """`storage` is what all logs go by, which is changed in its place."""
        self._effective = effective
        self._storage = storage
        self._limit_connections: Callable[[int], None] | None = None
        self.apply()

    def bind_connections(self, limit_connections: Callable[[int], None]) -> None:
        """`limit_connections` is told how many connections there may be, from now on."""
        self._limit_connections = limit_connections
        self.apply()

    def apply(self) -> None:
        """Bring every value to where it counts."""
        storage = self._storage
        storage.producer_id_expiration_ms = self._integer("producer.id.expiration.ms")
        storage.cleaner_backoff_ms = self._integer("log.cleaner.backoff.ms")
        storage.cleaner_dedupe_buffer_bytes = self._integer("log.cleaner.dedupe.buffer.size")
        storage.cleaner_slice_bytes = self._integer("log.cleaner.io.buffer.size") // 2
        storage.cleaner_io_bytes_per_second = self._number("log.cleaner.io.max.bytes.per.second")
        if self._limit_connections is not None:
            self._limit_connections(self._integer("max.connections"))

    def _integer(self, name: str) -> int:
        value = self._effective.broker_value(name)
        assert isinstance(value, int)
        return value

    def _number(self, name: str) -> float:
        value = self._effective.broker_value(name)
        assert isinstance(value, float)
        return value
