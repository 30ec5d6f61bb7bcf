"""The fixture `address`: tests that use it run with Barnabas, and with --clients also with Apache Kafka.

A module imports both fixtures of this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.brokers.apache_kafka import ApacheKafka

from tests.clients.broker_process import TEST_SETTINGS


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka."""
    broker = ApacheKafka(tmp_path_factory.mktemp("kafka") / "kafka", TEST_SETTINGS)
    broker.start()
    try:
        yield broker.address
    finally:
        broker.kill()


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.clients)])
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue("bootstrap" if request.param == "barnabas" else "kafka")
    return found
