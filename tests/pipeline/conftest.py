"""The one Spark session of a test run, and the brokers that the pipeline's tests read from.

Tests which kill a driver start Spark in a process of their own; tests which kill a broker start one of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.process import LocalBroker
from pyspark.sql import SparkSession

from tests.clients.cluster import Cluster
from tests.pipeline.brokers import KINDS, SharedBrokers, new_broker
from tests.pipeline.local_spark import local_session
from tests.pipeline.spark_jars import spark_class_path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark with Apache Kafka are for `make matrix`, those without Spark for `make test-spark`."""
    for item in items:
        if not item.path.is_relative_to(Path(__file__).parent):
            continue  # pytest passes the tests of all folders
        parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
        is_of_matrix = item.get_closest_marker("matrix") is not None
        uses_spark = is_of_matrix or "spark" in getattr(item, "fixturenames", ())
        if "kafka" in (parameters.get("broker"), parameters.get("kind")):
            item.add_marker(pytest.mark.long if uses_spark else pytest.mark.kafka)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of this test run."""
    directory = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.extraClassPath": spark_class_path(),
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    session = local_session(directory, memory="1g", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBrokers]:
    """By kind, the brokers that the tests of this process share."""
    shared = SharedBrokers(tmp_path_factory.mktemp("brokers"))
    yield shared
    shared.kill()


@pytest.fixture(scope="session", params=KINDS)
def broker(request: pytest.FixtureRequest, brokers: SharedBrokers) -> LocalBroker:
    """The shared broker of each kind."""
    kind: str = request.param
    return brokers[kind]


@pytest.fixture(scope="session")
def cluster(broker: LocalBroker) -> Cluster:
    """Topics, groups and records on the shared broker."""
    return Cluster(broker.address)


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[[str], LocalBroker]]:
    """Starts brokers of a test's own, of the kind that is named."""
    brokers: list[LocalBroker] = []

    def start(kind: str) -> LocalBroker:
        brokers.append(new_broker(kind, tmp_path / f"{kind}-{len(brokers)}"))
        brokers[-1].start()
        return brokers[-1]

    yield start
    for broker in brokers:
        broker.kill()
