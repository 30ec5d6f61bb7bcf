"""The broker for the tests of the kit, and a new group with a new topic for each test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from barnabas.testing import Broker

GROUP = "workers"
TOPIC = "orders"


@pytest.fixture(scope="session")
def running() -> Generator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running: Broker) -> Broker:
    """The broker after a reset, with a topic and a group that begins at its earliest record."""
    running.reset()
    running.faults.clear()
    running.create_topic(TOPIC)
    running.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    return running
