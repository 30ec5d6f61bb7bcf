"""Fixtures of the real-client tests: a broker, its cluster view, a JVM with Kafka's own client and tools.

Without options the installed barnabas is started once per session. `--broker HOST:PORT` tests a running
broker instead, so each test can also run against Apache Kafka; it needs the settings of
`broker_process.TEST_SETTINGS`. A missing Java, Maven or client library fails the tests that need it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.brokers.apache_kafka import SHORT_LIVED_JVM, ApacheKafka

from tests.clients.broker_process import TEST_SETTINGS, BrokerProcess
from tests.clients.cluster import Cluster
from tests.clients.installation import installed_barnabas
from tests.clients.share_probe import ShareProbe


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--broker") is None:
        return
    own_broker = [item for item in items if item.get_closest_marker("barnabas")]
    config.hook.pytest_deselected(items=own_broker)
    items[:] = [item for item in items if item not in own_broker]


@pytest.fixture(scope="session")
def barnabas_command(pytestconfig: pytest.Config) -> Path:
    """The command that starts the broker under test."""
    given: str | None = pytestconfig.getoption("--barnabas")
    return Path(given) if given is not None else installed_barnabas()


@pytest.fixture(scope="session")
def shared_broker(
    pytestconfig: pytest.Config, barnabas_command: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess | None]:
    """The broker that most tests share; None if it is one that runs already."""
    if pytestconfig.getoption("--broker") is not None:
        yield None
        return
    broker = BrokerProcess(barnabas_command, tmp_path_factory.mktemp("broker") / "data")
    broker.start()
    yield broker
    assert broker.running(), "the broker died during the tests"
    assert broker.stop() == 0


@pytest.fixture(scope="session")
def bootstrap(pytestconfig: pytest.Config, shared_broker: BrokerProcess | None) -> str:
    """Address of the broker that most tests share."""
    if shared_broker is not None:
        return shared_broker.address
    given: str | None = pytestconfig.getoption("--broker")
    assert given is not None
    return given


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka that tests share."""
    directory = tmp_path_factory.mktemp("kafka") / "kafka"
    broker = ApacheKafka(directory, TEST_SETTINGS, jvm_options=SHORT_LIVED_JVM)
    try:
        broker.start()
        yield broker.address
    finally:
        broker.kill()


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.clients)])
def address(request: pytest.FixtureRequest) -> str:
    """The address of Barnabas, and with --clients also that of Apache Kafka."""
    found: str = request.getfixturevalue("bootstrap" if request.param == "barnabas" else "kafka")
    return found


@pytest.fixture(autouse=True)
def broker_lives(request: pytest.FixtureRequest) -> None:
    """Fails immediately after the shared broker has died, instead of waiting for answers."""
    if "bootstrap" in request.fixturenames:
        broker: BrokerProcess | None = request.getfixturevalue("shared_broker")
        assert broker is None or broker.running(), "the broker died in an earlier test"


@pytest.fixture(scope="session")
def cluster(bootstrap: str) -> Cluster:
    return Cluster(bootstrap)


@pytest.fixture(scope="session")
def probe(bootstrap: str) -> Iterator[ShareProbe]:
    """The JVM that tests share."""
    probe = ShareProbe(bootstrap)
    yield probe
    probe.kill()


@pytest.fixture
def new_probe(bootstrap: str) -> Iterator[Callable[[], ShareProbe]]:
    """Starts JVMs of a test's own, which may be killed."""
    probes: list[ShareProbe] = []

    def start() -> ShareProbe:
        probes.append(ShareProbe(bootstrap))
        return probes[-1]

    yield start
    for probe in probes:
        probe.kill()


@pytest.fixture
def own_broker(barnabas_command: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A started broker of a test's own, which may be killed and abused."""
    broker = BrokerProcess(barnabas_command, tmp_path / "data")
    broker.start()
    yield broker
    broker.kill()
