"""Logs that went offline are opened again with the next request, so that tests need not wait."""

from __future__ import annotations

import dataclasses

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.storage.log_config import StorageConfig


def reopen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers opened from now on do not wait before they open a log again."""
    original = BrokerConfig.storage_config

    def without_pause(config: BrokerConfig) -> StorageConfig:
        return dataclasses.replace(original(config), reopen_backoff_ms=0)

    monkeypatch.setattr(BrokerConfig, "storage_config", without_pause)
