"""Applies broker settings that change while the broker runs (KIP-226).

The settings of topics and groups are not here: they are looked up after each change. The settings here were
copied to other objects at the start. A dynamic value of an earlier run is applied at the start, too.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.config.effective import EffectiveConfig
from barnabas.broker.config.setting import integer
from barnabas.storage.log_config import StorageConfig


class DynamicSettings:
    """Applies the settings when it is created, and after each change of a setting."""

    def __init__(self, effective: EffectiveConfig, storage: StorageConfig) -> None:
        """`storage` is used by all logs, and is changed in place."""
        self._effective = effective
        self._storage = storage
        self._limit_connections: Callable[[int], None] = _ignored
        self._keys_changed: Callable[[], None] = _ignored
        self.apply()

    def bind_server(self, limit_connections: Callable[[int], None], keys_changed: Callable[[], None]) -> None:
        """From now on, calls `limit_connections` with the value of max.connections, and `keys_changed` to
        look for new values of the settings of TLS.
        """
        self._limit_connections = limit_connections
        self._keys_changed = keys_changed
        self.apply()

    def apply(self) -> None:
        """Copy every value to the object that uses it."""
        storage = self._storage
        storage.producer_id_expiration_ms = self._integer("producer.id.expiration.ms")
        storage.cleaner_backoff_ms = self._integer("log.cleaner.backoff.ms")
        storage.cleaner_dedupe_buffer_bytes = self._integer("log.cleaner.dedupe.buffer.size")
        storage.cleaner_slice_bytes = self._integer("log.cleaner.io.buffer.size") // 2
        storage.cleaner_io_bytes_per_second = self._number("log.cleaner.io.max.bytes.per.second")
        self._limit_connections(self._integer("max.connections"))
        self._keys_changed()

    def _integer(self, name: str) -> int:
        return integer(self._effective.broker_value(name))

    def _number(self, name: str) -> float:
        value = self._effective.broker_value(name)
        assert isinstance(value, float)
        return value


def _ignored(*_: object) -> None:
    """There is no server yet."""
