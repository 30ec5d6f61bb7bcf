"""A broker with less memory or fewer files than it asks for serves on as soon as there is room again."""

import resource
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.clients.broker_process import BrokerProcess
from tests.clients.raw_frames import RawConnection, api_versions_request

pytestmark = pytest.mark.barnabas

ROOM_BYTES = 8 * 1024 * 1024
"""Address space that is left to the broker once it serves: less than what `CONNECTIONS` take."""
CONNECTIONS = 600


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_broker_without_memory_for_connections_accepts_them_again_when_there_is_some(
    own_broker: BrokerProcess,
) -> None:
    with RawConnection(own_broker.address) as connection:
        connection.exchange(api_versions_request())
    limit_bytes = _address_space_bytes(own_broker.pid) + ROOM_BYTES
    resource.prlimit(own_broker.pid, resource.RLIMIT_AS, (limit_bytes, limit_bytes))
    with ExitStack() as clients:
        refused_count = sum(not _is_served(own_broker, clients) for _ in range(CONNECTIONS))
        assert 0 < refused_count < CONNECTIONS
    for _ in range(20):
        with RawConnection(own_broker.address) as connection:
            assert connection.exchange(api_versions_request())


def _is_served(broker: BrokerProcess, clients: ExitStack) -> bool:
    """Whether one more client, which stays connected, gets an answer."""
    client = clients.enter_context(RawConnection(broker.address, timeout_seconds=5))
    with suppress(EOFError, ConnectionError):
        return bool(client.exchange(api_versions_request()))
    return False


def _address_space_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()
