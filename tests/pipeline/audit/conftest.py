"""Logs for the audit: one that a test writes record by record, and those of real brokers with both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess, started
from tests.clients.installation import installed_barnabas
from tests.pipeline.audit.written_logs import WrittenLog


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """A log of 20 records."""
    written = WrittenLog(tmp_path, "orders")
    written.produce(20)
    return written


@pytest.fixture(params=["log", "topic"])
def store(request: pytest.FixtureRequest) -> str:
    """The broker's store of share state."""
    return str(request.param)


@pytest.fixture
def broker_with_store(store: str, tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {**TEST_SETTINGS, "share.state.store": store}
    with started(BrokerProcess(installed_barnabas(), tmp_path / "data", settings)) as running:
        yield running
